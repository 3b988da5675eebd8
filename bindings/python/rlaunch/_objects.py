"""Any object, pickled: for settings, shapes and results, not for arrays, which travel without.

Unpickling runs code that the sender chose. Ranks of one job trust each other.
"""

from __future__ import annotations

import itertools
import pickle
from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy

if TYPE_CHECKING:
    from rlaunch._rlaunch import Communicator

# Bodies of sent objects have tags of their own from here on, so that threads which receive with
# the same tag never take each other's.
_BODY_TAGS = 1 << 31
_body_tags = itertools.count()


def _pack(value: Any) -> numpy.ndarray[Any, Any]:
    return numpy.frombuffer(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL), numpy.uint8)


def _unpack(packed: numpy.ndarray[Any, Any]) -> Any:
    return pickle.loads(packed.data)


def _length(packed: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    return numpy.array([packed.size], numpy.int64)


def _split(packed: numpy.ndarray[Any, Any], lengths: Sequence[int]) -> list[Any]:
    ends = list(itertools.accumulate(lengths))
    return [_unpack(packed[end - length : end]) for end, length in zip(ends, lengths)]


def send_object(world: Communicator, value: Any, to: int, tag: int = 0) -> None:
    packed = _pack(value)
    body_tag = _BODY_TAGS + next(_body_tags) % _BODY_TAGS
    world.send(numpy.array([packed.size, body_tag], numpy.int64), to, tag)
    world.send(packed, to, body_tag)


def recv_object(world: Communicator, source: int, tag: int = 0) -> Any:
    head = numpy.empty(2, numpy.int64)
    status = world.recv(head, source, tag)
    packed = numpy.empty(int(head[0]), numpy.uint8)
    world.recv(packed, status.source, int(head[1]))
    return _unpack(packed)


def broadcast_object(world: Communicator, value: Any = None, root: int = 0) -> Any:
    is_root = world.rank() == root
    packed = _pack(value) if is_root else numpy.empty(0, numpy.uint8)
    length = world.broadcast(_length(packed), root)
    if not is_root:
        packed = numpy.empty(int(length[0]), numpy.uint8)
    world.broadcast(packed, root)
    return value if is_root else _unpack(packed)


def all_gather_object(world: Communicator, value: Any) -> list[Any]:
    packed = _pack(value)
    lengths = world.all_gather(_length(packed)).ravel().tolist()
    return _split(world.all_gather_v(packed, lengths), lengths)


def gather_object(world: Communicator, value: Any, root: int = 0) -> Optional[list[Any]]:
    packed = _pack(value)
    gathered = world.gather(_length(packed), root)
    if gathered is None:
        world.gather_v(packed, None, root)
        return None
    lengths = gathered.ravel().tolist()
    whole = world.gather_v(packed, lengths, root)
    assert whole is not None  # this is the root
    return _split(whole, lengths)


def scatter_object(world: Communicator, values: Optional[Sequence[Any]], root: int = 0) -> Any:
    length = numpy.empty(1, numpy.int64)
    if world.rank() != root:
        world.scatter(None, root, out=length)
        return _unpack(world.scatter_v(None, None, root, out=_bytes(int(length[0]))))
    packed = [_pack(value) for value in _one_for_each(world, values)]
    lengths = [part.size for part in packed]
    world.scatter(numpy.array(lengths, numpy.int64), root, out=length)
    part = world.scatter_v(numpy.concatenate(packed), lengths, root)
    return _unpack(part)


def all_to_all_object(world: Communicator, values: Sequence[Any]) -> list[Any]:
    packed = [_pack(value) for value in _one_for_each(world, values)]
    sent = numpy.array([part.size for part in packed], numpy.int64)
    received = world.all_to_all(sent).tolist()
    whole = world.all_to_all_v(numpy.concatenate(packed), sent.tolist(), received)
    return _split(whole, received)


def _bytes(length: int) -> numpy.ndarray[Any, Any]:
    return numpy.empty(length, numpy.uint8)


def _one_for_each(world: Communicator, values: Optional[Sequence[Any]]) -> Sequence[Any]:
    count = -1 if values is None else len(values)
    if values is None or count != world.size():
        raise ValueError(f"values must have one object for each of {world.size()} ranks")
    return values
