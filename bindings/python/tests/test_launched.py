"""Under rlaunch, where it differs from ranks started by hand."""

import os
import subprocess
import sys
import unittest

from support import environment

RLAUNCH = os.environ.get("RLAUNCH", "")
NEEDS_RLAUNCH = unittest.skipUnless(os.path.exists(RLAUNCH), "RLAUNCH names no built rlaunch")


@NEEDS_RLAUNCH
class Launched(unittest.TestCase):
    def test_who_does_not_come_to_init_is_named(self):
        program = (
            "import os, time, rlaunch as rl\n"
            "if int(os.environ['RANK']) in (1, 2): time.sleep(30)\n"
            "rl.init()"
        )
        command = [RLAUNCH, "-np", "4", "--oversubscribe", sys.executable, "-c", program]
        ended = subprocess.run(
            command,
            env=environment(RLAUNCH_INIT_TIMEOUT=2),
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertNotEqual(ended.returncode, 0, ended.stdout)
        for text in ("InitError", "ranks 1, 2 of 4 did not come in time (on ", "INIT_TIMEOUT"):
            self.assertIn(text, ended.stderr)


if __name__ == "__main__":
    unittest.main()
