"""Ranks of one job talk to each other, on numpy arrays, tensors and any memory, in place.

    import numpy as np
    import rlaunch as rl

    rl.init()
    gradient = np.ones(1000, dtype=np.float32)
    rl.all_reduce(gradient)                       # now the sum over all ranks
    print(rl.rank(), rl.size(), gradient[0])

Start it with ``rlaunch -np 4 train.py``, with torchrun, mpirun or srun, or by hand with MASTER_ADDR,
MASTER_PORT, RANK and WORLD_SIZE set; with none of these it is a world of one rank.

Arrays are numpy's, tensors on the CPU (anything that speaks DLPack), and objects with the buffer
protocol, in C order. Types: integers and floats of 8 to 64 bits, bfloat16, float8_e4m3fn,
float8_e5m2, complex64, complex128, bool. What changes an array changes it in place and returns it.

All ranks make the same collective calls in the same order; where they do not, all get a
MismatchError that names both sides. Calls wait without the GIL. A call with an i in front
(iall_reduce) returns a Request at once; one with _init behind (all_reduce_init) prepares one.

The functions of this module are the methods of the world, the communicator of all ranks; those of
other communicators, which split() and its like return, have the same names.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
import sys as _sys
from typing import Final

from rlaunch import _rlaunch
from rlaunch._groups import Group
from rlaunch._point import Status
from rlaunch._records import FlightRecorder
from rlaunch._rlaunch import (
    Communicator,
    Memory,
    Operation,
    Persistent,
    Request,
    World,
    __version__,
    operation,
    premul_sum,
)
from rlaunch.errors import (
    AbortedError,
    CancelledError,
    ConnectionError,
    Error,
    ExcludedError,
    FinalizedError,
    ForkedError,
    InitError,
    InterruptedError,
    MismatchError,
    PeerFailedError,
    PeerLeftError,
    TimeoutError,
)

__all__ = [
    "AVG", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR", "MAX", "MAXLOC", "MIN", "MINLOC",
    "PROD", "SUM", "ANY_SOURCE", "ANY_TAG", "__version__", "AbortedError", "CancelledError", "ConnectionError",
    "Error", "ExcludedError", "FinalizedError", "ForkedError", "InitError", "InterruptedError",
    "MismatchError", "PeerFailedError", "PeerLeftError", "TimeoutError", "Communicator",
    "FlightRecorder", "Group", "Memory", "Operation", "Persistent", "Request", "Status",
    "World",
    "abort", "allocate", "all_gather", "all_gather_init", "all_gather_object", "all_gather_v",
    "all_gather_v_init", "all_reduce", "all_reduce_init", "all_to_all", "all_to_all_init",
    "all_to_all_object", "all_to_all_v", "all_to_all_v_init", "barrier", "barrier_init",
    "broadcast", "broadcast_init", "broadcast_object", "duplicate", "empty", "error", "exscan",
    "exscan_init", "finalize", "flight_recorder", "from_ranks", "gather", "gather_init",
    "gather_object", "gather_v", "gather_v_init", "group", "host", "iall_gather",
    "iall_gather_v", "iall_reduce", "iall_to_all", "iall_to_all_v", "ibarrier", "ibroadcast",
    "iexscan", "igather", "igather_v", "init", "irecv", "ireduce", "ireduce_scatter",
    "ireduce_scatter_v", "is_authenticated", "iscan", "iscatter", "iscatter_v", "isend",
    "local_rank", "local_size", "operation", "premul_sum", "probe", "rank", "ranks", "recv",
    "recv_object", "reduce", "reduce_init", "reduce_scatter", "reduce_scatter_init",
    "reduce_scatter_v", "reduce_scatter_v_init", "scan", "scan_init", "scatter", "scatter_init",
    "scatter_object", "scatter_v", "scatter_v_init", "send", "send_object", "sendrecv",
    "set_timeout", "shrink", "size", "split", "transports", "try_probe", "world", "zeros",
]  # fmt: skip

SUM: Final = "sum"
PROD: Final = "prod"
MIN: Final = "min"
MAX: Final = "max"
AVG: Final = "avg"
BAND: Final = "band"
BOR: Final = "bor"
BXOR: Final = "bxor"
LAND: Final = "land"
LOR: Final = "lor"
LXOR: Final = "lxor"
MINLOC: Final = "minloc"
MAXLOC: Final = "maxloc"

ANY_SOURCE: Final = _rlaunch.ANY
ANY_TAG: Final = _rlaunch.ANY

_world = _rlaunch.unjoined_world()


def init() -> World:
    """Joins the job; returns once every rank has. A second call returns the same world."""
    _world.join()
    return _world


def finalize() -> None:
    """Leaves the job in good order. Done at exit by itself; twice is as good as once."""
    _world.finalize()


def world() -> World:
    """The world that init() joined, and that the functions of this module act on."""
    _world.rank()  # raises where nobody has
    return _world


def group() -> Group:
    """`with rl.group():` calls that all start before any is waited for."""
    return Group()


# The world's methods. They are bound once, so that a call costs no look-up.
rank = _world.rank
size = _world.size
ranks = _world.ranks
split = _world.split
duplicate = _world.duplicate
from_ranks = _world.from_ranks
shrink = _world.shrink
abort = _world.abort
error = _world.error
set_timeout = _world.set_timeout
allocate = _world.allocate
empty = _world.empty
zeros = _world.zeros

local_rank = _world.local_rank
local_size = _world.local_size
host = _world.host
transports = _world.transports
is_authenticated = _world.is_authenticated
flight_recorder = _world.flight_recorder


barrier = _world.barrier
broadcast = _world.broadcast
reduce = _world.reduce
all_reduce = _world.all_reduce
reduce_scatter = _world.reduce_scatter
all_gather = _world.all_gather
gather = _world.gather
scatter = _world.scatter
all_to_all = _world.all_to_all
scan = _world.scan
exscan = _world.exscan
all_gather_v = _world.all_gather_v
reduce_scatter_v = _world.reduce_scatter_v
gather_v = _world.gather_v
scatter_v = _world.scatter_v
all_to_all_v = _world.all_to_all_v

ibarrier = _world.ibarrier
ibroadcast = _world.ibroadcast
ireduce = _world.ireduce
iall_reduce = _world.iall_reduce
ireduce_scatter = _world.ireduce_scatter
iall_gather = _world.iall_gather
igather = _world.igather
iscatter = _world.iscatter
iall_to_all = _world.iall_to_all
iscan = _world.iscan
iexscan = _world.iexscan
iall_gather_v = _world.iall_gather_v
ireduce_scatter_v = _world.ireduce_scatter_v
igather_v = _world.igather_v
iscatter_v = _world.iscatter_v
iall_to_all_v = _world.iall_to_all_v

barrier_init = _world.barrier_init
broadcast_init = _world.broadcast_init
reduce_init = _world.reduce_init
all_reduce_init = _world.all_reduce_init
reduce_scatter_init = _world.reduce_scatter_init
all_gather_init = _world.all_gather_init
gather_init = _world.gather_init
scatter_init = _world.scatter_init
all_to_all_init = _world.all_to_all_init
scan_init = _world.scan_init
exscan_init = _world.exscan_init
all_gather_v_init = _world.all_gather_v_init
reduce_scatter_v_init = _world.reduce_scatter_v_init
gather_v_init = _world.gather_v_init
scatter_v_init = _world.scatter_v_init
all_to_all_v_init = _world.all_to_all_v_init

send = _world.send
recv = _world.recv
isend = _world.isend
irecv = _world.irecv
sendrecv = _world.sendrecv
probe = _world.probe
try_probe = _world.try_probe

send_object = _world.send_object
recv_object = _world.recv_object
broadcast_object = _world.broadcast_object
all_gather_object = _world.all_gather_object
gather_object = _world.gather_object
scatter_object = _world.scatter_object
all_to_all_object = _world.all_to_all_object


def _leave_at_exit() -> None:
    if not _world.is_joined():
        return
    if getattr(_sys, "last_value", None) is not None:
        # The program ends by an exception: to its peers it has failed, not left.
        _world.abandon()
        return
    # What no call has raised yet is printed, and the exit status is then not 0.
    _world.leave()


_atexit.register(_leave_at_exit)
_os.register_at_fork(after_in_child=_rlaunch.after_fork_in_child)
