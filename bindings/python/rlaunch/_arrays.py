"""numpy arrays in memory that the ranks of a host read in place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rlaunch._rlaunch import Communicator


def empty(
    communicator: Communicator, shape: Union[int, Sequence[int]], dtype: Optional[DTypeLike]
) -> numpy.ndarray[Any, Any]:
    lengths = (int(shape),) if numpy.ndim(shape) == 0 else tuple(shape)  # type: ignore[arg-type]
    if any(length < 0 for length in lengths):
        raise ValueError(f"shape {shape} has a negative length")
    element = _dtype("float64" if dtype is None else dtype)
    memory = communicator.allocate(math.prod(lengths) * element.itemsize)
    # The array's base is the memory, which so lives as long as any view of it.
    return numpy.asarray(memory).view(element).reshape(lengths)


# Fresh memory is zero.
zeros = empty


def _dtype(dtype: DTypeLike) -> numpy.dtype[Any]:
    if isinstance(dtype, str) and dtype.startswith(("bfloat16", "float8_")):
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, dtype))
    element = numpy.dtype(dtype)
    if element.hasobject:
        raise TypeError(f"arrays of {element} hold Python objects, which other ranks can't read")
    return element
