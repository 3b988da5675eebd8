"""Which arrays are taken, and what the others are told. In a world of one rank."""

import unittest

import numpy as np

import rlaunch as rl

IN_PLACE = [rl.all_reduce, rl.broadcast, lambda x: rl.recv(x, 0)]
ALL = [*IN_PLACE, rl.all_gather, rl.reduce_scatter, lambda x: rl.send(x, 0)]


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
        self.refused(ALL, np.float32(3), TypeError, "numpy.float32", "numpy.array(x)")
        self.refused(ALL, None, TypeError, "NoneType")
        self.refused(ALL, b"12345678", TypeError, "bytes")

    def test_a_torch_tensor_is_told_of_numpy(self):
        tensor = type("Tensor", (), {"__module__": "torch"})()
        self.refused(ALL, tensor, TypeError, "torch.Tensor", "x.numpy()")

    def test_other_dtypes(self):
        for dtype, way_out in [
            ("float16", "astype(numpy.float32)"),
            ("uint8", "astype(numpy.int64)"),
            ("bool", "astype(numpy.int64)"),
            ("complex128", "view(numpy.float64)"),
            ("object", "dtype=numpy.float64"),
            ("U3", "convert"),
            ("M8[s]", "convert"),
        ]:
            self.refused(ALL, np.zeros(4, dtype), TypeError, "dtype", way_out)
        swapped = np.dtype(np.float64).newbyteorder()
        self.refused(ALL, np.zeros(4, swapped), TypeError, "byte order")
        self.refused(ALL, np.zeros(4, [("a", "f8")]), TypeError, "dtype")

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
            (lambda: rl.all_reduce(x, "avg"), "divide by rl.size()"),
            (lambda: rl.all_reduce(x, "SUM"), "sum, prod, min, max"),
            (lambda: rl.broadcast(x, 1), "root=1"),
            (lambda: rl.broadcast(x, -1), "root=-1"),
            (lambda: rl.send(x, 1), "to=1"),
            (lambda: rl.recv(x, 7), "source=7"),
            (lambda: rl.send(x, 0, tag=-1), "tag=-1"),
            (lambda: rl.recv(x, 0, tag=1 << 32), "tag=4294967296"),
            (lambda: rl.reduce_scatter(np.ones((2, 4))), "first length must be 1"),
            (lambda: rl.reduce_scatter(np.array(1.0)), "first length must be 1"),
            (lambda: rl.reduce_scatter(x, np.ones(3)), "out's 3"),
            (lambda: rl.all_gather(x, np.ones(3)), "out has 3"),
            (lambda: rl.all_gather(x, x), "share memory"),
            (lambda: rl.reduce_scatter(x, x), "share memory"),
        ]:
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertIn(word, str(caught.exception))
        with self.assertRaisesRegex(TypeError, "float64.*float32"):
            rl.all_gather(x, np.ones(4, np.float32))
        with self.assertRaises(TypeError):
            rl.all_reduce(x, op=3)

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
        for dtype in ("i4", "i8", "f4", "f8", np.intc, np.int_, np.longlong, float, int):
            x = np.arange(5).astype(dtype)
            self.assertEqual(rl.all_reduce(x).dtype, x.dtype)
            self.assertEqual(rl.all_gather(x).dtype, x.dtype)

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
        self.assertIs(rl.all_gather(np.ones((2, 3)), out), out)
        self.assertEqual(out.sum(), 6)
        out = np.zeros((2, 3))
        self.assertIs(rl.reduce_scatter(np.ones(6), out), out)
        self.assertEqual(out.sum(), 6)


if __name__ == "__main__":
    unittest.main()
