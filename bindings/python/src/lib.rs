//! The native part of `import rlaunch`: communicators on numpy arrays and their like.
//!
//! Thin by design: look at the arrays, call `rlaunch_runtime` without the GIL, turn its errors into
//! the exceptions of `rlaunch/errors.py`. What users see is `rlaunch/__init__.py`.
//!
//! | file | what |
//! |---|---|
//! | `array`, `dlpack`, `dtype`, `refusal` | whose memory travels, and what the others are told |
//! | `plan`, `plan_v`, `reduction`, `argument`, `number` | from a call's arguments to the runtime's |
//! | `calls`, `point`, `delegated` | the calls themselves |
//! | `communicator`, `world`, `request`, `group`, `memory` | the objects |
//! | `in_use` | which arrays the calls under way have |
//! | `signals`, `fork`, `error`, `record` | Ctrl-C, forked children, exceptions, flight recorder |
//!
//! The GIL is never held while the runtime may wait or take a lock: a user's reduction function
//! needs it on whatever thread drives the runtime.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod argument;
mod array;
mod calls;
mod communicator;
mod delegated;
mod dlpack;
mod dtype;
mod error;
mod fork;
mod group;
mod in_use;
mod memory;
mod number;
mod plan;
mod plan_v;
mod point;
mod record;
mod reduction;
mod refusal;
mod request;
mod signals;
mod world;

use pyo3::prelude::*;

#[pymodule]
fn _rlaunch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    signals::install();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ANY", number::ANY)?;
    module.add_class::<communicator::Communicator>()?;
    module.add_class::<world::World>()?;
    module.add_class::<request::Request>()?;
    module.add_class::<request::Persistent>()?;
    module.add_class::<reduction::Operation>()?;
    module.add_class::<memory::Memory>()?;
    module.add_function(wrap_pyfunction!(reduction::premul_sum, module)?)?;
    module.add_function(wrap_pyfunction!(reduction::operation, module)?)?;
    module.add_function(wrap_pyfunction!(group::group_begin, module)?)?;
    module.add_function(wrap_pyfunction!(group::group_end, module)?)?;
    module.add_function(wrap_pyfunction!(world::unjoined_world, module)?)?;
    module.add_function(wrap_pyfunction!(fork::after_fork_in_child, module)?)
}

/// Runs what may wait from a place that has no `Python` at hand: a drop.
fn detached(run: impl FnOnce() + Send) {
    let mut run = Some(run);
    let done = Python::try_attach(|py| {
        if let Some(run) = run.take() {
            py.detach(run);
        }
    });
    if let (None, Some(run)) = (done, run) {
        run(); // the interpreter has ended
    }
}
