//! Who this rank is and how it finds the others, as read from the environment or given by hand.

use std::path::PathBuf;
use std::{env, time::Duration};

use rlaunch_schedule::Numbers;
use rlaunch_transport::tcp::TcpOptions;
use rlaunch_wire::environment;
use rlaunch_wire::setting::misspelt;

use crate::launchers::{self, Place};
use crate::{Error, RecorderSettings};

/// What a call may wait for its peers when RLAUNCH_TIMEOUT is not set. Long, since ranks legally
/// drift apart (loading data, checkpoints); a dead peer is found within seconds regardless.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(1800);
/// What init may wait for all ranks when RLAUNCH_INIT_TIMEOUT is not set.
pub const INIT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(300);

/// How ranks find each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendezvous {
    /// This rank is the world.
    Alone,
    /// The agent that started this rank; its abstract socket's name.
    Agent { socket: String },
    /// Rank 0 listens on this host, the others connect there.
    Star {
        address: String,
        /// Tried in order; rank 0 takes the first that is free. Never MASTER_PORT itself.
        ports: Vec<u16>,
        /// Tells this job's rank 0 from another's.
        run_id: String,
        /// Proven by both sides of each connection; without it anyone who knows `run_id` and
        /// reaches the port can join.
        secret: Option<String>,
    },
}

/// Transports that this rank may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transports {
    pub shm: bool,
    pub tcp: bool,
}

/// All that a world is made from.
#[derive(Debug, Clone)]
pub struct Config {
    pub rank: u32,
    pub world_size: u32,
    /// As the launcher counted it; else found from who shares this host.
    pub local_rank: Option<u32>,
    pub local_size: Option<u32>,
    pub rendezvous: Rendezvous,
    pub transports: Transports,
    /// Whether ranks of one host read and write each other's memory, where the kernel lets them; else
    /// data goes through what they share of it. `None`: where that is known to be faster, which is
    /// between two with a core each.
    pub single_copy: Option<bool>,
    pub timeout: Duration,
    pub init_timeout: Duration,
    pub recorder: RecorderSettings,
    /// Which algorithms may run: [`rlaunch_schedule::Preference`] has the grammar.
    pub algorithm: Option<String>,
    /// What `rperf --tune` wrote of this machine; equal on all ranks.
    pub tune_file: Option<PathBuf>,
    /// How exact sums are; equal on all ranks.
    pub numbers: Numbers,
    /// Ranks of one host with different names here count as of different hosts: they share no
    /// memory. For several jobs' worth of isolation, and to try several hosts on one.
    pub host_id: Option<String>,
    pub tcp: TcpOptions,
}

impl Config {
    /// A world of one rank.
    pub fn alone() -> Self {
        Self {
            rank: 0,
            world_size: 1,
            local_rank: None,
            local_size: None,
            rendezvous: Rendezvous::Alone,
            transports: Transports {
                shm: true,
                tcp: true,
            },
            single_copy: None,
            timeout: TIMEOUT_DEFAULT,
            init_timeout: INIT_TIMEOUT_DEFAULT,
            recorder: RecorderSettings::default(),
            algorithm: None,
            tune_file: None,
            numbers: Numbers::default(),
            host_id: None,
            tcp: TcpOptions::default(),
        }
    }

    /// Reads what launchers set: rlaunch, torchrun, mpirun, mpiexec, srun, or a person; else a world
    /// of one. `launchers.rs` has the rules.
    pub fn from_environment() -> Result<Self, Error> {
        let read = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let config = Self::read(&read, launchers::hydra_proxy)?;
        if config.rank == 0 {
            tell_of_slips();
        }
        Ok(config)
    }

    /// The same from any source of variables; pure.
    pub fn from_variables(read: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        Self::read(&read, || None)
    }

