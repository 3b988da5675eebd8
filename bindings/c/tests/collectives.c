/* Every collective, at once, as a request and prepared, on any number of ranks. */
#include "check.h"

enum { SIZE_MAX_HERE = 8 };

static int rank, size;

/* 1 + 2 + … + n */
static int64_t sum_to(int64_t n)
{
    return n * (n + 1) / 2;
}

static void elementwise(rl_comm *comm)
{
    int32_t a[3] = {rank, 2 * rank, 7}, b[3];
    OK(rl_all_reduce(comm, a, b, 3, RL_INT32, RL_MAX));
    EXPECT(b[0] == size - 1 && b[1] == 2 * (size - 1) && b[2] == 7 && a[0] == rank);
    OK(rl_all_reduce(comm, a, a, 3, RL_INT32, RL_SUM)); /* in place */
    EXPECT(a[0] == sum_to(size - 1) && a[2] == 7 * size);

    double c[2] = {rank, rank + 0.5}, d[2] = {-1, -1};
    OK(rl_broadcast(comm, c, 2, RL_FLOAT64, size - 1));
    EXPECT(c[0] == size - 1 && c[1] == size - 0.5);
    c[0] = rank + 1;
    OK(rl_reduce(comm, c, rank == size - 1 ? d : NULL, 2, RL_FLOAT64, RL_PROD, size - 1));
    double factorial = 1;
    for (int r = 1; r <= size; r++)
        factorial *= r;
    EXPECT(d[0] == (rank == size - 1 ? factorial : -1));

    int64_t e = rank + 1, f = -7;
    OK(rl_scan(comm, &e, &f, 1, RL_INT64, RL_SUM));
    EXPECT(f == sum_to(rank + 1));
    f = -7;
    OK(rl_exscan(comm, &e, &f, 1, RL_INT64, RL_SUM));
    EXPECT(f == (rank == 0 ? -7 : sum_to(rank)));
    OK(rl_barrier(comm));
    OK(rl_all_reduce(comm, NULL, NULL, 0, RL_FLOAT32, RL_SUM));
}

static void parts(rl_comm *comm)
{
    int64_t mine = 10 + rank, all[SIZE_MAX_HERE], part = 0;
    OK(rl_all_gather(comm, &mine, all, 1, RL_INT64));
    for (int r = 0; r < size; r++)
        EXPECT(all[r] == 10 + r);
    all[rank] = 20 + rank;
    OK(rl_all_gather(comm, &all[rank], all, 1, RL_INT64)); /* in place */
    for (int r = 0; r < size; r++)
        EXPECT(all[r] == 20 + r);
    OK(rl_reduce_scatter(comm, all, &part, 1, RL_INT64, RL_SUM));
    EXPECT(part == (int64_t)size * (20 + rank));

    memset(all, 0, sizeof all);
    OK(rl_gather(comm, &mine, rank == 0 ? all : NULL, 1, RL_INT64, 0));
    for (int r = 0; r < size; r++)
        EXPECT(all[r] == (rank == 0 ? 10 + r : 0));
    OK(rl_scatter(comm, rank == 0 ? all : NULL, &part, 1, RL_INT64, 0));
    EXPECT(part == 10 + rank);

    int64_t given[SIZE_MAX_HERE], taken[SIZE_MAX_HERE];
    for (int r = 0; r < size; r++)
        given[r] = 100 * rank + r;
    OK(rl_all_to_all(comm, given, taken, 1, RL_INT64));
    for (int r = 0; r < size; r++)
        EXPECT(taken[r] == 100 * r + rank);
}

