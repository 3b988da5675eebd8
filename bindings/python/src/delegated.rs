//! Methods whose work is done in Python: objects by pickle, arrays on shared memory.

use crate::communicator::Communicator;
use crate::number::Whole;
use pyo3::prelude::*;

macro_rules! delegated {
    (
        $(#[$doc:meta])*
        $module:literal, $name:ident, $signature:tt, $text:literal,
        ($($argument:ident: $kind:ty),*)
    ) => {
        #[pymethods]
        impl Communicator {
            $(#[$doc])*
            #[pyo3(signature = $signature, text_signature = $text)]
            fn $name<'py>(
                slf: &Bound<'py, Self>, $($argument: $kind),*
            ) -> PyResult<Bound<'py, PyAny>> {
                let module = slf.py().import($module)?;
                module.call_method1(stringify!($name), (slf, $($argument),*))
            }
        }
    };
}

type Object<'py> = Bound<'py, PyAny>;

delegated! {
    /// Sends any object to a rank, pickled.
    "rlaunch._objects", send_object, (value, to, tag=Whole::Is(0)), "($self, value, to, tag=0)",
    (value: Object<'py>, to: Whole, tag: Whole)
}
delegated! {
    /// Receives an object from a rank; source may be ANY_SOURCE.
    "rlaunch._objects", recv_object, (source, tag=Whole::Is(0)), "($self, source, tag=0)",
    (source: Whole, tag: Whole)
}
delegated! {
    /// Returns root's object, on every rank. The others need not give one.
    "rlaunch._objects", broadcast_object, (value=None, root=Whole::Is(0)), "($self, value=None, root=0)",
    (value: Option<Object<'py>>, root: Whole)
}
delegated! {
    /// Returns the objects of all ranks, in rank order.
    "rlaunch._objects", all_gather_object, (value), "($self, value)",
    (value: Object<'py>)
}
delegated! {
    /// Returns the objects of all ranks on root; None on the others.
    "rlaunch._objects", gather_object, (value, root=Whole::Is(0)), "($self, value, root=0)",
    (value: Object<'py>, root: Whole)
}
delegated! {
    /// Returns root's values[rank]. Ranks other than root pass None.
    "rlaunch._objects", scatter_object, (values, root=Whole::Is(0)), "($self, values, root=0)",
    (values: Option<Object<'py>>, root: Whole)
}
delegated! {
    /// Returns the objects that the ranks have for this one: rank s's values[rank] as the s-th.
    "rlaunch._objects", all_to_all_object, (values), "($self, values)",
    (values: Object<'py>)
}
delegated! {
    /// A numpy array, zero at first, in memory that the ranks of this host read in place: calls on it,
    /// or on parts of it, are faster. A dtype may be named, bfloat16 and float8 too (by ml_dtypes).
    "rlaunch._arrays", empty, (shape, dtype=None), "($self, shape, dtype='float64')",
    (shape: Object<'py>, dtype: Option<Object<'py>>)
}
delegated! {
    /// The same as empty(), for programs that say what they count on.
    "rlaunch._arrays", zeros, (shape, dtype=None), "($self, shape, dtype='float64')",
    (shape: Object<'py>, dtype: Option<Object<'py>>)
}
