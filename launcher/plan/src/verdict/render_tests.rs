use super::*;
use crate::verdict::{EarlierError, HostFate, LastLine, Printed, RankFate, Suspect};

fn verdict(cause: Cause, fates: &[Fate]) -> Verdict {
    let ranks = (0..).zip(fates).map(|(rank, &fate)| RankFate {
        rank,
        host: format!("n{}", rank / 2),
        pid: Some(100 + rank),
        fate,
        started_us: Some(0),
        ended_us: None,
    });
    Verdict {
        exit_code: 1,
        outcome: Outcome::Failed { cause },
        at: Moment {
            wall_us: 1_796_019_613_123_999,
            after_ms: 12_300,
        },
        findings: Findings::default(),
        why: None,
        program: None,
        limit_set_by: None,
        ranks: ranks.collect(),
        suspects: Vec::new(),
        left_early: Vec::new(),
        unconfirmed: Vec::new(),
        leftovers: Vec::new(),
        last_lines: Vec::new(),
        earlier_errors: Vec::new(),
    }
}

fn ended(ending: Ending) -> Cause {
    Cause::RankEnded {
        rank: 1,
        host: "n0".into(),
        pid: Some(101),
        ending,
        core_dumped: true,
    }
}

#[test]
fn a_killed_rank() {
    let killed = Fate::Ended(Ending::Signal(9));
    let term = Fate::Stopped(Ending::Signal(15));
    let mut verdict = verdict(
        ended(Ending::Signal(9)),
        &[term, killed, term, Fate::Unknown],
    );
    verdict.last_lines = vec![
        LastLine {
            stderr: false,
            text: "epoch 3\r\n".into(),
        },
        LastLine {
            stderr: true,
            text: "loading".into(),
        },
    ];
    verdict.unconfirmed = vec![HostFate {
        host: "n1".into(),
        kind: HostFateKind::Lost,
        detail: "connection reset".into(),
    }];
    assert_eq!(
        verdict.render(),
        "rlaunch: rank 1 on n0 (pid 101) was ended by SIGKILL and dumped core\n  \
         at 06:20:13 UTC, 12.3 s after its start\n  \
         last lines of rank 1:\n  | epoch 3\n  | loading\n  \
         the other 3 ranks: 0, 2 were ended by rlaunch; 3 is not confirmed to have ended\n  \
         n1 was lost (connection reset): what ran there ends when its agent sees that the \
         connection is gone, but nobody could confirm it\n\
         hint: somebody killed it: a person, a batch system, or the out-of-memory killer of the \
         machine around a container, which could not be asked (`dmesg` or `journalctl -k` there)\n\
         hint: `rlaunch reap -H n1` tells what is left there, once it can be reached\n"
    );
}

#[test]
fn hosts_that_nobody_could_confirm_are_looked_at_by_reap() {
    let mut verdict = verdict(ended(Ending::Code(3)), &[]);
    let fate = |host: &str| HostFate {
        host: host.into(),
        kind: HostFateKind::Unresponsive,
        detail: String::new(),
    };
    verdict.unconfirmed = ["n1", "me@n2", "n3 port 2222"].map(fate).into();
    let text = verdict.render();
    let command = "hint: `rlaunch reap -H n1,me@n2; rlaunch reap -H n3 --ssh-port 2222` tells";
    assert!(text.contains(command), "{text}");
}

#[test]
fn exit_codes_and_what_shells_mean_by_them() {
    let text = |code| verdict(ended(Ending::Code(code)), &[]).render();
    assert!(text(3).starts_with("rlaunch: rank 1 on n0 (pid 101) failed with exit code 3\n  at "));
    assert!(text(137).contains("a shell reports a child ended by SIGKILL"));
    assert!(text(127).contains("did not find a command"));
    assert!(text(255).contains("printed nothing"));
}

#[test]
fn what_could_not_be_started() {
    let cause = Cause::LaunchFailed {
        rank: 2,
        host: "n1".into(),
        what: "program".into(),
        path: "trian\n.py".into(),
        errno: 2,
        also: vec!["n2".into(), "n3".into()],
    };
    let mut verdict = verdict(cause, &[Fate::NeverStarted; 3]);
    verdict.ranks[2].started_us = None;
    let text = verdict.render();
    assert!(
        text.starts_with(
            "rlaunch: rank 2 could not be started on n1 (nor on n2, n3): program trian\\u{a}.py: \
             No such file or directory\n  at 06:20:13 UTC, 12.3 s after the job's start\n  the other 2 ranks (0, 1) never \
             started\nhint: give a"
        ),
        "{text}"
    );
}

#[test]
fn a_lost_host_names_its_ranks() {
    let lost = |kind, detail: &str| {
        let (host, detail) = ("n1".to_owned(), detail.to_owned());
        let cause = Cause::HostLost {
            host,
            ranks: vec![2, 3, 4],
            kind,
            detail,
            silent_ms: 8000,
        };
        verdict(cause, &[]).render()
    };
    assert!(
        lost(LossKind::Silent, "x")
            .starts_with("rlaunch: host n1 was lost with ranks 2-4: nothing heard for 8 s\n  at ")
    );
    assert!(lost(LossKind::Reset, "").contains("2-4: its connection ended\n"));
    assert!(lost(LossKind::Reset, "broken pipe").contains("its connection broke: broken pipe\n"));
}

