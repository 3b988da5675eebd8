"""Send, receive, probe and groups; and any object, pickled."""

import unittest

from support import assert_all_well, run_ranks

POINT = """
world = rl.init()
rank, size = rl.rank(), rl.size()
right, left = (rank + 1) % size, (rank - 1) % size
mine, theirs = np.full(300_000, 1.0 * rank), np.zeros(300_000)

with rl.group():  # more than is kept for a receiver that has not asked
    rl.send(mine, right)
    rl.recv(theirs, left)
assert (theirs == left).all()

status = rl.sendrecv(mine, left, theirs, right, send_tag=3, recv_tag=3)
assert (status.source, status.tag, status.count) == (right, 3, 300_000)
assert (theirs == right).all()

receive = rl.irecv(theirs, rl.ANY_SOURCE, rl.ANY_TAG)
send = rl.isend(mine[:7], right, 9)
assert receive.wait() == rl.Status(source=left, tag=9, count=7) and send.wait() is None
assert receive.test()
assert (theirs[:7] == left).all() and (theirs[7:] == right).all()

rl.barrier()
if rank > 0:
    rl.send(np.arange(rank), 0, tag=40 + rank)
else:
    for _ in range(1, size):
        status = rl.probe()
        assert status.tag == 40 + status.source and status.count == status.source
        x = np.empty(status.count, np.int64)
        rl.recv(x, status.source, status.tag)
        np.testing.assert_array_equal(x, np.arange(status.source))
assert rl.try_probe() is None
rl.barrier()
"""

OBJECTS = """
rl.init()
rank, size = rl.rank(), rl.size()
right, left = (rank + 1) % size, (rank - 1) % size
things = {"rank": rank, "array": np.arange(rank), "text": "ä" * 70_000}

with rl.irecv(np.zeros(1), left, 77):  # other messages don't get into the way
    if rank % 2 == 0:
        rl.send_object(things, right)
        received = rl.recv_object(rl.ANY_SOURCE)
    else:
        received = rl.recv_object(left)
        rl.send_object(things, right)
    rl.send(np.ones(1), right, 77)
assert received["rank"] == left and len(received["array"]) == left, received

assert rl.broadcast_object(things if rank == size - 1 else None, size - 1)["rank"] == size - 1
assert rl.all_gather_object([rank] * rank) == [[of] * of for of in range(size)]
gathered = rl.gather_object(("from", rank))
assert gathered == ([("from", of) for of in range(size)] if rank == 0 else None)
values = [{"for": to} for to in range(size)]
assert rl.scatter_object(values if rank == 0 else None) == {"for": rank}
assert rl.all_to_all_object([(rank, to) for to in range(size)]) == [(of, rank) for of in range(size)]
for wrong in ([], None):
    try:
        rl.scatter_object(wrong if rank == 0 else None)
    except ValueError as error:
        assert "one object for each" in str(error)
    else:
        raise AssertionError(wrong)
try:
    rl.broadcast_object(lambda: 0)
except Exception as error:
    assert "pickle" in str(error)
else:
    raise AssertionError()
rl.barrier()
"""


