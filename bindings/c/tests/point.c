/* Send, receive, probe and groups, on any number of ranks. */
#include "check.h"

static int rank, size, next, previous;

static void wildcards(rl_comm *comm)
{
    float c[5] = {1, 2, 3, 4, 5}, d[8] = {0};
    rl_status status = {-5, 5, 5};
    if (rank > 0)
        OK(rl_send(comm, c, 5, RL_FLOAT32, 0, (uint32_t)(100 + rank)));
    for (int r = 1; rank == 0 && r < size; r++) {
        OK(rl_probe(comm, RL_ANY_SOURCE, RL_ANY_TAG, &status));
        EXPECT(status.count == 5 && status.tag == (uint32_t)(100 + status.source));
        OK(rl_recv(comm, d, 8, RL_FLOAT32, status.source, status.tag, &status));
        EXPECT(memcmp(c, d, sizeof c) == 0 && d[5] == 0 && status.count == 5);
    }
    int found = -1;
    OK(rl_iprobe(comm, RL_ANY_SOURCE, RL_ANY_TAG, &found, NULL));
    EXPECT(found == 0);
    OK(rl_barrier(comm));
}

/* All send first: more than would be kept for a receiver that has not asked. */
static void exchanges(rl_comm *comm)
{
    enum { LARGE = 1 << 18 };
    static int64_t mine[LARGE], theirs[LARGE];
    rl_status status;
    rl_request *requests[2];
    rl_status statuses[2];
    for (int i = 0; i < LARGE; i++)
        mine[i] = rank * 10 + 1;
    OK(rl_group_begin());
    REFUSED(rl_group_begin(), "open");
    OK(rl_send(comm, mine, LARGE, RL_INT64, next, 3));
    OK(rl_recv(comm, theirs, LARGE, RL_INT64, previous, 3, NULL));
    OK(rl_group_end());
    EXPECT(theirs[LARGE - 1] == previous * 10 + 1);

    OK(rl_sendrecv(comm, mine, LARGE, previous, 4, theirs, LARGE, next, 4, RL_INT64, &status));
    EXPECT(theirs[0] == next * 10 + 1 && status.source == next && status.count == LARGE);

    OK(rl_irecv(comm, theirs, LARGE, RL_INT64, RL_ANY_SOURCE, 5, &requests[0]));
    OK(rl_isend(comm, mine, 7, RL_INT64, next, 5, &requests[1]));
    OK(rl_wait_all(2, requests, statuses));
    EXPECT(statuses[0].source == previous && statuses[0].tag == 5 && statuses[0].count == 7);
    EXPECT(theirs[6] == previous * 10 + 1);
}

static void refusals(rl_comm *comm)
{
    double x[4] = {0};
    REFUSED(rl_send(comm, x, 4, RL_FLOAT64, size, 0), "to is");
    REFUSED(rl_recv(comm, x, 4, RL_FLOAT64, -7, 0, NULL), "from is -7");
    REFUSED(rl_recv(comm, x, 4, RL_FLOAT64, 0, -2, NULL), "tag is -2");
    REFUSED(rl_sendrecv(comm, x, 2, 0, 0, x + 1, 2, 0, 0, RL_FLOAT64, NULL), "overlap");
    REFUSED(rl_iprobe(comm, 0, 0, NULL, NULL), "found is");
}

int main(void)
{
    rl_world *world;
    OK(rl_init(&world));
    rank = rl_rank(world), size = rl_size(world);
    next = (rank + 1) % size, previous = (rank + size - 1) % size;
    wildcards(rl_world_comm(world));
    exchanges(rl_world_comm(world));
    refusals(rl_world_comm(world));
    OK(rl_finalize(world));
    printf("all well\n");
    return 0;
}
