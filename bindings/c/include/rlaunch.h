/* Made by `cargo x gen` from bindings/c/src.
 *
 * The C API of rlaunch: ranks of one job talk to each other.
 *
 *     rl_world *world;
 *     if (rl_init(&world) != RL_OK) { fprintf(stderr, "%s\n", rl_last_error()); exit(1); }
 *     float gradient[1000] = {1};
 *     rl_all_reduce(rl_world_comm(world), gradient, gradient, 1000, RL_FLOAT32, RL_SUM);
 *     rl_finalize(world);
 *
 * Link with -lrlaunch (pkg-config rlaunch). Start with `rlaunch -np 4 ./program`, with torchrun,
 * mpirun or srun, or by hand with MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE set; with none of
 * these it is a world of one rank.
 *
 * What holds for every call:
 * - It returns RL_OK or another rl_code; rl_last_error() then tells what happened, with which rank
 *   (its host, its pid), and what to try.
 * - It blocks until its result is there. rl_i… starts it and returns at once with a request, for
 *   rl_wait or rl_test; rl_…_init prepares a request that rl_start starts, many times. The buffers
 *   of a request belong to the runtime until it is complete.
 * - All ranks of a communicator make the same collective calls on it in the same order. Where they
 *   do not, all of them get RL_ERROR_MISMATCH. Communicators don't wait for each other.
 * - After any error but RL_ERROR_ARGUMENT, RL_ERROR_MEMORY and RL_ERROR_CANCELLED each later call on
 *   the communicator fails in the same way, and the buffers of the failed call have undefined
 *   contents. rl_comm_shrink makes one of the ranks that are left.
 * - A communicator may be used from several threads; calls take turns. The first rl_i… starts the
 *   one thread that drives such calls while nobody waits.
 * - count is in elements, of the part that belongs to one rank. Buffers are aligned for their type;
 *   with a count of 0 they may be NULL. Input and output don't overlap except as "in place" says.
 */

/* The header's version; rl_version() is the library's. */
#define RL_VERSION "0.1.0"


#ifndef RLAUNCH_H
#define RLAUNCH_H

#include <stddef.h>
#include <stdint.h>

/** In rl_recv and rl_probe: from whichever rank. */
#define RL_ANY_SOURCE -1

/** In rl_recv and rl_probe: with whichever tag. */
#define RL_ANY_TAG -1

/** In rl_comm_split: this rank joins no new communicator. */
#define RL_NO_COLOR -1

/** What a call returns: RL_OK, or why not. */
typedef enum {
  RL_OK = 0,
  /** This call's arguments can't be right; nothing was sent, and the communicator stays usable. */
  RL_ERROR_ARGUMENT = 1,
  /** The world could not be formed. */
  RL_ERROR_INIT = 2,
  /** Ranks made different calls at the same place, or a message does not fit its receiver. */
  RL_ERROR_MISMATCH = 3,
  /** Another rank died, or left while this one counted on it. */
  RL_ERROR_PEER_FAILED = 4,
  /** Peers did not come within the timeout. */
  RL_ERROR_TIMEOUT = 5,
  /** The connection to a peer broke. */
  RL_ERROR_CONNECTION = 6,
  /** A fault of rlaunch itself; please report it. */
  RL_ERROR_INTERNAL = 7,
  /** A rank called rl_comm_abort, or this one did from another thread. */
  RL_ERROR_ABORTED = 8,
  /** The others took this rank for dead, and went on without it. */
  RL_ERROR_EXCLUDED = 9,
  /** A forked child used what belongs to its parent. */
  RL_ERROR_FORKED = 10,
  /** The world is finalized. */
  RL_ERROR_FINALIZED = 11,
  /** The request was cancelled; the communicator stays usable. */
  RL_ERROR_CANCELLED = 12,
  /** A buffer of that size can't be had; nothing was taken, and the communicator stays usable. */
  RL_ERROR_MEMORY = 13,
} rl_code;

/**
 * Element types. Pairs are a value and an index, for RL_MINLOC and RL_MAXLOC:
 * struct { float value; int32_t index; } and so on.
 */
