//! Open MPI and MPICH, from the Python packages that carry them: the same versions everywhere, and
//! nothing installed into the system.

use super::timed;
use crate::{paths, python_env, sh};
use std::path::PathBuf;
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    OpenMpi,
    Mpich,
}

/// An installed peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) kind: Kind,
    pub(super) version: String,
    folder: PathBuf,
}

impl Peer {
    /// Installs what is missing, in the cache folder.
    pub(super) fn ensure(kind: Kind) -> Result<Self, String> {
        let package = match kind {
            Kind::OpenMpi => "openmpi",
            Kind::Mpich => "mpich",
        };
        let base = python_env::base_python()?;
        let folder = paths::cache().join(format!("peers/{package}-{}", base.version));
        let mut peer = Self {
            kind,
            version: String::new(),
            folder,
        };
        if !peer.program("mpicc").exists() {
            eprintln!("x bench: installing {package} in {}", peer.folder.display());
            python_env::create(&base, &peer.folder)?;
            python_env::pip_install(&peer.program("python"), &[package])?;
        }
        let text = sh::output(&mut peer.version_command())?;
        let version = text.split_whitespace().find(|word| word.contains('.'));
        peer.version = version.unwrap_or("of unknown version").to_owned();
        Ok(peer)
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::OpenMpi => "Open MPI",
            Kind::Mpich => "MPICH",
        }
    }

    /// `mpirun` or `mpiexec`.
    pub(super) fn launcher(&self) -> PathBuf {
        match self.kind {
            Kind::OpenMpi => self.program("mpirun"),
            Kind::Mpich => self.program("mpiexec"),
        }
    }

    /// The launcher's command line up to the program.
    pub(super) fn launch(&self, ranks: usize) -> Command {
        let mut command = Command::new(self.launcher());
        command.args(["-np", &ranks.to_string()]);
        if self.kind == Kind::OpenMpi {
            command.arg("--allow-run-as-root");
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            if ranks > cores {
                command.arg("--oversubscribe");
            }
        }
        command
    }

    /// Compiles runtime/perf/peers/allreduce.c, if it is newer than what stands.
    pub(super) fn all_reduce(&self) -> Result<PathBuf, String> {
        let source = paths::root().join("runtime/perf/peers/allreduce.c");
        let program = self.folder.join("rlaunch-bench-allreduce");
        let modified = |path| {
            std::fs::metadata(path)
                .and_then(|file| file.modified())
                .ok()
        };
        if modified(&program) < modified(&source) {
            let mut compiler = Command::new(self.program("mpicc"));
            sh::run(compiler.args(["-O3", "-o"]).arg(&program).arg(&source))?;
        }
        Ok(program)
    }

    /// Microseconds of an all_reduce of `bytes` bytes.
    pub(super) fn time_us(
        &self,
        program: &PathBuf,
        ranks: usize,
        bytes: u64,
        iterations: u64,
        warmups: u64,
    ) -> Result<f64, String> {
        let mut command = self.launch(ranks);
        command.arg(program);
        command.args([bytes, iterations, warmups].map(|number| number.to_string()));
        let text = timed::output(&mut command)?;
        let line = text.lines().last().unwrap_or_default();
        line.trim()
            .parse()
            .map_err(|_| format!("{} printed no time: `{line}`", self.name()))
    }

    fn version_command(&self) -> Command {
        match self.kind {
            Kind::OpenMpi => {
                let mut command = Command::new(self.program("mpirun"));
                command.arg("--version");
                command
            }
            Kind::Mpich => Command::new(self.program("mpichversion")),
        }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }
}
