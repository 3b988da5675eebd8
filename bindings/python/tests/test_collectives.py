"""Every collective on several ranks, in its three forms, against numpy."""

import unittest

from support import assert_all_well, run_ranks

FACTS = """
world = rl.init()
rank, size = rl.rank(), rl.size()
same = np.testing.assert_array_equal

def given(of, shape=(3, 2)):
    return (np.arange(np.prod(shape)).reshape(shape) + 100.0 * of)
"""

VALUES = """
for root in range(size):
    x = given(rank)
    result = rl.reduce(x, root, "max")
    if rank == root:
        assert result is x
        same(x, given(size - 1))
    else:
        assert result is None
        same(x, given(rank))
    out = rl.gather(given(rank), root)
    assert (out is None) == (rank != root)
    if rank == root:
        same(out, np.stack([given(of) for of in range(size)]))
        same(rl.scatter(out, root), given(root))
    else:
        out = np.empty((3, 2))
        assert rl.scatter(None, root, out=out) is out
        same(out, given(rank))

x = given(rank)
out = np.empty_like(x)
assert rl.all_reduce(x, out=out) is out
same(x, given(rank))
same(out, sum(given(of) for of in range(size)))
same(rl.scan(given(rank)), sum(given(of) for of in range(rank + 1)))
before = rl.exscan(given(rank))
same(before, sum(given(of) for of in range(rank)) if rank else given(0))
same(rl.all_to_all(np.stack([given(rank) + to for to in range(size)])),
     np.stack([given(of) + rank for of in range(size)]))
everyone = np.zeros((size, 3, 2))
everyone[rank] = given(rank)
assert rl.all_gather(everyone[rank], out=everyone) is everyone  # in place
same(everyone, np.stack([given(of) for of in range(size)]))
"""

PARTS = """
counts = [(of * 2) % 5 for of in range(size)]  # some are 0
mine = given(rank, (counts[rank], 2))
whole = np.concatenate([given(of, (counts[of], 2)) for of in range(size)])
same(rl.all_gather_v(mine, counts), whole)
root = size - 1
gathered = rl.gather_v(mine, counts if rank == root else None, root)
if rank == root:
    same(gathered, whole)
    same(rl.scatter_v(gathered, counts, root), mine)
else:
    assert gathered is None
    same(rl.scatter_v(None, root=root, out=np.empty_like(mine)), mine)
same(rl.reduce_scatter_v(whole, counts), size * mine)
sent = [(rank + to) % 3 for to in range(size)]
received = [(of + rank) % 3 for of in range(size)]
x = np.concatenate([np.full((n, 2), 10.0 * rank + to) for to, n in enumerate(sent)])
expected = np.concatenate([np.full((n, 2), 10.0 * of + rank) for of, n in enumerate(received)])
same(rl.all_to_all_v(x, sent, received), expected)
"""

OPERATIONS = """
truth = np.array([True, rank == 0, False])
same(rl.all_reduce(truth.copy(), "land"), [True, size == 1, False])
same(rl.all_reduce(truth.copy(), "lor"), [True, True, False])
same(rl.all_reduce(np.array([3 + 2 * (rank % 2)]), rl.AVG), [(3 * size + 2 * (size // 2)) // size])
half = rl.all_reduce(np.full(3, 0.5, np.float16))
assert half.dtype == np.float16 and (half == size / 2).all()
pair = np.array([(abs(rank - 1), rank)], [("value", "f4"), ("rank", "i4")])
rl.all_reduce(pair, rl.MINLOC)
assert tuple(pair[0]) == ((0, 1) if size > 1 else (1, 0)), pair
same(rl.all_reduce(np.ones(2), rl.premul_sum(rank + 1)), np.full(2, size * (size + 1) / 2))
same(rl.all_reduce(np.ones(2, np.complex64) * 1j), np.full(2, size * 1j))

largest = rl.operation(np.maximum)
same(rl.all_reduce(np.array([1.0 * rank, -rank]), largest), [size - 1, 0])
def keep_last(a, b):  # in place
    a[b != 0] = b[b != 0]
last = rl.operation(keep_last, commutative=False)
same(rl.all_reduce(np.array([rank + 1, 1 if rank == 0 else 0]), last), [size, 1])
def fails(a, b):
    raise ZeroDivisionError("in the operation")
if size > 1:
    try:
        rl.reduce(np.ones(2), 0, rl.operation(fails))
    except ZeroDivisionError as error:
        assert "in the operation" in str(error)
    rl.barrier()  # the communicator is well
"""

FORMS = """
x, y = given(rank), np.array([rank])
requests = [rl.iall_reduce(x), rl.ibroadcast(y, size - 1), rl.ibarrier()]
assert requests[0].wait() is x and requests[1].wait() is y and requests[2].wait() is None
assert requests[0].wait() is x and requests[0].test()
same(x, sum(given(of) for of in range(size)))
same(y, [size - 1])
with rl.iall_gather(given(rank)) as request:
    pass
same(request.wait(), np.stack([given(of) for of in range(size)]))
z = np.zeros(3)
again = rl.all_reduce_init(z)
for round in range(5):
    z[:] = round + rank
    assert again.start().wait() is z
    same(z, np.full(3, size * round + size * (size - 1) / 2))
with rl.group():
    a = rl.all_reduce(given(rank))
    b = rl.all_gather(np.array([rank]))
same(a, sum(given(of) for of in range(size)))
same(b.ravel(), range(size))
"""


class Collectives(unittest.TestCase):
    def everywhere(self, program, **changes):
        for size in (1, 2, 3, 4):
            with self.subTest(ranks=size):
                assert_all_well(self, run_ranks(size, FACTS + program, **changes))

    def test_values(self):
        self.everywhere(VALUES)

    def test_parts_of_their_own_size(self):
        self.everywhere(PARTS)

    def test_operations(self):
        self.everywhere(OPERATIONS)

    def test_requests_prepared_calls_and_groups(self):
        self.everywhere(FORMS)

    def test_all_of_it_over_tcp(self):
        program = FACTS + VALUES + PARTS + OPERATIONS + FORMS
        assert_all_well(self, run_ranks(3, program, RLAUNCH_TRANSPORT="tcp"))

    def test_what_one_rank_cannot_send_is_an_error_on_all_that_wait_for_it(self):
        program = """
            rl.init()
            me, size = rl.rank(), rl.size()
            bad = lambda: 0  # no pickle of it
            mine = bad if me == 1 else me

            def fails(call, told=True):
                try:
                    call()
                except Exception as error:
                    assert me == 1 or "rank 1 could not send" in str(error), repr(error)
                else:
                    assert not told, "no error"
                rl.barrier()

            fails(lambda: rl.broadcast_object(mine, 1))
            fails(lambda: rl.scatter_object([1] * (size + 1) if me == 1 else None, 1))
            fails(lambda: rl.scatter_object([1] * (size - 1) + [bad] if me == 1 else None, 1))
            fails(lambda: rl.all_gather_object(mine))
            fails(lambda: rl.gather_object(mine, 0), me in (0, 1))
            fails(lambda: rl.all_to_all_object([mine] * size))
            if me == 1:
                fails(lambda: rl.send_object(bad, 0))
            else:
                fails(lambda: rl.recv_object(1), me == 0) if me == 0 else rl.barrier()
            assert rl.all_gather_object(me) == list(range(size))
            assert rl.all_to_all_object([[me, to] for to in range(size)])[1] == [1, me]
        """
        assert_all_well(self, run_ranks(3, program))


if __name__ == "__main__":
    unittest.main()
