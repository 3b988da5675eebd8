//! The options of a host: one table for lines and for the TOML form.
//!
//! `-` and `_` are the same in a name. Synonyms are those of Open MPI's and Hydra's hostfiles.

use super::devices::{gpus, nics};
use super::line::Line;
use crate::spec::{self, SpecError};
use crate::text::{nearest, show};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Slots,
    MaxSlots,
    Port,
    User,
    Gpus,
    Nics,
    Python,
    Workdir,
}

/// A key, what it is called, its synonyms, and its form.
type Row = (Key, &'static str, &'static [&'static str], &'static str);

const TABLE: [Row; 8] = [
    (Key::Slots, "slots", &["count", "cpu", "cpus"], "slots=N"),
    (
        Key::MaxSlots,
        "max_slots",
        &[
            "slots_max",
            "max_count",
            "count_max",
            "max_cpu",
            "cpu_max",
            "max_cpus",
            "cpus_max",
        ],
        "max_slots=N",
    ),
    (
        Key::Port,
        "port",
        &["ssh_port"],
        "port=N with N from 1 to 65535",
    ),
    (Key::User, "user", &["username", "user_name"], "user=NAME"),
    (
        Key::Gpus,
        "gpus",
        &["gpu"],
        "gpus=0,1 or gpus=0-3 or gpus=GPU-UUID or gpus=none",
    ),
    (
        Key::Nics,
        "nics",
        &["nic"],
        "names of interfaces, such as nics=eth0,ib0",
    ),
    (Key::Python, "python", &[], "python=PATH"),
    (
        Key::Workdir,
        "workdir",
        &["wdir", "wd", "cwd", "chdir"],
        "workdir=DIR, a path from /",
    ),
];

pub(super) const OPTIONS_FORM: &str =
    "slots=N, max_slots=N, port=N, user=NAME, gpus=0,1, nics=eth0, python=PATH or workdir=DIR";

/// What an option was found to be wrong with, and what would be right.
pub(super) type Wrong = (SpecError, &'static str);

pub(super) fn find(name: &str) -> Option<Key> {
    let name = name.replace('-', "_");
    TABLE
        .iter()
        .find(|(_, own, synonyms, _)| *own == name || synonyms.contains(&name.as_str()))
        .map(|(key, ..)| *key)
}

/// How the option is written.
pub(super) fn form(key: Key) -> &'static str {
    row(key).3
}

fn row(key: Key) -> &'static Row {
    TABLE
        .iter()
        .find(|(own, ..)| *own == key)
        .expect("the table has every key")
}

/// Our own name of the option that was probably meant.
pub(super) fn probably(name: &str) -> Option<&'static str> {
    let own: Vec<&str> = TABLE.iter().map(|(_, own, ..)| *own).collect();
    nearest(&name.replace('-', "_"), &own)
}

/// Why there is no such option, and what to try.
pub(super) fn unknown(name: &str, value: &str) -> SpecError {
    let error = SpecError::new(0, format!("unknown option `{}`", show(name)));
    let value = show(value);
    match name.replace('-', "_").as_str() {
        "ncpus" | "np" | "ppn" | "nprocs" | "num_procs" => {
            error.hint(format!("did you mean slots={value}?"))
        }
        "binding" | "bind" => error.hint("binding is an option of the command line: --bind-to"),
        "boards" | "sockets" | "sockets_per_board" | "cores" | "cores_per_socket" | "rank" => {
            error.hint("leave it out: what a host consists of is found out there")
        }
        "ifhn" | "ifname" | "iface" | "interface" => {
            error.hint(format!("did you mean nics={value}?"))
        }
        "env" => error.hint("variables of one host stand in the TOML form, as [host.env]"),
        _ => match probably(name) {
            Some(option) => error.hint(format!("did you mean {option}={value}?")),
            None => error,
        },
    }
}

/// Sets the option `key`, written as `name`, to `value`, which stands at `offset` in its word.
pub(super) fn set(
    line: &mut Line,
    key: Key,
    name: &str,
    value: &str,
    offset: usize,
) -> Result<(), Wrong> {
    let &(_, own, _, form) = row(key);
    let wrong = |error: SpecError| (error, form);
    if value.is_empty() {
        let what = match key {
            Key::Slots | Key::MaxSlots | Key::Port => "number",
            _ => "value",
        };
        return Err((
            SpecError::new(0, format!("{name}= without a {what}")),
            OPTIONS_FORM,
        ));
    }
    if is_set(line, key) {
        let error = SpecError::new(0, format!("{own} is given twice for this host"));
        let expected = match key {
            Key::Slots => "slots once, as :N or slots=N; a port is port=N",
            Key::User => "one user, as user@ or user=NAME",
            _ => form,
        };
        return Err((error, expected));
    }
    match key {
        Key::Slots => line.slots = Some(spec::number(value, offset, name).map_err(wrong)?),
        Key::MaxSlots => line.max_slots = Some(spec::number(value, offset, name).map_err(wrong)?),
        Key::Port => line.port = Some(port(value, offset).map_err(wrong)?),
        Key::User => {
            let user = spec::user(value).map_err(|mut error| {
                error.offset += offset;
                wrong(error)
            })?;
            line.spec.user = Some(user);
        }
        Key::Gpus => line.details.gpus = Some(gpus(value, offset).map_err(wrong)?),
        Key::Nics => line.details.nics = nics(value, offset).map_err(wrong)?,
        Key::Python => line.details.python = Some(python(value, offset).map_err(wrong)?),
        Key::Workdir => line.details.directory = Some(directory(value, offset).map_err(wrong)?),
    }
    Ok(())
}

pub(super) fn is_set(line: &Line, key: Key) -> bool {
    match key {
        Key::Slots => line.slots.is_some(),
        Key::MaxSlots => line.max_slots.is_some(),
        Key::Port => line.port.is_some(),
        Key::User => line.spec.user.is_some(),
        Key::Gpus => line.details.gpus.is_some(),
        Key::Nics => !line.details.nics.is_empty(),
        Key::Python => line.details.python.is_some(),
        Key::Workdir => line.details.directory.is_some(),
    }
}

fn port(value: &str, offset: usize) -> Result<u16, SpecError> {
    let no_port = || SpecError::new(offset, format!("there is no port {value}"));
    // Of the same form as a number of slots, but another bound.
    match value.parse::<u32>() {
        Ok(number) => match u16::try_from(number) {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(no_port()),
        },
        Err(_) => Err(match spec::number(value, offset, "port") {
            Err(error) if !value.bytes().all(|byte| byte.is_ascii_digit()) => error,
            _ => no_port(),
        }),
    }
}

/// Longest path, as the kernel has it.
const PATH_MAX_BYTES: usize = 4096;

fn python(value: &str, offset: usize) -> Result<String, SpecError> {
    if value.starts_with('-') {
        let problem = "an interpreter can't begin with `-`";
        return Err(SpecError::new(offset, problem));
    }
    path(value, offset)
}

fn directory(value: &str, offset: usize) -> Result<String, SpecError> {
    if !value.starts_with('/') {
        let problem = format!("`{}` does not begin with /", show(value));
        return Err(SpecError::new(offset, problem));
    }
    path(value, offset)
}

fn path(value: &str, offset: usize) -> Result<String, SpecError> {
    if value.contains('\0') || value.len() > PATH_MAX_BYTES {
        return Err(SpecError::new(
            offset,
            format!("`{}` is no path", show(value)),
        ));
    }
    Ok(value.to_owned())
}
