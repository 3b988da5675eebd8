//! What bash completes, asked of bash.

use std::process::Command;

use super::{finish, run};

/// The candidates for the last of `words`, after the script was sourced.
fn candidates(words: &[&str]) -> Vec<String> {
    let script = run(&["completions", "bash"]);
    assert_eq!(script.code, Some(0), "{}", script.stderr);
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let ask = format!(
        "{}\nCOMP_WORDS=(rlaunch {}); COMP_CWORD={}\n\
         _rlaunch rlaunch \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        script.stdout,
        words.join(" "),
        words.len()
    );
    let answer = finish(Command::new("bash").args(["--norc", "-c", &ask]));
    assert_eq!((answer.code, &*answer.stderr), (Some(0), ""));
    let lines = answer.stdout.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn bash_completes_options_and_parts() {
    assert_eq!(candidates(&["--hostf"]), ["--hostfile"]);
    assert_eq!(candidates(&["re"]), ["reap"]);
    let all = candidates(&[""]);
    for part in ["reap", "topo", "settings", "man", "completions"] {
        assert!(all.iter().any(|word| word == part), "{part} in {all:?}");
    }
}

#[test]
fn bash_completes_the_words_of_a_part() {
    assert_eq!(candidates(&["reap", "--hin"]), ["--hinted"]);
    assert!(candidates(&["reap", "--dry"]).is_empty());
    assert_eq!(candidates(&["topo", "--sn"]), ["--snapshot"]);
    assert_eq!(candidates(&["completions", "fi"]), ["fish"]);
    assert_eq!(candidates(&["man", "com"]), ["completions"]);
}

/// The page names each part, which has one of its own.
#[test]
fn the_man_page_tells_of_each_part() {
    let whole = run(&["man"]).stdout;
    for part in ["reap", "topo", "settings", "man", "completions"] {
        assert!(whole.contains(&format!("rlaunch\\-{part}(1)")), "{whole}");
        let own = run(&["man", part]);
        assert_eq!(own.code, Some(0), "{}", own.stderr);
        assert!(
            own.stdout.contains(&format!(".TH rlaunch-{part} 1")),
            "{}",
            own.stdout
        );
    }
    let refused = run(&["man", "nothing"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}
