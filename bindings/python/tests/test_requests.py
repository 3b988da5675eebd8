"""Calls under way: await, with, several at once, and what Python does meanwhile."""

import unittest

from support import assert_all_well, run_ranks


class Requests(unittest.TestCase):
    def well(self, size, program, **changes):
        assert_all_well(self, run_ranks(size, program, **changes))

    def test_await(self):
        self.well(2, """
            import asyncio
            rl.init()
            ticks = 0
            async def tick():
                global ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0.01)
            async def main():
                ticker = asyncio.create_task(tick())
                x = np.ones(1000)
                if rl.rank() == 1:
                    await asyncio.sleep(0.3)  # rank 0 waits by now, and its loop goes on
                assert await rl.iall_reduce(x) is x
                assert (x == 2).all() and ticks > 5, ticks
                a, b = np.zeros(1), np.zeros(1)
                received = asyncio.gather(rl.irecv(a, 1 - rl.rank(), 1), rl.irecv(b, 1 - rl.rank(), 2))
                await rl.isend(np.array([2.0]), 1 - rl.rank(), 2)
                await rl.isend(np.array([1.0]), 1 - rl.rank(), 1)
                assert [status.tag for status in await received] == [1, 2]
                assert (a[0], b[0]) == (1, 2)
                request = rl.ibarrier()
                await asyncio.gather(*[asyncio.ensure_future(wait(request)) for _ in range(3)])
                ticker.cancel()
            async def wait(request):
                return await request
            asyncio.run(main())
        """)  # fmt: skip

    def test_an_await_that_fails_or_is_cancelled(self):
        self.well(2, """
            import asyncio
            rl.init()
            async def main():
                x = np.zeros(1)
                receive = rl.irecv(x, 1 - rl.rank(), 5)
                try:
                    await asyncio.wait_for(receive, 0.1)
                except asyncio.TimeoutError:
                    pass
                else:
                    raise AssertionError()
                rl.barrier()
                rl.send(np.ones(1), 1 - rl.rank(), 5)
                assert (await receive).tag == 5 and x[0] == 1  # the call itself went on
                try:
                    await rl.iall_reduce(np.zeros(1 + rl.rank()))
                    await rl.ibarrier()
                except rl.MismatchError as error:
                    assert error.peer == 1 - rl.rank()
                else:
                    raise AssertionError()
            asyncio.run(main())
        """)  # fmt: skip

    def test_one_array_in_two_calls_under_way(self):
        self.well(2, """
            rl.init()
            other = 1 - rl.rank()
            x, y = np.zeros(2000), np.zeros(2000)
            receive = rl.irecv(x, other, 5)
            prepared = rl.all_reduce_init(x[10:])
            for start, name in [
                (lambda: rl.iall_reduce(x), "x of all_reduce"),
                (lambda: rl.iall_reduce(y, out=x), "out of all_reduce"),
                (lambda: rl.all_reduce(x[1999:]), "x of all_reduce"),
                (lambda: rl.isend(x, other), "x of send"),
                (lambda: rl.send(x[:1], other), "x of send"),
                (lambda: rl.recv(x, other), "x of recv"),
                (lambda: rl.sendrecv(y, other, x, other), "x of recv"),
                (lambda: prepared.start(), "x of all_reduce"),
            ]:
                try:
                    start()
                except BufferError as error:
                    text = str(error)
                    assert name in text and "a started recv" in text and "hint" in text, text
                else:
                    raise AssertionError(name)
            rl.barrier()
            rl.send(y, other, 5)
            assert receive.wait().count == 2000
            receive.wait()
            # What is complete holds nothing, waited for or not.
            again = rl.iall_reduce(x)
            while not again.test():
                time.sleep(0.001)
            rl.all_reduce(x)
            # Two may read the same, and neighbours in one array are apart.
            first, second = rl.iall_reduce(y, out=x[:]), rl.iall_gather(y)
            first.wait(), second.wait()
            parts = [rl.iall_reduce(x[i : i + 100]) for i in range(0, 2000, 100)]
            for part in parts:
                part.wait()
            prepared.start().wait()
            if rl.rank() == 1:
                rl.recv(y, 0)
            running = prepared.start()
            if rl.rank() == 0:
                try:
                    prepared.start()
                except BufferError as error:
                    assert "a started all_reduce" in str(error), error
                else:
                    raise AssertionError()
                rl.send(y, 1)
            running.wait()
            del receive
            cancelled = rl.irecv(x, other, 99)
            assert cancelled.cancel()
            rl.all_reduce(x)
            rl.irecv(x, other, 99)  # forgotten
            rl.all_reduce(x)
        """)  # fmt: skip

    def test_an_exception_in_a_with_block_is_not_replaced(self):
        self.well(2, """
            rl.init()
            x = np.ones(1000)
            try:
                with rl.iall_reduce(x):
                    raise KeyError("mine")
            except KeyError:
                pass
            assert (x == 2).all()
        """)

    def test_dropping_a_request_waits_for_it(self):
        self.well(2, """
            rl.init()
            for _ in range(20):
                rl.iall_reduce(np.ones(50_000))  # array and request are dropped at once
            rl.barrier()
        """)

    def test_wait_timeout_and_fileno(self):
        self.well(2, """
            import select
            rl.init()
            x = np.zeros(1)
            receive = rl.irecv(x, 1 - rl.rank())
            assert not receive.wait_timeout(0.05) and not receive.test()
            assert select.select([receive], [], [], 0)[0] == []
            rl.barrier()
            rl.send(np.ones(1), 1 - rl.rank())
            assert select.select([receive], [], [], 20)[0] == [receive]
            assert receive.wait_timeout(20) and x[0] == 1
        """)

    def test_many_descriptors_are_given_back(self):
        self.well(2, """
            rl.init()
            def descriptors():
                return len(os.listdir("/proc/self/fd"))
            rl.ibarrier().wait()
            before = descriptors()
            for _ in range(100):
                request = rl.ibarrier()
                request.fileno()
                request.wait()
            del request
            assert descriptors() == before
        """)


if __name__ == "__main__":
    unittest.main()
