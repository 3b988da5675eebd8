//! The JSON form: numbers are numbers, booleans booleans, what is unknown is null. Nothing of the
//! environment is in it.

use crate::statistics::Spread;
use serde::{Deserialize, Serialize};

/// Raised when a reader of older documents would misunderstand.
pub(crate) const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
pub(crate) struct Document {
    pub(crate) program: &'static str,
    pub(crate) document_version: u32,
    pub(crate) version: &'static str,
    pub(crate) test: &'static str,
    pub(crate) start_time: String,
    /// Null in a run that did not come to its end.
    pub(crate) end_time: Option<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) config: Config,
    /// Ranks that ran together; `groups` many such at the same time.
    pub(crate) world: u32,
    pub(crate) groups: u32,
    pub(crate) transports: Vec<&'static str>,
    pub(crate) authenticated: bool,
    pub(crate) ranks: Vec<RankLine>,
    pub(crate) results: Vec<ResultLine>,
    pub(crate) wrong: u64,
    /// Null where nothing was checked.
    pub(crate) correct: Option<bool>,
    pub(crate) average_bus_bandwidth: AverageBandwidth,
}

#[derive(Debug, Serialize)]
pub(crate) struct Config {
    pub(crate) bytes_min: u64,
    pub(crate) bytes_max: u64,
    pub(crate) step_factor: Option<u64>,
    pub(crate) step_bytes: Option<u64>,
    /// Null: as many as fit in the time; each result has its number.
    pub(crate) iterations: Option<u32>,
    pub(crate) warmups: u32,
    pub(crate) aggregated: u32,
    pub(crate) checks: u32,
    pub(crate) blocking: u8,
    pub(crate) time: &'static str,
    pub(crate) processor_time: bool,
    pub(crate) buffers: &'static str,
    pub(crate) rotate: bool,
    pub(crate) unaligned: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct RankLine {
    pub(crate) rank: u32,
    pub(crate) group: u32,
    pub(crate) pid: u32,
    pub(crate) host: String,
    /// With `-M`: at the end of the run.
    pub(crate) memory_peak_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ResultLine {
    pub(crate) size: u64,
    pub(crate) count: u64,
    #[serde(rename = "type")]
    pub(crate) dtype: &'static str,
    pub(crate) redop: Option<&'static str>,
    pub(crate) root: Option<u32>,
    pub(crate) out_of_place: Placement,
    /// Null where the test has no such form.
    pub(crate) in_place: Option<Placement>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Placement {
    pub(crate) time_us: f64,
    /// GB/s, of 10^9 bytes.
    pub(crate) algbw: f64,
    pub(crate) busbw: f64,
    /// Null where nothing was checked.
    pub(crate) wrong: Option<u64>,
    pub(crate) iterations: u32,
    /// With `-I`.
    pub(crate) spread: Option<Spread>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AverageBandwidth {
    pub(crate) gbps: f64,
    /// NCCL_TESTS_MIN_BW, and whether it was reached.
    pub(crate) wanted_gbps: Option<f64>,
    pub(crate) reached: Option<bool>,
}

/// What pictures need of a saved document.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SavedRun {
    pub(crate) test: String,
    pub(crate) world: u32,
    pub(crate) transports: Vec<String>,
    pub(crate) results: Vec<SavedResult>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SavedResult {
    pub(crate) size: u64,
    #[serde(rename = "type")]
    pub(crate) dtype: String,
    pub(crate) redop: Option<String>,
    pub(crate) root: Option<u32>,
    pub(crate) out_of_place: SavedPlacement,
    pub(crate) in_place: Option<SavedPlacement>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct SavedPlacement {
    pub(crate) time_us: f64,
    pub(crate) busbw: f64,
}
