//! Words of other launchers, so that command lines can be pasted.
//!
//! A word is either a spelling of something rlaunch does too, or it is accepted with its values
//! and noted on stderr. Plain synonyms (`-ppn`, `-machinefile`) are aliases in
//! [`super::options`]; here stands what needs more than another name.

/// What to do with a foreign word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Accepted; nothing to do, and nothing to say.
    Silent,
    /// Accepted and noted: the text completes "… is noted, not followed: ".
    Noted(&'static str),
    /// `WORD NAME VALUE`, as `-x NAME=VALUE` of every program of the job.
    ExportPair,
    /// `WORD A,B,C`, as `-x A -x B -x C`; of every program, if it is true.
    ExportList(bool),
    /// Open MPI 5's `--output KEY,KEY`.
    OutputKeys,
    /// As another option with this value.
    As(&'static str, &'static str),
    /// Refused, since a job without it would be another job.
    Refused(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) name: &'static str,
    /// Values that follow the word.
    pub(super) values: usize,
    pub(super) meaning: Meaning,
}

pub(super) fn find(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|word| word.name)
}

/// As it is typed.
pub(super) fn shown(name: &str) -> String {
    let dashes = if name.len() == 1 { "-" } else { "--" };
    format!("{dashes}{name}")
}

const fn word(name: &'static str, values: usize, meaning: Meaning) -> Word {
    Word {
        name,
        values,
        meaning,
    }
}

const BINDING: Meaning =
    Meaning::Noted("cores are chosen among those that the host gives, and whole");
const FILES: Meaning = Meaning::Noted(
    "--output-dir writes both streams of every rank to files, --only says whose are shown too",
);
const NUMA: Meaning = Meaning::Noted(
    "--bind-to numa gives ranks the cores of their GPU's NUMA node, --cores-per-rank N cores of their own",
);
const DEVICES: &str = "-H picks hosts, gpus= in the hostfile picks devices: `node1 gpus=0,1`";
const PATTERN: &str = "--output-dir DIR writes a file for each stream of each rank";
const GO_ON: Meaning = Meaning::As("on-failure", "continue");
const OF_ALLOCATION: Meaning = Meaning::Refused(
    "it asks the scheduler for something: give it to salloc or sbatch, and run rlaunch inside; \
     gpus= in the hostfile picks devices",
);
const MCA: Meaning = Meaning::Noted("a setting of Open MPI's own components");
const RENDEZVOUS: Meaning =
    Meaning::Noted("ranks meet at MASTER_ADDR and MASTER_PORT, which rlaunch chooses and proves");

