"""numpy arrays on memory that the ranks of a host share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence, Union

import numpy

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rlaunch._rlaunch import Communicator


def empty(
    world: Communicator, shape: Union[int, Sequence[int]], dtype: DTypeLike
) -> numpy.ndarray[Any, Any]:
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    element = _dtype(dtype)
    count = math.prod(lengths)
    memory = world.allocate(count * element.itemsize)
    # The array keeps the memory alive: it is its base.
    return numpy.asarray(memory)[: count * element.itemsize].view(element).reshape(lengths)


def zeros(
    world: Communicator, shape: Union[int, Sequence[int]], dtype: DTypeLike
) -> numpy.ndarray[Any, Any]:
    array = empty(world, shape, dtype)
    array.view(numpy.uint8).fill(0) if array.ndim else array.fill(0)
    return array


def _dtype(dtype: DTypeLike) -> numpy.dtype[Any]:
    if isinstance(dtype, str) and dtype.startswith(("bfloat16", "float8_")):
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, dtype))
    return numpy.dtype(dtype)
