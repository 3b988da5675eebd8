//! Output: whole lines, stamps, partial lines, credit.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use common::{Agent, Job, assert_nothing_left, code, launch, sh};
use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::{Output, OutputStream};

fn outputs(job: &Job) -> Vec<&Output> {
    let mut outputs = Vec::new();
    for message in &job.heard {
        if let Message::Output(output) = message {
            outputs.push(output);
        }
    }
    outputs
}

#[tokio::test]
async fn long_lines_of_several_ranks_stay_whole() {
    let mut agent = Agent::start().await;
    let script = r#"line=$(head -c 20000 /dev/zero | tr '\0' "$RANK")
                    i=0; while [ $i -lt 200 ]; do echo "$line"; i=$((i+1)); done"#;
    let mut job = agent.run(sh(2, script)).await;
    job.finish().await;
    for output in outputs(&job) {
        assert!(
            !output.partial && output.data.ends_with(b"\n"),
            "a line was cut"
        );
    }
    for rank in 0..2_u32 {
        let text = String::from_utf8(job.output(rank, OutputStream::Stdout)).unwrap();
        let digit = rank.to_string();
        assert_eq!(text.lines().count(), 200);
        assert!(text.lines().all(|line| line == digit.repeat(20_000)));
    }
}

#[tokio::test]
async fn a_line_far_longer_than_a_message_is_one() {
    let mut agent = Agent::start().await;
    let mut job = agent
        .run(sh(
            1,
            r"head -c 700000 /dev/zero | tr '\0' x; echo; echo end",
        ))
        .await;
    job.finish().await;
    let lens: Vec<(usize, bool)> = outputs(&job)
        .iter()
        .map(|output| (output.data.len(), output.partial))
        .collect();
    assert_eq!(lens.iter().map(|(len, _)| len).sum::<usize>(), 700_005);
    assert!(lens.contains(&(700_001, false)), "{lens:?}");
}

#[tokio::test]
async fn a_prompt_is_seen_after_the_delay_and_the_last_line_without_end() {
    let mut agent = Agent::start().await;
    let script =
        r"printf 'abc'; sleep 0.6; printf 'def\n'; printf '10%%\r20%%\r'; sleep 0.6; printf last";
    let mut job = agent.run(sh(1, script)).await;
    job.finish().await;
    let seen: Vec<(&[u8], bool)> = outputs(&job)
        .iter()
        .map(|output| (&output.data[..], output.partial))
        .collect();
    let expected: [(&[u8], bool); 4] = [
        (b"abc", true),
        (b"def\n", false),
        (b"10%\r20%\r", true),
        (b"last", true),
    ];
    assert_eq!(seen, expected);
    let stamps: Vec<i64> = outputs(&job)
        .iter()
        .map(|output| output.host_time_us)
        .collect();
    assert!(
        stamps[1] - stamps[0] > 200_000,
        "stamped when it was printed: {stamps:?}"
    );
}

#[tokio::test]
async fn bytes_that_are_no_text_arrive_as_they_are() {
    let mut agent = Agent::start().await;
    let mut job = agent.run(sh(1, r"printf '\377\0\200\n\303'")).await;
    job.finish().await;
    assert_eq!(job.output(0, OutputStream::Stdout), b"\xff\0\x80\n\xc3");
}

/// A launcher that does not print: the credit is used up, the rest is spilled, then the rank
/// waits, and heartbeats go on all the same. Then the launcher prints, and nothing is lost.
#[tokio::test]
async fn a_stalled_reader_stops_the_rank_and_not_the_heartbeat() {
    const CREDIT: u64 = 100_000;
    // More than credit, pipes and spill hold together.
    let script =
        r"yes 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde | head -c 96000000";
    let mut agent = Agent::start().await;
    let mut launch = sh(1, script);
    launch.output_credit = CREDIT;
    let mut job = agent.run(launch).await;
    job.credit = false;
    let (mut beats, mut printed) = (0, 0);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        if let Some(Some(message)) = job.next_within(Duration::from_millis(1500)).await {
            match message {
                Message::Heartbeat(_) => beats += 1,
                Message::Output(output) => printed += output.data.len() as u64,
                Message::Exited(_) => panic!("the rank did not have to wait"),
                _ => {}
            }
        }
    }
    assert!(printed <= CREDIT && printed > 0, "{printed} without credit");
    assert!(beats >= 3, "{beats} heartbeats in 4 s");
    // Print all of it.
    job.credit = true;
    let bytes = printed;
    let credit = rlaunch_control::v1::Credit {
        rank: 0,
        stream: 0,
        bytes,
    };
    job.send(rlaunch_control::v1::to_agent::Message::Credit(credit))
        .await;
    job.finish().await;
    let text = job.output(0, OutputStream::Stdout);
    assert_eq!(text.len(), 96_000_000);
    assert!(
        text.chunks(64)
            .all(|line| line.starts_with(b"0123") && line.ends_with(b"e\n"))
    );
    assert_nothing_left(&job.mark);
}

#[tokio::test]
async fn one_stalled_stream_does_not_hold_another() {
    let mut agent = Agent::start().await;
    let script = "if [ $RANK = 0 ]; then yes; else sleep 0.3; echo hello; fi";
    let mut launch = sh(2, script);
    launch.output_credit = 10_000;
    let mut job = agent.run(launch).await;
    job.credit = false;
    job.output_with("hello").await;
    job.credit = true;
    job.terminate(Duration::from_secs(5)).await;
    // What rank 0 printed before is still owed; only that it has ended is waited for.
    job.hear(|message| match message {
        Message::Exited(exited) if exited.rank == 0 => Some(()),
        _ => None,
    })
    .await;
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_does_not_hold_the_job() {
    let mut agent = Agent::start().await;
    let script = "[ $RANK = 1 ] && { sleep 4; exit 0; }; setsid sleep 1000 & echo out; exit 3";
    let mut launch = sh(2, script);
    launch.kill_after_ms = 300;
    let start = Instant::now();
    let mut job = agent.run(launch).await;
    let exited = job.exited().await;
    assert_eq!((exited.rank, code(&exited)), (0, 3));
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "told when it died, not when its pipe closed"
    );
    let ended = |message: &Message| match message {
        Message::OutputEnd(end) if end.rank == 0 => Some(()),
        _ => None,
    };
    job.hear(ended).await;
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "drained no longer than said"
    );
    job.finish().await;
    assert_nothing_left(&job.mark);
}

/// So many that agent and keeper fill each other's queue.
#[tokio::test]
async fn many_ranks_on_one_host() {
    const RANKS: u32 = 400;
    let mut agent = Agent::start().await;
    let mut job = agent.run(launch(RANKS, &["printenv", "RANK"])).await;
    job.finish().await;
    let mut seen: HashMap<u32, Vec<u8>> = HashMap::new();
    for output in outputs(&job) {
        seen.entry(output.rank)
            .or_default()
            .extend_from_slice(&output.data);
    }
    for rank in 0..RANKS {
        assert_eq!(seen[&rank], format!("{rank}\n").into_bytes());
    }
}
