//! Open MPI and MPICH, from the Python packages that carry them: the same versions everywhere, and
//! nothing installed into the system.

use crate::{paths, python_env, sh};
use std::path::{Path, PathBuf};
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

    /// The launcher's command line up to the program. With `is_tcp` ranks of this machine talk
    /// over loopback instead of shared memory.
    pub(super) fn launch(&self, ranks: usize, is_tcp: bool) -> Command {
        let mut command = Command::new(self.launcher());
        command.args(["-np", &ranks.to_string()]);
        match self.kind {
            Kind::OpenMpi => {
                command.arg("--allow-run-as-root");
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                if ranks > cores {
                    command.arg("--oversubscribe");
                }
                if is_tcp {
                    command.args(["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]);
                    command.args(["--mca", "btl_tcp_if_include", "lo"]);
                }
            }
            Kind::Mpich if is_tcp => {
                // UCX won't take the loopback interface; its own host's address is as near.
                command.envs([("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "tcp,self")]);
            }
            Kind::Mpich => {}
        }
        command
    }

    /// Compiles a program of runtime/perf/peers, if it is newer than what stands.
    pub(super) fn compile(&self, name: &str) -> Result<PathBuf, String> {
        let source = paths::root().join(format!("runtime/perf/peers/{name}.c"));
        let program = self.folder.join(format!("rlaunch-bench-{name}"));
        if is_older(&program, &source) {
            let mut compiler = Command::new(self.program("mpicc"));
            sh::run(compiler.args(["-O3", "-o"]).arg(&program).arg(&source))?;
        }
        Ok(program)
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

/// Whether a built file is missing or older than its source.
pub(super) fn is_older(built: &Path, source: &Path) -> bool {
    let modified = |path: &Path| {
        std::fs::metadata(path)
            .and_then(|file| file.modified())
            .ok()
    };
    modified(built) < modified(source)
}
