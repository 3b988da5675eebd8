/* Communicators out of communicators, and what holds for each, on any number of ranks. */
#include "check.h"

static void splits(rl_comm *all, int rank, int size)
{
    rl_comm *half, *none, *same, *two;
    OK(rl_comm_split(all, rank % 2, -rank, &half)); /* the highest rank comes first */
    int members = size / 2 + (rank % 2 == 0 ? size % 2 : 0), ranks[8];
    EXPECT(rl_comm_size(half) == members && rl_comm_id(half) > 0);
    OK(rl_comm_ranks(half, ranks));
    EXPECT(ranks[rl_comm_rank(half)] == rank && ranks[members - 1] == rank % 2);
    int32_t sum = 1;
    OK(rl_all_reduce(half, &sum, &sum, 1, RL_INT32, RL_SUM));
    EXPECT(sum == members);

    OK(rl_comm_split(all, rank == 0 ? 7 : RL_NO_COLOR, 0, &none));
    EXPECT((none == NULL) == (rank != 0));
    REFUSED(rl_comm_split(all, -2, 0, &same), "color is -2");

    OK(rl_comm_dup(all, &same));
    rl_request *requests[2];
    int64_t x = rank, y = rank;
    OK(rl_iall_reduce(all, &x, &x, 1, RL_INT64, RL_MAX, &requests[rank % 2]));
    OK(rl_iall_reduce(same, &y, &y, 1, RL_INT64, RL_MIN, &requests[1 - rank % 2]));
    OK(rl_wait_all(2, requests, NULL));
    EXPECT(x == size - 1 && y == 0);

    int list[2] = {size - 1, 0};
    OK(rl_comm_from_ranks(all, list, size > 1 ? 2 : 1, &two));
    EXPECT((two == NULL) == (rank != 0 && rank != size - 1));
    if (two)
        EXPECT(rl_comm_rank(two) == (rank == size - 1 ? 0 : 1));
    list[0] = size;
    REFUSED(rl_comm_from_ranks(all, list, 1, &two), "but ranks are");
    OK(rl_comm_set_timeout(half, 20));
    OK(rl_barrier(half));
    rl_comm *made[] = {half, none, same, two};
    for (int i = 0; i < 3; i++)
        OK(rl_comm_free(made[i]));
}

int main(void)
{
    rl_world *world;
    OK(rl_init(&world));
    splits(rl_world_comm(world), rl_rank(world), rl_size(world));
    OK(rl_finalize(world));
    printf("all well\n");
    return 0;
}
