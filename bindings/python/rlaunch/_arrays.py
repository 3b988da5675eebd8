"""numpy arrays in memory that the ranks of a host read in place."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rlaunch._rlaunch import Communicator


def empty(
    communicator: Communicator, shape: Union[int, Sequence[int]], dtype: Optional[DTypeLike]
) -> numpy.ndarray[Any, Any]:
    lengths = [_length(length, shape) for length in _listed(shape)]
    element = _dtype("float64" if dtype is None else dtype)
    memory = communicator.allocate(math.prod(lengths) * element.itemsize)
    # The array's base is the memory, which so lives as long as any view of it.
    return numpy.asarray(memory).view(element).reshape(lengths)


# Fresh memory is zero.
zeros = empty


def _listed(shape: Union[int, Sequence[int]]) -> Sequence[Any]:
    if isinstance(shape, (str, bytes)):
        raise TypeError(f"shape is {shape!r}, which is no length, and no tuple of lengths")
    return (shape,) if numpy.ndim(shape) == 0 else tuple(shape)  # type: ignore[arg-type]


def _length(length: Any, shape: Any) -> int:
    if isinstance(length, (bool, numpy.bool_)) or not hasattr(length, "__index__"):
        kind = type(length).__name__
        raise TypeError(f"shape {shape!r} has {length!r}, a {kind}, where a whole number is meant")
    whole = operator.index(length)
    if whole < 0:
        raise ValueError(f"shape {shape!r} has a negative length")
    return whole


def _dtype(dtype: DTypeLike) -> numpy.dtype[Any]:
    if isinstance(dtype, str) and dtype.startswith(("bfloat16", "float8_")):
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, dtype))
    element = numpy.dtype(dtype)
    if element.hasobject:
        raise TypeError(f"arrays of {element} hold Python objects, which other ranks can't read")
    return element
