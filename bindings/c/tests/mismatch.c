/* Ranks that disagree: all learn it, and the communicator says so from then on. */
#include "check.h"

int main(void)
{
    rl_world *world = NULL;
    OK(rl_init(&world));
    rl_comm *comm = rl_world_comm(world);
    double x[2] = {0};
    int code = rl_all_reduce(comm, x, x, rl_rank(world) == 0 ? 1 : 2, RL_FLOAT64, RL_SUM);
    if (code == RL_OK)
        code = rl_barrier(comm);
    EXPECT(code == RL_ERROR_MISMATCH);
    EXPECT(strstr(rl_last_error(), "1 float64") && strstr(rl_last_error(), "2 float64"));
    EXPECT(strstr(rl_last_error(), "rank 0") && strstr(rl_last_error(), "pid"));
    EXPECT(rl_barrier(comm) == RL_ERROR_MISMATCH);
    EXPECT(rl_comm_error(comm) == RL_ERROR_MISMATCH);
    rl_finalize(world);
    printf("all well\n");
    return 0;
}
