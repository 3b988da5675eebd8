"""The same training as train.py, by torch's DistributedDataParallel over gloo.

    rlaunch -np 2 examples/ddp_train.py

An ordinary torch script: it knows nothing of rlaunch, and runs the same under torchrun. All it
needs are the variables that torch's env:// start reads.
"""

import argparse
import gzip
import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

TRAINING_SAMPLES = 1500  # of 1,797; the rest measures accuracy
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv.gz")


def main():
    options = parse_options()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    images, digits = load_digits()
    train = images[:TRAINING_SAMPLES], digits[:TRAINING_SAMPLES]
    test = images[TRAINING_SAMPLES:], digits[TRAINING_SAMPLES:]
    layers = [torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)

    losses, accuracy = [], 0.0
    for epoch in range(options.epochs):
        losses.append(train_epoch(model, optimizer, train, options, epoch))
        accuracy = measure_accuracy(model, test)
        if dist.get_rank() == 0 and not options.json:
            print(
                f"epoch {epoch + 1:3}  loss {losses[-1]:.6f}  accuracy {accuracy:.2%}", flush=True
            )

    identical = weights_identical(model)
    if dist.get_rank() == 0:
        report(options, losses, accuracy, identical)
    dist.destroy_process_group()
    return 0 if identical else 1


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.2, help="learning rate")
    parser.add_argument("--batch", type=int, default=32, help="samples a step, over all ranks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    return parser.parse_args()


def load_digits():
    with gzip.open(DATA, "rt", encoding="ascii") as file:
        table = torch.tensor([[int(word) for word in line.split(",")] for line in file])
    return table[:, :-1].double() / 16.0, table[:, -1]


def train_epoch(model, optimizer, train, options, epoch):
    """One walk over all samples; returns the mean loss, the same on every rank."""
    images, digits = train
    shuffle = torch.Generator().manual_seed(options.seed * 1000 + epoch)
    order = torch.randperm(len(digits), generator=shuffle)
    loss_sum = torch.zeros(1, dtype=torch.float64)
    for batch in order.split(options.batch):
        mine = batch[dist.get_rank() :: dist.get_world_size()]
        loss = torch.nn.functional.cross_entropy(model(images[mine]), digits[mine], reduction="sum")
        optimizer.zero_grad()
        # DDP takes the mean over the ranks, where the sum over the batch is wanted.
        (loss * dist.get_world_size() / len(batch)).backward()
        optimizer.step()
        loss_sum += loss.detach()
    dist.all_reduce(loss_sum)
    return loss_sum.item() / len(order)


@torch.no_grad()
def measure_accuracy(model, test):
    images, digits = (part[dist.get_rank() :: dist.get_world_size()] for part in test)
    right = (model.module(images).argmax(dim=1) == digits).sum()
    dist.all_reduce(right)
    return right.item() / len(test[1])


def weights_identical(model):
    digest = hashlib.sha256()
    for weights in model.module.parameters():
        digest.update(repr(weights.tolist()).encode())  # repr of a float loses no bit
    all_ranks = [None] * dist.get_world_size()
    dist.all_gather_object(all_ranks, digest.hexdigest())
    return len(set(all_ranks)) == 1


def report(options, losses, accuracy, identical):
    ranks = dist.get_world_size()
    if options.json:
        result = {
            "ranks": ranks,
            "losses": losses,
            "accuracy": accuracy,
            "weights_identical": identical,
        }
        print(json.dumps(result), flush=True)
    else:
        print(f"weights identical on {ranks} ranks: {'yes' if identical else 'NO'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
