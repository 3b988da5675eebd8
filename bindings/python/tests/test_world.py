"""The life of a world: join, leave, misuse. Each test is a process of its own."""

import subprocess
import sys
import textwrap
import unittest

from support import PRELUDE, environment, run_ranks


def run(program, **changes):
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(program)]
    return subprocess.run(
        command, env=environment(**changes), capture_output=True, text=True, timeout=60
    )


class Life(unittest.TestCase):
    def runs_well(self, program, **changes):
        ended = run(program, **changes)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(ended.stderr, "")
        return ended.stdout

    def test_nothing_set_is_a_world_of_one(self):
        said = self.runs_well("""
            world = rl.init()
            assert rl.init() is world and rl.world() is world and isinstance(world, rl.World)
            print(rl.rank(), rl.size(), rl.local_rank(), rl.local_size(), bool(rl.host()))
            print(world)
        """)
        self.assertIn("0 1 0 1 True\n<rlaunch.World rank 0 of 1 on ", said)

    def test_calls_before_init_say_so(self):
        self.runs_well("""
            for call in (rl.rank, rl.barrier, lambda: rl.all_reduce(np.zeros(2))):
                try:
                    call()
                except rl.InitError as error:
                    assert "rl.init()" in str(error)
                else:
                    raise AssertionError(call)
            rl.finalize()
        """)

    def test_after_finalize_calls_fail_and_facts_stay(self):
        self.runs_well("""
            rl.init()
            rl.finalize()
            rl.finalize()
            try:
                rl.init()
            except rl.FinalizedError as error:
                assert "joined once" in str(error), error
            else:
                raise AssertionError()
            assert (rl.rank(), rl.size()) == (0, 1)
            try:
                rl.all_reduce(np.zeros(2))
            except rl.Error as error:
                assert "finalized" in str(error) and error.rank == 0, error
            else:
                raise AssertionError()
        """)

    def test_a_wrong_environment_is_named(self):
        ended = run("rl.init()", RANK=2, WORLD_SIZE=2)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("InitError", ended.stderr)
        self.assertIn("RANK=2", ended.stderr)

    def test_importing_and_asking_need_no_numpy(self):
        self.runs_well("""
            sys.modules.pop("rlaunch"), sys.modules.pop("rlaunch._rlaunch")
            for name in [name for name in sys.modules if name.startswith("numpy")]:
                del sys.modules[name]
            sys.modules["numpy"] = None  # importing it fails from here on
            import rlaunch as rl
            rl.init()
            rl.barrier()
            assert rl.size() == 1
            try:
                rl.all_reduce([1.0])
            except ImportError as error:
                assert "pip install numpy" in str(error)
            else:
                raise AssertionError()
        """)

    def test_a_forked_child_is_told_that_the_world_is_not_its_own(self):
        self.runs_well("""
            world = rl.init()
            child = os.fork()
            if child == 0:
                try:
                    world.barrier()
                except rl.Error as error:
                    status = 0 if "forked" in str(error) else 1
                else:
                    status = 2
                world.finalize()
                del world
                os._exit(status)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            rl.all_reduce(np.zeros(2))
        """)

    def test_exceptions_are_what_they_say(self):
        self.runs_well("""
            import builtins, pickle
            for kind in (rl.InitError, rl.MismatchError, rl.PeerFailedError, rl.TimeoutError):
                assert issubclass(kind, rl.Error)
            assert issubclass(rl.TimeoutError, builtins.TimeoutError)
            error = rl.TimeoutError("late", rank=1, peer=2, host="node", pid=3)
            error = pickle.loads(pickle.dumps(error))
            assert (str(error), error.rank, error.peer, error.host) == ("late", 1, 2, "node")
            assert (rl.SUM, rl.PROD, rl.MIN, rl.MAX) == ("sum", "prod", "min", "max")
        """)

    def test_last_calls_that_differ_make_the_exit_status_one(self):
        program = """
            rl.init()
            rl.broadcast(np.ones(2), root=rl.rank())
        """
        for end in run_ranks(2, program):
            self.assertEqual(end.status, 1, end)
            # Who comes second finds it in the call, else it is found at exit.
            self.assertIn("ranks disagree", end.errors)

    def test_what_was_raised_and_caught_is_no_failure_at_exit(self):
        program = """
            rl.init()
            try:
                rl.all_reduce(np.ones(2 + rl.rank()))
                rl.barrier()
            except rl.MismatchError:
                print("caught")
        """
        for end in run_ranks(2, program):
            self.assertEqual((end.status, end.output.strip()), (0, "caught"), end)


if __name__ == "__main__":
    unittest.main()
