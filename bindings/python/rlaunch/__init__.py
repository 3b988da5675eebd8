"""Ranks of one job talk to each other, on numpy arrays in place.

    import numpy as np
    import rlaunch as rl

    rl.init()
    gradient = np.ones(1000, dtype=np.float32)
    rl.all_reduce(gradient)                       # now the sum over all ranks
    print(rl.rank(), rl.size(), gradient[0])

Start it with ``rlaunch -np 4 train.py``, with torchrun, or by hand with MASTER_ADDR, MASTER_PORT,
RANK and WORLD_SIZE set; with none of these it is a world of one rank.

Arrays are numpy.ndarray of int32, int64, float32 or float64, in C order. What changes an array
changes it in place and returns it. All ranks make the same collective calls in the same order;
where they do not, all get a MismatchError that names both sides. Calls wait without the GIL.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
import sys as _sys
from typing import TYPE_CHECKING, Optional, TypeVar

from rlaunch import _rlaunch
from rlaunch._rlaunch import World, __version__
from rlaunch.errors import Error, InitError, MismatchError, PeerFailedError, TimeoutError

if TYPE_CHECKING:
    import numpy

    from rlaunch._rlaunch import Op

    Array = TypeVar("Array", bound=numpy.ndarray)

__all__ = [
    "MAX", "MIN", "PROD", "SUM", "__version__",
    "Error", "InitError", "MismatchError", "PeerFailedError", "TimeoutError", "World",
    "all_gather", "all_reduce", "barrier", "broadcast", "finalize", "host", "init", "local_rank",
    "local_size", "rank", "recv", "reduce_scatter", "send", "size", "world",
]  # fmt: skip

SUM: Op = "sum"
PROD: Op = "prod"
MIN: Op = "min"
MAX: Op = "max"

_world: Optional[World] = None


def init() -> World:
    """Joins the job; returns once every rank has. A second call returns the same world."""
    global _world
    if _world is None:
        _world = World()
    return _world


def finalize() -> None:
    """Leaves the job in good order. Done at exit by itself; twice is as good as once."""
    if _world is not None:
        _world.finalize()


def world() -> World:
    """The world that init() made, and that the functions of this module act on."""
    if _world is None:
        raise InitError("rlaunch is not started; hint: call rl.init() first")
    return _world


def rank() -> int:
    """This process's number in the job, from 0."""
    return world().rank()


def size() -> int:
    """How many ranks the job has."""
    return world().size()


def local_rank() -> int:
    """This rank's number among those of its host, from 0."""
    return world().local_rank()


def local_size() -> int:
    """How many ranks of the job run on this host."""
    return world().local_size()


def host() -> str:
    """The name of this rank's host, as in the hostfile."""
    return world().host()


def barrier() -> None:
    """Returns when every rank has called it."""
    world().barrier()


def broadcast(x: Array, root: int = 0) -> Array:
    """x becomes root's x on every rank. In place; returns x."""
    return world().broadcast(x, root)


def all_reduce(x: Array, op: Op = "sum") -> Array:
    """Each element of x becomes the sum (prod, min, max) of all ranks' elements at its place, with
    the same bits on every rank. In place; returns x."""
    return world().all_reduce(x, op)


def all_gather(x: Array, out: Optional[Array] = None) -> Array:
    """Returns out, in which out[r] is what rank r gave as x: its shape is (size, *x.shape) unless
    an array of as many elements is given."""
    return world().all_gather(x, out)


def reduce_scatter(x: Array, out: Optional[Array] = None, op: Op = "sum") -> Array:
    """Returns out, which is the sum (prod, min, max) of what all ranks gave as x[rank()]: x's first
    length is the number of ranks, or out is given and x has out's elements for each rank."""
    return world().reduce_scatter(x, out, op)


def send(x: numpy.ndarray, to: int, tag: int = 0) -> None:
    """Sends x to a rank, which receives it by recv with the same tag. Small arrays are on their way
    at once, larger ones when the receiver takes them."""
    world().send(x, to, tag)


def recv(x: Array, source: int, tag: int = 0) -> Array:
    """Receives into x from a rank the oldest array sent with this tag, of x's size and dtype.
    Returns x."""
    return world().recv(x, source, tag)


def _leave_at_exit() -> None:
    if _world is None:
        return
    if getattr(_sys, "last_value", None) is not None:
        # The program ends by an exception: to its peers it has failed, not left.
        _world.abandon()
        return
    try:
        _world.finalize()
    except Error as error:
        print(f"rlaunch: at exit: {error}", file=_sys.stderr)


def _forget_after_fork() -> None:
    global _world
    _rlaunch.after_fork_in_child()
    _world = None


_atexit.register(_leave_at_exit)
_os.register_at_fork(after_in_child=_forget_after_fork)
