"""Numbers beside the arrays, of every call: what is none, and what is out of range. World of one rank."""

import inspect
import math
import unittest

import numpy as np

import rlaunch as rl

# What is no whole number; a float is none even where it has no fraction.
NO_INTEGERS = [True, np.bool_(True), 1.0, 1.5, "1", b"1", [1], None, 1j]
HUGE = 2**70
# What is no number of seconds; None is the default.
NO_SECONDS = [True, np.bool_(False), "1", "x", b"1", [1], 1j]
# What is no time to wait.
NO_TIMES = [0, -1, -0.5, math.nan, -math.inf, -(10**400)]
# Seconds as long as any program runs, and longer.
LONG = [1e300, math.inf, 10**400, 2**70, np.float32(3), np.int8(5)]

X = np.ones(1)



class Numbers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rl.init()

    def refused(self, kind, words, call, *arguments, **named):
        with self.assertRaises(kind) as caught:
            call(*arguments, **named)
        # Of a type, the argument's name is in a note, where Python has them.
        notes = getattr(caught.exception, "__notes__", words if kind is TypeError else [])
        for word in words:
            self.assertIn(word, f"{caught.exception} {notes}")

    def test_ranks_and_tags(self):
        cases = {
            "root": [
                lambda v: rl.broadcast(X, v),
                lambda v: rl.ireduce(X, v),
                lambda v: rl.gather_init(X, v),
                lambda v: rl.scatter(np.ones((1, 1)), root=v),
                lambda v: rl.gather_v(X, [1], v),
                lambda v: rl.scatter_v(X, [1], v),
                lambda v: rl.broadcast_object(1, v),
                lambda v: rl.gather_object(1, v),
                lambda v: rl.scatter_object([1], v),
            ],
            "to": [
                lambda v: rl.send(X, v),
                lambda v: rl.isend(X, v),
                lambda v: rl.sendrecv(X, v, np.ones(1), 0),
                lambda v: rl.send_object(1, v),
            ],
            "source": [
                lambda v: rl.recv(X, v),
                lambda v: rl.irecv(X, v),
                lambda v: rl.probe(v),
                lambda v: rl.try_probe(v),
                lambda v: rl.recv_object(v),
            ],
            "tag": [
                lambda v: rl.send(X, 0, v),
                lambda v: rl.isend(X, 0, tag=v),
                lambda v: rl.recv(X, 0, v),
                lambda v: rl.probe(0, v),
            ],
            "rank": [lambda v: rl.world().from_ranks([v])],
            "color": [lambda v: rl.split(v)],
            "key": [lambda v: rl.split(0, v)],
        }
        for name, calls in cases.items():
            for call in calls:
                for wrong in NO_INTEGERS:
                    if name == "color" and wrong is None:
                        continue  # no color: no communicator
                    self.refused(TypeError, [], call, wrong)
                for wrong in (HUGE, -HUGE):
                    self.refused(ValueError, [f"{name}={wrong} "], call, wrong)
                if name != "key":
                    self.refused(ValueError, [f"{name}=-2 "], call, -2)
        self.refused(TypeError, ["True is a bool"], rl.broadcast, X, True)
        self.refused(ValueError, ["root=", "digits"], rl.broadcast, X, 10**5000)

    def test_counts(self):
        calls = [
            lambda v: rl.all_gather_v(X, v),
            lambda v: rl.igather_v(X, v),
            lambda v: rl.scatter_v_init(X, v),
            lambda v: rl.reduce_scatter_v(X, v),
            lambda v: rl.all_to_all_v(X, v, [1]),
            lambda v: rl.all_to_all_v(X, [1], v),
        ]
        for call in calls:
            for wrong in NO_INTEGERS:
                self.refused(TypeError, [], call, [wrong])
            self.refused(TypeError, [], call, 1)
            self.refused(ValueError, ["counts[0]=-1 is negative"], call, [-1])
            self.refused(ValueError, [f"counts[0]={HUGE} is more than"], call, [HUGE])
            call(np.array([1]))
            call((np.uint8(1),))

    def test_seconds(self):
        named = []
        for name, function in inspect.getmembers(rl.world(), callable):
            signature = getattr(function, "__text_signature__", None) or ""
            if "timeout=None" in signature:
                named.append((name, function))
        self.assertGreater(len(named), 50)
        for name, function in named:
            arguments = self.arguments(name)
            for wrong in NO_SECONDS:
                self.refused(TypeError, ["timeout", "seconds"], function, *arguments, timeout=wrong)
            for wrong in NO_TIMES:
                self.refused(ValueError, ["timeout=", "hint"], function, *arguments, timeout=wrong)
        for wrong in NO_SECONDS:
            self.refused(TypeError, ["seconds"], rl.set_timeout, wrong)
        for wrong in NO_TIMES:
            self.refused(ValueError, ["seconds="], rl.set_timeout, wrong)
        for long in LONG:
            rl.barrier(timeout=long)
            rl.set_timeout(long)
        rl.set_timeout(None)
        rl.barrier(timeout=None)
        self.refused(ValueError, ["timeout=nan "], rl.barrier, timeout=math.nan)
        self.refused(ValueError, ["timeout=-inf "], rl.barrier, timeout=-(10**400))

    def arguments(self, name):
        name = name.removeprefix("i").removesuffix("_init")
        parts = [np.ones((1, 1))]
        table = {
            "barrier": [], "probe": [], "send": [X, 0], "recv": [X, 0], "scatter": parts,
            "reduce_scatter": parts, "all_to_all": parts, "all_gather_v": [X, [1]],
            "gather_v": [X, [1]], "scatter_v": [X, [1]], "reduce_scatter_v": [X, [1]],
            "all_to_all_v": [X, [1], [1]], "sendrecv": [X, 0, np.ones(1), 0],
        }  # fmt: skip
        return table.get(name, [X])

    def test_seconds_of_a_request(self):
        receive = rl.irecv(X, 0, 77)
        for wrong in NO_SECONDS:
            self.refused(TypeError, ["seconds"], receive.wait_timeout, wrong)
        for wrong in (-1, math.nan, -math.inf):
            self.refused(ValueError, ["seconds="], receive.wait_timeout, wrong)
        self.assertFalse(receive.wait_timeout(0))
        self.assertFalse(receive.wait_timeout(1e-300))
        rl.send(X.copy(), 0, 77)
        self.assertTrue(receive.wait_timeout(math.inf))

    def test_scalars(self):
        for wrong in [True, np.bool_(True), "x", "1", b"1", None, [2], (1,), {}, np.ones(1), object()]:
            self.refused(TypeError, ["scalar is", "one number"], rl.premul_sum, wrong)
        for right in [2, 0.5, 1j, HUGE, np.float16(2), np.array(3.0), math.inf, math.nan]:
            self.assertIn("premul_sum", repr(rl.premul_sum(right)))
        for wrong in [2.5, HUGE, -HUGE, math.nan]:
            self.refused(
                ValueError, ["can't hold"], rl.all_reduce, np.ones(1, np.int32), rl.premul_sum(wrong)
            )
        for wrong in (1, "yes", None):
            with self.assertRaises(TypeError):
                rl.operation(np.hypot, commutative=wrong)

    def test_sizes_of_memory(self):
        for wrong in NO_INTEGERS:
            self.refused(TypeError, [], rl.allocate, wrong)
        self.refused(ValueError, ["bytes=-1 is negative"], rl.allocate, -1)
        self.refused(ValueError, [f"bytes={-HUGE} is negative"], rl.allocate, -HUGE)
        for make in (rl.empty, rl.zeros):
            for wrong in [True, 1.5, "3", b"3", (2, 1.0), ("3",), (True,), None, (None,)]:
                self.refused(TypeError, ["shape"], make, wrong)
            for wrong in [-1, (2, -1), (-HUGE,)]:
                self.refused(ValueError, ["negative length"], make, wrong)

    def test_memory_that_is_not_there(self):
        available = ["GiB", "available on this machine", "hint"]
        self.refused(MemoryError, ["1000000000000000 bytes (909.5 TiB)", *available], rl.allocate, 10**15)
        self.refused(MemoryError, ["8000000000000000 bytes", *available], rl.zeros, 10**15)
        self.refused(MemoryError, ["8000000000000 bytes", *available], rl.empty, (10**6, 10**6))
        for wrong in (HUGE, 10**400):
            self.refused(MemoryError, ["more than any machine"], rl.allocate, wrong)
        self.refused(MemoryError, ["bytes"], rl.allocate, 2**63 - 1)
        self.refused(MemoryError, ["bytes"], rl.zeros, (2**40, 2**40))
        self.assertEqual(len(rl.zeros(10)), 10)
        rl.barrier()


if __name__ == "__main__":
    unittest.main()
