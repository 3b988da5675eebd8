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

int main(void)
{
    rl_world *world;
    OK(rl_init(&world));
    aborts(rl_world_comm(world), rl_rank(world));
    OK(rl_finalize(world));
    printf("all well\n");
    return 0;
}