/// Names without dashes; `_` in a typed word counts as `-`.
const WORDS: &[Word] = &[
    // Open MPI
    word("allow-run-as-root", 0, Meaning::Silent),
    word("enable-recovery", 0, GO_ON),
    word("disable-recovery", 0, Meaning::As("on-failure", "stop")),
    word("continuous", 0, GO_ON),
    word("mca", 2, MCA),
    word("gmca", 2, MCA),
    word("omca", 2, MCA),
    word("pmixmca", 2, MCA),
    word("prtemca", 2, MCA),
    word("tune", 1, MCA),
    word("am", 1, MCA),
    word("bind-to-core", 0, Meaning::As("bind-to", "core")),
    word("bind-to-none", 0, Meaning::As("bind-to", "none")),
    word("bind-to-socket", 0, Meaning::As("bind-to", "numa")),
    word("cpu-set", 1, BINDING),
    word("use-hwthread-cpus", 0, BINDING),
    word(
        "rankfile",
        1,
        Meaning::Refused("rankfiles are not in this version"),
    ),
    word("bynode", 0, Meaning::As("map-by", "node")),
    word("byslot", 0, Meaning::As("map-by", "slot")),
    word("nooversubscribe", 0, Meaning::Silent),
    word("no-oversubscribe", 0, Meaning::Silent),
    word(
        "prefix",
        1,
        Meaning::Noted("rlaunch needs no installation on the hosts"),
    ),
    word("noprefix", 0, Meaning::Silent),
    word(
        "xterm",
        1,
        Meaning::Refused("ranks get terminals of their own by --pty"),
    ),
    word(
        "c",
        1,
        Meaning::Refused("-np N ranks (mpirun's -c), --cores-per-rank N (srun's)"),
    ),
    word("s", 1, Meaning::Refused("--stdin RANK, or --stdin all")),
    word(
        "app",
        1,
        Meaning::Refused("programs of one job stand on the command line: a : b"),
    ),
    word(
        "configfile",
        1,
        Meaning::Refused("programs of one job stand on the command line: a : b"),
    ),
    word("hostlist", 1, Meaning::Refused("-H a,b:2")),
    word("use-hwthreads-as-cpus", 0, BINDING),
    word("report-child-jobs-separately", 0, Meaning::Silent),
    word("abort-on-non-zero-status", 0, Meaning::Silent),
    word("output", 1, Meaning::OutputKeys),
    // Hydra, Intel MPI
    word("genv", 2, Meaning::ExportPair),
    word("genvlist", 1, Meaning::ExportList(true)),
    word("genvall", 0, Meaning::As("env", "all")),
    word("genvnone", 0, Meaning::As("env", "none")),
    word("envlist", 1, Meaning::ExportList(false)),
    word("envall", 0, Meaning::As("env", "all")),
    word("envnone", 0, Meaning::As("env", "none")),
    word("iface", 1, Meaning::Noted("addresses are chosen by proof")),
    word("bootstrap", 1, Meaning::Noted("hosts are reached by ssh")),
    word("launcher", 1, Meaning::Noted("hosts are reached by ssh")),
    word("rmk", 1, Meaning::Noted("no scheduler is asked")),
    word("print-all-exitcodes", 0, Meaning::Silent),
    word("outfile-pattern", 1, Meaning::Refused(PATTERN)),
    word("errfile-pattern", 1, Meaning::Refused(PATTERN)),
    word(
        "prepend-pattern",
        1,
        Meaning::Refused("--tag-output begins each line with rank and stream"),
    ),
    word("disable-auto-cleanup", 0, GO_ON),
    // torchrun, deepspeed
    word("standalone", 0, Meaning::Silent),
    word("rdzv-backend", 1, RENDEZVOUS),
    word("rdzv-endpoint", 1, RENDEZVOUS),
    word("rdzv-id", 1, RENDEZVOUS),
    word("rdzv-conf", 1, RENDEZVOUS),
    word("monitor-interval", 1, Meaning::Silent),
    word("redirects", 1, FILES),
    word("tee", 1, FILES),
    word("start-method", 1, Meaning::Silent),
    word("role", 1, Meaning::Silent),
    word("no-python", 0, Meaning::Silent),
    word("enable-each-rank-log", 1, FILES),
    word(
        "local-ranks-filter",
        1,
        Meaning::Noted("--only RANKS says whose output is shown"),
    ),
    word("local-addr", 1, RENDEZVOUS),
    word("signals-to-handle", 1, Meaning::Silent),
    word("numa-binding", 1, NUMA),
    word("bind-cores-to-rank", 0, NUMA),
    word("bind-core-list", 1, NUMA),
    word("no-ssh-check", 0, Meaning::Silent),
    word("no-local-rank", 0, Meaning::Silent),
    word("force-multi", 0, Meaning::Silent),
    word(
        "launcher-args",
        1,
        Meaning::Noted("--ssh-program takes ssh's own options"),
    ),
    word("include", 1, Meaning::Refused(DEVICES)),
    word("exclude", 1, Meaning::Refused(DEVICES)),
    word(
        "node-rank",
        1,
        Meaning::Noted("one rlaunch starts all hosts, and counts them"),
    ),
    word(
        "no-ssh",
        0,
        Meaning::Refused("rlaunch reaches the hosts itself; use -H or -hostfile"),
    ),
    // srun
    word("mpi", 1, Meaning::Silent),
    word("kill-on-bad-exit", 0, Meaning::Silent),
    word("cpu-bind", 1, BINDING),
    word("label", 0, Meaning::As("tag-output", "")),
    word("unbuffered", 0, Meaning::Silent),
    word("u", 0, Meaning::Silent),
    word("w", 1, Meaning::Refused("-H a,b picks hosts")),
    word("nodelist", 1, Meaning::Refused("-H a,b picks hosts")),
    word("nodefile", 1, Meaning::Refused("-hostfile FILE")),
    word("t", 1, Meaning::Refused("--timeout TIME, as 90, 10m or 2h")),
    word(
        "time",
        1,
        Meaning::Refused("--timeout TIME, as 90, 10m or 2h"),
    ),
    word("wait", 1, Meaning::Refused("--kill-after TIME")),
    word("W", 1, Meaning::Refused("--kill-after TIME")),
    word("J", 1, Meaning::Silent),
    word("job-name", 1, Meaning::Silent),
    word("p", 1, OF_ALLOCATION),
    word("partition", 1, OF_ALLOCATION),
    word("A", 1, OF_ALLOCATION),
    word("account", 1, OF_ALLOCATION),
    word("G", 1, OF_ALLOCATION),
    word("gpus", 1, OF_ALLOCATION),
    word("gpus-per-node", 1, OF_ALLOCATION),
    word("gpus-per-task", 1, OF_ALLOCATION),
    word("gres", 1, OF_ALLOCATION),
    word("mem", 1, OF_ALLOCATION),
    word("mem-per-cpu", 1, OF_ALLOCATION),
    word("exclusive", 0, OF_ALLOCATION),
    word("overlap", 0, Meaning::Silent),
];
