/* What can't be right is refused with a reason, and the communicator stays usable. */
#include <math.h>

#include "check.h"

static void codes_and_buffers(rl_comm *comm, int size)
{
    double x[4] = {1, 2, 3, 4};
    rl_request *request = NULL;
    REFUSED(rl_all_reduce(comm, NULL, x, 4, RL_FLOAT64, RL_SUM), "input is NULL");
    REFUSED(rl_all_reduce(comm, x, NULL, 4, RL_FLOAT64, RL_SUM), "output is NULL");
    REFUSED(rl_all_reduce(comm, x, x, 4, 0, RL_SUM), "dtype is 0");
    REFUSED(rl_all_reduce(comm, x, x, 4, 260, RL_SUM), "dtype is 260");
    REFUSED(rl_all_reduce(comm, x, x, 4, RL_FLOAT64, -1), "op is -1");
    REFUSED(rl_all_reduce(comm, x, x, 4, RL_FLOAT64, 14), "op is 14");
    REFUSED(rl_all_reduce(comm, x, x, UINT64_MAX / 8, RL_FLOAT64, RL_SUM), "more than memory");
    REFUSED(rl_all_reduce(comm, (char *)x + 1, x, 1, RL_FLOAT64, RL_SUM), "aligned");
    REFUSED(rl_all_reduce(comm, x, x + 1, 2, RL_FLOAT64, RL_SUM), "overlap");
    REFUSED(rl_broadcast(comm, x, 4, RL_FLOAT64, size), "root is");
    REFUSED(rl_broadcast(comm, x, 4, RL_FLOAT64, -1), "root is -1");
    REFUSED(rl_all_gather(comm, (float *)x + 1, x, 2, RL_FLOAT32), "overlap");
    REFUSED(rl_all_gather(comm, x, x, UINT64_MAX / 2 + 1, RL_INT8), "more than memory");
    REFUSED(rl_all_gather_v(comm, x, x, NULL, NULL, RL_FLOAT64), "counts is NULL");
    REFUSED(rl_iall_reduce(comm, x, x, 4, RL_FLOAT64, RL_SUM, NULL), "request is NULL");
    REFUSED(rl_iall_reduce(comm, x, x, 4, 99, RL_SUM, &request), "dtype is 99");
    REFUSED(rl_all_reduce_init(comm, x, x, 4, RL_FLOAT64, 99, &request), "op is 99");
    EXPECT(request == NULL);
}

static void handles(rl_world *world, rl_comm *comm)
{
    double x = 0;
    long zeros[16] = {0};
    rl_comm *no_comm = (rl_comm *)zeros, *crooked = (rl_comm *)((char *)zeros + 1);
    REFUSED(rl_init(NULL), "world is NULL");
    rl_world *second = NULL;
    EXPECT(rl_init(&second) == RL_ERROR_INIT && !second);
    EXPECT(strstr(rl_last_error(), "has joined already") != NULL);
    REFUSED(rl_barrier(NULL), "NULL where an rl_comm");
    REFUSED(rl_barrier(no_comm), "not an rl_comm");
    REFUSED(rl_barrier(crooked), "not an rl_comm");
    REFUSED(rl_barrier((rl_comm *)world), "not an rl_comm");
    REFUSED(rl_all_reduce(no_comm, &x, &x, 1, RL_FLOAT64, RL_SUM), "not an rl_comm");
    REFUSED(rl_start(NULL), "NULL where an rl_request");
    REFUSED(rl_wait(NULL, NULL), "request is");
    REFUSED(rl_wait_all(2, NULL, NULL), "requests is");
    REFUSED(rl_comm_free(comm), "rl_finalize");
    REFUSED(rl_comm_dup(comm, NULL), "made is NULL");
    REFUSED(rl_comm_set_timeout(comm, -1), "seconds is -1.0");
    REFUSED(rl_comm_set_timeout(comm, NAN), "seconds is NaN");
    OK(rl_comm_set_timeout(comm, INFINITY));
    OK(rl_comm_set_timeout(comm, 1e300));
    OK(rl_comm_set_timeout(comm, 0));
    rl_buffer *buffer = NULL;
    EXPECT(rl_buffer_allocate(comm, 1000000000000000, &buffer) == RL_ERROR_MEMORY && !buffer);
    EXPECT(strstr(rl_last_error(), "1000000000000000 bytes (909.5 TiB)") != NULL);
    EXPECT(strstr(rl_last_error(), "available on this machine") != NULL);
    EXPECT(rl_finalize((rl_world *)zeros) == RL_ERROR_ARGUMENT);
    EXPECT(rl_rank(NULL) == -1 && rl_size(NULL) == -1);
    EXPECT(rl_local_rank(NULL) == -1 && rl_local_size(NULL) == -1);
    EXPECT(rl_comm_rank(NULL) == -1 && rl_comm_size(no_comm) == -1 && rl_comm_id(NULL) == -1);
    EXPECT(rl_world_comm(NULL) == NULL);
    REFUSED(rl_group_end(), "rl_group_begin");
    OK(rl_finalize(NULL));
    OK(rl_comm_free(NULL));
    rl_request *none = NULL;
    OK(rl_request_free(&none));
    OK(rl_wait_all(0, NULL, NULL));
}

int main(void)
{
    EXPECT(strcmp(rl_last_error(), "") == 0);
    EXPECT(strcmp(rl_version(), RL_VERSION) == 0);
    rl_world *world = NULL;
    OK(rl_init(&world));
    codes_and_buffers(rl_world_comm(world), rl_size(world));
    handles(world, rl_world_comm(world));
    OK(rl_barrier(rl_world_comm(world)));
    EXPECT(rl_comm_error(rl_world_comm(world)) == RL_OK);
    EXPECT(strstr(rl_flight_recorder(world), "barrier") != NULL);
    EXPECT(strcmp(rl_flight_recorder(NULL), "") == 0);
    OK(rl_finalize(world));
    EXPECT(rl_init(&world) == RL_ERROR_INIT);
    EXPECT(strstr(rl_last_error(), "once") != NULL);
    printf("all well\n");
    return 0;
}
