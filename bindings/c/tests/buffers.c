/* Memory from the runtime: what it is, and that calls take it and parts of it. */
#include "check.h"

enum { COUNT = 100000 };

int main(void)
{
    rl_world *world;
    OK(rl_init(&world));
    rl_comm *all = rl_world_comm(world), *part;
    int rank = rl_rank(world), size = rl_size(world);

    OK(rl_comm_dup(all, &part));
    rl_buffer *buffer, *small;
    OK(rl_buffer_allocate(part, COUNT * sizeof(float), &buffer));
    OK(rl_buffer_allocate(all, 0, &small));
    EXPECT(rl_buffer_data(small) != NULL);
    float *data = rl_buffer_data(buffer);
    EXPECT((uintptr_t)data % 64 == 0);
    for (int i = 0; i < COUNT; i++)
        EXPECT(data[i] == 0);
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)(rank + 1);

    OK(rl_all_reduce(part, data, data, COUNT, RL_FLOAT32, RL_SUM));
    float sum = (float)(size * (size + 1) / 2);
    EXPECT(data[0] == sum && data[COUNT - 1] == sum);
    OK(rl_comm_free(part)); /* the buffer stays */
    if (rank == 0)
        data[77] = 5;
    OK(rl_broadcast(all, data + 77, 50000, RL_FLOAT32, 0));
    EXPECT(data[77] == 5 && data[78] == sum);

    OK(rl_finalize(world));
    data[1] = 1;
    EXPECT(data[0] == sum && data[1] == 1);
    OK(rl_buffer_free(buffer));
    OK(rl_buffer_free(small));
    OK(rl_buffer_free(NULL));
    EXPECT(rl_buffer_data(NULL) == NULL);
    printf("all well\n");
    return 0;
}