/* Rank r has r + 1 elements, each r. */
static void parts_of_their_own_size(rl_comm *comm)
{
    enum { ALL = SIZE_MAX_HERE * (SIZE_MAX_HERE + 1) / 2 };
    uint64_t counts[SIZE_MAX_HERE], total = (uint64_t)sum_to(size);
    float mine[SIZE_MAX_HERE], all[ALL] = {0}, back[SIZE_MAX_HERE];
    for (int r = 0; r < size; r++)
        counts[r] = (uint64_t)r + 1;
    for (int i = 0; i <= rank; i++)
        mine[i] = (float)rank;
    OK(rl_all_gather_v(comm, mine, all, counts, NULL, RL_FLOAT32));
    for (int r = 0, at = 0; r < size; r++)
        for (int i = 0; i <= r; i++)
            EXPECT(all[at++] == (float)r);
    EXPECT(total < ALL ? all[total] == 0 : 1);

    OK(rl_reduce_scatter_v(comm, all, back, counts, NULL, RL_FLOAT32, RL_SUM));
    EXPECT(back[0] == (float)(rank * size) && back[rank] == (float)(rank * size));
    memset(all, 0, sizeof all);
    OK(rl_gather_v(comm, mine, counts[rank], all, rank == 0 ? counts : NULL, NULL, RL_FLOAT32, 0));
    EXPECT(rank != 0 || all[total - 1] == (float)(size - 1));
    memset(back, 0, sizeof back);
    OK(rl_scatter_v(comm, all, rank == 0 ? counts : NULL, NULL, back, counts[rank], RL_FLOAT32, 0));
    EXPECT(back[rank] == (float)rank);

    /* Each gives r + 1 elements to rank r; so rank r gets r + 1 from each. */
    uint64_t received[SIZE_MAX_HERE];
    float taken[SIZE_MAX_HERE * SIZE_MAX_HERE];
    for (int r = 0; r < size; r++)
        received[r] = (uint64_t)rank + 1;
    for (int r = 0, at = 0; r < size; r++)
        for (int i = 0; i <= r; i++)
            all[at++] = (float)(10 * rank + r);
    OK(rl_all_to_all_v(comm, all, counts, NULL, taken, received, NULL, RL_FLOAT32));
    for (int r = 0; r < size; r++)
        EXPECT(taken[r * (rank + 1)] == (float)(10 * r + rank));
}

static void requests(rl_comm *comm)
{
    float x[1000], y[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = (float)(rank + i);
    rl_request *request[3];
    OK(rl_iall_reduce(comm, x, y, 1000, RL_FLOAT32, RL_SUM, &request[0]));
    int64_t root = rank;
    OK(rl_ibroadcast(comm, &root, 1, RL_INT64, size - 1, &request[1]));
    OK(rl_ibarrier(comm, &request[2]));
    OK(rl_wait_all(3, request, NULL));
    EXPECT(!request[0] && !request[1] && !request[2]);
    EXPECT(y[3] == (float)(sum_to(size - 1) + 3 * size) && root == size - 1);
    OK(rl_wait(&request[0], NULL)); /* NULL is complete */

    OK(rl_ibarrier(comm, &request[0]));
    for (int done = 0; !done;)
        OK(rl_test(&request[0], &done, NULL));
    EXPECT(!request[0]);
    OK(rl_ibarrier(comm, &request[0]));
    int done = 0;
    OK(rl_wait_timeout(&request[0], 30.0, &done, NULL));
    EXPECT(done && !request[0]);

    rl_request *again;
    int64_t z;
    OK(rl_all_reduce_init(comm, &z, &z, 1, RL_INT64, RL_SUM, &again));
    for (int round = 0; round < 5; round++) {
        z = round + rank;
        OK(rl_start(again));
        REFUSED(rl_start(again), "under way");
        OK(rl_wait(&again, NULL));
        EXPECT(again && z == (int64_t)round * size + sum_to(size - 1));
    }
    OK(rl_request_free(&again));
    EXPECT(!again);
}

int main(void)
{
    rl_world *world = NULL;
    OK(rl_init(&world));
    rank = rl_rank(world), size = rl_size(world);
    EXPECT(rank >= 0 && rank < size && size <= SIZE_MAX_HERE);
    EXPECT(rl_local_rank(world) == rank && rl_local_size(world) == size);
    rl_comm *comm = rl_world_comm(world);
    EXPECT(rl_comm_rank(comm) == rank && rl_comm_size(comm) == size && rl_comm_id(comm) == 0);
    elementwise(comm);
    parts(comm);
    parts_of_their_own_size(comm);
    requests(comm);
    OK(rl_finalize(world));
    printf("all well\n");
    return 0;
}
