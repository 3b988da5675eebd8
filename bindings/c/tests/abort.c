/* abort reaches every rank. */
#include "check.h"

/* The others wait for one that never calls: it ends their calls instead. */
static void aborts(rl_comm *all, int rank)
{
    rl_comm *same;
    OK(rl_comm_dup(all, &same));
    if (rank == 0)
        OK(rl_comm_abort(same, "bad batch"));
    int code = rl_barrier(same);
    EXPECT(code == RL_ERROR_ABORTED);
    EXPECT(strstr(rl_last_error(), "bad batch") && rl_comm_error(same) == code);
    OK(rl_comm_free(same));
    OK(rl_barrier(all));
}

/* A receive for which nothing comes is given up, and disturbs nobody. */
static void cancels(rl_comm *all)
{
    double x[3];
    rl_request *request;
    int cancelled = 7;
    OK(rl_irecv(all, x, 3, RL_FLOAT64, RL_ANY_SOURCE, 99, &request));
    OK(rl_request_cancel(request, &cancelled));
    EXPECT(cancelled == 1);
    EXPECT(rl_wait(&request, NULL) == RL_ERROR_CANCELLED && !request);
    OK(rl_irecv(all, x, 3, RL_FLOAT64, RL_ANY_SOURCE, 99, &request));
    OK(rl_request_free(&request));
    EXPECT(rl_request_cancel(NULL, &cancelled) == RL_ERROR_ARGUMENT);
    OK(rl_comm_error(all));
    OK(rl_barrier(all));
}

int main(void)
{
    rl_world *world;
    OK(rl_init(&world));
    cancels(rl_world_comm(world));
    aborts(rl_world_comm(world), rl_rank(world));
    OK(rl_finalize(world));
    printf("all well\n");
    return 0;
}
