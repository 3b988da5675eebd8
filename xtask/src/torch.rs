//! A python with torch for CPU tests, installed the lean way.
//!
//! torch's package asks for 3.5 GB of CUDA libraries. Its CPU part needs none of them: torch is
//! installed without its dependencies, the small ones are named here, and tests/torch/stubs.py
//! writes libraries of the missing names. 1.3 GB on disk instead of 5.3.

use crate::{paths, python_env, sh};
use std::path::{Path, PathBuf};
use std::process::Command;

const TORCH: &str = "torch==2.15.0";
/// What `import torch` and torch.distributed import, and what the examples do.
const DEPENDENCIES: &[&str] = &[
    "typing-extensions",
    "filelock",
    "sympy",
    "networkx",
    "jinja2",
    "MarkupSafe",
    "mpmath",
    "fsspec",
    "packaging",
    "setuptools>=77.0.3",
    "numpy",
];

/// A virtual environment with torch and numpy under `cache_dir`; returns its python. Quick when it
/// stands: the folder's `installed` file names what is in it.
pub fn ensure(cache_dir: &Path) -> Result<PathBuf, String> {
    let base = python_env::base_python()?;
    let venv = cache_dir.join(format!("torch-{}", base.version));
    let python = venv.join("bin/python");
    let mark = venv.join("installed");
    if python.exists() && std::fs::read_to_string(&mark).is_ok_and(|words| words == TORCH) {
        return Ok(python);
    }
    eprintln!(
        "x: setting up {TORCH} in {} (540 MB to download)",
        venv.display()
    );
    install(&base, &venv, &python).map_err(|error| {
        format!(
            "{error}\nhint: {TORCH} could not be set up in {}",
            venv.display()
        )
    })?;
    std::fs::write(&mark, TORCH).map_err(|error| format!("{}: {error}", mark.display()))?;
    Ok(python)
}

fn install(base: &python_env::BasePython, venv: &Path, python: &Path) -> Result<(), String> {
    python_env::create(base, venv)?;
    python_env::pip_install(python, &["--no-cache-dir", "--no-deps", TORCH])?;
    let small = [&["--no-deps"], DEPENDENCIES].concat();
    python_env::pip_install(python, &small)?;
    let stubs = paths::root().join("tests/torch/stubs.py");
    sh::output(Command::new(python).arg(stubs).arg(site_packages(python)?))?;
    let proof = "import torch, torch.distributed as d; assert d.is_gloo_available()";
    sh::run(Command::new(python).args(["-c", proof]))
}

fn site_packages(python: &Path) -> Result<String, String> {
    let question = "import sysconfig; print(sysconfig.get_path('platlib'))";
    let answer = sh::output(Command::new(python).args(["-c", question]))?;
    Ok(answer.trim().to_owned())
}
