/* A gradient of each rank becomes the average over all, as data-parallel training does it.
 *
 *     cc allreduce.c $(pkg-config --cflags --libs rlaunch) -o allreduce && rlaunch -np 4 ./allreduce
 */
#include <stdio.h>
#include <stdlib.h>

#include "rlaunch.h"

enum { LENGTH = 1 << 20 };

static void check(int code)
{
    if (code != RL_OK) {
        fprintf(stderr, "allreduce: %s\n", rl_last_error());
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    rl_world *world;
    check(rl_init(&world));
    rl_comm *comm = rl_world_comm(world);

    float *gradient = malloc(LENGTH * sizeof *gradient);
    if (gradient == NULL)
        return EXIT_FAILURE;
    for (int i = 0; i < LENGTH; i++)
        gradient[i] = (float)rl_rank(world);
    check(rl_all_reduce(comm, gradient, gradient, LENGTH, RL_FLOAT32, RL_AVG));
    if (rl_rank(world) == 0)
        printf("the average of ranks 0 to %d is %g\n", rl_size(world) - 1, gradient[LENGTH - 1]);

    free(gradient);
    check(rl_finalize(world));
    return EXIT_SUCCESS;
}