typedef enum {
  RL_INT32 = 1,
  RL_INT64 = 2,
  RL_FLOAT32 = 3,
  RL_FLOAT64 = 4,
  RL_INT8 = 5,
  RL_UINT8 = 6,
  RL_INT16 = 7,
  RL_UINT16 = 8,
  RL_UINT32 = 9,
  RL_UINT64 = 10,
  RL_FLOAT16 = 11,
  RL_BFLOAT16 = 12,
  RL_FLOAT8_E4M3 = 13,
  RL_FLOAT8_E5M2 = 14,
  RL_COMPLEX64 = 15,
  RL_COMPLEX128 = 16,
  RL_BOOL = 17,
  RL_FLOAT32_INT32 = 18,
  RL_FLOAT64_INT64 = 19,
  RL_INT32_INT32 = 20,
  RL_INT64_INT64 = 21,
} rl_dtype;

/** Reductions. rl_op_premul_sum and rl_op_create make further ones. */
typedef enum {
  RL_SUM = 1,
  RL_PROD = 2,
  RL_MIN = 3,
  RL_MAX = 4,
  /** The sum divided by the number of ranks; integers toward zero. */
  RL_AVG = 5,
  /** Bitwise and, or, exclusive or. */
  RL_BAND = 6,
  RL_BOR = 7,
  RL_BXOR = 8,
  /** The same of truth values: an element other than 0 is true, the result is 0 or 1. */
  RL_LAND = 9,
  RL_LOR = 10,
  RL_LXOR = 11,
  /** The least (greatest) value with its index; of equal values, the least index. */
  RL_MINLOC = 12,
  RL_MAXLOC = 13,
} rl_op;

/** Memory that the ranks of a host read in place. */
typedef struct rl_buffer rl_buffer;

/**
 * A group of ranks that call together. Ranks count within it. Made by rl_comm_split and its like,
 * and freed by rl_comm_free; the world's own is rl_world_comm.
 */
typedef struct rl_comm rl_comm;

/** A call under way, or one prepared to be started many times. */
typedef struct rl_request rl_request;

/** The job, seen by one of its ranks. */
typedef struct rl_world rl_world;

/**
 * Of a completed receive or probe: where the message came from, and how many elements it had. All
 * zero of other calls.
 */
typedef struct {
  int32_t source;
  uint32_t tag;
  uint64_t count;
} rl_status;

/**
 * Combines: inout[i] = inout[i] op input[i] for count elements of dtype. inout holds what came from
 * lower ranks. It runs on some thread of this process, and must not call rlaunch.
 */
