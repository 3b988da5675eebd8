"""Which arrays are taken, and what the others are told. In a world of one rank."""

import array
import ctypes
import sys
import unittest

import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

import rlaunch as rl

IN_PLACE = [rl.all_reduce, rl.scan, rl.reduce, rl.iall_reduce, lambda x: rl.recv(x, 0)]
READ = [rl.broadcast, rl.all_gather, rl.reduce_scatter, lambda x: rl.send(x, 0)]
ALL = [*IN_PLACE, *READ]


class Refusals(unittest.TestCase):
    """Each says what is wrong with which argument, and the way out."""

    @classmethod
    def setUpClass(cls):
        rl.init()

    def refused(self, calls, x, kind, *words):
        for call in calls:
            with self.assertRaises(kind) as caught:
                call(x)
            for word in ("x", "hint:", *words):
                self.assertIn(word, str(caught.exception))

    def test_what_is_no_array(self):
        self.refused(ALL, [1.0, 2.0], TypeError, "list", "numpy.asarray(x)")
        self.refused(ALL, 3.0, TypeError, "float", "numpy.array(x)")
        self.refused(ALL, None, TypeError, "NoneType", "rl.send_object")
        self.refused(IN_PLACE, b"12345678", ValueError, "read-only")
        self.refused(IN_PLACE, np.float32(3), ValueError, "read-only")

    def test_other_dtypes(self):
        for dtype, way_out in [
            ("longdouble", "astype(numpy.float64)"),
            ("clongdouble", "astype(numpy.complex128)"),
            ("object", "rl.send_object"),
            ("U3", "view(numpy.uint8)"),
            ("M8[s]", "view(numpy.int64)"),
        ]:
            self.refused(ALL, np.zeros(4, dtype), TypeError, "dtype", "bfloat16", way_out)
        swapped = np.dtype(np.float64).newbyteorder()
        self.refused(ALL, np.zeros(4, swapped), TypeError, "byte order")
        for fields in ([("a", "f8")], [("a", "f4"), ("b", "i8")], [("a", "i4"), ("b", "f4")]):
            self.refused(ALL, np.zeros(4, fields), TypeError, "dtype")
        padded = np.dtype({"names": ["a", "b"], "formats": ["f4", "i4"], "offsets": [0, 8]})
        self.refused(ALL, np.zeros(4, padded), TypeError, "dtype")

    def test_memory_that_is_not_one_block(self):
        for x in (np.zeros(8)[::2], np.zeros((3, 4)).T, np.zeros(8)[::-1], np.zeros((3, 4))[:, :2]):
            self.refused(ALL, x, ValueError, "C order", "numpy.ascontiguousarray(x)")
        self.refused(IN_PLACE, np.zeros(8)[::2], ValueError, "x[...] = copy")

    def test_memory_that_may_not_be_written(self):
        x = np.zeros((1, 4))
        x.flags.writeable = False
        self.refused(IN_PLACE, x, ValueError, "read-only", "x.copy()")
        self.assertEqual(rl.all_gather(x).shape, (1, 1, 4))
        with self.assertRaisesRegex(ValueError, "out is read-only"):
            rl.all_gather(np.ones(4), out=x)

    def test_memory_off_its_alignment(self):
        x = np.zeros(33, np.uint8)[1:].view(np.float64)
        self.refused(ALL, x, ValueError, "copy()")

    def test_values_of_the_other_arguments(self):
        x = np.ones(4)
        for call, word in [
            (lambda: rl.all_reduce(x, "mean"), '"avg"'),
            (lambda: rl.all_reduce(x, "SUM"), "sum, prod, min, max"),
            (lambda: rl.all_reduce(x, "user"), "rl.operation"),
            (lambda: rl.all_reduce(x, timeout=0), "timeout=0"),
            (lambda: rl.all_reduce(x, timeout=float("nan")), "timeout=nan"),
            (lambda: rl.all_reduce(x, out=np.ones(3)), "out has 3"),
            (lambda: rl.all_gather_v(x, [4, 4]), "one for each of 1 ranks"),
            (lambda: rl.all_gather_v(x, [3]), "counts[0]"),
            (lambda: rl.scatter_v(x, [3]), "make 3"),
            (lambda: rl.scatter_v(x), "give counts"),
            (lambda: rl.scatter(None), "give x"),
            (lambda: rl.world().from_ranks([1]), "rank=1"),
            (lambda: rl.set_timeout(-1.0), "seconds=-1"),
            (lambda: rl.broadcast(x, 1), "root=1"),
            (lambda: rl.broadcast(x, -1), "root=-1"),
            (lambda: rl.send(x, 1), "to=1"),
            (lambda: rl.recv(x, 7), "source=7"),
            (lambda: rl.send(x, 0, tag=-1), "tag=-1"),
            (lambda: rl.recv(x, 0, tag=1 << 32), "tag=4294967296"),
            (lambda: rl.reduce_scatter(np.ones((2, 4))), "first length must be 1"),
            (lambda: rl.reduce_scatter(np.array(1.0)), "first length must be 1"),
            (lambda: rl.reduce_scatter(x, out=np.ones(3)), "out's 3"),
            (lambda: rl.all_gather(x, out=np.ones(3)), "out has 3"),
            (lambda: rl.all_gather(x[1:], out=x[:3]), "share memory"),
            (lambda: rl.reduce_scatter(x[1:], out=x[:3]), "share memory"),
        ]:
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertIn(word, str(caught.exception))
        with self.assertRaisesRegex(TypeError, "float32.*float64"):
            rl.all_gather(x, out=np.ones(4, np.float32))
        for wrong in (3, lambda a, b: a + b):
            with self.assertRaisesRegex(TypeError, "rl.operation"):
                rl.all_reduce(x, op=wrong)
        for op, dtype in (("band", "f4"), ("min", "c8"), ("minloc", "f4"), ("avg", "?")):
            with self.assertRaisesRegex(TypeError, f"op {op} on elements of"):
                rl.all_reduce(np.zeros(2, dtype), op)

    def test_a_refused_call_leaves_the_array_and_the_world_alone(self):
        x = np.arange(8.0)
        with self.assertRaises(ValueError):
            rl.all_reduce(x[::2])
        np.testing.assert_array_equal(x, np.arange(8.0))
        rl.all_reduce(x)


