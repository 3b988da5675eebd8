//! `rlaunch reap`: asks the agent of each host what jobs have left there, shows it, has it ended.

mod show;

use rlaunch_control::v1;
use rlaunch_plan::exit_code;

use crate::ask::ask_all;
use crate::drive::DriveError;
use crate::settings::ReapSettings;
use crate::talk::{self, say};

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
    for message in &answers.failed {
        say(message);
    }
    let (text, left) = if settings.json {
        show::json(&answers.given)
    } else {
        show::table(&answers.given, settings)
    };
    if talk::print(&text) != exit_code::SUCCESS {
        return Ok(exit_code::LAUNCHER);
    }
    Ok(match (answers.failed.is_empty(), left) {
        (false, _) => exit_code::LAUNCHER,
        (true, true) => LEFT,
        (true, false) => exit_code::SUCCESS,
    })
}
