"""Communicators out of communicators."""

import unittest

from support import assert_all_well, run_ranks


class Communicators(unittest.TestCase):
    def test_split_duplicate_from_ranks(self):
        program = """
            world = rl.init()
            rank, size = rl.rank(), rl.size()
            half = rl.split(rank % 2, key=-rank)  # the highest rank comes first
            members = [of for of in reversed(range(size)) if of % 2 == rank % 2]
            assert (half.ranks(), half.size()) == (members, len(members))
            assert members[half.rank()] == rank and half.id() != world.id() == 0
            assert half.all_reduce(np.ones(3))[0] == len(members)
            assert rl.split(None if rank else 3) is None or rank == 0
            same = world.duplicate()
            requests = [(world if (rank + turn) % 2 else same) for turn in range(2)]
            x = {id(of): np.array([rank + (of is same) * 10]) for of in requests}
            for request in [of.iall_reduce(x[id(of)], "max") for of in requests]:
                request.wait()
            assert (x[id(world)][0], x[id(same)][0]) == (size - 1, size + 9)
            two = world.from_ranks([size - 1, 0])
            assert (two is None) == (rank not in (0, size - 1))
            if two:
                assert two.rank() == (0 if rank == size - 1 else 1)
                assert two.all_gather_object(rank) == [size - 1, 0]
            try:
                world.from_ranks([size])
            except ValueError as error:
                assert f"rank={size}" in str(error)
            half.set_timeout(20)
            half.set_timeout(None)
            print(half, world)
        """
        for size in (2, 3, 5):
            with self.subTest(ranks=size):
                assert_all_well(self, run_ranks(size, program))

    def test_a_thousand_leave_nothing_behind(self):
        program = """
            world = rl.init()
            def held():
                return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
            world.duplicate().barrier()
            before = held()
            for _ in range(1000):
                world.duplicate().barrier()
            assert held() == before, (before, held())
        """
        assert_all_well(self, run_ranks(2, program))

    def test_abort_ends_the_waits_of_all(self):
        program = """
            import threading
            world = rl.init()
            same = world.duplicate()
            if rl.rank() == 0:
                threading.Timer(0.2, same.abort, ["bad batch"]).start()
            start = time.monotonic()
            try:
                if rl.rank() == 2:
                    same.recv(np.zeros(1), 1)
                same.barrier()
            except rl.Error as error:
                assert "bad batch" in str(error) and error.peer == 0, error
                assert time.monotonic() - start < 2.2
                assert isinstance(error, rl.AbortedError), error
                assert isinstance(same.error(), type(error)) and world.error() is None
            else:
                raise AssertionError()
            world.barrier()
        """
        assert_all_well(self, run_ranks(3, program))

    def test_after_a_death_the_others_go_on_twice(self):
        program = """
            world = rl.init()
            left, dies = world, rl.size() - 1
            for survivors in (rl.size() - 1, rl.size() - 2):
                left.all_reduce(np.ones(1000))
                if left.rank() == dies:
                    os.kill(os.getpid(), signal.SIGKILL)
                try:
                    while True:
                        left.all_reduce(np.ones(1000))
                except rl.PeerFailedError as error:
                    assert error.peer == dies
                    doing = error.others
                    assert set(doing) == set(range(survivors + 1)) - {rl.rank()}, doing
                    assert "all_reduce #" in doing[dies], doing
                left, dies = left.shrink(), dies - 1
                assert left.size() == survivors and left.rank() == rl.rank()
                assert left.all_reduce(np.ones(1000))[0] == survivors
            print("went on")
            world.abandon()
        """
        ended = run_ranks(4, program)
        self.assertEqual([end.status for end in ended], [0, 0, -9, -9], ended)
        self.assertIn("went on", ended[0].output)

    def test_the_flight_recorder(self):
        program = """
            world = rl.init()
            rl.all_reduce(np.ones(100, np.float32), "max")
            rl.send(np.ones(3), 0, tag=8) if rl.rank() == 1 else rl.recv(np.ones(3), 1, tag=8)
            recorder = rl.flight_recorder()
            assert (recorder.rank, recorder.world_size, recorder.pid) == (rl.rank(), 2, os.getpid())
            first, second = recorder.communicators[0].operations[-2:]
            assert (first.collective, first.dtype, first.op) == ("all_reduce", "float32", "max")
            assert (first.count, first.state) == (100, "done") and first.took >= 0
            assert (second.collective, second.tag) == (["recv", "send"][rl.rank()], 8), second
            assert "all_reduce" in str(recorder)
        """
        assert_all_well(self, run_ranks(2, program))

    def test_a_timeout_of_its_own(self):
        program = """
            world = rl.init()
            same = world.duplicate()
            same.set_timeout(0.3)
            if rl.rank() == 0:
                for wait in (lambda: same.recv(np.zeros(1), 1), same.barrier):
                    try:
                        wait()
                    except rl.TimeoutError as error:
                        assert error.peer == 1 and "set_timeout" in str(error), error
                    else:
                        raise AssertionError()
                world.send(np.zeros(1), 1)
            else:
                world.recv(np.zeros(1), 0)
                try:
                    same.barrier()
                except rl.TimeoutError as error:
                    assert error.peer == 0 and "for rank 1 " in str(error), error
                else:
                    raise AssertionError()
            world.barrier()
        """
        assert_all_well(self, run_ranks(2, program))


if __name__ == "__main__":
    unittest.main()
