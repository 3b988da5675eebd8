/* A rank dies; the others go on without it.
 *
 *     cc shrink.c $(pkg-config --cflags --libs rlaunch) -o shrink
 *     rlaunch -np 3 --on-failure continue ./shrink
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "rlaunch.h"

static void check(int code)
{
    if (code != RL_OK) {
        fprintf(stderr, "shrink: %s\n", rl_last_error());
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    rl_world *world;
    check(rl_init(&world));
    rl_comm *all = rl_world_comm(world), *left;
    if (rl_size(world) > 1 && rl_rank(world) == rl_size(world) - 1)
        raise(SIGKILL);

    int code = rl_barrier(all);
    if (code != RL_OK)
        printf("rank %d: %s\n", rl_rank(world), rl_last_error());
    check(rl_comm_shrink(all, &left));

    double one = 1;
    check(rl_all_reduce(left, &one, &one, 1, RL_FLOAT64, RL_SUM));
    printf("rank %d of %d is now rank %d of %g\n", rl_rank(world), rl_size(world),
           rl_comm_rank(left), one);

    check(rl_comm_free(left));
    rl_finalize(world); /* tells that the world had failed */
    return EXIT_SUCCESS;
}
