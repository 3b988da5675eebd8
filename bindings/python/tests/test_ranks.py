"""Several ranks on this machine, found by MASTER_ADDR alone: values, failures, ends."""

import os
import tempfile
import unittest

from support import assert_all_well, run_ranks

# Compared with numpy on the same numbers, small integers: exact in every dtype and order.
SWEEP = """
world = rl.init()
rank, size = rl.rank(), rl.size()
ufuncs = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}

def given(of, count, dtype):
    return ((np.arange(count) * 7 + of * 3) % 4 + 1).astype(dtype)

for dtype in (np.int32, np.int64, np.float32, np.float64):
    for count in (0, 1, 2, 3, 17, 1000, 100_003 if dtype == np.float32 else 4099):
        everyone = np.stack([given(of, count, dtype) for of in range(size)])
        for op, ufunc in ufuncs.items():
            x = given(rank, count, dtype)
            assert rl.all_reduce(x, op) is x
            np.testing.assert_array_equal(x, ufunc.reduce(everyone, axis=0, dtype=dtype))
            x = np.stack([given(rank + part, count, dtype) for part in range(size)])
            mine = np.stack([given(of + rank, count, dtype) for of in range(size)])
            expected = ufunc.reduce(mine, axis=0, dtype=dtype)
            np.testing.assert_array_equal(rl.reduce_scatter(x, op=op), expected)
        np.testing.assert_array_equal(rl.all_gather(given(rank, count, dtype)), everyone)
        for root in range(size):
            x = given(rank, count, dtype)
            rl.broadcast(x, root)
            np.testing.assert_array_equal(x, given(root, count, dtype))
        x = given(rank, count, dtype)
        if rank % 2 == 0 and rank + 1 < size:
            rl.send(x, rank + 1, tag=5)
            rl.recv(x, rank + 1, tag=6)
            np.testing.assert_array_equal(x, given(rank + 1, count, dtype))
        elif rank % 2 == 1:
            y = np.empty_like(x)
            rl.recv(y, rank - 1, tag=5)
            np.testing.assert_array_equal(y, given(rank - 1, count, dtype))
            rl.send(x, rank - 1, tag=6)
    rl.barrier()
"""


class Values(unittest.TestCase):
    def test_everything_against_numpy_2(self):
        assert_all_well(self, run_ranks(2, SWEEP))

    def test_everything_against_numpy_3(self):
        assert_all_well(self, run_ranks(3, SWEEP))

    def test_everything_against_numpy_4(self):
        assert_all_well(self, run_ranks(4, SWEEP))

    def test_everything_over_tcp(self):
        assert_all_well(self, run_ranks(3, SWEEP, RLAUNCH_TRANSPORT="tcp"))

    def test_every_rank_gets_the_same_bits(self):
        program = """
            rl.init()
            x = np.random.default_rng(rl.rank()).normal(size=10_007).astype(np.float32)
            rl.all_reduce(x)
            bits = rl.all_gather(x.view(np.int32))
            assert (bits == bits[0]).all()
        """
        assert_all_well(self, run_ranks(4, program))

    def test_ranks_know_their_place(self):
        program = """
            rl.init()
            print(rl.rank(), rl.size(), rl.local_rank(), rl.local_size())
        """
        for rank, end in enumerate(run_ranks(3, program)):
            self.assertEqual(end.output, f"{rank} 3 {rank} 3\n", end.errors)

    def test_other_threads_run_while_a_rank_waits(self):
        """Rank 1 sends only after a thread of rank 0, which waits for it, has done something."""
        program = """
            import threading
            rl.init()
            def work():
                time.sleep(0.2)  # rank 0 waits by now
                open(sys.argv[1], "w").close()
            if rl.rank() == 0:
                threading.Thread(target=work).start()
                rl.recv(np.zeros(1), 1)
            else:
                while not os.path.exists(sys.argv[1]):
                    time.sleep(0.01)
                rl.send(np.ones(1), 0)
        """
        with tempfile.TemporaryDirectory() as folder:
            assert_all_well(self, run_ranks(2, program, arguments=[os.path.join(folder, "done")]))