class Taken(unittest.TestCase):
    """Awkward ones that work."""

    @classmethod
    def setUpClass(cls):
        rl.init()

    def test_in_place_and_returned(self):
        x = np.arange(6.0).reshape(2, 3)
        self.assertIs(rl.all_reduce(x), x)
        self.assertIs(rl.broadcast(x), x)
        np.testing.assert_array_equal(x, np.arange(6.0).reshape(2, 3))

    def test_every_dtype_under_each_of_its_names(self):
        names = "bool i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16".split()
        for dtype in (*names, np.intc, np.int_, np.longlong, np.ulonglong, float, int):
            x = np.arange(5).astype(dtype)
            self.assertEqual(rl.all_reduce(x).dtype, x.dtype)
            self.assertEqual(rl.all_gather(x).dtype, x.dtype)

    def test_pairs_of_a_value_and_an_index(self):
        for value, index in ("f4", "i4"), ("f8", "i8"), ("i4", "i4"), ("i8", "i8"):
            x = np.zeros(3, [("loss", value), ("rank", index)])
            self.assertIs(rl.all_reduce(x, "minloc"), x)

    def test_types_of_ml_dtypes(self):
        if ml_dtypes is None:
            self.skipTest("no ml_dtypes here")
        for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            x = np.arange(5).astype(dtype)
            self.assertEqual(rl.all_gather(rl.all_reduce(x)).dtype, x.dtype)
            np.testing.assert_array_equal(x.astype("f4"), np.arange(5))

    def test_the_buffer_protocol(self):
        for x in (array.array("d", [1, 2]), bytearray(b"1234"), memoryview(bytearray(8)),
                  (ctypes.c_int32 * 3)(1, 2, 3)):  # fmt: skip
            self.assertIs(rl.all_reduce(x), x)
        gathered = rl.all_gather(b"1234")
        self.assertEqual((gathered.shape, gathered.dtype), ((1, 4), np.uint8))

    def test_a_bytearray_stays_as_it_is_while_a_request_has_it(self):
        x = bytearray(1000)
        request = rl.iall_reduce(x)
        with self.assertRaises(BufferError):
            x.extend(b"more")
        request.wait()

    def test_one_value_without_dimensions(self):
        x = np.array(2.5)
        self.assertIs(rl.all_reduce(x), x)
        self.assertEqual(rl.all_gather(x).shape, (1,))

    def test_no_elements(self):
        x = np.empty((0, 3))
        self.assertIs(rl.all_reduce(x), x)
        self.assertEqual(rl.all_gather(x).shape, (1, 0, 3))
        self.assertEqual(rl.reduce_scatter(np.empty((1, 0))).shape, (0,))

    def test_a_subclass_and_a_view_of_a_part(self):
        x = np.arange(12.0)
        rl.all_reduce(x[3:7])
        rl.all_reduce(np.zeros(3).view(np.recarray))

    def test_shapes_of_results(self):
        self.assertEqual(rl.all_gather(np.zeros((2, 3))).shape, (1, 2, 3))
        self.assertEqual(rl.reduce_scatter(np.zeros((1, 2, 3))).shape, (2, 3))
        out = np.zeros(6)
        self.assertIs(rl.all_gather(np.ones((2, 3)), out=out), out)
        self.assertEqual(out.sum(), 6)
        out = np.zeros((2, 3))
        self.assertIs(rl.reduce_scatter(np.ones(6), out=out), out)
        self.assertEqual(out.sum(), 6)

    def test_a_root_may_broadcast_what_is_read_only(self):
        x = np.zeros(3)
        x.flags.writeable = False
        self.assertIs(rl.broadcast(x), x)


