"""What can go wrong in a rank. All but wrong arguments (TypeError, ValueError) end the world: each
later call raises the same again, and buffers of the failed call have undefined contents."""

from __future__ import annotations

import builtins
from typing import Optional

__all__ = ["Error", "InitError", "MismatchError", "PeerFailedError", "TimeoutError"]


class Error(Exception):
    """The common base.

    rank: this process's rank; None before it has one
    peer: the other rank that the error is about; None where there is none
    host: the peer's host
    pid:  the peer's process id on that host
    """

    rank: Optional[int]
    peer: Optional[int]
    host: Optional[str]
    pid: Optional[int]

    def __init__(
        self,
        message: str = "",
        *,
        rank: Optional[int] = None,
        peer: Optional[int] = None,
        host: Optional[str] = None,
        pid: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.peer = peer
        self.host = host
        self.pid = pid


class InitError(Error):
    """The world could not be formed, or is not: a call before rl.init()."""


class MismatchError(Error):
    """Ranks made different calls at the same place: another operation, count, dtype, op or root.
    The message names both sides."""


class PeerFailedError(Error):
    """Another rank died, or left the job while this one still counted on it."""


class TimeoutError(Error, builtins.TimeoutError):
    """Peers did not come within RLAUNCH_TIMEOUT seconds."""


# As users name them: rl.Error. Pickled errors (multiprocessing) are found under either name.
for _class in (Error, InitError, MismatchError, PeerFailedError, TimeoutError):
    _class.__module__ = "rlaunch"
