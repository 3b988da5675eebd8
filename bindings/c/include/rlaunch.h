/* The C API of rlaunch: ranks of one job talk to each other.
 *
 *     rl_world *world;
 *     if (rl_init(&world) != RL_OK) { fprintf(stderr, "%s\n", rl_last_error()); exit(1); }
 *     float gradient[1000] = {1};
 *     rl_all_reduce(world, gradient, 1000, RL_FLOAT32, RL_SUM);
 *     rl_finalize(world);
 *
 * Link with -lrlaunch. Start with `rlaunch -np 4 ./program`, with torchrun, or by hand with
 * MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE set; with none of these it is a world of one rank.
 *
 * What holds for every call:
 * - It returns RL_OK or one of the other codes; rl_last_error() then tells what happened, where,
 *   and what to try.
 * - It blocks until its result is there. No thread of its own is started.
 * - All ranks make the same collective calls in the same order. Where they do not, all of them get
 *   RL_ERROR_MISMATCH.
 * - After any error but RL_ERROR_ARGUMENT each later call on the world fails in the same way, and
 *   the buffers of the failed call have undefined contents.
 * - A world may be used from several threads; calls take turns.
 * - Buffers are aligned for their type. With a count of 0 they may be NULL.
 */
#ifndef RLAUNCH_H
#define RLAUNCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All ranks of a job, seen by one of them. */
typedef struct rl_world rl_world;

enum {
    RL_OK = 0,
    RL_ERROR_ARGUMENT = 1,    /* this call's arguments can't be right; nothing was sent */
    RL_ERROR_INIT = 2,        /* the world could not be formed */
    RL_ERROR_MISMATCH = 3,    /* ranks made different calls at the same place */
    RL_ERROR_PEER_FAILED = 4, /* another rank died, or left while this one counted on it */
    RL_ERROR_TIMEOUT = 5,     /* peers did not come within RLAUNCH_TIMEOUT seconds */
    RL_ERROR_CONNECTION = 6,  /* the connection to a peer broke */
    RL_ERROR_INTERNAL = 7     /* a fault of rlaunch itself; please report it */
};

/* Element types. */
enum { RL_INT32 = 1, RL_INT64 = 2, RL_FLOAT32 = 3, RL_FLOAT64 = 4 };

/* Reductions. */
enum { RL_SUM = 1, RL_PROD = 2, RL_MIN = 3, RL_MAX = 4 };

/* Joins the job that the environment describes; returns once every rank has joined. */
int rl_init(rl_world **world);

/* Leaves the job in good order and frees the world, also when it returns an error. No other thread
 * may be inside a call on it. NULL is no error. */
int rl_finalize(rl_world *world);

/* This rank's number in the job, and among the ranks of its host; from 0. -1 for a NULL world. */
int rl_rank(const rl_world *world);
int rl_local_rank(const rl_world *world);

/* How many ranks the job has, and how many of them run on this host. -1 for a NULL world. */
int rl_size(const rl_world *world);
int rl_local_size(const rl_world *world);

/* Returns when every rank has called it. */
int rl_barrier(rl_world *world);

/* Every rank's buffer becomes root's. */
int rl_broadcast(rl_world *world, void *buffer, uint64_t count, int dtype, int root);

/* Each element becomes the reduction of all ranks' elements at its place, with the same bits on
 * every rank. */
int rl_all_reduce(rl_world *world, void *buffer, uint64_t count, int dtype, int op);

/* Output becomes all ranks' inputs in rank order: count elements from each, count * size in all.
 * In place where input is this rank's part of output; else they may not overlap. */
int rl_all_gather(rl_world *world, const void *input, void *output, uint64_t count, int dtype);

/* Output becomes this rank's part, count elements, of the reduction of all ranks' inputs of
 * count * size. In place where output is this rank's part of input; else they may not overlap. */
int rl_reduce_scatter(rl_world *world, const void *input, void *output, uint64_t count, int dtype,
                      int op);

/* Sends to one rank. Small messages are on their way at once, larger ones when they are taken. */
int rl_send(rl_world *world, const void *buffer, uint64_t count, int dtype, int to, uint32_t tag);

/* Receives from one rank the oldest message with this tag, of exactly this count and type. */
int rl_recv(rl_world *world, void *buffer, uint64_t count, int dtype, int from, uint32_t tag);

/* What this thread's last failed call has to say; "" if none failed. Valid until the next one
 * fails. */
const char *rl_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
