//! Which carrier, how often, and how many at a time.

use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};

use crate::error::{ReachCause, ReachError};
use crate::local;
use crate::target::{CarrierChoice, Connection, HostTarget, RemoteOptions};

/// Reaches one host and has an agent greet from it.
pub async fn connect(
    target: &HostTarget,
    choice: CarrierChoice,
    options: &RemoteOptions,
) -> Result<Connection, ReachError> {
    if target.name.is_empty() || target.name.starts_with('-') {
        let reason = "that is not a host name".to_owned();
        return Err(ReachError::new(target, ReachCause::Unresolved(reason)));
    }
    let here =
        target.user.is_none() && target.port.is_none() && local::is_this_machine(&target.name);
    match choice {
        CarrierChoice::Local => local::connect(target, options).await,
        CarrierChoice::Auto if here => local::connect(target, options).await,
        _ => Err(ReachError::new(
            target,
            ReachCause::Unconnected("not yet".into()),
        )),
    }
}

/// Reaches all of them, [`RemoteOptions::connects_max`] at a time; results come as they are there,
/// each with the index of its target. Dropping the stream gives up those under way.
pub fn connect_all(
    targets: Vec<HostTarget>,
    choice: CarrierChoice,
    options: RemoteOptions,
) -> impl Stream<Item = (usize, Result<Connection, ReachError>)> + Send {
    let options = Arc::new(options);
    let width = options.connects_max.max(1);
    stream::iter(targets.into_iter().enumerate())
        .map(move |(index, target)| {
            let (choice, options) = (choice.clone(), Arc::clone(&options));
            async move { (index, connect(&target, choice, &options).await) }
        })
        .buffer_unordered(width)
}
