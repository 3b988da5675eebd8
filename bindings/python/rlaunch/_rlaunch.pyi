"""The native part. Use it through rlaunch.

_A stands for what the memory is in: a numpy array, a tensor on the CPU, an object with the buffer
protocol. What is said of a call is in its docstring: help(rlaunch.all_reduce).
"""

from types import TracebackType
from typing import Any, Callable, Final, Generator, Generic, Literal, Optional, Sequence, TypeVar
from typing import Union, final

import numpy
from numpy.typing import DTypeLike
from typing_extensions import disjoint_base

from rlaunch._point import Status
from rlaunch._records import FlightRecorder

__version__: str
ANY: Final[int]

_Name = Literal[
    "sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "land", "lor", "lxor", "minloc",
    "maxloc",
]  # fmt: skip
_Op = Union[_Name, Operation]
_A = TypeVar("_A")
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

@disjoint_base
class Communicator:
    """_A group of ranks that call together, seen by one of them. Ranks count within it."""

    def rank(self) -> int: ...
    def size(self) -> int: ...
    def id(self) -> int: ...
    def ranks(self) -> list[int]: ...
    def split(self, color: Optional[int], key: int = 0) -> Optional[Communicator]: ...
    def duplicate(self) -> Communicator: ...
    def from_ranks(self, ranks: Sequence[int]) -> Optional[Communicator]: ...
    def shrink(self) -> Communicator: ...
    def abort(self, reason: str = "aborted by the program") -> None: ...
    def error(self) -> Optional[BaseException]: ...
    def set_timeout(self, seconds: Optional[float]) -> None: ...

    # Memory that the ranks of this host read in place.
    def allocate(self, bytes: int) -> Memory: ...
    def empty(
        self, shape: Union[int, Sequence[int]], dtype: DTypeLike = "float64"
    ) -> numpy.ndarray[Any, Any]: ...
    def zeros(
        self, shape: Union[int, Sequence[int]], dtype: DTypeLike = "float64"
    ) -> numpy.ndarray[Any, Any]: ...

    # Collectives, at once.
    def barrier(self, *, timeout: Optional[float] = None) -> None: ...
    def broadcast(self, x: _A, root: int = 0, *, timeout: Optional[float] = None) -> _A: ...
    def all_reduce(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> _A: ...
    def reduce(
        self,
        x: _A,
        root: int = 0,
        op: _Op = "sum",
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Optional[_A]: ...
    def scan(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> _A: ...
    def exscan(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> _A: ...
    def all_gather(
        self, x: _A, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> _A: ...
    def gather(
        self, x: _A, root: int = 0, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Optional[_A]: ...
    def scatter(
        self,
        x: Optional[_A],
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> _A: ...
    def reduce_scatter(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> _A: ...
    def all_to_all(
        self, x: _A, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> _A: ...
    def all_gather_v(
        self,
        x: _A,
        counts: Sequence[int],
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> _A: ...
    def gather_v(
        self,
        x: _A,
        counts: Optional[Sequence[int]] = None,
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Optional[_A]: ...
    def scatter_v(
        self,
        x: Optional[_A],
        counts: Optional[Sequence[int]] = None,
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> _A: ...
    def reduce_scatter_v(
        self,
        x: _A,
        counts: Sequence[int],
        op: _Op = "sum",
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> _A: ...
    def all_to_all_v(
        self,
        x: _A,
        send_counts: Sequence[int],
        recv_counts: Sequence[int],
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> _A: ...

    # The same, started.
    def ibarrier(self, *, timeout: Optional[float] = None) -> Request[None]: ...
    def ibroadcast(self, x: _A, root: int = 0, *, timeout: Optional[float] = None) -> Request[_A]: ...
    def iall_reduce(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Request[_A]: ...
    def ireduce(
        self,
        x: _A,
        root: int = 0,
        op: _Op = "sum",
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Request[Optional[_A]]: ...
    def iscan(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Request[_A]: ...
    def iexscan(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Request[_A]: ...
    def iall_gather(
        self, x: _A, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Request[_A]: ...
    def igather(
        self, x: _A, root: int = 0, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Request[Optional[_A]]: ...
    def iscatter(
        self,
        x: Optional[_A],
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Request[_A]: ...
    def ireduce_scatter(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Request[_A]: ...
    def iall_to_all(
        self, x: _A, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Request[_A]: ...
    def iall_gather_v(
        self,
        x: _A,
        counts: Sequence[int],
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Request[_A]: ...
    def igather_v(
        self,
        x: _A,
        counts: Optional[Sequence[int]] = None,
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Request[Optional[_A]]: ...
    def iscatter_v(
        self,
        x: Optional[_A],
        counts: Optional[Sequence[int]] = None,
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Request[_A]: ...
    def ireduce_scatter_v(
        self,
        x: _A,
        counts: Sequence[int],
        op: _Op = "sum",
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Request[_A]: ...
    def iall_to_all_v(
        self,
        x: _A,
        send_counts: Sequence[int],
        recv_counts: Sequence[int],
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Request[_A]: ...

    # The same, prepared.
    def barrier_init(self, *, timeout: Optional[float] = None) -> Persistent[None]: ...
    def broadcast_init(
        self, x: _A, root: int = 0, *, timeout: Optional[float] = None
    ) -> Persistent[_A]: ...
    def all_reduce_init(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Persistent[_A]: ...
    def reduce_init(
        self,
        x: _A,
        root: int = 0,
        op: _Op = "sum",
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Persistent[Optional[_A]]: ...
    def scan_init(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Persistent[_A]: ...
    def exscan_init(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Persistent[_A]: ...
    def all_gather_init(
        self, x: _A, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Persistent[_A]: ...
    def gather_init(
        self, x: _A, root: int = 0, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Persistent[Optional[_A]]: ...
    def scatter_init(
        self,
        x: Optional[_A],
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Persistent[_A]: ...
    def reduce_scatter_init(
        self, x: _A, op: _Op = "sum", *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Persistent[_A]: ...
    def all_to_all_init(
        self, x: _A, *, out: Optional[_A] = None, timeout: Optional[float] = None
    ) -> Persistent[_A]: ...
    def all_gather_v_init(
        self,
        x: _A,
        counts: Sequence[int],
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Persistent[_A]: ...
    def gather_v_init(
        self,
        x: _A,
        counts: Optional[Sequence[int]] = None,
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Persistent[Optional[_A]]: ...
    def scatter_v_init(
        self,
        x: Optional[_A],
        counts: Optional[Sequence[int]] = None,
        root: int = 0,
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Persistent[_A]: ...
    def reduce_scatter_v_init(
        self,
        x: _A,
        counts: Sequence[int],
        op: _Op = "sum",
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Persistent[_A]: ...
    def all_to_all_v_init(
        self,
        x: _A,
        send_counts: Sequence[int],
        recv_counts: Sequence[int],
        *,
        out: Optional[_A] = None,
        timeout: Optional[float] = None,
    ) -> Persistent[_A]: ...

    # Calls of two ranks. In a group, recv's Status is all zero.
    def send(
        self, x: Any, to: int, tag: int = 0, *, timeout: Optional[float] = None
    ) -> None: ...
    def recv(
        self, x: Any, source: int, tag: int = 0, *, timeout: Optional[float] = None
    ) -> Status: ...
    def isend(
        self, x: Any, to: int, tag: int = 0, *, timeout: Optional[float] = None
    ) -> Request[None]: ...
    def irecv(
        self, x: Any, source: int, tag: int = 0, *, timeout: Optional[float] = None
    ) -> Request[Status]: ...
    def sendrecv(
        self, x: Any, to: int, out: Any, source: int, *, send_tag: int = 0, recv_tag: int = 0,
        timeout: Optional[float] = None,
    ) -> Status: ...
    def probe(
        self, source: int = -1, tag: int = -1, *, timeout: Optional[float] = None
    ) -> Status: ...
    def try_probe(self, source: int = -1, tag: int = -1) -> Optional[Status]: ...

    # Any object, pickled.
    def send_object(self, value: Any, to: int, tag: int = 0) -> None: ...
    def recv_object(self, source: int, tag: int = 0) -> Any: ...
    def broadcast_object(self, value: Any = None, root: int = 0) -> Any: ...
    def all_gather_object(self, value: _T) -> list[_T]: ...
    def gather_object(self, value: _T, root: int = 0) -> Optional[list[_T]]: ...
    def scatter_object(self, values: Optional[Sequence[_T]], root: int = 0) -> _T: ...
    def all_to_all_object(self, values: Sequence[_T]) -> list[_T]: ...

@final
class World(Communicator):
    """All ranks of a job: their communicator, and what holds for the job."""

    def __new__(cls) -> World: ...
    def join(self) -> None: ...
    def is_joined(self) -> bool: ...
    def local_rank(self) -> int: ...
    def local_size(self) -> int: ...
    def host(self) -> str: ...
    def transports(self) -> list[str]: ...
    def is_authenticated(self) -> bool: ...
    def flight_recorder(self) -> FlightRecorder: ...
    def finalize(self) -> None: ...
    def leave(self) -> None: ...
    def abandon(self) -> None: ...

@final
class Request(Generic[_T_co]):
    """_A call under way: test it, wait() for its result, `await` it, or use it in a `with`."""

    def test(self) -> bool: ...
    def wait(self) -> _T_co: ...
    def wait_timeout(self, seconds: float) -> bool: ...
    def cancel(self) -> bool: ...
    def fileno(self) -> int: ...
    def __enter__(self) -> Request[_T_co]: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
        /,
    ) -> None: ...
    def __await__(self) -> Generator[Any, None, _T_co]: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> Any: ...

@final
class Persistent(Generic[_T_co]):
    """_A call prepared once and started many times, one at a time, on the same arrays."""

    def start(self) -> Request[_T_co]: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> Any: ...

@final
class Operation:
    """_A reduction with something of its own: made by premul_sum() or operation()."""

@final
class Memory:
    """Memory that the ranks of a host read in place: numpy.asarray(memory) is its bytes."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def premul_sum(scalar: Any) -> Operation: ...
def operation(function: Callable[[Any, Any], Any], *, commutative: bool = True) -> Operation: ...
def group_begin() -> None: ...
def group_end() -> list[Request[Any]]: ...
def unjoined_world() -> World: ...
def after_fork_in_child() -> None: ...
