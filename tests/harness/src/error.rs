//! What can go wrong while hosts are made, entered or broken.

use std::io;
use std::time::Duration;
use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HarnessError {
    #[error("test hosts are made of namespaces, which needs root\nhint: run it with sudo")]
    NotRoot,

    #[error(
        "test hosts need {programs}, not found here\n\
         hint: apt-get install -y --no-install-recommends {packages}"
    )]
    Missing { programs: String, packages: String },

    #[error("{0}")]
    Options(String),

    #[error("cannot {what}: {source}")]
    System { what: String, source: io::Error },

    #[error("`{program}` failed: {message}")]
    Tool { program: String, message: String },

    #[error("host {host} did not come up: {log}")]
    Boot { host: String, log: String },

    #[error("no host `{host}` here; there are: {hosts}")]
    UnknownHost { host: String, hosts: String },

    #[error("host {host} is powered off\nhint: boot it first")]
    PoweredOff { host: String },

    #[error("{what} took longer than {} s{detail}", limit.as_secs_f32())]
    TooLong {
        what: String,
        limit: Duration,
        detail: String,
    },
}

/// Names the action that failed; used as `.map_err(failed("read its log"))`.
pub(crate) fn failed<E: Into<io::Error>>(
    what: impl Into<String>,
) -> impl FnOnce(E) -> HarnessError {
    let what = what.into();
    move |error| HarnessError::System {
        what,
        source: error.into(),
    }
}