typedef void (*rl_reduce_function)(void *inout,
                                   const void *input,
                                   uint64_t count,
                                   int dtype,
                                   void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What the calling thread's last failed call has to say: where, with which rank, and what to try.
 * "" if none failed. Valid until the next one fails.
 */
const char *rl_last_error(void);

/** Joins the job that the environment describes; returns once every rank has joined. */
int rl_init(rl_world **world);

/**
 * Leaves the job in good order and frees the world, also when it returns an error. No other thread
 * may be inside a call on it; its communicators may only be freed afterwards. NULL is no error.
 */
int rl_finalize(rl_world *world);

/**
 * The communicator of all ranks. It lives as long as the world, and is not freed by itself. NULL
 * for a NULL world.
 */
rl_comm *rl_world_comm(rl_world *world);

/** This rank's number in the job, from 0. -1 for a NULL world. */
int rl_rank(const rl_world *world);

/** How many ranks the job has. -1 for a NULL world. */
int rl_size(const rl_world *world);

/** This rank's number among the ranks of its host, from 0. -1 for a NULL world. */
int rl_local_rank(const rl_world *world);

/** How many ranks run on this host. -1 for a NULL world. */
int rl_local_size(const rl_world *world);

/**
 * The last calls of this rank on each communicator, with their times, as text. Valid until this
 * thread asks again. "" for a NULL world.
 */
const char *rl_flight_recorder(const rl_world *world);

/** The library's version: "0.1.0". RL_VERSION is the header's. */
const char *rl_version(void);

/** This rank's number in the communicator, from 0. -1 for a NULL comm. */
int rl_comm_rank(const rl_comm *comm);

/** How many ranks it has. -1 for a NULL comm. */
int rl_comm_size(const rl_comm *comm);

/** Its number in messages, the same on all its ranks; the world's is 0. -1 for a NULL comm. */
int rl_comm_id(const rl_comm *comm);

/** Writes the members' ranks in the world, in this communicator's order: rl_comm_size of them. */
int rl_comm_ranks(const rl_comm *comm, int *ranks);

/**
 * Makes a communicator of those that give the same color (0 and above), ordered by key, then by
 * rank here. *made is NULL for those that give RL_NO_COLOR. All ranks of comm call it.
 */
int rl_comm_split(const rl_comm *comm, int64_t color, int64_t key, rl_comm **made);

/** Makes a communicator of the same ranks, whose calls never meet with comm's. All ranks call it. */
int rl_comm_dup(const rl_comm *comm, rl_comm **made);

/**
 * Makes a communicator of these ranks of comm, in this order; *made is NULL for the others. All
 * ranks of comm call it, with the same list.
 */
int rl_comm_from_ranks(const rl_comm *comm, const int *ranks, uint64_t count, rl_comm **made);

/**
 * After a failure: makes a communicator of the ranks that are alive, in comm's order. All of them
 * call it.
 */
int rl_comm_shrink(const rl_comm *comm, rl_comm **made);

/**
 * Frees a communicator; not the world's own. Its requests may still be waited for. NULL is no
 * error.
 */
int rl_comm_free(rl_comm *comm);

/**
 * Ends all calls on the communicator with RL_ERROR_ABORTED, here at once, on its other ranks as
 * soon as they hear of it. From any thread. reason is shown to all of them, and may be NULL.
 */
int rl_comm_abort(const rl_comm *comm, const char *reason);

/** RL_OK while the communicator is well; else the code it failed with, and rl_last_error() tells. */
int rl_comm_error(const rl_comm *comm);

/** How many seconds a call on the communicator may wait for its peers; 0 for RLAUNCH_TIMEOUT's. */
int rl_comm_set_timeout(const rl_comm *comm, double seconds_max);

/** Returns when every rank has called it. */
int rl_barrier(const rl_comm *comm);

/** Every rank's buffer becomes root's. */
int rl_broadcast(const rl_comm *comm, void *buffer, uint64_t count, int dtype, int root);

/**
 * As rl_all_reduce, with the result on root alone; the others' output is not touched and may be
 * NULL.
 */
int rl_reduce(const rl_comm *comm,
              const void *input,
              void *output,
              uint64_t count,
              int dtype,
              int op,
              int root);

/**
 * Each element of output becomes the reduction of all ranks' inputs at its place, with the same
 * bits on every rank. In place where input is output.
 */
int rl_all_reduce(const rl_comm *comm,
                  const void *input,
                  void *output,
                  uint64_t count,
                  int dtype,
                  int op);

/**
 * Each element of output becomes the reduction of the inputs of ranks 0 to this one. In place where
 * input is output.
 */
int rl_scan(const rl_comm *comm,
            const void *input,
            void *output,
            uint64_t count,
            int dtype,
            int op);

/**
 * As rl_scan without this rank's own input: of ranks 0 to the one before. Rank 0's output is left
 * as it is.
 */
int rl_exscan(const rl_comm *comm,
              const void *input,
              void *output,
              uint64_t count,
              int dtype,
              int op);

/**
 * Output becomes all ranks' inputs in rank order: count elements from each, count * size in all.
 * In place where input is this rank's part of output.
 */
int rl_all_gather(const rl_comm *comm, const void *input, void *output, uint64_t count, int dtype);

/** As rl_all_gather on root alone; the others' output is not touched and may be NULL. */
int rl_gather(const rl_comm *comm,
              const void *input,
              void *output,
              uint64_t count,
              int dtype,
              int root);

/**
 * Output becomes this rank's part, count elements, of root's input, which has count * size; the
 * others' input may be NULL. In place where root's output is its part of input.
 */
int rl_scatter(const rl_comm *comm,
               const void *input,
               void *output,
               uint64_t count,
               int dtype,
               int root);

/**
 * Output becomes this rank's part, count elements, of the reduction of all ranks' inputs of
 * count * size. In place where output is this rank's part of input.
 */
int rl_reduce_scatter(const rl_comm *comm,
                      const void *input,
                      void *output,
                      uint64_t count,
                      int dtype,
                      int op);

/**
 * The r-th count elements of rank s's input become the s-th of rank r's output. In place where
 * input is output.
 */
int rl_all_to_all(const rl_comm *comm, const void *input, void *output, uint64_t count, int dtype);

/**
 * As rl_all_gather with a count for each rank: counts[r] elements of rank r go to offsets[r] of
 * output. Offsets that are NULL: one part behind the other.
 */
int rl_all_gather_v(const rl_comm *comm,
                    const void *input,
                    void *output,
                    const uint64_t *counts,
                    const uint64_t *offsets,
                    int dtype);

/**
 * As rl_all_gather_v on root alone. count is this rank's; the others' output, counts and offsets
 * may be NULL.
 */
int rl_gather_v(const rl_comm *comm,
                const void *input,
                uint64_t count,
                void *output,
                const uint64_t *counts,
                const uint64_t *offsets,
                int dtype,
                int root);

/**
 * As rl_scatter with a count for each rank: counts[r] elements at offsets[r] of root's input go to
 * rank r, which gives its own as count. Offsets that are NULL: one part behind the other; the others'
 * input, counts and offsets may be NULL.
 */
int rl_scatter_v(const rl_comm *comm,
                 const void *input,
                 const uint64_t *counts,
                 const uint64_t *offsets,
                 void *output,
                 uint64_t count,
                 int dtype,
                 int root);

/**
 * As rl_reduce_scatter with a count for each rank: rank r gets the reduction of the counts[r]
 * elements at offsets[r] of all inputs. Offsets that are NULL: one part behind the other.
 */
int rl_reduce_scatter_v(const rl_comm *comm,
                        const void *input,
                        void *output,
                        const uint64_t *counts,
                        const uint64_t *offsets,
                        int dtype,
                        int op);

/**
 * As rl_all_to_all with counts: send_counts[r] elements at send_offsets[r] of input go to rank r;
 * recv_counts[r] come from it, to recv_offsets[r] of output. Offsets that are NULL: one part behind
 * the other.
 */
int rl_all_to_all_v(const rl_comm *comm,
                    const void *input,
                    const uint64_t *send_counts,
                    const uint64_t *send_offsets,
                    void *output,
                    const uint64_t *recv_counts,
                    const uint64_t *recv_offsets,
                    int dtype);

/** As rl_barrier, but returns at once, with a request to wait for. */
int rl_ibarrier(const rl_comm *comm, rl_request **request);

/** As rl_broadcast, but returns at once, with a request to wait for. */
int rl_ibroadcast(const rl_comm *comm,
                  void *buffer,
                  uint64_t count,
                  int dtype,
                  int root,
                  rl_request **request);

/** As rl_reduce, but returns at once, with a request to wait for. */
int rl_ireduce(const rl_comm *comm,
               const void *input,
               void *output,
               uint64_t count,
               int dtype,
               int op,
               int root,
               rl_request **request);

/** As rl_all_reduce, but returns at once, with a request to wait for. */
int rl_iall_reduce(const rl_comm *comm,
                   const void *input,
                   void *output,
                   uint64_t count,
                   int dtype,
                   int op,
                   rl_request **request);

/** As rl_scan, but returns at once, with a request to wait for. */
int rl_iscan(const rl_comm *comm,
             const void *input,
             void *output,
             uint64_t count,
             int dtype,
             int op,
             rl_request **request);

/** As rl_exscan, but returns at once, with a request to wait for. */
int rl_iexscan(const rl_comm *comm,
               const void *input,
               void *output,
               uint64_t count,
               int dtype,
               int op,
               rl_request **request);

/** As rl_all_gather, but returns at once, with a request to wait for. */
int rl_iall_gather(const rl_comm *comm,
                   const void *input,
                   void *output,
                   uint64_t count,
                   int dtype,
                   rl_request **request);

/** As rl_gather, but returns at once, with a request to wait for. */
int rl_igather(const rl_comm *comm,
               const void *input,
               void *output,
               uint64_t count,
               int dtype,
               int root,
               rl_request **request);

/** As rl_scatter, but returns at once, with a request to wait for. */
int rl_iscatter(const rl_comm *comm,
                const void *input,
                void *output,
                uint64_t count,
                int dtype,
                int root,
                rl_request **request);

/** As rl_reduce_scatter, but returns at once, with a request to wait for. */
int rl_ireduce_scatter(const rl_comm *comm,
                       const void *input,
                       void *output,
                       uint64_t count,
                       int dtype,
                       int op,
                       rl_request **request);

/** As rl_all_to_all, but returns at once, with a request to wait for. */
int rl_iall_to_all(const rl_comm *comm,
                   const void *input,
                   void *output,
                   uint64_t count,
                   int dtype,
                   rl_request **request);

/** As rl_all_gather_v, but returns at once, with a request to wait for. */
int rl_iall_gather_v(const rl_comm *comm,
                     const void *input,
                     void *output,
                     const uint64_t *counts,
                     const uint64_t *offsets,
                     int dtype,
                     rl_request **request);

/** As rl_gather_v, but returns at once, with a request to wait for. */
int rl_igather_v(const rl_comm *comm,
                 const void *input,
                 uint64_t count,
                 void *output,
                 const uint64_t *counts,
                 const uint64_t *offsets,
                 int dtype,
                 int root,
                 rl_request **request);

/** As rl_scatter_v, but returns at once, with a request to wait for. */
int rl_iscatter_v(const rl_comm *comm,
                  const void *input,
                  const uint64_t *counts,
                  const uint64_t *offsets,
                  void *output,
                  uint64_t count,
                  int dtype,
                  int root,
                  rl_request **request);

/** As rl_reduce_scatter_v, but returns at once, with a request to wait for. */
int rl_ireduce_scatter_v(const rl_comm *comm,
                         const void *input,
                         void *output,
                         const uint64_t *counts,
                         const uint64_t *offsets,
                         int dtype,
                         int op,
                         rl_request **request);

/** As rl_all_to_all_v, but returns at once, with a request to wait for. */
int rl_iall_to_all_v(const rl_comm *comm,
                     const void *input,
                     const uint64_t *send_counts,
                     const uint64_t *send_offsets,
                     void *output,
                     const uint64_t *recv_counts,
                     const uint64_t *recv_offsets,
                     int dtype,
                     rl_request **request);

/** Prepares rl_barrier to be started by rl_start, many times, on the same buffers. */
int rl_barrier_init(const rl_comm *comm, rl_request **request);

/** Prepares rl_broadcast to be started by rl_start, many times, on the same buffers. */
int rl_broadcast_init(const rl_comm *comm,
                      void *buffer,
                      uint64_t count,
                      int dtype,
                      int root,
                      rl_request **request);

/** Prepares rl_reduce to be started by rl_start, many times, on the same buffers. */
int rl_reduce_init(const rl_comm *comm,
                   const void *input,
                   void *output,
                   uint64_t count,
                   int dtype,
                   int op,
                   int root,
                   rl_request **request);

/** Prepares rl_all_reduce to be started by rl_start, many times, on the same buffers. */
int rl_all_reduce_init(const rl_comm *comm,
                       const void *input,
                       void *output,
                       uint64_t count,
                       int dtype,
                       int op,
                       rl_request **request);

/** Prepares rl_scan to be started by rl_start, many times, on the same buffers. */
int rl_scan_init(const rl_comm *comm,
                 const void *input,
                 void *output,
                 uint64_t count,
                 int dtype,
                 int op,
                 rl_request **request);

/** Prepares rl_exscan to be started by rl_start, many times, on the same buffers. */
int rl_exscan_init(const rl_comm *comm,
                   const void *input,
                   void *output,
                   uint64_t count,
                   int dtype,
                   int op,
                   rl_request **request);

/** Prepares rl_all_gather to be started by rl_start, many times, on the same buffers. */
int rl_all_gather_init(const rl_comm *comm,
                       const void *input,
                       void *output,
                       uint64_t count,
                       int dtype,
                       rl_request **request);

/** Prepares rl_gather to be started by rl_start, many times, on the same buffers. */
int rl_gather_init(const rl_comm *comm,
                   const void *input,
                   void *output,
                   uint64_t count,
                   int dtype,
                   int root,
                   rl_request **request);

/** Prepares rl_scatter to be started by rl_start, many times, on the same buffers. */
int rl_scatter_init(const rl_comm *comm,
                    const void *input,
                    void *output,
                    uint64_t count,
                    int dtype,
                    int root,
                    rl_request **request);

/** Prepares rl_reduce_scatter to be started by rl_start, many times, on the same buffers. */
int rl_reduce_scatter_init(const rl_comm *comm,
                           const void *input,
                           void *output,
                           uint64_t count,
                           int dtype,
                           int op,
                           rl_request **request);

/** Prepares rl_all_to_all to be started by rl_start, many times, on the same buffers. */
int rl_all_to_all_init(const rl_comm *comm,
                       const void *input,
                       void *output,
                       uint64_t count,
                       int dtype,
                       rl_request **request);

/** Prepares rl_all_gather_v to be started by rl_start, many times, on the same buffers. */
int rl_all_gather_v_init(const rl_comm *comm,
                         const void *input,
                         void *output,
                         const uint64_t *counts,
                         const uint64_t *offsets,
                         int dtype,
                         rl_request **request);

/** Prepares rl_gather_v to be started by rl_start, many times, on the same buffers. */
int rl_gather_v_init(const rl_comm *comm,
                     const void *input,
                     uint64_t count,
                     void *output,
                     const uint64_t *counts,
                     const uint64_t *offsets,
                     int dtype,
                     int root,
                     rl_request **request);

/** Prepares rl_scatter_v to be started by rl_start, many times, on the same buffers. */
int rl_scatter_v_init(const rl_comm *comm,
                      const void *input,
                      const uint64_t *counts,
                      const uint64_t *offsets,
                      void *output,
                      uint64_t count,
                      int dtype,
                      int root,
                      rl_request **request);

/** Prepares rl_reduce_scatter_v to be started by rl_start, many times, on the same buffers. */
int rl_reduce_scatter_v_init(const rl_comm *comm,
                             const void *input,
                             void *output,
                             const uint64_t *counts,
                             const uint64_t *offsets,
                             int dtype,
                             int op,
                             rl_request **request);

/** Prepares rl_all_to_all_v to be started by rl_start, many times, on the same buffers. */
int rl_all_to_all_v_init(const rl_comm *comm,
                         const void *input,
                         const uint64_t *send_counts,
                         const uint64_t *send_offsets,
                         void *output,
                         const uint64_t *recv_counts,
                         const uint64_t *recv_offsets,
                         int dtype,
                         rl_request **request);

/**
 * Sends to one rank. Small messages are on their way at once, larger ones when the receiver takes
 * them.
 */
int rl_send(const rl_comm *comm,
            const void *buffer,
            uint64_t count,
            int dtype,
            int to,
            uint32_t tag);

/**
 * Receives the oldest message that matches, of this type and at most count elements; a longer one
 * is an error. from may be RL_ANY_SOURCE, tag RL_ANY_TAG; status may be NULL, and has nothing in a
 * group.
 */
int rl_recv(const rl_comm *comm,
            void *buffer,
            uint64_t count,
            int dtype,
            int from,
            int64_t tag,
            rl_status *status);

/** As rl_send, but returns at once, with a request to wait for. */
int rl_isend(const rl_comm *comm,
             const void *buffer,
             uint64_t count,
             int dtype,
             int to,
             uint32_t tag,
             rl_request **request);

/** As rl_recv, but returns at once, with a request to wait for, which has the status. */
int rl_irecv(const rl_comm *comm,
             void *buffer,
             uint64_t count,
             int dtype,
             int from,
             int64_t tag,
             rl_request **request);

/** Sends and receives at once; neither waits for the other. The status is the receive's. */
int rl_sendrecv(const rl_comm *comm,
                const void *send_buffer,
                uint64_t send_count,
                int to,
                uint32_t send_tag,
                void *recv_buffer,
                uint64_t recv_count,
                int from,
                int64_t recv_tag,
                int dtype,
                rl_status *status);

/** Waits until a message is there that rl_recv with the same arguments would take. */
int rl_probe(const rl_comm *comm, int from, int64_t tag, rl_status *status);

/** Sets *found to whether such a message is there now. */
int rl_iprobe(const rl_comm *comm, int from, int64_t tag, int *found, rl_status *status);

/** Starts a prepared request once more; complete the start before, first. */
int rl_start(rl_request *request);

/**
 * Waits until *request is complete, and returns what the blocking call returns. Frees the request
 * and sets it to NULL, unless it is a prepared one, which can be started again. A NULL *request is
 * complete. status may be NULL.
 */
int rl_wait(rl_request **request, rl_status *status);

/** As rl_wait of each, also if one fails; returns the first failure. statuses may be NULL. */
int rl_wait_all(uint64_t count, rl_request **requests, rl_status *statuses);

/** Sets *done to whether *request is complete, and if so does what rl_wait does. */
int rl_test(rl_request **request, int *done, rl_status *status);

/** As rl_test, but waits at most so many seconds for it. */
int rl_wait_timeout(rl_request **request, double seconds, int *done, rl_status *status);

/**
 * Ends a receive that no message has met, and sets *cancelled to whether it did: its message goes to
 * another receive, and rl_wait of it returns RL_ERROR_CANCELLED. Sets *cancelled to 0 where it is too
 * late, or the call is no receive: it goes on. Either way the request is still to be waited for.
 */
int rl_request_cancel(rl_request *request,
                      int *cancelled);

/**
 * Frees a request and sets it to NULL. One under way is waited for first; a receive that no message
 * has met is cancelled.
 */
int rl_request_free(rl_request **request);

/**
 * Until rl_group_end, this thread's blocking calls start and return at once. So exchanges that
 * could deadlock one after the other can't.
 */
int rl_group_begin(void);

/** Waits for all calls since rl_group_begin; returns the first failure. */
int rl_group_end(void);

/**
 * Makes a reduction: each rank's input times *scalar, which is one element of dtype, then the sum.
 * Ranks may give different scalars.
 */
int rl_op_premul_sum(const void *scalar, int dtype, int *op);

/**
 * Makes a reduction of your own, for any type; it must be associative. context is passed to each
 * call of function. commutative: 0 where the operands' order matters; ranks are combined in their
 * order either way.
 */
int rl_op_create(rl_reduce_function function, void *context, int commutative, int *op);

/**
 * Frees what rl_op_premul_sum or rl_op_create made. Calls under way keep what they need; what
 * context points to must outlive them.
 */
int rl_op_free(int op);

/**
 * Allocates memory that the ranks of this host read without a copy between: calls on it, or on any
 * part of it, are faster there. Any rank may ask for some at any time. The memory is zero, aligned
 * for every type, and stays valid after rl_finalize. Where no memory is shared it is plain memory.
 */
int rl_buffer_allocate(const rl_comm *comm, uint64_t bytes, rl_buffer **buffer);

/** Where its memory is; NULL for a NULL buffer, with rl_last_error. */
void *rl_buffer_data(rl_buffer *buffer);

/** Frees the memory; no call may be under way on it. NULL is no error. */
int rl_buffer_free(rl_buffer *buffer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RLAUNCH_H */
