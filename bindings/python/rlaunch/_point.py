"""What a receive tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """Where a message came from, and how many elements it had."""

    source: int
    tag: int
    count: int