    fn read(
        read: &impl Fn(&str) -> Option<String>,
        hydra: impl Fn() -> Option<u32>,
    ) -> Result<Self, Error> {
        let mut config = Self::alone();
        let seconds = |name: &str, default: Duration| -> Result<Duration, Error> {
            let Some(text) = read(name) else {
                return Ok(default);
            };
            let value = text.trim().parse().ok().and_then(seconds);
            value.ok_or_else(|| {
                Error::Init(format!(
                    "{name}={text:?} is not a number of seconds above 0 (`inf` for no limit)"
                ))
            })
        };
        config.timeout = seconds(environment::RLAUNCH_TIMEOUT, TIMEOUT_DEFAULT)?;
        config.init_timeout = seconds(environment::RLAUNCH_INIT_TIMEOUT, INIT_TIMEOUT_DEFAULT)?;
        config.algorithm = read(environment::RLAUNCH_ALGO);
        config.tune_file = read(environment::RLAUNCH_TUNE_FILE).map(PathBuf::from);
        config.numbers = Numbers {
            precise: switch(read, environment::RLAUNCH_PRECISE)?.unwrap_or(false),
            deterministic: switch(read, environment::RLAUNCH_DETERMINISTIC)?.unwrap_or(false),
        };
        config.single_copy = switch(read, environment::RLAUNCH_SINGLE_COPY)?;
        config.host_id = read(environment::RLAUNCH_HOST_ID);
        config.recorder = RecorderSettings::parse(
            read(environment::RLAUNCH_RECORDER_SIGNAL).as_deref(),
            read(environment::RLAUNCH_RECORDER_FILE),
        )?;
        config.tcp = TcpOptions::from_variables(read).map_err(Error::Init)?;
        if let Some(text) = read(environment::RLAUNCH_TRANSPORT) {
            config.transports = Transports::parse(&text)?;
        }
        if let Some(place) = launchers::place(read)? {
            (config.rank, config.world_size) = (place.rank, place.size);
            (config.local_rank, config.local_size) = (place.local_rank, place.local_size);
            config.rendezvous = rendezvous(&place, read, hydra)?;
        }
        Ok(config)
    }
}

/// A setting that nobody reads is told, by one rank.
fn tell_of_slips() {
    use std::os::unix::ffi::OsStrExt;
    for (name, _) in env::vars_os() {
        if let Some(text) = misspelt(name.as_bytes()) {
            rlaunch_transport::say(format_args!("rlaunch: {text}"));
        }
    }
}

/// A limit in seconds, as users give it: more than 0. Infinity is none, and nor is what is longer than
/// any program runs. `None` for what is no limit at all.
pub fn seconds(value: f64) -> Option<Duration> {
    /// Over thirty years; clocks can be added to it.
    const LONGEST: f64 = 1e9;
    let shortest = Duration::from_nanos(1).as_secs_f64();
    (value > 0.0).then(|| Duration::from_secs_f64(value.clamp(shortest, LONGEST)))
}

fn switch(read: &impl Fn(&str) -> Option<String>, name: &str) -> Result<Option<bool>, Error> {
    match read(name).as_deref().map(str::trim) {
        None => Ok(None),
        Some("0") => Ok(Some(false)),
        Some("1") => Ok(Some(true)),
        Some(text) => Err(Error::Init(format!("{name}={text:?} is not 0 or 1"))),
    }
}

impl Transports {
    /// `shm,tcp`
    fn parse(text: &str) -> Result<Self, Error> {
        let mut transports = Self {
            shm: false,
            tcp: false,
        };
        for word in text.split(',').map(str::trim) {
            match word {
                "shm" => transports.shm = true,
                "tcp" => transports.tcp = true,
                _ => {
                    return Err(Error::Init(format!(
                        "{}={text:?}: {word:?} is no transport; there are shm and tcp",
                        environment::RLAUNCH_TRANSPORT
                    )));
                }
            }
        }
        Ok(transports)
    }
}

