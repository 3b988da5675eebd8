/* The MPI peers' side of `cargo x bench cpu`: collectives of floats, timed as rperf times them.
 *
 *   collectives TEST BYTES ITERATIONS WARMUPS
 *
 * TEST is all_reduce, broadcast, all_gather, reduce_scatter, alltoall, reduce, barrier or latency
 * (half a round trip). BYTES counts all parts together, as in nccl-tests. all_reduce and broadcast
 * work in place, the others from one buffer into another; the same buffers in every call.
 *
 * Rank 0 prints one line: microseconds of a call, averaged over calls and ranks. Exits 1 when a
 * result is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static const char *test;
static float *input, *output;
static int count; /* of a part, or of the whole where there are no parts */

static int is(const char *name) {
    return strcmp(test, name) == 0;
}

static int has_parts(void) {
    return is("all_gather") || is("reduce_scatter") || is("alltoall");
}

static void call_all_reduce(void) {
    MPI_Allreduce(MPI_IN_PLACE, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void call_broadcast(void) {
    MPI_Bcast(output, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void call_all_gather(void) {
    MPI_Allgather(input, count, MPI_FLOAT, output, count, MPI_FLOAT, MPI_COMM_WORLD);
}
static void call_reduce_scatter(void) {
    MPI_Reduce_scatter_block(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void call_alltoall(void) {
    MPI_Alltoall(input, count, MPI_FLOAT, output, count, MPI_FLOAT, MPI_COMM_WORLD);
}
static void call_reduce(void) {
    MPI_Reduce(input, output, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void call_barrier(void) {
    MPI_Barrier(MPI_COMM_WORLD);
}
static void call_latency(void) {
    int last = ranks - 1;
    if (rank == 0) {
        MPI_Send(input, count, MPI_FLOAT, last, 0, MPI_COMM_WORLD);
        MPI_Recv(output, count, MPI_FLOAT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == last) {
        MPI_Recv(output, count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(input, count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
    }
}

static void (*find_call(void))(void) {
    static const struct {
        const char *name;
        void (*call)(void);
    } tests[] = {
        {"all_reduce", call_all_reduce},         {"broadcast", call_broadcast},
        {"all_gather", call_all_gather},         {"reduce_scatter", call_reduce_scatter},
        {"alltoall", call_alltoall},             {"reduce", call_reduce},
        {"barrier", call_barrier},               {"latency", call_latency},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (is(tests[i].name)) {
            return tests[i].call;
        }
    }
    fprintf(stderr, "collectives: no test %s\n", test);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return NULL;
}

/* What rank `who` contributes at `at`. */
static float contribution(int who, long at) {
    return (float)(who + 1 + at % 7);
}

static float reduced(long at) {
    return (float)(ranks * (ranks + 1) / 2 + ranks * (at % 7));
}

/* What has to stand at `at` of this rank's output; -1 where nothing has to. */
static float expected(long at) {
    if (is("all_reduce") || (is("reduce") && rank == 0)) {
        return reduced(at);
    }
    if (is("broadcast")) {
        return contribution(0, at);
    }
    if (is("all_gather")) {
        return contribution((int)(at / count), at % count);
    }
    if (is("reduce_scatter")) {
        return reduced((long)rank * count + at);
    }
    if (is("alltoall")) {
        return contribution((int)(at / count), (long)rank * count + at % count);
    }
    if (is("latency") && ranks > 1 && (rank == 0 || rank == ranks - 1)) {
        return contribution(rank == 0 ? ranks - 1 : 0, at);
    }
    return -1;
}

static int check(void (*call)(void), long input_count, long output_count) {
    for (long i = 0; i < input_count; i++) {
        input[i] = contribution(rank, i);
    }
    if (is("all_reduce") || is("broadcast")) {
        memcpy(output, input, (size_t)output_count * sizeof *output);
    }
    call();
    int wrong = 0;
    for (long i = 0; i < output_count; i++) {
        float value = expected(i);
        wrong += value >= 0 && output[i] != value;
    }
    return wrong;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) {
        fprintf(stderr, "usage: collectives TEST BYTES ITERATIONS WARMUPS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    test = argv[1];
    long bytes = atol(argv[2]), iterations = atol(argv[3]), warmups = atol(argv[4]);
    void (*call)(void) = find_call();
    long whole = bytes / (long)sizeof(float);
    count = (int)(has_parts() ? whole / ranks : whole);
    long input_count = is("all_gather") ? count : has_parts() ? (long)count * ranks : count;
    long output_count = is("reduce_scatter") ? count : has_parts() ? (long)count * ranks : count;
    /* One size for both, as rperf has it: a page more, so that no size is 0. */
    size_t room = (size_t)whole * sizeof(float) + 4096;
    if (posix_memalign((void **)&input, 4096, room) || posix_memalign((void **)&output, 4096, room)) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }

    memset(input, 0, room);
    memset(output, 0, room);
    int wrong = check(call, input_count, output_count);
    memset(input, 0, room);
    memset(output, 0, room);
    for (long i = 0; i < warmups; i++) {
        call();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        call();
    }
    double seconds = (MPI_Wtime() - start) / (double)iterations, sum = 0;
    int timed = ranks;
    if (is("latency")) {
        /* Both ways were timed as one; ranks between the two had nothing to do. */
        seconds = rank == 0 || rank == ranks - 1 ? seconds / 2 : 0;
        timed = ranks > 1 ? 2 : 1;
    }
    MPI_Allreduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.4f\n", sum / timed * 1e6);
    }
    free(input);
    free(output);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
