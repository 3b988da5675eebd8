/* The peers' side of `cargo x bench cpu`: MPI_Allreduce of floats in place, timed as rperf does it.
 *
 *   allreduce BYTES ITERATIONS WARMUPS
 *
 * Rank 0 prints one line: microseconds of a call, averaged over calls and ranks. Exits 1 when a
 * result is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void call(float *buffer, int count) {
    MPI_Allreduce(MPI_IN_PLACE, buffer, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4) {
        fprintf(stderr, "usage: allreduce BYTES ITERATIONS WARMUPS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long bytes = atol(argv[1]), iterations = atol(argv[2]), warmups = atol(argv[3]);
    int count = (int)(bytes / (long)sizeof(float));
    float *buffer = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (!buffer) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }

    for (int i = 0; i < count; i++) {
        buffer[i] = (float)(rank + 1 + i % 7);
    }
    call(buffer, count);
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        wrong += buffer[i] != (float)(size * (size + 1) / 2 + size * (i % 7));
    }

    for (int i = 0; i < count; i++) {
        buffer[i] = 0;
    }
    for (long i = 0; i < warmups; i++) {
        call(buffer, count);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        call(buffer, count);
    }
    double seconds = (MPI_Wtime() - start) / (double)iterations, sum = 0;
    MPI_Allreduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.4f\n", sum / size * 1e6);
    }
    free(buffer);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
