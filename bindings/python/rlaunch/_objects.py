"""Any object, pickled: for settings, shapes and results, not for arrays, which travel without.

Unpickling runs code that the sender chose. Ranks of one job trust each other.

What can't be sent (no pickle of it, a list of another length) is an error on the rank that gave it, and
on all that wait for it: in its place goes the error's text, and its length is told as a negative one.
"""

from __future__ import annotations

import itertools
import pickle
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Sequence

import numpy

if TYPE_CHECKING:
    from rlaunch._rlaunch import Communicator

# Bodies of sent objects have tags of their own from here on, so that threads which receive with
# the same tag never take each other's.
_BODY_TAGS = 1 << 31
_body_tags = itertools.count()


class _Packed:
    """An object as it travels, or why it can't."""

    def __init__(self, value: Any) -> None:
        self.refusal: Optional[Exception] = None
        try:
            body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # whatever the object's own methods raise
            self.refuse(error)
        else:
            self.bytes = numpy.frombuffer(body, numpy.uint8)

    @classmethod
    def refused(cls, error: Exception) -> _Packed:
        packed = cls(None)
        packed.refuse(error)
        return packed

    def refuse(self, error: Exception) -> None:
        self.refusal = error
        text = f"{type(error).__name__}: {error}"
        self.bytes = numpy.frombuffer(text.encode("utf-8", "replace"), numpy.uint8)

    def length(self) -> int:
        """Never 0; negative for a refusal."""
        return -self.bytes.size if self.refusal is not None else self.bytes.size

    def check(self) -> None:
        if self.refusal is not None:
            raise self.refusal


def _unpack(packed: numpy.ndarray[Any, Any], length: int, of: int) -> Any:
    if length < 0:
        _raise(bytes(packed.data).decode("utf-8", "replace"), of)
    return pickle.loads(packed.data)


def _raise(text: str, of: int) -> NoReturn:
    raise ValueError(f"rank {of} could not send its object: {text}")


def _long(values: Sequence[int]) -> numpy.ndarray[Any, Any]:
    return numpy.array(values, numpy.int64)


def _split(
    whole: numpy.ndarray[Any, Any], lengths: Sequence[int]
) -> list[numpy.ndarray[Any, Any]]:
    ends = itertools.accumulate(abs(length) for length in lengths)
    return [whole[end - abs(length) : end] for end, length in zip(ends, lengths)]


def _unpack_all(whole: numpy.ndarray[Any, Any], lengths: Sequence[int]) -> list[Any]:
    parts = _split(whole, lengths)
    return [_unpack(part, length, of) for of, (part, length) in enumerate(zip(parts, lengths))]


def _sizes(lengths: Sequence[int]) -> list[int]:
    return [abs(length) for length in lengths]


def send_object(world: Communicator, value: Any, to: int, tag: int = 0) -> None:
    packed = _Packed(value)
    body_tag = _BODY_TAGS + next(_body_tags) % _BODY_TAGS
    world.send(_long([packed.length(), body_tag]), to, tag)
    world.send(packed.bytes, to, body_tag)
    packed.check()


def recv_object(world: Communicator, source: int, tag: int = 0) -> Any:
    head = numpy.empty(2, numpy.int64)
    status = world.recv(head, source, tag)
    packed = _bytes(int(head[0]))
    world.recv(packed, status.source, int(head[1]))
    return _unpack(packed, int(head[0]), status.source)


def broadcast_object(world: Communicator, value: Any = None, root: int = 0) -> Any:
    if world.rank() == root:
        packed = _Packed(value)
        world.broadcast(_long([packed.length()]), root)
        world.broadcast(packed.bytes, root)
        packed.check()
        return value
    length = int(world.broadcast(_long([0]), root)[0])
    body = _bytes(length)
    world.broadcast(body, root)
    return _unpack(body, length, root)


def all_gather_object(world: Communicator, value: Any) -> list[Any]:
    packed = _Packed(value)
    lengths = world.all_gather(_long([packed.length()])).ravel().tolist()
    whole = world.all_gather_v(packed.bytes, _sizes(lengths))
    packed.check()
    return _unpack_all(whole, lengths)


def gather_object(world: Communicator, value: Any, root: int = 0) -> Optional[list[Any]]:
    packed = _Packed(value)
    gathered = world.gather(_long([packed.length()]), root)
    if gathered is None:
        world.gather_v(packed.bytes, None, root)
        packed.check()
        return None
    lengths = gathered.ravel().tolist()
    whole = world.gather_v(packed.bytes, _sizes(lengths), root)
    assert whole is not None  # this is the root
    packed.check()
    return _unpack_all(whole, lengths)


def scatter_object(world: Communicator, values: Optional[Sequence[Any]], root: int = 0) -> Any:
    own = numpy.empty(1, numpy.int64)
    if world.rank() != root:
        world.scatter(None, root, out=own)
        length = int(own[0])
        return _unpack(world.scatter_v(None, None, root, out=_bytes(length)), length, root)
    packed = _one_for_each(world, values)
    lengths = [part.length() for part in packed]
    world.scatter(_long(lengths), root, out=own)
    whole = numpy.concatenate([part.bytes for part in packed])
    part = world.scatter_v(whole, _sizes(lengths), root)
    for one in packed:
        one.check()
    return _unpack(part, int(own[0]), root)


def all_to_all_object(world: Communicator, values: Sequence[Any]) -> list[Any]:
    packed = _one_for_each(world, values)
    sent = [part.length() for part in packed]
    received = world.all_to_all(_long(sent)).tolist()
    whole = numpy.concatenate([part.bytes for part in packed])
    whole = world.all_to_all_v(whole, _sizes(sent), _sizes(received))
    for one in packed:
        one.check()
    return _unpack_all(whole, received)


def _bytes(length: int) -> numpy.ndarray[Any, Any]:
    return numpy.empty(abs(length), numpy.uint8)


def _one_for_each(world: Communicator, values: Optional[Sequence[Any]]) -> list[_Packed]:
    """If one can't be sent, none is: all ranks learn why."""
    size = world.size()
    try:
        count = -1 if values is None else len(values)
        if values is None or count != size:
            raise ValueError(f"values must have one object for each of {size} ranks")
        packed = [_Packed(value) for value in values]
    except Exception as error:  # of a sequence of the user's own
        return [_Packed.refused(error)] * size
    refusals = [one.refusal for one in packed if one.refusal is not None]
    return [_Packed.refused(refusals[0])] * size if refusals else packed
