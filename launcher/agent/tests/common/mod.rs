//! A launcher's side for the tests: starts a real agent over a socket pair and speaks gRPC.
//!
//! Every wait is bounded; past the bound the test fails and says what it had heard.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test; each test program uses its part"
)]

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rlaunch_control::AgentClient;
use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::to_agent::Message as ToAgentMessage;
use rlaunch_control::v1::{
    Credit, EnvVar, Exited, FromAgent, Launch, OutputStream, Program, RankSpec, Terminate, ToAgent,
    exited,
};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::transport::Channel;

/// Far above what anything here takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// A variable that every process of one test's job has, to find what is left of it.
const MARK: &str = "RLAUNCH_TEST_MARK";

pub struct Agent {
    pub child: Child,
    pub client: AgentClient,
    pub channel: Channel,
}

impl Agent {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With another cache than the user's own.
    pub async fn start_at_home(home: &std::path::Path) -> Self {
        Self::start_with(|command| {
            command.env("HOME", home);
        })
        .await
    }

    async fn start_with(change: impl FnOnce(&mut Command)) -> Self {
        let (ours, theirs) = StdUnixStream::pair().unwrap();
        let theirs = OwnedFd::from(theirs);
        let mut command = Command::new(env!("CARGO_BIN_EXE_rlaunch-agent-alone"));
        command
            .args(["--build", "test-1"])
            .stdin(Stdio::from(theirs.try_clone().unwrap()))
            .stdout(Stdio::from(theirs));
        change(&mut command);
        let child = command.spawn().unwrap();
        // It holds the agent's end of the stream.
        drop(command);
        ours.set_read_timeout(Some(LONG)).unwrap();
        read_greeting(&ours);
        ours.set_nonblocking(true).unwrap();
        let io = UnixStream::from_std(ours).unwrap();
        let channel = rlaunch_control::channel(io).await.unwrap();
        let client = rlaunch_control::agent_client(channel.clone());
        Self {
            child,
            client,
            channel,
        }
    }

    /// Drops the connection; the stream ends with the last job on it.
    pub fn hang_up(self) -> Child {
        self.child
    }

    pub fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// The keeper: the agent's only child.
    pub fn keeper(&self) -> i32 {
        let find = || {
            processes().into_iter().find(|pid| {
                stat(*pid).is_some_and(|(name, _, parent)| {
                    parent == self.pid() && name == "rlaunch-keeper"
                })
            })
        };
        wait_for("the keeper", find)
    }

    pub async fn run(&mut self, launch: Launch) -> Job {
        let mark = mark_of(&launch);
        let (sender, receiver) = mpsc::channel(64);
        let launch = ToAgent {
            message: Some(ToAgentMessage::Launch(launch)),
        };
        sender.send(launch).await.unwrap();
        let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
        let stream = tokio::time::timeout(LONG, self.client.run(requests));
        let stream = stream.await.expect("run answers").unwrap().into_inner();
        Job {
            sender,
            stream,
            heard: Vec::new(),
            credit: true,
            mark,
        }
    }

    /// Ends the stream and waits for the agent to end by itself.
    pub async fn leave(self, job: Job) -> std::process::ExitStatus {
        drop(job);
        wait_exit(self.hang_up()).await
    }
}

fn read_greeting(mut stream: &StdUnixStream) {
    let expected = rlaunch_wire::handshake::greeting("test-1");
    let mut greeting = vec![0; expected.len()];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(String::from_utf8(greeting).unwrap(), expected);
}

/// Beside the runtime, whose tasks hold the connection.
pub async fn wait_exit(mut child: Child) -> std::process::ExitStatus {
    let wait = move || wait_for("the agent's end", || child.try_wait().unwrap());
    tokio::task::spawn_blocking(wait).await.unwrap()
}

pub struct Job {
    pub sender: mpsc::Sender<ToAgent>,
    pub stream: Streaming<FromAgent>,
    pub heard: Vec<Message>,
    /// Give credit for what is printed.
    pub credit: bool,
    pub mark: String,
}

impl Job {
    pub async fn send(&self, message: ToAgentMessage) {
        self.sender
            .send(ToAgent {
                message: Some(message),
            })
            .await
            .unwrap();
    }

    pub async fn terminate(&self, kill_after: Duration) {
        let kill_after_ms = kill_after.as_millis().try_into().unwrap();
        self.send(ToAgentMessage::Terminate(Terminate { kill_after_ms }))
            .await;
    }

    /// The next message; none at the stream's end.
    pub async fn next(&mut self) -> Option<Message> {
        self.next_within(LONG)
            .await
            .unwrap_or_else(|| panic!("silence after {:?}", self.heard))
    }

    /// None if nothing came in that time.
    pub async fn next_within(&mut self, limit: Duration) -> Option<Option<Message>> {
        let received = tokio::time::timeout(limit, self.stream.message())
            .await
            .ok()?;
        let message = received
            .ok()
            .flatten()
            .map(|message| message.message.unwrap());
        if let Some(message) = &message {
            if let (Message::Output(output), true) = (message, self.credit) {
                let bytes = output.data.len() as u64;
                let credit = Credit {
                    rank: output.rank,
                    stream: output.stream,
                    bytes,
                };
                self.send(ToAgentMessage::Credit(credit)).await;
            }
            self.heard.push(message.clone());
        }
        Some(message)
    }

