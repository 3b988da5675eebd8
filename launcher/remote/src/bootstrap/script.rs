//! The command that a login shell runs: `exec /bin/sh -c '…'`.
//!
//! The login shell may be anything (bash, tcsh, fish, busybox), so what it sees is one quoted word
//! without `'`, `!`, newline or a doubled backslash, which all of them take alike. Inside is plain
//! POSIX shell, with the `-O` and `-nt` that all have, and the tools that every system has: `uname id
//! ls tail head mkdir mv rm chmod touch dd`; `gzip`, `sha256sum`, `find` are used if they are there.
//!
//! A start-up file may have left no PATH to find them by; the agent gets the one that it left.
//!
//! What it does, in this order:
//! 1. runs `~/.cache/rlaunch/BUILD/rlaunch`, else the same in `/tmp/rlaunch-UID` or
//!    `/var/tmp/rlaunch-UID`, if folder and file are this user's and nobody touched the file since it
//!    was found whole: `ok` beside it, made last, is newer. That takes nothing but the shell itself,
//!    for it is done on every host of every job. The agent looks at the modes once it runs;
//! 2. takes the build that fits `uname -m`, or refuses;
//! 3. runs the launcher's own path, if what stands there is the same build (shared file system);
//! 4. runs what stands in one of the three folders without an `ok`, if it is writable by nobody else
//!    and as long as it should be;
//! 5. finds the first of these folders that it owns, that has room, and from which programs may
//!    run (tried with an empty file, then with as many zeros as the agent has bytes); asks for the
//!    executable, unpacks it under a name of its own and onto the disk (a crash of the host must not
//!    cut it later), checks it against BUILD, renames it; drops the oldest builds; and runs it.

use crate::executable::{Agent, Agents, HEADER_BYTES};

use rlaunch_wire::handshake::REFUSAL;

use super::greeting::PUSH;

/// Builds kept in a folder: the newest, this one included.
const BUILDS_KEPT: usize = 4;

pub(super) fn command(agents: &Agents) -> String {
    command_with(agents, ["/tmp", "/var/tmp"])
}

/// The parents of the folders outside the home are an argument for the tests' sake.
pub(super) fn command_with(agents: &Agents, temporary: [&str; 2]) -> String {
    let cases: Vec<_> = agents.iter().map(|agent| case(agent)).collect();
    let places = [
        r#""$HOME"/.cache/rlaunch"#.to_owned(),
        format!("{}/rlaunch-*", temporary[0]),
        format!("{}/rlaunch-*", temporary[1]),
    ];
    let cached = agents.iter().flat_map(|agent| {
        let build = &agent.build;
        places
            .iter()
            .map(move |place| format!("{place}/{build}/rlaunch"))
    });
    let cached: Vec<_> = cached.collect();
    let script = SCRIPT
        .join(" ")
        .replace("PUSH", PUSH)
        .replace("REFUSAL", REFUSAL)
        .replace("BODY", &(HEADER_BYTES + 1).to_string())
        .replace("DROPPED", &(BUILDS_KEPT + 1).to_string())
        .replace("TEMPORARY", temporary[0])
        .replace("LASTING", temporary[1])
        .replace("CASES", &cases.join(" "))
        .replace("CACHED", &cached.join(" "));
    let forbidden = |character| matches!(character, '\'' | '!' | '\n');
    assert!(
        !script.contains(forbidden) && !script.contains(r"\\"),
        "a login shell would choke"
    );
    format!("exec /bin/sh -c '{script}'")
}

/// `_b`: build, `_s`: bytes, `_o`: where it may be found as it is.
fn case(agent: &Agent) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "/._-+,=@: ".contains(character);
    let path = agent.path.as_deref().and_then(|path| path.to_str());
    let path = path
        .filter(|path| path.chars().all(plain))
        .unwrap_or_default();
    format!(
        "{}) _b={}; _s={}; _o=\"{path}\";;",
        agent.machine,
        agent.build,
        agent.bytes.len()
    )
}

