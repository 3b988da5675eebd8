"""Arrays in memory from the runtime: what they are, and how long they live."""

import unittest

from support import assert_all_well, run_ranks


class Memory(unittest.TestCase):
    def test_arrays_and_their_parts_in_calls(self):
        program = """
            rl.init()
            x = rl.zeros((300, 400), np.float32)
            assert x.shape == (300, 400) and x.dtype == np.float32 and not x.any()
            assert x.ctypes.data % 64 == 0 and x.flags.c_contiguous and x.flags.writeable
            x += rl.rank() + 1
            total = rl.size() * (rl.size() + 1) / 2
            assert rl.all_reduce(x) is x and (x == total).all()
            part = x[100:200]
            part.fill(rl.rank())
            rl.broadcast(part, root=rl.size() - 1)
            assert (x[100:200] == rl.size() - 1).all() and (x[:100] == total).all()
            assert rl.empty(5).dtype == np.float64 and rl.empty([]).shape == ()
            gathered = rl.all_gather(x[0])
            assert gathered.shape == (rl.size(), 400)
            for wrong, refusal in (((-1,), ValueError), (1, TypeError)):
                try:
                    rl.empty(wrong, object)
                except refusal:
                    continue
                raise AssertionError(wrong)
            memory = rl.allocate(4096)
            assert len(memory) == 4096 and "4096 bytes" in repr(memory)
            assert memory.__dlpack_device__()[0] == 1
            assert np.from_dlpack(memory).nbytes == 4096
        """
        for size in (1, 2, 3):
            assert_all_well(self, run_ranks(size, program))

    def test_a_view_keeps_the_memory(self):
        program = """
            import gc
            rl.init()
            view = rl.zeros(1_000_000, np.int64)[500_000:]
            view += 1
            gc.collect()
            others = [rl.zeros(1_000_000, np.int64) for _ in range(4)]
            for other in others:
                other.fill(7)
            assert (view == 1).all()
            request = rl.iall_reduce(rl.zeros(200_000) + rl.rank())
            gc.collect()
            request.wait()
            x = rl.zeros(200_000)
            x += 1
            request = rl.iall_reduce(x)
            del x
            gc.collect()
            assert (request.wait() == rl.size()).all()
        """
        assert_all_well(self, run_ranks(2, program))

    def test_an_array_outlives_the_world(self):
        program = """
            rl.init()
            half = rl.split(rl.rank() % 2)
            x = half.zeros(100_000, np.float32)
            del half
            rl.all_reduce(x)
            rl.finalize()
            x += 3
            assert (x == 3).all()
        """
        assert_all_well(self, run_ranks(2, program))

    def test_a_forked_child_reads_and_frees_nothing(self):
        program = """
            rl.init()
            x = rl.zeros(100_000, np.float32)
            x += 1
            child = os.fork()
            if child == 0:
                assert (x == 1).all()
                del x
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            rl.all_reduce(x)
            assert (x == rl.size()).all()
        """
        assert_all_well(self, run_ranks(2, program))

    def test_more_than_there_is(self):
        program = """
            rl.init()
            there = int(open("/proc/meminfo").read().split("MemAvailable:")[1].split()[0]) * 1024
            for size in (2 * there, 10**15):
                try:
                    rl.zeros(size, np.uint8)
                except MemoryError as error:
                    assert f"{size} bytes" in str(error) and "available" in str(error), error
                else:
                    raise AssertionError(size)
            x = rl.zeros(100_000_000, np.uint8)  # in several steps
            x += 1
            assert (rl.all_reduce(x) == rl.size()).all()
        """
        for size in (1, 2):
            assert_all_well(self, run_ranks(size, program))

    def test_torch_tensors_on_it(self):
        program = """
            try:
                import torch
            except ImportError:
                sys.exit(0)
            rl.init()
            x = torch.from_numpy(rl.zeros(100_000, np.float32))
            x += rl.rank()
            rl.all_reduce(x)
            assert (x == 1).all()
        """
        assert_all_well(self, run_ranks(2, program))


if __name__ == "__main__":
    unittest.main()
