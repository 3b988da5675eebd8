"""`await request`: asyncio's event loop watches a descriptor while the runtime does the work."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlaunch._rlaunch import Request


async def until_complete(request: Request[Any]) -> Any:
    """What request.wait() returns. Cancelling ends the await, not the call itself."""
    if not request.test():
        loop = asyncio.get_running_loop()
        complete = loop.create_future()
        # Of its own, so that several tasks can await one request.
        descriptor = os.dup(request.fileno())
        try:
            loop.add_reader(descriptor, _set, complete)
            try:
                await complete
            finally:
                loop.remove_reader(descriptor)
        finally:
            os.close(descriptor)
    return request.wait()


def _set(complete: asyncio.Future[None]) -> None:
    if not complete.done():
        complete.set_result(None)
