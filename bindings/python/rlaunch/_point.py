"""What a receive tells."""

from __future__ import annotations

from typing import NamedTuple


class Status(NamedTuple):
    """Where a message came from, and how many elements it had."""

    source: int
    tag: int
    count: int
