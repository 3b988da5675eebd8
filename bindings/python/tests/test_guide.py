"""Every program of docs/guide/python.md runs as it stands."""

import os
import re
import tempfile
import unittest

from support import ROOT, assert_all_well, run_ranks

GUIDE = os.path.join(ROOT, "docs", "guide", "python.md")


class Guide(unittest.TestCase):
    def test_every_program(self):
        with open(GUIDE) as file:
            programs = re.findall(r"^```python\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)
        self.assertGreater(len(programs), 6)
        for number, program in enumerate(programs):
            with self.subTest(program=program), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, f"program{number}.py")
                with open(path, "w") as file:
                    file.write(program)
                assert_all_well(self, run_ranks(2, path))


if __name__ == "__main__":
    unittest.main()
