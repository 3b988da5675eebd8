/* Types and reductions: named ones, with a scalar, of the program's own. */
#include "check.h"

static void named(rl_comm *comm, int rank, int size)
{
    int8_t a = (int8_t)(rank + 1);
    OK(rl_all_reduce(comm, &a, &a, 1, RL_INT8, RL_SUM));
    EXPECT(a == size * (size + 1) / 2);
    uint16_t b = (uint16_t)(1u << rank);
    OK(rl_all_reduce(comm, &b, &b, 1, RL_UINT16, RL_BOR));
    EXPECT(b == (1u << size) - 1);
    uint16_t bf16 = 0x3f80; /* 1.0 */
    OK(rl_all_reduce(comm, &bf16, &bf16, 1, RL_BFLOAT16, RL_AVG));
    EXPECT(bf16 == 0x3f80);
    float c[2] = {(float)rank, 1.0f};
    OK(rl_all_reduce(comm, c, c, 1, RL_COMPLEX64, RL_SUM));
    EXPECT(c[0] == (float)(size * (size - 1) / 2) && c[1] == (float)size);
    struct {
        float value;
        int32_t index;
    } least = {(float)(rank == size / 2 ? -5 : rank), rank};
    OK(rl_all_reduce(comm, &least, &least, 1, RL_FLOAT32_INT32, RL_MINLOC));
    EXPECT(least.value == -5 && least.index == size / 2);
    double d = 1;
    REFUSED(rl_all_reduce(comm, &d, &d, 1, RL_FLOAT64, RL_BAND), "integers");
    REFUSED(rl_all_reduce(comm, &d, &d, 1, RL_FLOAT64, RL_MINLOC), "pairs");
}

static void with_scalar(rl_comm *comm, int rank, int size)
{
    float scalar = (float)(rank + 1), x = 2;
    int op;
    OK(rl_op_premul_sum(&scalar, RL_FLOAT32, &op));
    OK(rl_all_reduce(comm, &x, &x, 1, RL_FLOAT32, op));
    EXPECT(x == (float)(size * (size + 1)));
    double y = 1;
    REFUSED(rl_all_reduce(comm, &y, &y, 1, RL_FLOAT64, op), "scalar of float32");
    OK(rl_op_free(op));
    REFUSED(rl_op_free(op), "op is");
    REFUSED(rl_all_reduce(comm, &x, &x, 1, RL_FLOAT32, op), "op is");
}

/* The last rank's value that is not 0: associative, but a op b is not b op a. */
static void last_not_zero(void *inout, const void *input, uint64_t count, int dtype, void *context)
{
    int64_t *a = inout;
    const int64_t *b = input;
    if (dtype != RL_INT64)
        return;
    for (uint64_t i = 0; i < count; i++)
        a[i] = b[i] ? b[i] : a[i];
    *(int *)context = 1;
}

static void of_its_own(rl_comm *comm, int rank, int size)
{
    int op, called = 0;
    OK(rl_op_create(last_not_zero, &called, 0, &op));
    int64_t x[100];
    for (int i = 0; i < 100; i++)
        x[i] = i % size >= rank ? rank + 1 : 0;
    OK(rl_all_reduce(comm, x, x, 100, RL_INT64, op));
    for (int i = 0; i < 100; i++)
        EXPECT(x[i] == i % size + 1);
    OK(rl_op_free(op));
    REFUSED(rl_op_create(NULL, NULL, 1, &op), "function is NULL");
    REFUSED(rl_op_premul_sum(NULL, RL_FLOAT32, &op), "scalar is NULL");
}

int main(void)
{
    rl_world *world;
    OK(rl_init(&world));
    int rank = rl_rank(world), size = rl_size(world);
    named(rl_world_comm(world), rank, size);
    with_scalar(rl_world_comm(world), rank, size);
    of_its_own(rl_world_comm(world), rank, size);
    OK(rl_finalize(world));
    printf("all well\n");
    return 0;
}
