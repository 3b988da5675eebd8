//! A python with numpy, for the demo and the tests.

use crate::sh;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A virtual environment with numpy under `cache_dir`; returns its python. Quick when it stands.
///
/// The caller's python gets nothing installed. Its version is part of the folder's name: an upgrade
/// makes a new environment.
pub fn ensure(cache_dir: &Path) -> Result<PathBuf, String> {
    let base = base_python()?;
    let venv = cache_dir.join(format!("python-{}", base.version));
    let python = venv.join("bin/python");
    if imports(&python, "numpy") {
        return Ok(python);
    }
    eprintln!("x: setting up numpy in {}", venv.display());
    create(&base, &venv)?;
    pip_install(&python, &["numpy"])?;
    if imports(&python, "numpy") {
        return Ok(python);
    }
    Err(format!(
        "numpy was installed in {} and cannot be imported\nhint: remove the folder, try again",
        venv.display()
    ))
}

/// Adds modules that some tests use and others do without. Tests skip what is not there.
pub fn add(python: &Path, modules: &[(&str, &str)]) {
    let lacking = modules
        .iter()
        .filter(|(module, _)| !imports(python, module));
    let packages: Vec<&str> = lacking.map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return;
    }
    if let Err(error) = pip_install(python, &packages) {
        eprintln!(
            "x test: SKIPPED what needs {}: {error}",
            packages.join(", ")
        );
    }
}

/// The python that environments are made from.
pub struct BasePython {
    program: String,
    /// As in folders' names: `3.11`.
    pub version: String,
}

/// `$PYTHON`, else `python3`.
pub fn base_python() -> Result<BasePython, String> {
    let program = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let question = "import sys; print('%d.%d' % sys.version_info[:2])";
    let answer = sh::output(Command::new(&program).args(["-c", question]))
        .map_err(|error| format!("{error}\nhint: install Python 3.9 or later, or set PYTHON"))?;
    let version = answer.trim().to_owned();
    let minor = version
        .strip_prefix("3.")
        .and_then(|minor| minor.parse::<u32>().ok());
    match minor {
        Some(9..) => Ok(BasePython { program, version }),
        _ => Err(format!(
            "{program} is Python {version}; 3.9 or later is needed\nhint: set PYTHON"
        )),
    }
}

/// Makes an environment. Debian splits venv's own pip off: then the base's pip serves, or
/// virtualenv if somebody installed it.
pub fn create(base: &BasePython, venv: &Path) -> Result<(), String> {
    let made = run_quietly(Command::new(&base.program).args(["-m", "venv"]).arg(venv));
    let Err(error) = made else { return Ok(()) };
    run_quietly(
        Command::new(&base.program)
            .args(["-m", "virtualenv", "--quiet"])
            .arg(venv),
    )
    .map_err(|_| {
        format!("{error}\nhint: install the package python3-venv (Debian, Ubuntu), try again")
    })
}

/// Installs by name, with no files of bytecode and no cache: half the time of pip's defaults.
pub fn pip_install(python: &Path, arguments: &[&str]) -> Result<(), String> {
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
    ];
    sh::run(Command::new(python).args(pip).args(arguments)).map_err(|error| {
        format!("{error}\nhint: is there a network, or a mirror in pip's settings?")
    })
}

/// Does this python exist and have the module?
pub fn imports(python: &Path, module: &str) -> bool {
    python.exists()
        && Command::new(python)
            .arg("-c")
            .arg(format!("import {module}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}

/// For a first try that may fail: its words go into the error, not on the screen.
fn run_quietly(command: &mut Command) -> Result<(), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let mut words = String::from_utf8_lossy(&output.stdout).into_owned();
    words.push_str(&String::from_utf8_lossy(&output.stderr));
    Err(format!("python -m venv failed: {}", words.trim()))
}
