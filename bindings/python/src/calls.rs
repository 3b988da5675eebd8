//! The collectives of `rlaunch.Communicator`, each in three forms: it waits; `i…` returns a request;
//! `…_init` prepares one.

use crate::communicator::Communicator;
use crate::number::{Seconds, Whole};
use crate::plan;
use crate::plan_v;
use crate::request::{Persistent, Request};
use pyo3::prelude::*;

/// The three forms of a call, from the function that makes its plan.
macro_rules! forms {
    (
        $(#[$doc:meta])*
        $module:ident, $name:ident, $start:ident, $prepare:ident,
        $signature:tt, $text:literal,
        ($($argument:ident: $kind:ty),*)
    ) => {
        #[pymethods]
        impl Communicator {
            $(#[$doc])*
            #[pyo3(signature = $signature, text_signature = $text)]
            fn $name<'py>(
                &self, py: Python<'py>, $($argument: $kind,)* timeout: Option<Seconds>
            ) -> PyResult<Py<PyAny>> {
                self.run(py, |group| $module::$name(group, $($argument),*), timeout)
            }

            #[doc = concat!("As ", stringify!($name), ", but returns at once, with a Request.")]
            #[pyo3(signature = $signature, text_signature = $text)]
            fn $start<'py>(
                &self, py: Python<'py>, $($argument: $kind,)* timeout: Option<Seconds>
            ) -> PyResult<Request> {
                self.start(py, |group| $module::$name(group, $($argument),*), timeout)
            }

            #[doc = concat!(
                "Prepares ", stringify!($name), " to be started many times on the same arrays."
            )]
            #[pyo3(signature = $signature, text_signature = $text)]
            fn $prepare<'py>(
                &self, py: Python<'py>, $($argument: $kind,)* timeout: Option<Seconds>
            ) -> PyResult<Persistent> {
                self.prepare(py, |group| $module::$name(group, $($argument),*), timeout)
            }
        }
    };
}

type Object<'a, 'py> = &'a Bound<'py, PyAny>;
type Optional<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

