//! From options to the steps that make one host.

use crate::network;
use crate::options::Options;
use crate::step::{Step, text};
use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};

/// Of the user that logs in on hosts.
pub const HOME: &str = "/root";
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What the harness keeps on a host.
const OWN: &str = "/run/host";
/// Of this machine's devices those that every program expects.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Everything that the guardian needs to start one host, ready before it is forked.
pub(crate) struct HostPlan {
    pub(crate) steps: Vec<Step>,
    /// sshd's messages, or the step that failed, as a file of this machine.
    pub(crate) log: CString,
    pub(crate) program: Program,
}

/// A program with its argument and environment vectors as execve wants them.
pub(crate) struct Program {
    pub(crate) path: CString,
    argument_pointers: Vec<*const c_char>,
    environment_pointers: Vec<*const c_char>,
    /// What the pointers lead to; the heap blocks stay where they are when this moves.
    _strings: Vec<CString>,
}

impl Program {
    fn new(path: &Path, arguments: &[&str], environment: &[String]) -> Self {
        let mut strings: Vec<CString> = arguments.iter().map(text).collect();
        strings.extend(environment.iter().map(text));
        let mut pointers: Vec<*const c_char> = strings.iter().map(|text| text.as_ptr()).collect();
        let mut environment_pointers = pointers.split_off(arguments.len());
        pointers.push(std::ptr::null());
        environment_pointers.push(std::ptr::null());
        Self {
            path: text(path),
            argument_pointers: pointers,
            environment_pointers,
            _strings: strings,
        }
    }

    /// Terminated by null, as is [`Self::environment`].
    pub(crate) fn arguments(&self) -> *const *const c_char {
        self.argument_pointers.as_ptr()
    }

    pub(crate) fn environment(&self) -> *const *const c_char {
        self.environment_pointers.as_ptr()
    }
}

/// Keys of one cluster, thrown away with it.
pub(crate) struct Keys {
    pub(crate) user_private: Vec<u8>,
    pub(crate) user_public: Vec<u8>,
    /// Of each host, head first.
    pub(crate) host_private: Vec<Vec<u8>>,
    pub(crate) known_hosts: String,
}

/// The steps for host number `host` (0 is head), made in a mount namespace of its own.
pub(crate) fn make(
    options: &Options,
    keys: &Keys,
    sshd: &Path,
    state: &Path,
    host: usize,
) -> HostPlan {
    let name = network::host_name(host);
    let work = state.join(&name);
    let root = work.join("root");
    let mut steps = vec![Step::HostName(text(&name)), Step::keep_mounts_private()];
    root_steps(&mut steps, &work, &root);
    device_steps(&mut steps, &root);
    steps.extend(
        options
            .hidden
            .iter()
            .map(|path| Step::hide(&inside(&root, path))),
    );
    for share in options.shares.iter().filter(|share| share.on.covers(host)) {
        share_steps(&mut steps, &root, &share.from, &share.to);
    }
    if options.rlaunch.is_some() && host == 0 {
        let program = format!("{}/rlaunch", Options::RLAUNCH);
        steps.push(Step::link(
            &program,
            &inside(&root, "/usr/local/bin/rlaunch"),
        ));
    }
    identity_steps(&mut steps, &root, &name, network::hosts_file(options.hosts));
    login_steps(&mut steps, &root, keys, host);
    steps.push(Step::Enter(text(&root)));
    let configuration = format!("{OWN}/sshd_config");
    let log = log_path(state, host);
    HostPlan {
        steps,
        log: text(&log),
        program: Program::new(
            sshd,
            // sshd refuses a name without a path: it starts itself again for each connection.
            &[&sshd.to_string_lossy(), "-D", "-e", "-f", &configuration],
            &[format!("PATH={PATH}")],
        ),
    }
}

pub(crate) fn log_path(state: &Path, host: usize) -> PathBuf {
    state.join(network::host_name(host)).join("sshd.log")
}

