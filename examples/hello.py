"""Each rank says where it is, then all add up their numbers.

    rlaunch -np 4 examples/hello.py
"""

import numpy as np

import rlaunch as rl

rl.init()
print(f"hello from rank {rl.rank()} of {rl.size()} (local rank {rl.local_rank()} on {rl.host()})")

numbers = np.full(4, rl.rank() + 1.0)
rl.all_reduce(numbers)
if rl.rank() == 0:
    print(f"the sum over all ranks: {numbers}")
