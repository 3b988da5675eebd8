"""Gloo's side of `cargo x bench cpu`: torch.distributed's all_reduce of floats in place.

    gloo.py all_reduce BYTES ITERATIONS WARMUPS

Started once for each rank, with MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE. Rank 0 prints
microseconds of a call, averaged over calls and ranks.
"""

import sys
import time

import torch
import torch.distributed as dist


def main():
    test, size, iterations, warmups = sys.argv[1], *map(int, sys.argv[2:])
    if test != "all_reduce":
        sys.exit(f"gloo.py: no test {test}")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    buffer = torch.arange(size // 4, dtype=torch.float32) % 7 + rank
    expected = torch.arange(size // 4, dtype=torch.float32) % 7 * ranks + ranks * (ranks - 1) // 2
    dist.all_reduce(buffer)
    if not torch.equal(buffer, expected):
        sys.exit("gloo.py: a wrong result")
    buffer.zero_()
    for _ in range(warmups):
        dist.all_reduce(buffer)
    dist.barrier()
    start = time.perf_counter()
    for _ in range(iterations):
        dist.all_reduce(buffer)
    each = torch.tensor([(time.perf_counter() - start) / iterations], dtype=torch.float64)
    dist.all_reduce(each)
    if rank == 0:
        print(f"{each.item() / ranks * 1e6:.4f}")
    dist.destroy_process_group()


main()
