"""The type stubs say what the native module has, and a typed program passes mypy."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import rlaunch

FOLDER = os.path.dirname(os.path.dirname(rlaunch.__file__))

PROGRAM = """
import numpy as np
import rlaunch as rl
x = np.ones(3, np.float32)
rl.init()
y: "np.ndarray[tuple[int], np.dtype[np.float32]]" = rl.all_reduce(x, rl.SUM)
rl.all_reduce(x, "minimum")  # error: op
request: "rl.Request[rl.Status]" = rl.irecv(x, rl.ANY_SOURCE)
count: int = request.wait().count
half = rl.split(0)
half.barrier()  # error: None
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "no mypy here")
class Stubs(unittest.TestCase):
    def test_stubs_fit_the_module(self):
        command = [sys.executable, "-m", "mypy.stubtest", "rlaunch._rlaunch"]
        with tempfile.TemporaryDirectory() as folder:
            allowed = os.path.join(folder, "allowed")
            with open(allowed, "w") as file:
                file.write("rlaunch._rlaunch.__all__\n")  # made by pyo3
            command += ["--allowlist", allowed]
            ended = subprocess.run(
                command,
                cwd=FOLDER,
                env={**os.environ, "MYPY_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                timeout=300,
            )
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_a_typed_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write(textwrap.dedent(PROGRAM))
            command = [sys.executable, "-m", "mypy", "--cache-dir", folder, path]
            environment = {**os.environ, "MYPYPATH": FOLDER}
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
            )
        errors = [line for line in ended.stdout.splitlines() if ": error:" in line]
        lines = [int(line.split(":")[1]) for line in errors]
        self.assertEqual(lines, [7, 11], ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