forms! {
    /// Returns when every rank has called it.
    plan, barrier, ibarrier, barrier_init,
    (*, timeout=None), "($self, *, timeout=None)",
    ()
}
forms! {
    /// x becomes root's x on every rank. In place; returns x.
    plan, broadcast, ibroadcast, broadcast_init,
    (x, root=Whole::Is(0), *, timeout=None), "($self, x, root=0, *, timeout=None)",
    (x: Object<'_, 'py>, root: Whole)
}
forms! {
    /// Each element of x becomes the reduction of all ranks' elements at its place, with the same
    /// bits on every rank. In place, or into out; returns the result.
    plan, all_reduce, iall_reduce, all_reduce_init,
    (x, op=None, *, out=None, timeout=None),
    "($self, x, op=\"sum\", *, out=None, timeout=None)",
    (x: Object<'_, 'py>, op: Optional<'_, 'py>, out: Optional<'_, 'py>)
}
forms! {
    /// As all_reduce, with the result on root alone: in x there, or in out. Returns it; None on the
    /// other ranks, whose x stays as it is.
    plan, reduce, ireduce, reduce_init,
    (x, root=Whole::Is(0), op=None, *, out=None, timeout=None),
    "($self, x, root=0, op=\"sum\", *, out=None, timeout=None)",
    (x: Object<'_, 'py>, root: Whole, op: Optional<'_, 'py>, out: Optional<'_, 'py>)
}
forms! {
    /// Each element of x becomes the reduction of the elements of ranks 0 to this one. In place, or
    /// into out; returns the result.
    plan, scan, iscan, scan_init,
    (x, op=None, *, out=None, timeout=None),
    "($self, x, op=\"sum\", *, out=None, timeout=None)",
    (x: Object<'_, 'py>, op: Optional<'_, 'py>, out: Optional<'_, 'py>)
}
forms! {
    /// As scan without this rank's own: of ranks 0 to the one before. Rank 0's result is left as it
    /// is.
    plan, exscan, iexscan, exscan_init,
    (x, op=None, *, out=None, timeout=None),
    "($self, x, op=\"sum\", *, out=None, timeout=None)",
    (x: Object<'_, 'py>, op: Optional<'_, 'py>, out: Optional<'_, 'py>)
}
forms! {
    /// Returns out, in which out[r] is what rank r gave as x: its shape is (size, *x.shape) unless
    /// an array of as many elements is given.
    plan, all_gather, iall_gather, all_gather_init,
    (x, *, out=None, timeout=None), "($self, x, *, out=None, timeout=None)",
    (x: Object<'_, 'py>, out: Optional<'_, 'py>)
}
forms! {
    /// As all_gather on root alone; None on the other ranks.
    plan, gather, igather, gather_init,
    (x, root=Whole::Is(0), *, out=None, timeout=None), "($self, x, root=0, *, out=None, timeout=None)",
    (x: Object<'_, 'py>, root: Whole, out: Optional<'_, 'py>)
}
forms! {
    /// Returns out, which is root's x[rank]. Ranks other than root pass None as x, and an out of
    /// the part's size.
    plan, scatter, iscatter, scatter_init,
    (x, root=Whole::Is(0), *, out=None, timeout=None), "($self, x, root=0, *, out=None, timeout=None)",
    (x: Optional<'_, 'py>, root: Whole, out: Optional<'_, 'py>)
}
forms! {
    /// Returns out, which is the reduction of what all ranks gave as x[rank]: x's first length is
    /// the number of ranks, or out is given and x has out's elements for each rank.
    plan, reduce_scatter, ireduce_scatter, reduce_scatter_init,
    (x, op=None, *, out=None, timeout=None),
    "($self, x, op=\"sum\", *, out=None, timeout=None)",
    (x: Object<'_, 'py>, op: Optional<'_, 'py>, out: Optional<'_, 'py>)
}
forms! {
    /// Rank s's x[r] becomes rank r's out[s]. Returns out, of x's shape.
    plan, all_to_all, iall_to_all, all_to_all_init,
    (x, *, out=None, timeout=None), "($self, x, *, out=None, timeout=None)",
    (x: Object<'_, 'py>, out: Optional<'_, 'py>)
}
forms! {
    /// As all_gather of parts that differ in their first length, which is counts[r] on rank r.
    /// Returns out, the parts one behind the other.
    plan_v, all_gather_v, iall_gather_v, all_gather_v_init,
    (x, counts, *, out=None, timeout=None), "($self, x, counts, *, out=None, timeout=None)",
    (x: Object<'_, 'py>, counts: Vec<Whole>, out: Optional<'_, 'py>)
}
forms! {
    /// As all_gather_v on root alone; None on the other ranks, which need no counts.
    plan_v, gather_v, igather_v, gather_v_init,
    (x, counts=None, root=Whole::Is(0), *, out=None, timeout=None),
    "($self, x, counts=None, root=0, *, out=None, timeout=None)",
    (x: Object<'_, 'py>, counts: Option<Vec<Whole>>, root: Whole, out: Optional<'_, 'py>)
}
forms! {
    /// As scatter of parts whose first lengths are counts. Ranks other than root pass None as x,
    /// and an out of the part's size.
    plan_v, scatter_v, iscatter_v, scatter_v_init,
    (x, counts=None, root=Whole::Is(0), *, out=None, timeout=None),
    "($self, x, counts=None, root=0, *, out=None, timeout=None)",
    (x: Optional<'_, 'py>, counts: Option<Vec<Whole>>, root: Whole, out: Optional<'_, 'py>)
}
forms! {
    /// As reduce_scatter of parts whose first lengths are counts.
    plan_v, reduce_scatter_v, ireduce_scatter_v, reduce_scatter_v_init,
    (x, counts, op=None, *, out=None, timeout=None),
    "($self, x, counts, op=\"sum\", *, out=None, timeout=None)",
    (x: Object<'_, 'py>, counts: Vec<Whole>, op: Optional<'_, 'py>, out: Optional<'_, 'py>)
}
forms! {
    /// As all_to_all of parts that differ: send_counts[r] of x's first axis go to rank r, and
    /// recv_counts[r] come from it.
    plan_v, all_to_all_v, iall_to_all_v, all_to_all_v_init,
    (x, send_counts, recv_counts, *, out=None, timeout=None),
    "($self, x, send_counts, recv_counts, *, out=None, timeout=None)",
    (
        x: Object<'_, 'py>, send_counts: Vec<Whole>, recv_counts: Vec<Whole>,
        out: Optional<'_, 'py>
    )
}
