//! `rlaunch reap`: asks the agent of each host what jobs have left there, shows it, has it ended.

mod show;

use rlaunch_control::v1;
use rlaunch_plan::exit_code;

use crate::ask::ask_all;
use crate::drive::DriveError;
use crate::settings::ReapSettings;
use crate::talk;

/// Something is left.
const LEFT: u8 = 1;

/// `Ok` is the exit code; what was found is on stdout.
pub fn run(settings: &ReapSettings) -> Result<u8, DriveError> {
    let request = v1::ReapRequest {
        job: settings.job.clone(),
        end: settings.end,
        hinted: settings.hinted,
        kill_after_ms: u32::try_from(settings.kill_after.as_millis()).unwrap_or(u32::MAX),
    };
    let answers = ask_all(&settings.hosts, &settings.remote, |mut client| {
        let request = request.clone();
        async move { client.reap(request).await }
    })
    .map_err(DriveError::Runtime)?;
    let (text, left) = if settings.json {
        show::json(&answers.given)
    } else {
        show::table(&answers.given, settings)
    };
    let mut failed = answers.failed;
    let unwritten = talk::write_out(&text).err();
    failed.extend(unwritten.map(|error| format!("stdout: {error}")));
    if !failed.is_empty() {
        return Err(DriveError::Incomplete(failed));
    }
    Ok(if left { LEFT } else { exit_code::SUCCESS })
}