fn rendezvous(
    place: &Place,
    read: &impl Fn(&str) -> Option<String>,
    hydra: impl Fn() -> Option<u32>,
) -> Result<Rendezvous, Error> {
    if let Some(socket) = read(environment::RLAUNCH_AGENT) {
        return Ok(Rendezvous::Agent { socket });
    }
    let run = place.is_foreign.then(|| launchers::run_name(read, hydra));
    let run = run.flatten();
    let address = match read(environment::MASTER_ADDR) {
        Some(address) => address,
        None if place.size == 1 => return Ok(Rendezvous::Alone),
        None if place.is_foreign => launchers::address(place, read)?,
        None => {
            return Err(Error::Init(format!(
                "WORLD_SIZE={}, but neither RLAUNCH_AGENT nor MASTER_ADDR is set; start \
                 with rlaunch or torchrun, or set MASTER_ADDR and MASTER_PORT on every rank",
                place.size
            )));
        }
    };
    let master_port = launchers::number(read, environment::MASTER_PORT)?;
    let own_port = launchers::number(read, environment::RLAUNCH_PORT)?;
    let range = &TcpOptions::from_variables(read).map_err(Error::Init)?.ports;
    let ports = match (own_port, master_port, &run) {
        (Some(port), _, _) => vec![port_number(environment::RLAUNCH_PORT, port)?],
        (None, ..) if range.is_some() => range.iter().cloned().flatten().take(TRIED_MAX).collect(),
        (None, Some(master), _) => derived_ports(port_number(environment::MASTER_PORT, master)?),
        (None, None, Some(run)) => derived_ports(launchers::port_of(run)),
        (None, None, None) => {
            return Err(Error::Init(format!(
                "rank 0 is at {address}, but neither MASTER_PORT nor RLAUNCH_PORT says at which \
                 port; give every rank one of them"
            )));
        }
    };
    // What all ranks of one run share and another run on the same address does not.
    let run_id = [
        environment::RLAUNCH_JOB_ID,
        environment::TORCHELASTIC_RUN_ID,
    ]
    .into_iter()
    .chain([environment::TORCHELASTIC_RESTART_COUNT])
    .filter_map(|name| read(name).map(|value| format!("{name}={value};")))
    .chain(run.map(|run| format!("{run};")))
    .collect::<String>()
        + &format!("{address}:{};{}", master_port.unwrap_or(0), place.size);
    Ok(Rendezvous::Star {
        address,
        ports,
        run_id,
        secret: read(environment::RLAUNCH_SECRET),
    })
}

fn port_number(name: &str, value: u32) -> Result<u16, Error> {
    match u16::try_from(value) {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(Error::Init(format!(
            "{name}={value} is not a port (1 to 65535)"
        ))),
    }
}

/// Ports of a range that are tried for rank 0; each costs those who look for it a look.
const TRIED_MAX: usize = 64;

/// Ports beside MASTER_PORT, which itself belongs to torch's store.
fn derived_ports(master: u16) -> Vec<u16> {
    const TRIED: u16 = 16;
    const LOWEST: u16 = 1024;
    (1..=TRIED)
        .map(|step| {
            let port = u32::from(master) + u32::from(step);
            // Past the end the count goes on from the unprivileged start.
            u16::try_from(port).unwrap_or_else(|_| (port - 65_536) as u16 + LOWEST)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> Result<Config, Error> {
        Config::from_variables(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn nothing_set_is_a_world_of_one() {
        let config = parse(&[]).unwrap();
        assert_eq!((config.rank, config.world_size), (0, 1));
        assert_eq!(config.rendezvous, Rendezvous::Alone);
    }

    #[test]
    fn master_port_itself_is_never_a_candidate() {
        for master in [1, 29_500, 65_520, 65_535] {
            assert!(!derived_ports(master).contains(&master));
        }
    }

    #[test]
    fn agent_comes_before_master() {
        let config = parse(&[
            ("RANK", "1"),
            ("WORLD_SIZE", "2"),
            ("RLAUNCH_AGENT", "x"),
            ("MASTER_ADDR", "h"),
        ]);
        assert_eq!(
            config.unwrap().rendezvous,
            Rendezvous::Agent { socket: "x".into() }
        );
    }

    #[test]
    fn limits_in_seconds() {
        let (short, no_limit) = (seconds(1e-300).unwrap(), seconds(f64::INFINITY).unwrap());
        assert!(short > Duration::ZERO && no_limit > Duration::from_secs(900_000_000));
        assert_eq!(seconds(1e300), Some(no_limit));
        assert_eq!(seconds(1.5), Some(Duration::from_millis(1500)));
        for wrong in [0.0, -0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(seconds(wrong), None);
        }
        let config = parse(&[("RLAUNCH_TIMEOUT", "inf")]).unwrap();
        assert_eq!(config.timeout, no_limit);
    }

    #[test]
    fn wrong_values_are_named() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("RANK", "x"), ("WORLD_SIZE", "2")], "RANK"),
            (&[("RANK", "2"), ("WORLD_SIZE", "2")], "outside"),
            (&[("RANK", "0"), ("WORLD_SIZE", "2")], "MASTER_ADDR"),
            (&[("WORLD_SIZE", "2")], "RANK is not"),
            (&[("RLAUNCH_TRANSPORT", "shm,foo")], "foo"),
            (&[("RLAUNCH_TIMEOUT", "-1")], "RLAUNCH_TIMEOUT"),
            (&[("RLAUNCH_PRECISE", "yes")], "RLAUNCH_PRECISE"),
        ];
        for (variables, expected) in cases {
            let text = parse(variables).unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
