"""What `import rlaunch` brings into a training process: no busy thread, no tokio, no tonic."""

import os
import subprocess
import unittest

from support import assert_all_well, run_ranks

import rlaunch

NATIVE = os.path.join(os.path.dirname(rlaunch.__file__), "_rlaunch.abi3.so")


class Footprint(unittest.TestCase):
    def test_no_thread_but_the_one_that_sleeps_until_the_signal(self):
        program = """
            def threads():
                return len(os.listdir("/proc/self/task"))
            before = threads()
            rl.init()
            joined = threads()
            assert joined <= before + 1, (before, joined)
            for count in (1, 1000, 1_000_000):
                rl.all_reduce(np.ones(count))
                assert threads() == joined, (joined, threads())
            rl.iall_reduce(np.ones(10)).wait()
            assert threads() == joined + 1, threads()
            rl.finalize()
            # It was told to end; until when it has, the kernel decides.
            deadline = time.monotonic() + 10
            while threads() > joined:
                assert time.monotonic() < deadline, threads()
        """
        assert_all_well(self, run_ranks(2, program))

    def test_no_launcher_code(self):
        with open(NATIVE, "rb") as file:
            content = file.read()
        for crate in (b"tokio", b"tonic", b"hyper", b"libssh2", b"openssl"):
            self.assertNotIn(crate, content)

    def test_needs_only_the_c_library(self):
        listed = subprocess.run(
            ["readelf", "-d", NATIVE], capture_output=True, text=True, check=True
        )
        needed = [
            line.split("[")[1][:-1] for line in listed.stdout.splitlines() if "NEEDED" in line
        ]
        known = ("libc.so", "libgcc_s.so", "libm.so", "libpthread.so", "libdl.so", "ld-linux")
        self.assertEqual([name for name in needed if not name.startswith(known)], [])


if __name__ == "__main__":
    unittest.main()
