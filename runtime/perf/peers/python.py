"""The runtime's own Python module, timed as rperf times the runtime: all_reduce in place.

    rlaunch -np 2 python.py all_reduce BYTES ITERATIONS WARMUPS

Rank 0 prints microseconds of a call, averaged over calls and ranks.
"""

import sys
import time

import numpy as np
import rlaunch as rl


def main():
    test, size, iterations, warmups = sys.argv[1], *map(int, sys.argv[2:])
    if test != "all_reduce":
        sys.exit(f"python.py: no test {test}")
    rl.init()
    rank, ranks = rl.rank(), rl.size()
    buffer = np.full(size // 4, rank + 1, dtype=np.float32)
    rl.all_reduce(buffer)
    if not (buffer == ranks * (ranks + 1) // 2).all():
        sys.exit("python.py: a wrong result")
    buffer[:] = 0
    for _ in range(warmups):
        rl.all_reduce(buffer)
    rl.barrier()
    start = time.perf_counter()
    for _ in range(iterations):
        rl.all_reduce(buffer)
    each = np.array([(time.perf_counter() - start) / iterations])
    rl.all_reduce(each)
    if rank == 0:
        print(f"{each[0] / ranks * 1e6:.4f}")


main()
