"""What the flight recorder holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Operation:
    """One call on a communicator. Times are seconds, from when the world was made."""

    call: str
    """As messages show it: all_reduce #3 of 100 float32, sum"""
    collective: str
    sequence: int
    dtype: str
    op: Optional[str]
    root: int
    count: int
    peer: Optional[int]
    tag: Optional[int]
    bytes: int
    state: str
    """running, done or failed"""
    begun: float
    took: float


@dataclass(frozen=True)
class CommunicatorRecord:
    """The last operations of one communicator, oldest first."""

    id: int
    made_by: str
    """init (the world), split, duplicate, from_ranks or shrink"""
    operations: list[Operation]


@dataclass(frozen=True)
class FlightRecorder:
    """The last operations of this rank. print() shows them as the signal's dump does."""

    rank: int
    host: str
    pid: int
    world_size: int
    age: float
    communicators: list[CommunicatorRecord]
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text
