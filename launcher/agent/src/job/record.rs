//! The job's record on this host, as [`crate::record`] keeps it: its begin.

use rlaunch_control::v1::{Launch, Level};

use super::{KeeperLink, Outgoing};
use crate::record;

/// Writes the job down before its first rank. Without a record the job runs all the same; only
/// `rlaunch reap` has less to go by.
pub(super) async fn begin_record(
    launch: &Launch,
    keeper: &KeeperLink,
    outgoing: &Outgoing,
) -> Option<record::Writer> {
    let facts = record::Facts {
        job_id: &launch.job_id,
        host: &launch.host,
        programs: launch
            .programs
            .iter()
            .map(|program| program.argv.as_slice())
            .collect(),
        keeper: keeper.pid,
    };
    match record::Writer::create(&facts) {
        Ok(record) => {
            // Should this fail, the keeper is gone, and the job's loop hears of it at once.
            if let Ok(file) = record.for_keeper() {
                keeper.record(record.path(), &file).await.ok();
            }
            Some(record)
        }
        Err(error) => {
            let text = format!("no record of this job is kept on this host: {error}");
            outgoing.log(Level::Info, text);
            None
        }
    }
}
