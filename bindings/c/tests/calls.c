/* Every call of rlaunch.h, on any number of ranks. The first thing that is wrong ends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlaunch.h"

#define EXPECT(condition)                                                                       \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition,              \
                    rl_last_error());                                                           \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)
#define OK(call) EXPECT((call) == RL_OK)
/* The call is refused, and says why. */
#define REFUSED(call, word)                                                                     \
    do {                                                                                        \
        EXPECT((call) == RL_ERROR_ARGUMENT);                                                    \
        EXPECT(strstr(rl_last_error(), word) != NULL);                                          \
    } while (0)

static void values(rl_world *world, int rank, int size)
{
    int32_t a[3] = {rank, 2 * rank, 7};
    OK(rl_all_reduce(world, a, 3, RL_INT32, RL_MAX));
    EXPECT(a[0] == size - 1 && a[1] == 2 * (size - 1) && a[2] == 7);

    double b[2] = {rank, rank + 0.5};
    OK(rl_broadcast(world, b, 2, RL_FLOAT64, size - 1));
    EXPECT(b[0] == size - 1 && b[1] == size - 0.5);

    int64_t mine = 10 + rank, *all = calloc(size, sizeof *all);
    OK(rl_all_gather(world, &mine, all, 1, RL_INT64));
    for (int r = 0; r < size; r++)
        EXPECT(all[r] == 10 + r);
    all[rank] = 20 + rank;
    OK(rl_all_gather(world, &all[rank], all, 1, RL_INT64)); /* in place */
    for (int r = 0; r < size; r++)
        EXPECT(all[r] == 20 + r);
    int64_t part = 0;
    OK(rl_reduce_scatter(world, all, &part, 1, RL_INT64, RL_SUM));
    EXPECT(part == (int64_t)size * (20 + rank));
    free(all);

    float c[5] = {1, 2, 3, 4, 5}, d[5] = {0};
    if (size > 1 && rank == 0)
        OK(rl_send(world, c, 5, RL_FLOAT32, size - 1, 9));
    if (size > 1 && rank == size - 1) {
        OK(rl_recv(world, d, 5, RL_FLOAT32, 0, 9));
        EXPECT(memcmp(c, d, sizeof c) == 0);
    }
    OK(rl_all_reduce(world, NULL, 0, RL_FLOAT32, RL_SUM));
    OK(rl_barrier(world));
}

static void refusals(rl_world *world, int size)
{
    double x[4] = {1, 2, 3, 4};
    REFUSED(rl_init(NULL), "world is NULL");
    REFUSED(rl_barrier(NULL), "rl_init");
    REFUSED(rl_all_reduce(world, NULL, 4, RL_FLOAT64, RL_SUM), "buffer is NULL");
    REFUSED(rl_all_reduce(world, x, 4, 0, RL_SUM), "dtype is 0");
    REFUSED(rl_all_reduce(world, x, 4, 260, RL_SUM), "dtype is 260");
    REFUSED(rl_all_reduce(world, x, 4, RL_FLOAT64, -1), "op is -1");
    REFUSED(rl_all_reduce(world, x, UINT64_MAX / 8, RL_FLOAT64, RL_SUM), "more than memory");
    REFUSED(rl_all_reduce(world, (char *)x + 1, 1, RL_FLOAT64, RL_SUM), "aligned");
    REFUSED(rl_broadcast(world, x, 4, RL_FLOAT64, size), "root is");
    REFUSED(rl_broadcast(world, x, 4, RL_FLOAT64, -1), "root is -1");
    REFUSED(rl_send(world, x, 4, RL_FLOAT64, size, 0), "to is");
    REFUSED(rl_recv(world, x, 4, RL_FLOAT64, -7, 0), "from is -7");
    REFUSED(rl_all_gather(world, (float *)x + 1, x, 2, RL_FLOAT32), "overlap");
    EXPECT(rl_rank(NULL) == -1 && rl_size(NULL) == -1);
    EXPECT(rl_local_rank(NULL) == -1 && rl_local_size(NULL) == -1);
    OK(rl_finalize(NULL));
}

/* Ranks that disagree: all learn it. The world is of no more use then. */
static void mismatch(rl_world *world, int rank)
{
    double x[2] = {0};
    int code = rl_all_reduce(world, x, rank == 0 ? 1 : 2, RL_FLOAT64, RL_SUM);
    if (code == RL_OK)
        code = rl_barrier(world);
    EXPECT(code == RL_ERROR_MISMATCH);
    EXPECT(strstr(rl_last_error(), "1 float64") && strstr(rl_last_error(), "2 float64"));
    EXPECT(rl_barrier(world) == RL_ERROR_MISMATCH);
}

int main(void)
{
    EXPECT(strcmp(rl_last_error(), "") == 0);
    rl_world *world = NULL;
    OK(rl_init(&world));
    int rank = rl_rank(world), size = rl_size(world);
    EXPECT(rank >= 0 && rank < size);
    EXPECT(rl_local_rank(world) == rank && rl_local_size(world) == size);
    refusals(world, size);
    values(world, rank, size);
    if (size > 1)
        mismatch(world, rank);
    rl_finalize(world);
    printf("rank %d of %d: all well\n", rank, size);
    return 0;
}
