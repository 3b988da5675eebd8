//! How a program starts on one host: the job's settings, and what the hostfile says of that host.
//!
//! The command line comes first (`--wdir`, `--python`, `-x`), then the host's own line, then what
//! holds for the job.

use std::path::{Path, PathBuf};

use rlaunch_control::v1;
use rlaunch_plan::details::HostDetails;
use rlaunch_plan::environment::{Variable, host_variables};

use crate::program::Program;
use crate::settings::ProgramSettings;

/// One program on one host.
pub(super) struct Start<'a> {
    settings: &'a ProgramSettings,
    details: &'a HostDetails,
}

impl<'a> Start<'a> {
    pub(super) fn new(settings: &'a ProgramSettings, details: &'a HostDetails) -> Self {
        Self { settings, details }
    }

    pub(super) fn directory(&self) -> PathBuf {
        match &self.details.directory {
            Some(own) if !self.settings.create_directory => Path::new(own).to_owned(),
            _ => self.settings.directory.clone(),
        }
    }

    /// The interpreter that somebody named: it is this one or none.
    pub(super) fn named_python(&self) -> Option<&str> {
        match &self.settings.program {
            Program::Python { named, .. } => named.as_deref().or(self.details.python.as_deref()),
            Program::Command(_) => None,
        }
    }

    /// What the host is asked for, before anything is decided.
    pub(super) fn asked(&self) -> v1::ProgramAsked {
        let python = match self.named_python() {
            Some(named) => named.to_owned(),
            None => self.settings.program.interpreter(),
        };
        v1::ProgramAsked {
            python,
            directory: self
                .directory()
                .into_os_string()
                .into_encoded_bytes()
                .into(),
        }
    }

    /// What the agent runs; `found` is the interpreter that it found.
    pub(super) fn python(&self, found: &str) -> Option<v1::PythonProgram> {
        if !matches!(self.settings.program, Program::Python { .. }) {
            return None;
        }
        // What the survey found is what is run; the name as typed where the agent searches PATH.
        let named = self.named_python();
        Some(v1::PythonProgram {
            interpreter: named.unwrap_or(found).to_owned(),
            required: named.is_some(),
        })
    }

    /// What differs from the program's other hosts.
    pub(super) fn host_variables(&self) -> Vec<Variable> {
        host_variables(self.details, &self.settings.overlay.exported)
    }

    /// All that its ranks get of the launcher.
    pub(super) fn environment(&self) -> Vec<Variable> {
        let mut variables = self.settings.overlay.variables.clone();
        for (name, value) in self.host_variables() {
            match variables.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => variables.push((name, value)),
            }
        }
        variables
    }
}