/// `path` of a host as seen before it is entered.
fn inside(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// A copy-on-write view of this machine, with everything that tells of running things renewed.
fn root_steps(steps: &mut Vec<Step>, work: &Path, root: &Path) {
    // The upper side must not lie on an overlay itself, as a container's root does.
    let store = work.join("store");
    steps.push(Step::mount("tmpfs", &store, "mode=755,size=2g"));
    let (upper, scratch) = (store.join("upper"), store.join("scratch"));
    steps.push(Step::folder(&upper, 0o755));
    steps.push(Step::folder(&scratch, 0o755));
    let layers = format!(
        "lowerdir=/,upperdir={},workdir={}",
        upper.display(),
        scratch.display()
    );
    steps.push(Step::mount("overlay", root, &layers));
    steps.push(Step::mount("proc", &inside(root, "/proc"), ""));
    steps.push(Step::mount("sysfs", &inside(root, "/sys"), ""));
    for folder in ["/tmp", "/var/tmp"] {
        steps.push(Step::mount("tmpfs", &inside(root, folder), "mode=1777"));
    }
    steps.push(Step::mount("tmpfs", &inside(root, "/run"), "mode=755"));
}

/// A `/dev` of its own: a device that a test makes on one host is on no other.
fn device_steps(steps: &mut Vec<Step>, root: &Path) {
    let devices = inside(root, "/dev");
    steps.push(Step::mount("tmpfs", &devices, "mode=755"));
    for name in DEVICES {
        steps.push(Step::file(&devices.join(name), "", 0o666));
        steps.push(Step::bind(
            &Path::new("/dev").join(name),
            &devices.join(name),
        ));
    }
    for folder in ["pts", "shm"] {
        steps.push(Step::folder(&devices.join(folder), 0o755));
    }
    steps.push(Step::mount(
        "devpts",
        &devices.join("pts"),
        "newinstance,ptmxmode=0666,mode=620",
    ));
    steps.push(Step::mount("tmpfs", &devices.join("shm"), "mode=1777"));
    let links = [
        ("pts/ptmx", "ptmx"),
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
    ];
    steps.extend(links.map(|(to, name)| Step::link(to, &devices.join(name))));
}

fn share_steps(steps: &mut Vec<Step>, root: &Path, from: &Path, to: &Path) {
    let target = inside(root, to);
    let folder = if from.is_dir() {
        Some(target.as_path())
    } else {
        target.parent()
    };
    for folder in folder.map(folders_below(root)).unwrap_or_default() {
        steps.push(Step::folder(&folder, 0o755));
    }
    if !from.is_dir() {
        steps.push(Step::file(&target, "", 0o755));
    }
    steps.push(Step::bind(from, &target));
}

/// The folders from `root` down to `path`, the outermost first.
fn folders_below(root: &Path) -> impl Fn(&Path) -> Vec<PathBuf> {
    move |path| {
        let outer = path.ancestors().take_while(|folder| *folder != root);
        let mut folders: Vec<PathBuf> = outer.map(Path::to_path_buf).collect();
        folders.reverse();
        folders
    }
}

/// Its name, its view of its peers, and what programs take for "the same machine".
fn identity_steps(steps: &mut Vec<Step>, root: &Path, name: &str, hosts: String) {
    let own = inside(root, OWN);
    let boot_id = own.join("boot_id");
    steps.push(Step::folder(&own, 0o755));
    steps.push(Step::file(&inside(root, "/etc/hosts"), hosts, 0o644));
    steps.push(Step::file(
        &inside(root, "/etc/hostname"),
        format!("{name}\n"),
        0o644,
    ));
    steps.push(Step::file(&boot_id, format!("{}\n", random_uuid()), 0o444));
    let machine_id = random_uuid().replace('-', "");
    steps.push(Step::file(
        &inside(root, "/etc/machine-id"),
        format!("{machine_id}\n"),
        0o444,
    ));
    steps.push(Step::bind(
        &boot_id,
        &inside(root, "/proc/sys/kernel/random/boot_id"),
    ));
}

/// sshd's and the user's settings. bash reads `.bashrc` for each ssh command: a machine's own may
/// take half a second.
fn login_steps(steps: &mut Vec<Step>, root: &Path, keys: &Keys, host: usize) {
    let own = inside(root, OWN);
    steps.push(Step::folder(&inside(root, "/run/sshd"), 0o755));
    steps.push(Step::file(&own.join("sshd_config"), SSHD_CONFIG, 0o644));
    steps.push(Step::file(
        &own.join("host_key"),
        keys.host_private[host].clone(),
        0o600,
    ));

    let home = inside(root, HOME);
    let ssh = home.join(".ssh");
    steps.push(Step::folder(&ssh, 0o700));
    steps.push(Step::mount("tmpfs", &ssh, "mode=700"));
    // What earlier runs of a program left in this machine's home is not on a fresh host.
    for folder in [".cache/rlaunch", ".config/rlaunch"] {
        steps.push(Step::hide(&home.join(folder)));
    }
    steps.push(Step::file(
        &ssh.join("authorized_keys"),
        keys.user_public.clone(),
        0o600,
    ));
    steps.push(Step::file(
        &ssh.join("id_ed25519"),
        keys.user_private.clone(),
        0o600,
    ));
    steps.push(Step::file(
        &ssh.join("known_hosts"),
        keys.known_hosts.clone(),
        0o600,
    ));
    steps.push(Step::file(&ssh.join("config"), SSH_CONFIG, 0o600));
    steps.push(Step::file(
        &home.join(".bashrc"),
        format!("export PATH={PATH}\n"),
        0o644,
    ));
}

/// From the kernel; a host's identity must be like no other's.
fn random_uuid() -> String {
    let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    uuid.expect("every Linux has this file in /proc")
        .trim()
        .to_owned()
}

const SSHD_CONFIG: &str = "\
HostKey /run/host/host_key
PidFile none
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
AuthorizedKeysFile .ssh/authorized_keys
MaxStartups 200:30:400
MaxSessions 100
X11Forwarding no
PrintMotd no
PrintLastLog no
UseDNS no
Subsystem sftp internal-sftp
";

/// OpenSSH's defaults but for its first key exchange, which takes seven times the CPU of the next.
const SSH_CONFIG: &str = "\
Host *
  BatchMode yes
  KexAlgorithms -sntrup761x25519-sha512,sntrup761x25519-sha512@openssh.com
";

#[cfg(test)]
mod tests {
    use super::*;

    /// A share deep below the root makes every folder on its way, the outermost first.
    #[test]
    fn folders_are_made_from_the_outside() {
        let found = folders_below(Path::new("/r"))(Path::new("/r/a/b"));
        assert_eq!(found, [PathBuf::from("/r/a"), PathBuf::from("/r/a/b")]);
    }

    /// The vectors that execve gets end in null and hold what was asked for.
    #[test]
    fn program_vectors_are_terminated() {
        let program = Program::new(Path::new("/bin/a"), &["a", "-b"], &["C=d".to_owned()]);
        // SAFETY: the vector has two strings and a null, all alive.
        let words = unsafe { std::slice::from_raw_parts(program.arguments(), 3) };
        // SAFETY: a terminated string that `program` owns.
        let second = unsafe { std::ffi::CStr::from_ptr(words[1]) };
        assert_eq!(second.to_bytes(), b"-b");
        assert!(words[2].is_null());
    }
}
