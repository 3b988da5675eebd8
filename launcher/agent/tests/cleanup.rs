//! Nothing is left: whoever dies, and however. Each case several times, for races.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::{Duration, Instant};

use common::{Agent, Job, assert_nothing_left, kill, marked, sh, wait_exit, wait_for};
use nix::sys::signal::Signal;
use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::{Heartbeat, Level, to_agent};

const ROUNDS: usize = 10;

/// A rank as bad as they come: a shell with children, one of them in a session of its own, all of
/// them deaf to TERM and HUP, and one that forks all the time.
const BAD: &str = r#"trap '' TERM HUP INT
    sleep 1000 &
    setsid sh -c 'trap "" TERM HUP; sleep 1000 & while :; do sleep 0.01; done' &
    sh -c 'while :; do /bin/true & wait; done' &
    echo ready; while :; do sleep 1; done"#;

/// Starts two bad ranks and waits until all they start is there.
async fn bad_job(agent: &mut Agent) -> Job {
    let mut launch = sh(2, BAD);
    launch.kill_after_ms = 300;
    let mut job = agent.run(launch).await;
    let mut ready = 0;
    job.hear(|message| {
        ready += usize::from(matches!(message, Message::Output(_)));
        (ready == 2).then_some(())
    })
    .await;
    let mark = job.mark.clone();
    wait_for("the ranks' children", || {
        (marked(&mark).len() >= 10).then_some(())
    });
    job
}

#[tokio::test]
async fn the_agent_is_killed() {
    for _ in 0..ROUNDS {
        let mut agent = Agent::start().await;
        let keeper = agent.keeper();
        let job = bad_job(&mut agent).await;
        kill(agent.pid(), Signal::SIGKILL);
        assert_nothing_left(&job.mark);
        wait_for("the keeper's end", || {
            (!common::is_alive(keeper)).then_some(())
        });
        wait_exit(agent.child).await;
    }
}

#[tokio::test]
async fn the_keeper_is_killed() {
    for _ in 0..ROUNDS {
        let mut agent = Agent::start().await;
        let keeper = agent.keeper();
        let mut job = bad_job(&mut agent).await;
        kill(keeper, Signal::SIGKILL);
        let said = job
            .hear(|message| match message {
                Message::Log(log) if log.level() == Level::Error => Some(log.text.clone()),
                _ => None,
            })
            .await;
        assert!(said.contains(&format!("pid {keeper}")), "{said}");
        job.finish().await;
        assert!(marked(&job.mark).is_empty(), "left after Finished");
        let deaths = job.heard.iter().filter(|message| match message {
            Message::Exited(exited) => common::code(exited) == 137 && exited.pid > 0,
            _ => false,
        });
        assert_eq!(deaths.count(), 2);
        agent.leave(job).await;
    }
}

#[tokio::test]
async fn the_stream_ends() {
    for _ in 0..ROUNDS {
        let mut agent = Agent::start().await;
        let job = bad_job(&mut agent).await;
        let mark = job.mark.clone();
        let start = Instant::now();
        agent.leave(job).await;
        assert!(marked(&mark).is_empty(), "the agent ended before its ranks");
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
    }
}

#[tokio::test]
async fn agent_and_launcher_die_at_once() {
    for _ in 0..ROUNDS {
        let mut agent = Agent::start().await;
        let job = bad_job(&mut agent).await;
        let mark = job.mark.clone();
        kill(agent.pid(), Signal::SIGKILL);
        drop(job);
        let child = agent.hang_up();
        assert_nothing_left(&mark);
        wait_exit(child).await;
    }
}

#[tokio::test]
async fn a_terminated_job_is_gone_before_it_is_finished() {
    for _ in 0..ROUNDS {
        let mut agent = Agent::start().await;
        let mut job = bad_job(&mut agent).await;
        let start = Instant::now();
        job.terminate(Duration::from_millis(200)).await;
        job.finish().await;
        assert!(marked(&job.mark).is_empty(), "left after Finished");
        assert!(
            start.elapsed() < Duration::from_secs(4),
            "{:?}",
            start.elapsed()
        );
        agent.leave(job).await;
    }
}

#[tokio::test]
async fn term_to_agent_or_keeper_ends_the_job() {
    for keeper in [false, true] {
        let mut agent = Agent::start().await;
        let target = if keeper { agent.keeper() } else { agent.pid() };
        let job = bad_job(&mut agent).await;
        kill(target, Signal::SIGTERM);
        assert_nothing_left(&job.mark);
        if keeper {
            agent.leave(job).await;
        } else {
            wait_exit(agent.child).await;
        }
    }
}

#[tokio::test]
async fn a_silent_launcher_is_a_dead_one_and_a_beating_one_is_not() {
    let mut agent = Agent::start().await;
    let mut launch = sh(1, BAD);
    launch.launcher_silence_ms = 2_000;
    launch.kill_after_ms = 100;
    let mut job = agent.run(launch).await;
    job.credit = false;
    job.output_with("ready").await;
    // Longer than the limit, but alive.
    for _ in 0..8 {
        let heartbeat = Heartbeat {
            sent_us: 77,
            echo_us: 0,
        };
        job.send(to_agent::Message::Heartbeat(heartbeat)).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    assert!(!marked(&job.mark).is_empty());
    let start = Instant::now();
    while job.next().await.is_some() {}
    assert!(
        start.elapsed() < Duration::from_secs(8),
        "{:?}",
        start.elapsed()
    );
    assert_nothing_left(&job.mark);
    let echoes = |message: &&Message| match message {
        Message::Heartbeat(heartbeat) => heartbeat.echo_us == 77,
        _ => false,
    };
    assert_eq!(
        job.heard.iter().filter(echoes).count(),
        8,
        "each heartbeat is answered"
    );
    wait_exit(agent.child).await;
}

#[tokio::test]
async fn no_job_and_the_stream_ends() {
    let agent = Agent::start().await;
    let keeper = agent.keeper();
    let child = agent.hang_up();
    assert!(wait_exit(child).await.success());
    wait_for("the keeper's end", || {
        (!common::is_alive(keeper)).then_some(())
    });
}
