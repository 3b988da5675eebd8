"""What the flight recorder holds."""

from __future__ import annotations

from typing import NamedTuple, Optional


class Operation(NamedTuple):
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


class CommunicatorRecord(NamedTuple):
    """The last operations of one communicator, oldest first."""

    id: int
    operations: list[Operation]


class FlightRecorder(NamedTuple):
    """The last operations of this rank. print() shows them as the signal's dump does."""

    rank: int
    host: str
    pid: int
    world_size: int
    age: float
    communicators: list[CommunicatorRecord]
    text: str

    def __str__(self) -> str:
        return self.text
