/* Computing while an all-reduce is under way.
 *
 *     cc overlap.c $(pkg-config --cflags --libs rlaunch) -o overlap && rlaunch -np 2 ./overlap
 */
#include <stdio.h>
#include <stdlib.h>

#include "rlaunch.h"

enum { LENGTH = 1 << 20, LAYERS = 4 };

static float gradients[LAYERS][LENGTH];

static void check(int code)
{
    if (code != RL_OK) {
        fprintf(stderr, "overlap: %s\n", rl_last_error());
        exit(EXIT_FAILURE);
    }
}

/* Stands for the backward pass of a layer. */
static void compute(int layer, int rank)
{
    for (int i = 0; i < LENGTH; i++)
        gradients[layer][i] = (float)(layer + rank);
}

int main(void)
{
    rl_world *world;
    check(rl_init(&world));
    rl_comm *comm = rl_world_comm(world);

    rl_request *requests[LAYERS];
    for (int layer = 0; layer < LAYERS; layer++) {
        compute(layer, rl_rank(world));
        /* Goes on while the next layer computes. */
        check(rl_iall_reduce(comm, gradients[layer], gradients[layer], LENGTH, RL_FLOAT32, RL_SUM,
                             &requests[layer]));
    }
    check(rl_wait_all(LAYERS, requests, NULL));
    if (rl_rank(world) == 0)
        for (int layer = 0; layer < LAYERS; layer++)
            printf("layer %d: %g\n", layer, gradients[layer][0]);

    check(rl_finalize(world));
    return EXIT_SUCCESS;
}
