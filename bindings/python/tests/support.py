"""Starts ranks of small Python programs by hand: MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE."""

import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
EXAMPLES = os.path.join(ROOT, "examples")

# What every program starts with.
PRELUDE = """
import os, signal, sys, time
import numpy as np
import rlaunch as rl
"""

# Far above what any test needs, far below what a person waits for.
RANKS_TIMEOUT_S = 60


class Ended(NamedTuple):
    """How a rank ended; status is negative for a signal."""

    status: int
    output: str
    errors: str


def environment(**changes):
    """This process's, without what a launcher may have set; one thread for numpy's BLAS."""
    launchers = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "GROUP_", "RLAUNCH_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(launchers)}
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    limits = {"RLAUNCH_TIMEOUT": "30", "RLAUNCH_INIT_TIMEOUT": "30"}
    return {**kept, **threads, **limits, **{key: str(value) for key, value in changes.items()}}


def free_port():
    """A port that nobody has now; the runtime looks for its own beside it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_ranks(size, program, timeout=RANKS_TIMEOUT_S, arguments=(), **changes):
    """Runs `program` (source text after PRELUDE, or a .py file) as `size` ranks to their ends.
    After `timeout` seconds all are killed, and how far they came is the failure's text."""
    if program.endswith(".py"):
        command = [sys.executable, program, *arguments]
    else:
        command = [sys.executable, "-c", PRELUDE + textwrap.dedent(program), *arguments]
    port = free_port()
    started = []
    for rank in range(size):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": size}
        own = environment(**{**place, **changes})
        # Files, not pipes: nobody has to read while the ranks run.
        output, errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        process = subprocess.Popen(
            command, env=own, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
        )
        started.append((process, output, errors))
    late = wait_for_all([process for process, _, _ in started], timeout)
    ended = [Ended(process.returncode, text(out), text(err)) for process, out, err in started]
    if late:
        raise AssertionError(f"ranks {late} were still running after {timeout} s: {ended}")
    return ended


def wait_for_all(processes, timeout):
    """Ranks that had to be killed."""
    deadline = time.monotonic() + timeout
    late = []
    for rank, process in enumerate(processes):
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            late.append(rank)
    return late


def text(file):
    with file:
        file.seek(0)
        return file.read().decode(errors="replace")


def assert_all_well(test, ended):
    for rank, end in enumerate(ended):
        test.assertEqual(end.status, 0, f"rank {rank}: {end.output}{end.errors}")
