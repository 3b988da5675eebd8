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
#define RL_VERSION "@VERSION@"
