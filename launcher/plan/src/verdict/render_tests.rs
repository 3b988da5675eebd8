use super::*;
use crate::verdict::{HostFate, LastLine, RankFate, Suspect};

fn verdict(cause: Cause, fates: &[Fate]) -> Verdict {
    let ranks = (0..).zip(fates).map(|(rank, &fate)| RankFate {
        rank,
        host: format!("n{}", rank / 2),
        pid: Some(100 + rank),
        fate,
    });
    Verdict {
        exit_code: 1,
        outcome: Outcome::Failed { cause },
        ranks: ranks.collect(),
        suspects: Vec::new(),
        left_early: Vec::new(),
        unconfirmed: Vec::new(),
        leftovers: Vec::new(),
        last_lines: Vec::new(),
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
         last lines of rank 1:\n  | epoch 3\n  | loading\n  \
         the other 3 ranks: 0, 2 were ended by rlaunch; 3 is not confirmed to have ended\n  \
         n1 was lost (connection reset): what ran there ends when its agent sees that the \
         connection is gone, but nobody could confirm it\n\
         hint: often the out-of-memory killer: see `dmesg` or `journalctl -k` on that host, or a \
         batch system's memory limit\n"
    );
}

#[test]
fn exit_codes_and_what_shells_mean_by_them() {
    let text = |code| verdict(ended(Ending::Code(code)), &[]).render();
    assert!(text(3).starts_with("rlaunch: rank 1 on n0 (pid 101) failed with exit code 3\nhint: "));
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
    let text = verdict(cause, &[Fate::NeverStarted; 3]).render();
    assert!(
        text.starts_with(
            "rlaunch: rank 2 could not be started on n1 (nor on n2, n3): program trian\\u{a}.py: \
             No such file or directory\n  the other 2 ranks (0, 1) never started\nhint: give a"
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
            .starts_with("rlaunch: host n1 was lost with ranks 2-4: nothing heard for 8 s\nhint: ")
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
        "rlaunch: stopped by SIGINT\n  ranks 0, 1 were ended by rlaunch\n"
    );
    verdict.outcome = Outcome::TimedOut { timeout_ms: 1500 };
    assert!(
        verdict
            .render()
            .starts_with("rlaunch: the job did not end within 1.5 s (--timeout)\n")
    );
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