class Point(unittest.TestCase):
    def everywhere(self, program):
        for size in (1, 2, 4):
            with self.subTest(ranks=size):
                assert_all_well(self, run_ranks(size, program))

    def test_a_message_that_nobody_receives_is_told(self):
        program = """
            rl.init()
            if rl.rank() == 0:
                for length in lengths:
                    rl.send(np.ones(length), 1, tag=7)
            rl.barrier()
            time.sleep(0.1 * rl.rank())
            finish()
        """
        for lengths, finish in (("[3]", "rl.finalize"), ("[3, 4, 5, 6, 7, 8]", "sys.exit")):
            for transport in ("shm", "tcp"):
                named = program.replace("lengths", lengths).replace("finish", finish)
                ended = run_ranks(2, named, RLAUNCH_TRANSPORT=transport)
                assert_all_well(self, ended)
                self.assertEqual(ended[0].errors, "")
                text = ended[1].errors
                self.assertEqual(text.count("has not received"), 1, text)
                self.assertIn("rank 1 (host", text)
                self.assertIn("send #0 of 3 float64 from rank 0 (host", text)
                self.assertIn("tag 7", text)
                self.assertEqual("; 2 more" in text, len(lengths) > 3, text)

    def test_arrays(self):
        self.everywhere(POINT)

    def test_arrays_over_tcp(self):
        assert_all_well(self, run_ranks(3, POINT, RLAUNCH_TRANSPORT="tcp"))

    def test_objects(self):
        for size in (2, 4):
            with self.subTest(ranks=size):
                assert_all_well(self, run_ranks(size, OBJECTS))

    def test_a_group_in_a_group_is_refused_and_an_error_in_it_is_raised(self):
        program = """
            rl.init()
            with rl.group():
                try:
                    with rl.group():
                        pass
                except RuntimeError as error:
                    assert "open" in str(error)
            try:
                with rl.group():
                    rl.send(np.zeros(2), 0)
                    rl.recv(np.zeros(1), 0)  # too short
            except rl.MismatchError as error:
                print("caught", error)
        """
        ended = run_ranks(1, program)
        assert_all_well(self, ended)
        self.assertIn("caught", ended[0].output)

    def test_a_timeout_of_the_call_and_a_cancelled_receive(self):
        program = """
            world = rl.init()
            x, other = np.ones(3), 1 - rl.rank()
            request = rl.irecv(x, other, 5)
            assert request.cancel() and not request.cancel()
            try:
                request.wait()
            except rl.CancelledError as error:
                assert "cancelled" in str(error)
            else:
                raise AssertionError()
            start = time.monotonic()
            del request
            rl.irecv(x, rl.ANY_SOURCE, 5)  # dropped: nothing waits for it
            assert time.monotonic() - start < 5 and world.error() is None
            calls = [
                lambda of: of.recv(x, other, timeout=0.2),
                lambda of: of.probe(other, 7, timeout=0.2),
                lambda of: of.irecv(x, other, timeout=0.2).wait(),
                lambda of: of.send(np.ones(100_000), other, timeout=0.2),
            ]
            for call in calls:
                same = world.duplicate()
                if rl.rank() == 0:
                    try:
                        call(same)
                    except rl.TimeoutError as error:
                        assert "the call's own timeout" in str(error), error
                    else:
                        raise AssertionError(call)
                world.barrier()
        """
        assert_all_well(self, run_ranks(2, program))

    def test_numbers_that_are_none_are_refused_by_name(self):
        program = """
            world = rl.init()
            x, big = np.ones(3), 1 << 80
            calls = {
                "to": lambda: rl.send(x, big),
                "tag": lambda: rl.send(x, 0, -big),
                "source": lambda: rl.recv(x, big),
                "root": lambda: rl.broadcast(x, big),
                "color": lambda: rl.split(big),
                "key": lambda: rl.split(0, big),
                "premul_sum": lambda: rl.all_reduce(np.ones(3, np.int32), rl.premul_sum(2.5)),
                "premul_sum's": lambda: rl.all_reduce(np.ones(3, np.uint8), rl.premul_sum(300)),
            }
            for name, call in calls.items():
                try:
                    call()
                except ValueError as error:
                    assert name in str(error), (name, error)
                else:
                    raise AssertionError(name)
            y = rl.all_reduce(np.ones(3, np.int32), rl.premul_sum(2.0))
            assert y.tolist() == [4, 4, 4]
            for wrong in (lambda a, b: a[:1], lambda a, b: 1.0):
                same = world.duplicate()
                try:
                    same.all_reduce(np.ones(3), rl.operation(wrong))
                except ValueError as error:
                    assert "shape" in str(error), error
                else:
                    raise AssertionError()
        """
        assert_all_well(self, run_ranks(2, program))


if __name__ == "__main__":
    unittest.main()
