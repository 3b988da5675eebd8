//! An sshd of a test's own on 127.0.0.1, with its own keys, configuration and home folder. It is
//! ended when the value is dropped, also by a panic, with the processes that serve its connections and
//! what these run, which would outlive it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rlaunch_remote::{HostTarget, RemoteOptions};

pub(crate) struct Sshd {
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    server: Option<Child>,
    /// Of servers that were stopped.
    outliving: Vec<Process>,
    log: mpsc::Receiver<String>,
}

impl Sshd {
    /// None, and said so, where there is no sshd to run.
    pub(crate) fn start(settings: &str) -> Option<Self> {
        Self::start_with(settings, &["ed25519"])
    }

    /// With a host key of each type.
    pub(crate) fn start_with(settings: &str, key_types: &[&str]) -> Option<Self> {
        if !Path::new("/usr/sbin/sshd").exists() {
            eprintln!("SKIPPED: no /usr/sbin/sshd");
            return None;
        }
        // sshd's own folder; it is made by the system's start scripts elsewhere.
        let _ = fs::create_dir_all("/run/sshd");
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let (_, log) = mpsc::channel();
        let mut sshd = Self {
            folder,
            port,
            server: None,
            outliving: Vec::new(),
            log,
        };
        fs::create_dir(sshd.path("home")).unwrap();
        for kind in key_types {
            sshd.keygen(&format!("host_{kind}"), &["-t", kind]);
        }
        sshd.keygen("key", &["-t", "ed25519"]);
        fs::copy(sshd.path("key.pub"), sshd.path("authorized_keys")).unwrap();
        // A host of the same file system would run it where it is; a name with a `!` can't be passed
        // through every shell, so that this one is pushed.
        fs::copy(echo_agent(), sshd.path("agent!")).unwrap();
        sshd.write_client_config("");
        sshd.know("host_ed25519.pub");
        sshd.run(settings, key_types);
        Some(sshd)
    }

    fn run(&mut self, settings: &str, key_types: &[&str]) {
        let at = |name: &str| self.path(name).display().to_string();
        let keys: Vec<_> = key_types
            .iter()
            .map(|kind| format!("HostKey {}", at(&format!("host_{kind}"))))
            .collect();
        let config = format!(
            "{settings}\nPort {}\nListenAddress 127.0.0.1\n{}\n\
             AuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PermitRootLogin prohibit-password\nSetEnv HOME={}\nLogLevel VERBOSE\n",
            self.port,
            keys.join("\n"),
            at("authorized_keys"),
            at("home"),
        );
        fs::write(self.path("sshd_config"), config).unwrap();
        self.start_again();
    }

    /// Its connections go on.
    pub(crate) fn stop(&mut self) {
        self.outliving.extend(self.below());
        let mut server = self.server.take().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// As it was.
    pub(crate) fn start_again(&mut self) {
        let mut server = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(self.path("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(server.stderr.take().unwrap());
        let (sender, log) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        self.server = Some(server);
        self.log = log;
        self.wait_for_log("Server listening");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.path("home/.cache/rlaunch")
    }

    pub(crate) fn keygen(&self, name: &str, arguments: &[&str]) {
        let passphrase: &[&str] = if arguments.contains(&"-N") {
            &[]
        } else {
            &["-N", ""]
        };
        let mut command = Command::new("ssh-keygen");
        command
            .args(["-q", "-C", name])
            .args(arguments)
            .args(passphrase);
        assert!(
            command
                .arg("-f")
                .arg(self.path(name))
                .status()
                .unwrap()
                .success()
        );
    }

    /// Puts a public key into known_hosts, alone.
    pub(crate) fn know(&self, public: &str) {
        let key = fs::read_to_string(self.path(public)).unwrap();
        let line = format!("[127.0.0.1]:{} {key}", self.port);
        fs::write(self.path("known_hosts"), line).unwrap();
    }

    /// `more` comes first, and so wins.
    pub(crate) fn write_client_config(&self, more: &str) {
        let at = |name: &str| self.path(name).display().to_string();
        let config = format!(
            "{more}\nHost *\nIdentityFile {}\nIdentityAgent none\nUserKnownHostsFile {}\n\
             GlobalKnownHostsFile none\nHashKnownHosts no\nKexAlgorithms curve25519-sha256\n",
            at("key"),
            at("known_hosts"),
        );
        fs::write(self.path("config"), config).unwrap();
    }

    pub(crate) fn target(&self) -> HostTarget {
        HostTarget {
            name: "127.0.0.1".into(),
            user: None,
            port: Some(self.port),
        }
    }

    pub(crate) fn options(&self) -> RemoteOptions {
        RemoteOptions {
            ssh_config: Some(self.path("config")),
            agent_path: Some(self.path("agent!")),
            ..RemoteOptions::default()
        }
    }

    /// Waits for a line of sshd's log.
    pub(crate) fn wait_for_log(&self, words: &str) -> String {
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let line = self.log.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("sshd never said {words:?}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The processes that serve connections.
    pub(crate) fn connections(&self) -> Vec<Process> {
        let server = self.server.as_ref().map(Child::id);
        let all = Process::all().into_iter();
        all.filter(|process| Some(process.parent) == server)
            .collect()
    }

    /// Those, and what they run.
    fn below(&self) -> Vec<Process> {
        let mut below = self.connections();
        let all = Process::all();
        let mut at = 0;
        while let Some(parent) = below.get(at).map(|process| process.pid) {
            below.extend(all.iter().filter(|it| it.parent == parent).cloned());
            at += 1;
        }
        below
    }

    /// Lines said until now.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.try_iter().collect()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            // Stopped, it takes no more connections while those that are there are looked for.
            signal(server.id(), Signal::SIGSTOP);
            let below = self.below();
            self.outliving.extend(below);
        }
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        self.outliving.iter().for_each(Process::end);
        let limit = Instant::now() + Duration::from_secs(10);
        loop {
            self.outliving.retain(Process::is_there);
            if self.outliving.is_empty() || std::thread::panicking() {
                return;
            }
            assert!(Instant::now() < limit, "left: {:?}", self.outliving);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A process, which is another one if it began at another time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pid: u32,
    parent: u32,
    began: String,
}

impl Process {
    fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(Self::read).collect()
    }

    /// None: it is gone, or only waits for its parent.
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        (fields[0] != "Z").then(|| Self {
            pid,
            parent: fields[1].parse().unwrap_or_default(),
            began: fields[19].to_owned(),
        })
    }

    fn is_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.began == self.began)
    }

    pub(crate) fn end(&self) {
        if self.is_there() {
            signal(self.pid, Signal::SIGKILL);
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    // It may have ended by itself.
    let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
}

/// The example of this package, which `cargo test` builds beside the tests.
pub(crate) fn echo_agent() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/echo_agent");
    assert!(
        path.is_file(),
        "{} is built by `cargo test -p rlaunch-remote`",
        path.display()
    );
    path
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Waits for something that happens by itself, bounded.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < limit, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A connection that never says a word, which takes one of sshd's places.
pub(crate) fn mute_connection(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).unwrap()
}
