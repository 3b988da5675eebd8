//! The main job: training over four hosts walks the same path as training on one rank.

use crate::common::{cluster_with, module, python, run_well, share_python};
use std::path::Path;

/// Relative; ranks add their gradients in another order than one rank does.
const TOLERANCE: f64 = 1e-5;

/// Eight ranks on four hosts give the losses of one rank, and the same weights on every rank.
#[test]
fn eight_ranks_on_four_hosts() {
    let Some(python) = python() else { return };
    if module().is_none() {
        return;
    }
    let Some(cluster) = cluster_with(4, |options| share_python(options, &python)) else {
        return;
    };
    let python = python.to_str().expect("a path in UTF-8");
    let train = |np: &str| {
        let words = [
            "-np",
            np,
            "-hostfile",
            "hosts",
            "--python",
            python,
            "examples/train.py",
            "--json",
            "--epochs",
            "5",
        ];
        let finished = run_well(&cluster, &words);
        let last = finished
            .stdout
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        serde_json::from_str::<serde_json::Value>(&last)
            .unwrap_or_else(|error| panic!("{error}: {}", finished.report()))
    };
    let (one, eight) = (train("1"), train("8"));
    let losses = |result: &serde_json::Value| -> Vec<f64> {
        let losses = result["losses"].as_array().expect("a list of losses");
        losses
            .iter()
            .map(|loss| loss.as_f64().expect("a number"))
            .collect()
    };
    let (one_losses, eight_losses) = (losses(&one), losses(&eight));
    assert_eq!(one_losses.len(), 5);
    for (one, eight) in one_losses.iter().zip(&eight_losses) {
        assert!(
            (one - eight).abs() <= TOLERANCE * one.abs(),
            "{one_losses:?} {eight_losses:?}"
        );
    }
    assert_eq!(eight["ranks"], 8);
    assert_eq!(eight["weights_identical"], true, "{eight}");
    println!(
        "loss {:.6} after 5 epochs on 8 ranks, accuracy {}",
        eight_losses[4], eight["accuracy"]
    );
}

/// An unmodified torch script over two hosts: torch's own store and gloo meet at our MASTER_ADDR
/// and MASTER_PORT, past the decoys.
#[test]
fn torch_over_two_hosts() {
    let Some(torch) = std::env::var_os("RLAUNCH_TEST_TORCH") else {
        eprintln!("SKIPPED: RLAUNCH_TEST_TORCH names no python with torch");
        return;
    };
    let torch = Path::new(&torch);
    let Some(cluster) = cluster_with(2, |options| share_python(options, torch)) else {
        return;
    };
    let python = torch.to_str().expect("a path in UTF-8");
    let words = [
        "-np",
        "2",
        "-H",
        "node1,node2",
        "--python",
        python,
        "examples/ddp_train.py",
        "--json",
        "--epochs",
        "2",
    ];
    let finished = run_well(&cluster, &words);
    let last = finished.stdout.lines().last().unwrap_or_default();
    let result: serde_json::Value =
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", finished.report()));
    assert_eq!(
        (&result["ranks"], &result["weights_identical"]),
        (&2.into(), &true.into())
    );
    println!("torch: {last}");
}
