"""What can go wrong in a rank.

Wrong arguments raise TypeError or ValueError before anything is sent; the communicator stays usable.
Every other error ends the communicator: each later call on it raises the same again, and the arrays
of the failed call have undefined contents. After one of a peer's the survivors can go on, on what
shrink() returns.
"""

from __future__ import annotations

import builtins
from typing import Dict, Optional

__all__ = [
    "AbortedError", "CancelledError", "ConnectionError", "Error", "ExcludedError", "FinalizedError", "ForkedError",
    "InitError", "InterruptedError", "MismatchError", "PeerFailedError", "PeerLeftError",
    "TimeoutError",
]  # fmt: skip


class Error(Exception):
    """The common base.

    rank: this process's rank; None before it has one
    peer: the other rank that the error is about, in the world; None where there is none
    host: the peer's host
    pid:  the peer's process id on that host
    others: what the other ranks were doing, as far as it was known, by rank in the world: {2: "in
        barrier #3"}; at most 32, those that the error is about first; empty where none are concerned
    """

    rank: Optional[int]
    peer: Optional[int]
    host: Optional[str]
    pid: Optional[int]
    others: Dict[int, str]

    def __init__(
        self,
        message: str = "",
        *,
        rank: Optional[int] = None,
        peer: Optional[int] = None,
        host: Optional[str] = None,
        pid: Optional[int] = None,
        others: Optional[Dict[int, str]] = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.peer = peer
        self.host = host
        self.pid = pid
        self.others = dict(others or {})


class InitError(Error):
    """The world could not be formed, or is not: a call before rl.init()."""


class MismatchError(Error):
    """Ranks made different calls at the same place: another operation, count, dtype, op or root; or
    a message does not fit its receiver's array. The message names both sides."""


class PeerFailedError(Error):
    """Another rank died, or its host was lost."""


class PeerLeftError(PeerFailedError):
    """Another rank finalized, or ended, while this one still counted on it."""


class TimeoutError(Error, builtins.TimeoutError):
    """Peers did not come in time: RLAUNCH_TIMEOUT, set_timeout() or the call's own timeout. The same
    on every rank: who waited, in what, for whom."""


class ConnectionError(Error, builtins.ConnectionError):
    """The connection to a peer broke, in a way that is no peer's death."""


class AbortedError(Error):
    """A rank called abort(), or this one did from another thread."""


class CancelledError(Error):
    """A receive was ended by Request.cancel(). The communicator stays usable."""


class ExcludedError(Error):
    """The others took this rank for dead, since it had not answered, and went on without it."""


class InterruptedError(Error):
    """The wait was ended from outside. Ctrl-C itself is a KeyboardInterrupt."""


class ForkedError(Error):
    """A forked child used what belongs to its parent."""


class FinalizedError(Error):
    """The world was left already."""


# As users name them: rl.Error. Pickled errors (multiprocessing) are found under either name.
for _name in __all__:
    globals()[_name].__module__ = "rlaunch"