    /// The first that fits, of those heard or to come.
    pub async fn hear<T>(&mut self, mut fits: impl FnMut(&Message) -> Option<T>) -> T {
        if let Some(found) = self.heard.iter().find_map(&mut fits) {
            return found;
        }
        let end = Instant::now() + LONG;
        loop {
            assert!(Instant::now() < end, "not heard; but {:?}", self.heard);
            let message = self.next().await;
            let Some(message) = message else {
                panic!("stream ended after {:?}", self.heard)
            };
            if let Some(found) = fits(&message) {
                return found;
            }
        }
    }

    pub async fn started(&mut self) -> i32 {
        self.hear(|message| match message {
            Message::Started(started) => Some(started.pid.try_into().unwrap()),
            _ => None,
        })
        .await
    }

    /// Of rank 0, which has started.
    pub fn started_pid(&self) -> i32 {
        let pid = self.heard.iter().find_map(|message| match message {
            Message::Started(started) => Some(started.pid),
            _ => None,
        });
        pid.expect("started").try_into().unwrap()
    }

    pub async fn exited(&mut self) -> Exited {
        self.hear(|message| match message {
            Message::Exited(exited) => Some(exited.clone()),
            _ => None,
        })
        .await
    }

    /// Hears until Finished.
    pub async fn finish(&mut self) {
        self.hear(|message| matches!(message, Message::Finished(_)).then_some(()))
            .await;
    }

    /// Hears output until it holds `text`.
    pub async fn output_with(&mut self, text: &str) {
        let mut seen = Vec::new();
        self.hear(|message| match message {
            Message::Output(output) => {
                seen.extend_from_slice(&output.data);
                contains(&seen, text).then_some(())
            }
            _ => None,
        })
        .await;
    }

    /// All that was heard of one stream.
    pub fn output(&self, rank: u32, stream: OutputStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in &self.heard {
            if let Message::Output(output) = message
                && (output.rank, output.stream) == (rank, stream.into())
            {
                bytes.extend_from_slice(&output.data);
            }
        }
        bytes
    }

    pub fn stdout(&self) -> String {
        String::from_utf8(self.output(0, OutputStream::Stdout)).unwrap()
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// A job of `ranks` ranks that run a program.
pub fn launch(ranks: u32, argv: &[&str]) -> Launch {
    let mark = format!("{}-{:?}", std::process::id(), Instant::now());
    let variable = |name: &str, value: String| EnvVar {
        name: name.to_owned().into(),
        value: value.into(),
    };
    Launch {
        job_id: vec![1; 16].into(),
        secret: vec![2; 32].into(),
        world_size: ranks,
        programs: vec![Program {
            argv: argv.iter().map(|word| (*word).to_owned().into()).collect(),
            directory: std::env::temp_dir()
                .into_os_string()
                .into_encoded_bytes()
                .into(),
            environment: vec![variable(MARK, mark)],
            ..Program::default()
        }],
        ranks: (0..ranks)
            .map(|rank| RankSpec {
                rank,
                local_rank: rank,
                environment: vec![variable("RANK", rank.to_string())],
                ..RankSpec::default()
            })
            .collect(),
        kill_after_ms: 10_000,
        host: "testhost".to_owned(),
        ..Launch::default()
    }
}

pub fn sh(ranks: u32, script: &str) -> Launch {
    launch(ranks, &["sh", "-c", script])
}

pub fn code(exited: &Exited) -> i32 {
    match exited.how {
        Some(exited::How::Code(code)) => code,
        Some(exited::How::Signal(signal)) => 128 + signal,
        None => panic!("no reason"),
    }
}

fn mark_of(launch: &Launch) -> String {
    let mark = launch.programs[0]
        .environment
        .iter()
        .find(|variable| variable.name == MARK.as_bytes());
    String::from_utf8(mark.unwrap().value.to_vec()).unwrap()
}

/// Polls: for what happens outside this process and cannot be awaited.
pub fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Every process that carries the job's mark.
pub fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let has = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    };
    processes().into_iter().filter(has).collect()
}

/// Waits until none is left, at most 5 s: what a user is promised.
pub fn assert_nothing_left(mark: &str) {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        let names: Vec<_> = left.iter().map(|pid| (pid, stat(*pid))).collect();
        assert!(Instant::now() < end, "left: {names:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(_, state, _)| !matches!(state, 'Z' | 'X'))
}

/// Name, state and parent.
pub fn stat(pid: i32) -> Option<(String, char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let mut fields = after.split_whitespace();
    Some((
        name,
        fields.next()?.chars().next()?,
        fields.next()?.parse().ok()?,
    ))
}

pub fn processes() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

pub fn kill(pid: i32, signal: nix::sys::signal::Signal) {
    assert!(pid > 1);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
}
