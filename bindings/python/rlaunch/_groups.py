"""`with rl.group():`"""

from __future__ import annotations

from types import TracebackType
from typing import Optional

from rlaunch import _rlaunch


class Group:
    """A `with` block whose calls of rlaunch, made by this thread, all start before any is waited
    for: exchanges that could deadlock one after the other can't. At its end all are complete.

        with rl.group():
            rl.send(mine, right)
            rl.recv(theirs, left)

    Inside the block arrays are not yet filled, and recv's Status is None. Don't await in it.
    """

    def __enter__(self) -> None:
        _rlaunch.group_begin()

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        first: Optional[BaseException] = None
        for request in _rlaunch.group_end():
            try:
                request.wait()
            except Exception as error:
                first = first or error
        if first is not None and value is None:
            raise first