/// `ls` tells owner and mode alike everywhere; `stat` and `find -perm` do not. `exec` must not fail
/// on a noexec folder, for it would end the shell: `-x` asks the kernel, which knows. The names
/// begin with `_` so that none of them is an exported variable that the ranks would inherit; the
/// umask is theirs too.
const SCRIPT: [&str; 36] = [
    r#"_f=""; for _n in CACHED; do _d="${_n%/*}"; if [ -O "${_d%/*}" ] && [ -O "$_d" ]"#,
    r#"&& [ -O "$_n" ] && [ -x "$_n" ] && [ "$_d/ok" -nt "$_n" ]; then _f="$_n"; break; fi;"#,
    r#"done 2>/dev/null; if [ -n "$_f" ]; then exec "$_f" agent --build "${_d##*/}"; fi;"#,
    r#"_q="$PATH"; PATH="$PATH:/usr/bin:/bin"; _a=$(umask); _m=$(uname -m); _u=$(id -u); _c="";"#,
    r#"case "$HOME" in /?*) _c="$HOME/.cache/rlaunch";; esac; _r="";"#,
    r#"_t="TEMPORARY/rlaunch-$_u"; _v="LASTING/rlaunch-$_u";"#,
    r#"case "$_m" in CASES"#,
    r#"*) printf "\nREFUSAL machine %s\n" "$_m"; exit 1;; esac;"#,
    // The same build? Of the file, what is behind the header and as long as the agent.
    r#"same() { case "$(tail -c +BODY "$1" | head -c $((_s - BODY + 1)) | sha256sum)" in"#,
    r#""$_b"*) ;; *) false;; esac; };"#,
    // This user's, and writable by nobody else?
    r#"mine() { set -- $(ls -ldn "$1");"#,
    r#"case "$1" in [-d]????-??-*) [ "$3" = "$_u" ];; *) false;; esac; };"#,
    r#"try() { if [ -n "$1" ] && mine "$1/." && mine "$1/$_b/." && mine "$1/$_b/rlaunch""#,
    r#"&& [ -x "$1/$_b/rlaunch" ] && [ "$(wc -c <"$1/$_b/rlaunch")" -eq "$_s" ];"#,
    r#"then _f="$1/$_b/rlaunch"; else false; fi; };"#,
    // A place for it, or one more reason why there is none.
    r#"room() { _d="$1/$_b"; _n=""; _y="HOME is not set"; [ -n "$1" ] && _y=$(mkdir -p "$_d" 2>&1)"#,
    r#"&& _y="others may write there, or it is theirs" && mine "$1/." && mine "$_d/.""#,
    r#"&& { _n=$(mktemp "$_d/.new.XXXXXXXX" 2>&1) || { _y="$_n"; _n=""; false; }; }"#,
    r#"&& chmod 700 "$_n" && _y="mounted noexec" && "$_n" </dev/null"#,
    r#"&& _y=$(head -c "$_s" /dev/zero 2>&1 >"$_n")"#,
    r#"|| { rm -f "$_n"; rmdir "$_d"; _r="$_r; $1: ${_y##*: }"; false; }; };"#,
    r#"{ if [ -n "$_o" ] && [ -x "$_o" ] && same "$_o"; then _f="$_o";"#,
    r#"else try "$_c" || try "$_t" || try "$_v" || _f=""; fi; } 2>/dev/null;"#,
    r#"if [ -n "$_f" ]; then PATH="$_q"; exec "$_f" agent --build "$_b"; fi;"#,
    r#"umask 077; { room "$_c" || room "$_t" || room "$_v"; } 2>/dev/null ||"#,
    r#"{ printf "\nREFUSAL folder %s\n" "${_r#; }"; exit 1; };"#,
    r#"if command -v gzip >/dev/null 2>&1; then _w=gzip; _z="gzip -dc"; else _w=raw; _z=cat; fi;"#,
    r#"printf "\nPUSH %s %s\n" "$_m" "$_w"; read -r _l;"#,
    r#"head -c "$_l" | $_z | dd of="$_n" bs=65536 conv=fsync 2>/dev/null;"#,
    r#"_k=$(wc -c <"$_n"); if [ "$_k" -eq "$_s" ]"#,
    r#"&& { same "$_n" 2>/dev/null || [ -z "$(command -v sha256sum)" ]; }"#,
    // Old enough for a clock that counts whole seconds.
    r#"&& mv -f "$_n" "$_d/rlaunch"; then { touch -t 200001010000 "$_d/rlaunch"; : >"$_d/ok"; _p="${_d%/*}";"#,
    r#"ls -1t "$_p"/*/ok | tail -n +DROPPED | while read -r _l; do rm -rf "${_l%/ok}";"#,
    r#"done; find "$_p" -name ".new.*" -mtime +0 -exec rm -f {} +; } </dev/null >/dev/null 2>&1;"#,
    r#"umask "$_a"; PATH="$_q"; exec "$_d/rlaunch" agent --build "$_b"; else rm -f "$_n";"#,
    r#"printf "\nREFUSAL push %s\n" "$_k of $_s bytes arrived, or they differ"; exit 1; fi"#,
];