class Exporter:
    """Speaks DLPack, as torch does, on numpy's memory."""

    def __init__(self, memory, **asked):
        self.memory, self.asked = memory, asked

    def __dlpack__(self, **options):
        return self.memory.__dlpack__(**{**options, **self.asked})

    def new_empty(self, shape):
        return Exporter(np.empty(shape, self.memory.dtype), **self.asked)


class Old(Exporter):
    """As before DLPack 1.0."""

    def __dlpack__(self, stream=None):
        return self.memory.__dlpack__()


class Foreign(unittest.TestCase):
    """DLPack."""

    @classmethod
    def setUpClass(cls):
        rl.init()

    def test_in_place_and_returned(self):
        for kind in (Exporter, Old):
            x = kind(np.arange(6.0).reshape(2, 3))
            self.assertIs(rl.all_reduce(x, rl.premul_sum(2.0)), x)
            self.assertEqual(x.memory[1, 2], 10)
            out = rl.all_gather(x)
            self.assertEqual(out.memory.shape, (1, 2, 3))
            self.assertEqual(out.memory[0, 1, 2], 10)

    def test_refusals(self):
        read_only = np.zeros(3)
        read_only.flags.writeable = False
        for x, kind, words in [
            (Exporter(np.zeros(8)[::2]), ValueError, "C order"),
            (Exporter(np.zeros((3, 4)).T), ValueError, "C order"),
            (Exporter(read_only), ValueError, "read-only"),
            (Exporter(np.zeros(3), copy=True), ValueError, "read-only"),
            (Exporter(np.zeros(2, "longdouble")), ValueError, "IEEE"),
            (type("Tensor", (), {"__dlpack__": lambda self: None})(), TypeError, "capsule"),
        ]:
            with self.assertRaisesRegex((kind, BufferError), words):
                rl.all_reduce(x)

    def test_what_an_exporter_raises_is_the_cause(self):
        class Tensor:
            def __dlpack__(self, **_):
                raise BufferError("it requires grad")

        with self.assertRaisesRegex(ValueError, "requires grad.*x.detach") as caught:
            rl.all_reduce(Tensor())
        self.assertIsInstance(caught.exception.__cause__, BufferError)

    def test_the_memory_is_given_back(self):
        memory = np.zeros(4)
        before = sys.getrefcount(memory)
        for _ in range(10):
            rl.all_reduce(Exporter(memory))
            rl.iall_reduce(Exporter(memory)).wait()
        self.assertEqual(sys.getrefcount(memory), before)


if __name__ == "__main__":
    unittest.main()
