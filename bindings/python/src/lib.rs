//! The native part of `import rlaunch`: [`World`](world::World) on numpy arrays.
//!
//! Thin by design: look at the arrays, call `rlaunch_runtime` without the GIL, turn its errors into
//! the exceptions of `rlaunch/errors.py`. What users see is `rlaunch/__init__.py`.
//!
//! No thread is started here and none by the runtime: a training process keeps the threads that
//! its own libraries make.

mod argument;
mod array;
mod error;
mod fork;
mod signals;
mod world;

use pyo3::prelude::*;

#[pymodule]
fn _rlaunch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    signals::install();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<world::World>()?;
    module.add_function(wrap_pyfunction!(fork::after_fork_in_child, module)?)
}
