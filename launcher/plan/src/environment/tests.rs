use super::*;
use crate::placement::{PlacementRequest, place};
use crate::{Allocation, allocation};

fn variables(pairs: &[(&str, &str)]) -> Vec<Variable> {
    pairs
        .iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect()
}

fn find<'a>(overlay: &'a Overlay, name: &str) -> Option<&'a [u8]> {
    let mut found = overlay
        .variables
        .iter()
        .filter(|(key, _)| key == name.as_bytes());
    let value = found.next().map(|(_, value)| value.as_slice());
    assert!(found.next().is_none(), "{name} twice");
    value
}

/// A pattern must not bring what belongs to one machine or task.
#[test]
fn patterns_choose_among_what_may_go() {
    let launcher = variables(&[
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_IB_HCA", "x"),
        ("CUDA_VISIBLE_DEVICES", "0"),
        ("SLURM_PROCID", "3"),
        ("OTHER", "1"),
    ]);
    let exports = ["NCCL_*", "CUDA_*", "SLURM_PROC?D", "NCCL_DEBUG=WARN"];
    let exports = exports.map(|word| Export::parse(word.as_bytes()).unwrap());
    let none = overlay(&launcher, EnvironmentPolicy::None, &exports);
    assert_eq!(find(&none, "NCCL_DEBUG"), Some(&b"WARN"[..]));
    assert_eq!(find(&none, "NCCL_IB_HCA"), Some(&b"x"[..]));
    for name in ["CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "OTHER"] {
        assert_eq!(find(&none, name), None, "{name}");
    }
    assert_eq!(none.missing, ["CUDA_*", "SLURM_PROC?D"]);
    let portable = overlay(&launcher, EnvironmentPolicy::Portable, &exports);
    assert_eq!(find(&portable, "OTHER"), Some(&b"1"[..]));
}

#[test]
fn what_belongs_to_this_machine_stays_here() {
    let launcher = variables(&[
        ("PATH", "/bin"),
        ("HOME", "/root"),
        ("XDG_RUNTIME_DIR", "/run"),
        ("SSH_AUTH_SOCK", "x"),
        ("DBUS_X", "y"),
        ("TMUX_PANE", "1"),
        ("CUDA_VISIBLE_DEVICES", "0"),
        ("WANDB_API_KEY", "k"),
        ("HOMEBREW", "1"),
        ("LANG", "C"),
    ]);
    let portable = overlay(&launcher, EnvironmentPolicy::Portable, &[]);
    let names: Vec<_> = portable
        .variables
        .iter()
        .map(|(name, _)| String::from_utf8_lossy(name))
        .collect();
    assert_eq!(
        names,
        [
            "PATH",
            "WANDB_API_KEY",
            "HOMEBREW",
            "LANG",
            "PYTHONUNBUFFERED",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING"
        ]
    );
    // Everyday names are not worth a note; a hidden GPU is.
    assert_eq!(portable.dropped.len(), 1);
    assert_eq!(portable.dropped[0].name, "CUDA_VISIBLE_DEVICES");
    let all = overlay(&launcher, EnvironmentPolicy::All, &[]);
    assert_eq!(find(&all, "HOME"), Some(&b"/root"[..]));
    assert!(all.dropped.is_empty() && !all.clear);
}

/// With an inherited RANK or SLURM_PROCID every rank would take itself for that one.
#[test]
fn another_launchers_task_is_dropped_and_noted() {
    let names = [
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_SIZE",
        "MASTER_ADDR",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_MCA_btl",
        "PMI_RANK",
        "PMIX_ID",
        "RLAUNCH_AGENT",
        "RLAUNCH_X",
        "SLURM_PROCID",
        "SLURM_STEP_ID",
        "TORCHELASTIC_RUN_ID",
        "SLURM_NTASKS",
    ];
    let launcher = variables(&names.map(|name| (name, "1")));
    for policy in [EnvironmentPolicy::Portable, EnvironmentPolicy::All] {
        let overlay = overlay(&launcher, policy, &[]);
        assert_eq!(overlay.variables.len(), 2, "the defaults alone");
        assert_eq!(overlay.dropped.len(), names.len());
    }
    let kept = [
        "SLURM_JOB_ID",
        "SLURM_JOB_NODELIST",
        "RLAUNCH_TRANSPORT",
        "RANKING",
        "NCCL_DEBUG",
    ];
    let overlay = overlay(
        &variables(&kept.map(|n| (n, "1"))),
        EnvironmentPolicy::Portable,
        &[],
    );
    assert_eq!(overlay.variables.len(), kept.len() + 2);
    assert!(overlay.dropped.is_empty());
}

