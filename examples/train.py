"""Data-parallel training in numpy: a small network learns handwritten digits.

    rlaunch -np 4 examples/train.py          # 4 ranks
    python examples/train.py                 # the same on one

Every rank takes its share of each batch, the gradients are summed by rl.all_reduce and divided by
the size of the whole batch. So any number of ranks walks the same path: the printed losses agree
with those of one rank to rounding, and all ranks end with the same weights, bit for bit.
"""

import argparse
import gzip
import hashlib
import json
import os
import sys

import numpy as np

import rlaunch as rl

TRAINING_SAMPLES = 1500  # of 1,797; the rest measures accuracy
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv.gz")


def main():
    options = parse_options()
    rl.init()
    images, digits = load_digits()
    train = images[:TRAINING_SAMPLES], digits[:TRAINING_SAMPLES]
    test = images[TRAINING_SAMPLES:], digits[TRAINING_SAMPLES:]
    model = Model(options.hidden, options.seed)
    for weights in model.weights:
        rl.broadcast(weights, root=0)

    losses, accuracy = [], 0.0
    for epoch in range(options.epochs):
        losses.append(train_epoch(model, train, options, epoch))
        accuracy = measure_accuracy(model, test)
        if rl.rank() == 0 and not options.json:
            print(
                f"epoch {epoch + 1:3}  loss {losses[-1]:.6f}  accuracy {accuracy:.2%}", flush=True
            )

    identical, fingerprint = compare_weights(model)
    if rl.rank() == 0:
        report(options, losses, accuracy, identical, fingerprint)
    rl.finalize()
    return 0 if identical else 1


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.2, help="learning rate")
    parser.add_argument("--batch", type=int, default=32, help="samples a step, over all ranks")
    parser.add_argument("--hidden", type=int, default=64, help="width of the hidden layer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    return parser.parse_args()


def load_digits():
    with gzip.open(DATA, "rt", encoding="ascii") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.int64)
    return table[:, :-1] / 16.0, table[:, -1]


class Model:
    """Pixels, a hidden layer with tanh, ten scores. In float64, so that the order in which ranks
    add their gradients shows only in the last digits."""

    def __init__(self, hidden, seed):
        random = np.random.default_rng(seed)
        self.weights = [
            random.normal(0.0, 1.0 / 8.0, (64, hidden)),
            np.zeros(hidden),
            random.normal(0.0, 1.0 / np.sqrt(hidden), (hidden, 10)),
            np.zeros(10),
        ]

    def scores(self, images):
        w1, b1, w2, b2 = self.weights
        hidden = np.tanh(images @ w1 + b1)
        return hidden, hidden @ w2 + b2

    def loss_and_gradients(self, images, digits):
        """Sums over the samples, not means: shares of unequal size then add up as they should."""
        hidden, scores = self.scores(images)
        scores = scores - scores.max(axis=1, keepdims=True)
        logarithms = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        rows = np.arange(len(digits))
        error = np.exp(logarithms)
        error[rows, digits] -= 1.0
        back = (error @ self.weights[2].T) * (1.0 - hidden**2)
        gradients = [images.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
        return -logarithms[rows, digits].sum(), gradients


def train_epoch(model, train, options, epoch):
    """One walk over all samples; returns the mean loss, the same on every rank."""
    images, digits = train
    # The same order on every rank, another one in each epoch.
    order = np.random.default_rng((options.seed, epoch)).permutation(len(digits))
    loss_sum = 0.0
    for start in range(0, len(order), options.batch):
        batch = order[start : start + options.batch]
        mine = batch[rl.rank() :: rl.size()]  # may be empty: it then adds zeros
        loss, gradients = model.loss_and_gradients(images[mine], digits[mine])
        # One message for everything.
        packed = np.concatenate([[loss], *[gradient.ravel() for gradient in gradients]])
        rl.all_reduce(packed)
        loss_sum += packed[0]
        at = 1
        for weights in model.weights:
            gradient = packed[at : at + weights.size].reshape(weights.shape)
            weights -= options.lr / len(batch) * gradient
            at += weights.size
    return loss_sum / len(order)


def measure_accuracy(model, test):
    images, digits = (part[rl.rank() :: rl.size()] for part in test)
    right = np.array([np.sum(model.scores(images)[1].argmax(axis=1) == digits)], dtype=np.int64)
    rl.all_reduce(right)
    return float(right[0]) / len(test[1])


def compare_weights(model):
    """Gathers a hash of every rank's weights: are they the same, bit for bit?"""
    digest = hashlib.sha256(b"".join(weights.tobytes() for weights in model.weights))
    mine = np.frombuffer(digest.digest(), dtype=np.int64)
    all_ranks = rl.all_gather(mine).reshape(rl.size(), -1)
    return bool((all_ranks == all_ranks[0]).all()), digest.hexdigest()


def report(options, losses, accuracy, identical, fingerprint):
    if options.json:
        result = {
            "ranks": rl.size(),
            "losses": losses,
            "accuracy": accuracy,
            "weights_identical": identical,
            "weights_sha256": fingerprint,
        }
        print(json.dumps(result), flush=True)
    else:
        print(f"weights identical on {rl.size()} ranks: {'yes' if identical else 'NO'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
