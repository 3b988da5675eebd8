/* What this machine allows two processes, without any runtime between them.
 *
 *   machine flag                    nanoseconds until one core sees another's store
 *   machine bandwidth BYTES         GB/s of each process at once: copying its own memory, copying
 *                                   from the other's, and d = a + the other's (bytes of a result)
 *   machine all_reduce BYTES        microseconds: reduce one half straight from the other's buffer,
 *                                   meet, fetch the other half, meet
 *
 * Two processes on shared memory, each on a core of its own. Prints the best of some tries. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each in lines of its own: two, as processors fetch them in pairs. */
struct flag {
    _Alignas(128) atomic_ulong value;
};

static struct flag *flags;
/* Mapped by both; [me] is written by this one. */
static float *buffers[2];
static int me;
static unsigned long meetings;

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void wait_for(atomic_ulong *flag, unsigned long value) {
    for (unsigned spins = 1; atomic_load_explicit(flag, memory_order_acquire) < value; spins++) {
        __builtin_ia32_pause();
        if (spins % 10000 == 0) {
            sched_yield(); /* both may have got the same core */
        }
    }
}

static atomic_ulong *flag_of(int who) {
    return &flags[who].value;
}

static void meet(void) {
    meetings++;
    atomic_store_explicit(flag_of(me), meetings, memory_order_release);
    wait_for(flag_of(!me), meetings);
}

static void *map(size_t bytes, int how) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

/* How often a loop over so many bytes is repeated: some milliseconds. */
static long repeats(size_t bytes) {
    long number = (long)((32u << 20) / (bytes + 64));
    return number < 2 ? 2 : number > 20000 ? 20000 : number;
}

static double flag_ns(void) {
    enum { ROUNDS = 20000, TRIES = 5 };
    double best = 1e18;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        meet();
        double start = now_ns();
        for (int round = 0; round < ROUNDS; round++) {
            meetings++;
            if (me) {
                wait_for(flag_of(0), meetings);
                atomic_store_explicit(flag_of(1), meetings, memory_order_release);
            } else {
                atomic_store_explicit(flag_of(0), meetings, memory_order_release);
                wait_for(flag_of(1), meetings);
            }
        }
        double each = (now_ns() - start) / (2.0 * ROUNDS);
        best = each < best ? each : best;
    }
    return best;
}

__attribute__((noinline)) static void copy(float *to, const float *from, size_t count) {
    memcpy(to, from, count * sizeof *to);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void add(float *to, const float *a, const float *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i] = a[i] + b[i];
    }
    __asm__ volatile("" ::: "memory");
}

enum { TRIES = 3 };

static void bandwidth(size_t bytes) {
    size_t count = bytes / sizeof(float);
    float *theirs = buffers[!me];
    float *result = map(bytes, MAP_PRIVATE), *own = map(bytes, MAP_PRIVATE);
    double best[3] = {0, 0, 0};
    memset(result, 0, bytes);
    memset(own, 0, bytes);
    long number = repeats(bytes);
    for (int what = 0; what < 3; what++) {
        for (int attempt = 0; attempt < TRIES; attempt++) {
            meet();
            double start = now_ns();
            for (long i = 0; i < number; i++) {
                if (what == 2) {
                    add(result, own, theirs, count);
                } else {
                    copy(result, what ? theirs : own, count);
                }
            }
            double rate = (double)bytes * (double)number / (now_ns() - start);
            best[what] = rate > best[what] ? rate : best[what];
        }
    }
    meet();
    if (!me) {
        printf("%.2f %.2f %.2f\n", best[0], best[1], best[2]);
    }
}

static void all_reduce(size_t bytes) {
    size_t count = bytes / sizeof(float), half = count / 2;
    float *mine = buffers[me], *theirs = buffers[!me];
    size_t start = me ? half : 0, length = me ? count - half : half;
    size_t other = me ? 0 : half, other_length = count - length;
    double best = 1e18;
    long number = repeats(bytes);
    for (int attempt = 0; attempt < TRIES; attempt++) {
        meet();
        double began = now_ns();
        for (long i = 0; i < number; i++) {
            add(mine + start, mine + start, theirs + start, length);
            meet();
            copy(mine + other, theirs + other, other_length);
            meet();
        }
        double each = (now_ns() - began) / (double)number / 1e3;
        best = each < best ? each : best;
    }
    if (!me) {
        printf("%.3f\n", best);
    }
}

static void pin(void) {
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int wanted = me, seen = 0;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed) && seen++ == wanted) {
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
}

int main(int argc, char **argv) {
    size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 0;
    if (argc < 2 || (strcmp(argv[1], "flag") && bytes == 0)) {
        fprintf(stderr, "usage: machine flag | bandwidth BYTES | all_reduce BYTES\n");
        return 2;
    }
    flags = map(2 * sizeof *flags, MAP_SHARED);
    for (int who = 0; who < 2; who++) {
        buffers[who] = map(bytes + 64, MAP_SHARED);
    }
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    me = child == 0;
    pin();
    memset(buffers[me], 0, bytes + 64);
    meet();
    if (argv[1][0] == 'f') {
        double best = flag_ns();
        if (!me) {
            printf("%.1f\n", best);
        }
    } else if (argv[1][0] == 'b') {
        bandwidth(bytes);
    } else {
        all_reduce(bytes);
    }
    fflush(stdout);
    if (me) {
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
