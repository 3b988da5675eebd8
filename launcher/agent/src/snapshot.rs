//! This machine's facts, for `rlaunch topo`: read here, understood by the launcher.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rlaunch_control::v1::{SnapshotReply, SnapshotRequest};
use rlaunch_topo::snapshot;
use tonic::Status;

/// What a message may hold, and some room. A machine with 16 GPUs and 1,024 cores takes 1 MiB.
const MACHINE_MAX_BYTES: usize = 3 << 20;

pub(crate) async fn answer(request: SnapshotRequest) -> Result<SnapshotReply, Status> {
    // NVML may take seconds, some broken GPUs for ever.
    let taken = tokio::task::spawn_blocking(move || take(&request));
    let reply = taken
        .await
        .map_err(|error| Status::internal(error.to_string()))?;
    match reply.machine.len() > MACHINE_MAX_BYTES {
        true => Err(Status::resource_exhausted(
            "this machine's facts have over 3 MiB",
        )),
        false => Ok(reply),
    }
}

fn take(request: &SnapshotRequest) -> SnapshotReply {
    let mut tree = snapshot::this_machine(true);
    let topo_file = match request.topo_file.as_ref() {
        [] => snapshot::nccl_file_of_environment(),
        path => Some(PathBuf::from(OsStr::from_bytes(path))),
    };
    let read = topo_file.map(|path| {
        let read = snapshot::add_nccl_file(&mut tree, &path);
        read.map_err(|error| format!("{}: {error}", path.display()))
    });
    SnapshotReply {
        machine: tree.write(),
        not_read: read.and_then(Result::err).unwrap_or_default(),
    }
}