class Failures(unittest.TestCase):
    """Every rank gets an error that names both sides, in good time."""

    def all_say(self, ended, *words):
        for rank, end in enumerate(ended):
            for word in ("caught", *words):
                self.assertIn(word, end.output, f"rank {rank}: {end.output}{end.errors}")

    def test_different_counts(self):
        program = """
            rl.init()
            try:
                rl.all_reduce(np.zeros(10 + rl.rank()))
            except rl.MismatchError as error:
                assert error.rank == rl.rank() and error.peer not in (None, rl.rank())
                assert error.host
                print("caught", error)
            try:
                rl.barrier()
            except rl.MismatchError as error:
                print("again")
        """
        self.all_say(run_ranks(2, program), "10 float64", "11 float64", "again")

    def test_different_dtypes_ops_and_calls(self):
        for left, right, words in [
            ("rl.all_reduce(np.zeros(4))", "rl.all_reduce(np.zeros(4, np.int64))",
             ("float64", "int64")),
            ("rl.all_reduce(np.zeros(4))", "rl.all_reduce(np.zeros(4), 'max')", ("sum", "max")),
            ("rl.all_reduce(np.zeros(4))", "rl.barrier()", ("all_reduce", "barrier")),
            ("rl.broadcast(np.zeros(4), 0)", "rl.broadcast(np.zeros(4), 1)", ("root 0", "root 1")),
        ]:  # fmt: skip
            program = f"""
                rl.init()
                try:
                    {left} if rl.rank() == 0 else {right}
                    rl.barrier()  # who had returned already learns it here
                except rl.MismatchError as error:
                    print("caught", error)
            """
            with self.subTest(left=left, right=right):
                self.all_say(run_ranks(2, program), *words)

    def test_a_message_of_another_size(self):
        program = """
            rl.init()
            try:
                if rl.rank() == 0:
                    rl.send(np.zeros(8), 1)
                else:
                    rl.recv(np.zeros(7), 0)
            except rl.MismatchError as error:
                print("caught", error)
        """
        ended = run_ranks(2, program)
        self.all_say(ended[1:], "8 float64", "7 float64")

    def test_a_killed_rank_is_known_within_two_seconds(self):
        program = """
            rl.init()
            x = np.ones(1000)
            rl.all_reduce(x)
            if rl.rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            start = time.monotonic()
            try:
                while True:
                    rl.all_reduce(x)
            except rl.PeerFailedError as error:
                assert time.monotonic() - start < 2.0, time.monotonic() - start
                assert error.peer == 1 and error.rank == rl.rank() and error.host and error.pid
                print("caught", error)
        """
        ended = run_ranks(3, program)
        self.assertEqual(ended[1].status, -9)
        self.all_say([ended[0], ended[2]], "rank 1")

    def test_a_rank_that_raises_has_failed_not_left(self):
        program = """
            rl.init()
            if rl.rank() == 1:
                raise RuntimeError("bad batch")
            try:
                rl.barrier()
            except rl.PeerFailedError as error:
                assert error.peer == 1
                assert "left the job" not in str(error), error
                print("caught", error)
        """
        ended = run_ranks(2, program)
        self.assertEqual(ended[1].status, 1)
        self.assertIn("bad batch", ended[1].errors)
        self.all_say(ended[:1])

    def test_a_rank_that_leaves_early(self):
        program = """
            rl.init()
            if rl.rank() == 0:
                try:
                    rl.barrier()
                except rl.PeerFailedError as error:
                    assert error.peer == 1
                    print("caught", error)
        """
        ended = run_ranks(2, program)
        self.all_say(ended[:1], "left")
        self.assertEqual(ended[1].status, 0, ended[1].errors)

    def test_a_rank_that_never_calls_runs_into_the_timeout(self):
        program = """
            import builtins
            rl.init()
            if rl.rank() == 0:
                try:
                    rl.recv(np.zeros(1), 1)
                except builtins.TimeoutError as error:
                    assert isinstance(error, rl.TimeoutError) and error.peer == 1
                    print("caught", error)
                    open(sys.argv[1], "w").close()
            else:
                while not os.path.exists(sys.argv[1]):
                    time.sleep(0.01)
        """
        with tempfile.TemporaryDirectory() as folder:
            ended = run_ranks(
                2, program, arguments=[os.path.join(folder, "done")], RLAUNCH_TIMEOUT="0.5"
            )
        self.all_say(ended[:1], "RLAUNCH_TIMEOUT")

    def test_a_rank_that_never_starts_runs_into_the_init_timeout(self):
        program = """
            try:
                rl.init()
            except rl.InitError as error:
                print("caught", error)
        """
        ended = run_ranks(1, program, WORLD_SIZE=2, RLAUNCH_INIT_TIMEOUT="1")
        self.all_say(ended)


class Interrupted(unittest.TestCase):
    def test_control_c_ends_a_wait(self):
        program = """
            import threading
            # A shell's background jobs, which the tests may be, have it ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            rl.init()
            if rl.rank() == 0:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                start = time.monotonic()
                try:
                    rl.recv(np.zeros(1), 1)
                except KeyboardInterrupt:
                    assert time.monotonic() - start < 5
                    print("caught")
            else:
                try:
                    rl.recv(np.zeros(1), 0)
                except rl.Error:
                    pass
        """
        ended = run_ranks(2, program)
        self.assertIn("caught", ended[0].output, ended[0].errors)

    def test_a_handler_runs_during_a_wait_and_may_not_communicate(self):
        program = """
            world = rl.init()
            def handler(*_):
                for call in (world.barrier, lambda: world.all_reduce(np.zeros(1))):
                    try:
                        call()
                    except rl.Error as error:
                        print("refused:", error, flush=True)
                open(sys.argv[1], "w").close()
            if rl.rank() == 0:
                signal.signal(signal.SIGUSR1, handler)
                rl.send(np.array([os.getpid()], np.int64), 1)
                rl.recv(np.zeros(1), 1)
            else:
                pid = np.zeros(1, np.int64)
                rl.recv(pid, 0)
                os.kill(int(pid[0]), signal.SIGUSR1)
                while not os.path.exists(sys.argv[1]):
                    time.sleep(0.01)
                rl.send(np.ones(1), 0)
        """
        with tempfile.TemporaryDirectory() as folder:
            ended = run_ranks(2, program, arguments=[os.path.join(folder, "handled")])
        assert_all_well(self, ended)
        self.assertEqual(ended[0].output.count("refused: this thread is inside a call"), 2)


if __name__ == "__main__":
    unittest.main()
