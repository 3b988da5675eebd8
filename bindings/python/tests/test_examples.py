"""The examples, started by hand, by torchrun and by rlaunch: the same numbers each time."""

import json
import os
import subprocess
import sys
import unittest

from support import EXAMPLES, assert_all_well, environment, run_ranks

TRAIN = os.path.join(EXAMPLES, "train.py")
DDP_TRAIN = os.path.join(EXAMPLES, "ddp_train.py")
HELLO = os.path.join(EXAMPLES, "hello.py")
OPTIONS = ["--epochs", "4", "--json"]

RLAUNCH = os.environ.get("RLAUNCH", "")
TORCH = os.environ.get("RLAUNCH_TEST_TORCH", "")
NEEDS_RLAUNCH = unittest.skipUnless(os.path.exists(RLAUNCH), "RLAUNCH names no built rlaunch")
NEEDS_TORCH = unittest.skipUnless(os.path.exists(TORCH), "RLAUNCH_TEST_TORCH names no python")


def run(*command, timeout=240, **changes):
    return subprocess.run(
        command, env=environment(**changes), capture_output=True, text=True, timeout=timeout
    )


def alone(script):
    return json.loads(run_ranks(1, script, arguments=OPTIONS)[0].output)


class Examples(unittest.TestCase):
    def result(self, ended, ranks):
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        result = json.loads(ended.stdout)
        self.assertEqual(result["ranks"], ranks)
        self.assertTrue(result["weights_identical"])
        return result

    def same_path(self, result, reference):
        """To 1e-5 relative, each epoch's loss."""
        self.assertEqual(len(result["losses"]), len(reference["losses"]))
        for loss, expected in zip(result["losses"], reference["losses"]):
            self.assertAlmostEqual(loss / expected, 1.0, delta=1e-5)

    def test_training_does_not_depend_on_the_number_of_ranks(self):
        reference = alone(TRAIN)
        self.assertGreater(reference["accuracy"], 0.8)
        for ranks in (2, 3, 4):
            ended = run_ranks(ranks, TRAIN, arguments=OPTIONS)
            assert_all_well(self, ended)
            result = json.loads(ended[0].output)
            self.assertTrue(result["weights_identical"])
            self.same_path(result, reference)
            self.assertEqual([end.output for end in ended[1:]], [""] * (ranks - 1))

    def test_more_ranks_than_samples_in_a_batch(self):
        options = ["--epochs", "1", "--json", "--batch"]
        ended = run_ranks(4, TRAIN, arguments=[*options, "3"])
        assert_all_well(self, ended)
        reference = json.loads(run_ranks(1, TRAIN, arguments=[*options, "3"])[0].output)
        self.same_path(json.loads(ended[0].output), reference)

    def test_without_any_launcher(self):
        ended = run(sys.executable, TRAIN, "--epochs", "2")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("epoch   2  loss 0.", ended.stdout)
        self.assertIn("weights identical on 1 ranks: yes", ended.stdout)

    def test_hello(self):
        ended = run_ranks(2, HELLO)
        assert_all_well(self, ended)
        self.assertIn("hello from rank 1 of 2 (local rank 1 on ", ended[1].output)
        self.assertIn("the sum over all ranks: [3. 3. 3. 3.]", ended[0].output)

    @NEEDS_RLAUNCH
    def test_training_under_rlaunch(self):
        words = ["-np", "3", "--oversubscribe", "--python", sys.executable]
        self.same_path(self.result(run(RLAUNCH, *words, TRAIN, *OPTIONS), 3), alone(TRAIN))

    @NEEDS_TORCH
    def test_training_under_torchrun(self):
        """A program of rlaunch's API that another launcher starts."""
        torchrun = [TORCH, "-m", "torch.distributed.run", "--nproc-per-node", "3"]
        self.same_path(self.result(run(*torchrun, TRAIN, *OPTIONS), 3), alone(TRAIN))

    @NEEDS_TORCH
    @NEEDS_RLAUNCH
    def test_torch_ddp_under_rlaunch(self):
        """A torch script that knows nothing of rlaunch."""
        words = ["-np", "2", "--oversubscribe", "--python", TORCH]
        result = self.result(run(RLAUNCH, *words, DDP_TRAIN, *OPTIONS), 2)
        one = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 0}
        self.same_path(result, self.result(run(TORCH, DDP_TRAIN, *OPTIONS, **one), 1))
        self.assertGreater(result["accuracy"], 0.8)


if __name__ == "__main__":
    unittest.main()
