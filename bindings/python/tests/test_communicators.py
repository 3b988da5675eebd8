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
                        assert error.peer == 1
                    else:
                        raise AssertionError()
            world.barrier()
        """
        assert_all_well(self, run_ranks(2, program))


if __name__ == "__main__":
    unittest.main()
