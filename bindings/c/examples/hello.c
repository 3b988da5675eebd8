/* Each rank says where it is, then all add up their numbers.
 *
 *     cc hello.c $(pkg-config --cflags --libs rlaunch) -o hello && rlaunch -np 4 ./hello
 */
#include <stdio.h>
#include <stdlib.h>

#include "rlaunch.h"

static void check(int code)
{
    if (code != RL_OK) {
        fprintf(stderr, "hello: %s\n", rl_last_error());
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    rl_world *world;
    check(rl_init(&world));
    printf("hello from rank %d of %d (local rank %d of %d)\n", rl_rank(world), rl_size(world),
           rl_local_rank(world), rl_local_size(world));

    double numbers[4];
    for (int i = 0; i < 4; i++)
        numbers[i] = rl_rank(world) + 1.0;
    check(rl_all_reduce(rl_world_comm(world), numbers, numbers, 4, RL_FLOAT64, RL_SUM));
    if (rl_rank(world) == 0)
        printf("the sum over all ranks: %g %g %g %g\n", numbers[0], numbers[1], numbers[2],
               numbers[3]);

    check(rl_finalize(world));
    return EXIT_SUCCESS;
}
