/* A number travels once around all ranks, and each adds to it.
 *
 *     cc ring.c $(pkg-config --cflags --libs rlaunch) -o ring && rlaunch -np 4 ./ring
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "rlaunch.h"

static void check(int code)
{
    if (code != RL_OK) {
        fprintf(stderr, "ring: %s\n", rl_last_error());
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    enum { TAG = 7 };
    rl_world *world;
    check(rl_init(&world));
    rl_comm *comm = rl_world_comm(world);
    int rank = rl_rank(world), size = rl_size(world);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;

    int64_t sum = 0;
    if (size > 1) {
        rl_status status;
        if (rank > 0)
            check(rl_recv(comm, &sum, 1, RL_INT64, previous, TAG, &status));
        sum += rank;
        check(rl_send(comm, &sum, 1, RL_INT64, next, TAG));
        if (rank == 0) {
            check(rl_recv(comm, &sum, 1, RL_INT64, RL_ANY_SOURCE, RL_ANY_TAG, &status));
            printf("rank %d brought %d\n", (int)status.source, (int)sum);
        }
    }

    check(rl_finalize(world));
    return EXIT_SUCCESS;
}