#[test]
fn exports_win() {
    let launcher = variables(&[("HOME", "/root"), ("A", "1"), ("PYTHONUNBUFFERED", "")]);
    let exports: Vec<Export> = ["HOME", "A=2", "A=3", "NEW=x", "ABSENT"]
        .map(|word| Export::parse(word.as_bytes()).unwrap())
        .into();
    let portable = overlay(&launcher, EnvironmentPolicy::Portable, &exports);
    assert_eq!(find(&portable, "HOME"), Some(&b"/root"[..]));
    assert_eq!(find(&portable, "A"), Some(&b"3"[..]));
    assert_eq!(find(&portable, "NEW"), Some(&b"x"[..]));
    assert_eq!(find(&portable, "PYTHONUNBUFFERED"), Some(&b""[..]));
    assert_eq!(portable.missing, ["ABSENT"]);
    let none = overlay(&launcher, EnvironmentPolicy::None, &exports);
    assert!(none.clear);
    assert_eq!(none.variables.len(), 5);
    assert_eq!(find(&none, "PYTHONUNBUFFERED"), Some(&b"1"[..]));
    assert_eq!(
        find(&none, "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
        Some(&b"1"[..])
    );
}

/// DeepSpeed PR #5878, mpich#1463: values are bytes, not shell words.
#[test]
fn values_pass_byte_for_byte() {
    let value = b"64(x2) \"a b\" it's $HOME `id` \n\xff = \xc3\xa9".to_vec();
    let launcher = vec![
        (b"V".to_vec(), value.clone()),
        (b"BASH_FUNC_m%%".to_vec(), b"() { :; }".to_vec()),
        (b"BIG".to_vec(), vec![b'x'; 100_000]),
        (b"".to_vec(), b"no name".to_vec()),
    ];
    let overlay = overlay(&launcher, EnvironmentPolicy::Portable, &[]);
    assert_eq!(find(&overlay, "V"), Some(value.as_slice()));
    assert_eq!(overlay.variables.len(), 5);
}

#[test]
fn a_rank_is_told_who_it_is_in_every_dialect() {
    let list = allocation::parse_host_list("a:2,b:3").unwrap();
    let placement = place(
        &Allocation::from_list(&list),
        &[PlacementRequest::default()],
    )
    .unwrap();
    let master = Master {
        address: "10.0.0.1".into(),
        port: 4711,
    };
    let variables = rank_variables(
        &placement,
        3,
        &master,
        &[0xab; 16],
        Restarts { count: 2, max: 5 },
    );
    let value = |name: &str| {
        let mut found = variables.iter().filter(|(key, _)| key == name);
        let value = found
            .next()
            .unwrap_or_else(|| panic!("{name} is missing"))
            .1
            .as_str();
        assert!(found.next().is_none(), "{name} twice");
        value
    };
    for (name, expected) in [
        ("RANK", "3"),
        ("WORLD_SIZE", "5"),
        ("LOCAL_RANK", "1"),
        ("LOCAL_WORLD_SIZE", "3"),
        ("GROUP_RANK", "1"),
        ("GROUP_WORLD_SIZE", "2"),
        ("NODE_RANK", "1"),
        ("ROLE_RANK", "3"),
        ("ROLE_NAME", "default"),
        ("ROLE_WORLD_SIZE", "5"),
        ("MASTER_ADDR", "10.0.0.1"),
        ("MASTER_PORT", "4711"),
        ("TORCHELASTIC_RESTART_COUNT", "2"),
        ("TORCHELASTIC_MAX_RESTARTS", "5"),
        ("TORCHELASTIC_USE_AGENT_STORE", "False"),
        ("TORCHELASTIC_RUN_ID", "abababababababababababababababab"),
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "5"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
        ("OMPI_COMM_WORLD_NODE_RANK", "1"),
        ("MPI_LOCALRANKID", "1"),
        ("MPI_LOCALNRANKS", "3"),
        ("RLAUNCH_JOB_ID", "abababababababababababababababab"),
        ("RLAUNCH_APPNUM", "0"),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    // MPICH programs would look for a PMI server.
    assert!(variables.iter().all(|(name, _)| !name.starts_with("PMI")));
    // What a rank gets is never inherited from around the launcher, nor set by -x.
    for (name, _) in &variables {
        assert_eq!(
            names::drop_reason(name.as_bytes()),
            Some(DropReason::Rank),
            "{name}"
        );
    }
}

#[test]
fn a_setting_with_a_slip_in_its_name_is_told_as_such() {
    let own = [("RLAUNCH_TRANSPROT", "tcp"), ("RLAUNCH_TRANSPORT", "tcp")];
    let own = own.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    let overlay = overlay(&own, EnvironmentPolicy::Portable, &[]);
    assert_eq!(overlay.dropped.len(), 1);
    assert_eq!(overlay.dropped[0].name, "RLAUNCH_TRANSPROT");
    assert_eq!(overlay.dropped[0].reason, DropReason::Misspelt);
    assert!(overlay.variables.contains(&own[1]));
}