#[test]
fn one_other_rank_is_singular() {
    let text = |fate| verdict(ended(Ending::Code(3)), &[fate, Fate::Unknown]).render();
    assert!(text(Fate::NeverStarted).contains("\n  the other rank (0) never started\n"));
    let killed = text(Fate::Stopped(Ending::Signal(9)));
    assert!(killed.contains("\n  the other rank (0) was killed by rlaunch (KILL)\n"));
}

#[test]
fn stops_from_outside() {
    let mut verdict = verdict(
        ended(Ending::Code(1)),
        &[Fate::Stopped(Ending::Signal(15)); 2],
    );
    verdict.outcome = Outcome::Interrupted { signal: 2 };
    assert_eq!(
        verdict.render(),
        "rlaunch: stopped by SIGINT\n  at 06:20:13 UTC, 12.3 s after the job's start\n  ranks 0, 1 were ended by rlaunch\n"
    );
    verdict.outcome = Outcome::TimedOut { timeout_ms: 1500 };
    assert!(
        verdict
            .render()
            .starts_with("rlaunch: the job did not end within 1.5 s (--timeout)\n")
    );
    verdict.limit_set_by = Some("rlaunch.toml:3".into());
    assert!(verdict.render().starts_with(
        "rlaunch: the job did not end within 1.5 s (--timeout, set by rlaunch.toml:3)\n"
    ));
    verdict.outcome = Outcome::Success;
    assert_eq!(verdict.render(), "");
    verdict.suspects = vec![Suspect {
        host: "n9".into(),
        silent_ms: 3000,
    }];
    verdict.left_early = vec![1];
    let text = verdict.render();
    assert!(text.contains("n9 had been silent for 3 s") && text.contains("without finalize"));
}

#[test]
fn a_verdict_is_data_too() {
    let json = verdict(ended(Ending::Signal(9)), &[Fate::NeverStarted]).to_json();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["outcome"]["outcome"], "failed");
    assert_eq!(value["outcome"]["cause"]["cause"], "rank_ended");
    assert_eq!(value["outcome"]["cause"]["ending"]["signal"], 9);
}

fn read(ending: Ending, findings: Findings, error: Option<&str>) -> Verdict {
    let stopped = Fate::Stopped(Ending::Signal(15));
    let mut verdict = verdict(ended(ending), &[stopped, Fate::Ended(ending)]);
    verdict.findings = findings;
    let at_us = verdict.at.wall_us;
    verdict.read(|rank| match rank {
        1 => Printed {
            error: error.map(|line| (line.to_owned(), at_us)),
            ..Printed::default()
        },
        _ => Printed {
            error: Some(("OSError: disk".into(), at_us - 400_000)),
            ..Printed::default()
        },
    });
    verdict
}

#[test]
fn evidence_stands_in_the_first_line() {
    let python = read(
        Ending::Code(1),
        Findings::default(),
        Some("ValueError: bad\u{7}"),
    );
    let expected = "failed with exit code 1: ValueError: bad\\u{7}\n";
    assert!(python.render().contains(expected), "{}", python.render());
    assert!(!python.render().contains("hint: "), "{}", python.render());
    let found = OutOfMemory {
        victim: Victim::Group,
        limit_bytes: Some(20 << 20),
    };
    let findings = Findings {
        oom: Some(found),
        ..Findings::default()
    };
    let killed = read(Ending::Signal(9), findings.clone(), None).render();
    let expected = "SIGKILL and dumped core: out of memory, by the kernel (limit of its control \
                    group: 20 MiB)\n";
    assert!(killed.contains(expected), "{killed}");
    let worker = read(Ending::Code(1), findings, Some("RuntimeError: worker")).render();
    assert!(worker.contains("1: RuntimeError: worker\n"), "{worker}");
    assert!(
        worker.contains("killed a process of the job there"),
        "{worker}"
    );
}

/// Rank 0 failed and hung in its own end; rank 1 failed by that.
#[test]
fn an_error_that_came_before_is_told() {
    let mut verdict = read(Ending::Code(1), Findings::default(), Some("Error: peer"));
    verdict.program = Some("program 1 (b.py)".into());
    let expected = EarlierError {
        rank: 0,
        host: "n0".into(),
        line: "OSError: disk".into(),
        before_ms: 400,
    };
    assert_eq!(verdict.earlier_errors, [expected]);
    let text = verdict.render();
    let which = "12.3 s after its start; program 1 (b.py)\n";
    assert!(text.contains(which), "{text}");
    let line = "rank 0 on n0 had printed 400 ms before: OSError: disk\n";
    assert!(text.contains(line), "{text}");
}

/// EgoVerse#682: workers of an earlier job hold the GPU.
#[test]
fn who_holds_a_gpu_is_told_where_it_matters() {
    let holder = |pid| crate::verdict::DeviceHolder {
        pid,
        command: "pt_data_worker".into(),
        devices: vec!["/dev/nvidia0".into()],
    };
    let findings = |pids: &[u32]| Findings {
        device_holders: pids.iter().copied().map(holder).collect(),
        ..Findings::default()
    };
    let error = "torch.OutOfMemoryError: CUDA out of memory";
    let text = read(Ending::Code(1), findings(&[77]), Some(error)).render();
    let line = "  pid 77 there, not of this job, holds /dev/nvidia0: pt_data_worker\n";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("hint: if nobody needs it any more, `kill 77` there"),
        "{text}"
    );
    let many = read(Ending::Code(1), findings(&[1, 2, 3, 4, 5]), Some(error)).render();
    assert!(many.contains("  and 2 more\n"), "{many}");
    let other = read(Ending::Code(1), findings(&[77]), Some("ValueError: bad")).render();
    assert!(!other.contains("nvidia"), "{other}");
}
