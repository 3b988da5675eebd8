//! Which cores ranks may use.

use rlaunch_plan::placement::{MapBy, MapWish};

use super::SettingsError;
use super::value::whole;
use crate::cli::Options;

#[derive(Debug, Clone)]
pub struct Binding {
    /// Absent: ranks use what the host gives the agent.
    pub wish: Option<BindWish>,
    /// Tell what each rank may use, as it was found to be.
    pub report: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindWish {
    pub to: BindTo,
    pub cores_per_rank: u32,
    /// One on each NUMA node in turn.
    pub in_turn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindTo {
    /// Cores of a rank's own.
    Core,
    /// The cores of a NUMA node, shared by its ranks.
    Numa,
}

/// Of the whole job; a mapping that says how many cores a rank needs is the first program's.
pub(super) fn binding(options: &Options) -> Result<Binding, SettingsError> {
    let map = options.place.map_by.as_deref().map(MapWish::parse);
    let map = map.transpose()?.unwrap_or_default();
    let typed = whole("--cores-per-rank", options.place.cores_per_rank.as_deref())?;
    let cores = typed.or(map.cores_per_rank);
    let bind_to = options.place.bind_to.as_deref();
    let (bind_to, reports) = match bind_to.map(str::to_ascii_lowercase) {
        Some(text) => qualified(&text).map(|(to, reports)| (Some(to), reports))?,
        None => (None, false),
    };
    let wrong = |option, value: &str, problem| SettingsError::Value {
        option,
        value: value.to_owned(),
        problem,
    };
    if cores == Some(0) {
        return Err(wrong("--cores-per-rank", "0", "a rank needs a core"));
    }
    let to = match bind_to.as_deref() {
        Some("none") => None,
        Some("core") => Some(BindTo::Core),
        Some("numa" | "socket" | "package") => Some(BindTo::Numa),
        None => cores.map(|_| BindTo::Core),
        Some(other) => {
            let problem = match other {
                "hwthread" | "pu" => {
                    "expected none, core or numa\n\
                     hint: a rank gets whole cores, with all their threads: --bind-to core"
                }
                _ => "expected none, core or numa",
            };
            return Err(wrong("--bind-to", other, problem));
        }
    };
    if let (Some(cores), Some(BindTo::Numa)) = (cores, to) {
        let problem = "--bind-to numa gives a rank all cores of its NUMA node";
        return Err(wrong("--cores-per-rank", &cores.to_string(), problem));
    }
    Ok(Binding {
        wish: to.map(|to| BindWish {
            to,
            cores_per_rank: cores.unwrap_or(1),
            in_turn: map.by == MapBy::Numa,
        }),
        report: options.place.report_bindings || reports,
    })
}

/// mpirun's `core:overload-allowed,report`: what to bind to, and whether to report it. Where cores do
/// not suffice nobody is bound, and that is said; so what is allowed or supported need not be asked.
fn qualified(text: &str) -> Result<(String, bool), SettingsError> {
    let (to, qualifiers) = text.split_once(':').unwrap_or((text, ""));
    let mut reports = false;
    for qualifier in qualifiers.split([',', ':']).filter(|it| !it.is_empty()) {
        match qualifier {
            "report" => reports = true,
            "overload-allowed" | "no-overload" | "if-supported" => {}
            _ => {
                return Err(SettingsError::Value {
                    option: "--bind-to",
                    value: text.to_owned(),
                    problem: "only `if-supported`, `overload-allowed` and `report` stand behind `:`\n\
                              hint: --cores-per-rank N gives each rank N cores",
                });
            }
        }
    }
    Ok((to.to_owned(), reports))
}
