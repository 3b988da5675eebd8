//! Tables: what is typed, what it becomes, and the text of each mistake.

use super::*;
use crate::knobs::Loaded;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn normalised(line: &str) -> (String, Vec<String>) {
    let result = normalise::normalise(&Options::command(), words(line)).unwrap();
    let text = |words: &Vec<OsString>| {
        let words = words.iter().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    };
    let programs: Vec<_> = result.programs.iter().map(text).collect();
    (programs.join(" : "), result.notes)
}

/// Without files and variables.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, CliError> {
    super::parse(arguments, |_| Loaded::default())
}

fn mistake(line: &str) -> String {
    match parse(words(line)) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("`{line}` was accepted"),
    }
}

fn options(line: &str) -> Options {
    match parse(words(line)) {
        Ok(Request::Job { options, .. }) => *options,
        other => panic!("`{line}`: {other:?}"),
    }
}

/// Every spelling comes out as the same words.
#[test]
fn spellings() {
    let table = [
        ("-np 4 true", "--np=4 -- true"),
        ("--np 4 true", "--np=4 -- true"),
        ("-n 4 true", "--np=4 -- true"),
        ("-n4 true", "--np=4 -- true"),
        ("--np=4 true", "--np=4 -- true"),
        ("-np=4 true", "--np=4 -- true"),
        ("-hostfile h true", "--hostfile=h -- true"),
        ("--machinefile h true", "--hostfile=h -- true"),
        ("-f h true", "--hostfile=h -- true"),
        ("-H a,b:2 true", "--host=a,b:2 -- true"),
        ("-host a --host b true", "--host=a --host=b -- true"),
        ("-x A -x B=1 true", "--export=A --export=B=1 -- true"),
        ("-xA=1=2 true", "--export=A=1=2 -- true"),
        (
            "-wdir /x -wd /y --wd /z true",
            "--wdir=/x --wdir=/y --wdir=/z -- true",
        ),
        (
            "-tag-output --tag_output true",
            "--tag-output --tag-output -- true",
        ),
        ("--nproc_per_node=4 t.py", "--nproc-per-node=4 -- t.py"),
        (
            "-npernode 2 -ppn 2 -N 2 t",
            "--nproc-per-node=2 --nproc-per-node=2 --nproc-per-node=2 -- t",
        ),
        ("-vv true", "--verbose --verbose -- true"),
        ("-np -1 true", "--np=-1 -- true"),
        (
            "-genv A 1 -genvlist B,C true",
            "--export=A=1 --export=B --export=C -- true",
        ),
        ("-genvall true", "--env=all -- true"),
        ("--env none true", "--env=none -- true"),
        ("-l true", "--tag-output -- true"),
        ("-np2 true", "--np=2 -- true"),
        (
            "-ppn2 -npernode2 -nproc_per_node2 -nnodes2 true",
            "--nproc-per-node=2 --nproc-per-node=2 --nproc-per-node=2 --nnodes=2 -- true",
        ),
        (
            "-Hhost -N2 -N=2 true",
            "--host=host --nproc-per-node=2 --nproc-per-node=2 -- true",
        ),
        (
            "-env A 1 -env B=2 -genv C=3 -env all true",
            "--export=C=3 --export=A=1 --export=B=2 --env=all -- true",
        ),
        (
            "--export=ALL,A=1 --export=NONE true",
            "--export=A=1 --env=none -- true",
        ),
        ("-x ALL true", "--export=ALL -- true"),
    ];
    for (typed, meant) in table {
        assert_eq!(normalised(typed).0, meant, "{typed}");
    }
}

/// Options end at the program, at `--` and after `-m MODULE`; the rest is passed on as it stands.
#[test]
fn options_end_at_the_program() {
    let table = [
        (
            "-np 2 prog -np 3 --tag-output -x",
            "--np=2 -- prog -np 3 --tag-output -x",
        ),
        ("-np 2 -- -odd -np 3", "--np=2 -- -odd -np 3"),
        (
            "-m pkg.train -m x --np 3",
            "--module=pkg.train -- -m x --np 3",
        ),
        ("prog -- a", "-- prog -- a"),
        ("-", "-- -"),
        ("-- prog :", "-- prog :"),
        (
            "-genv A 1 -n 2 a : -genvlist B -envlist C b",
            "--export=A=1 --export=B --np=2 -- a : --export=A=1 --export=B --export=C -- b",
        ),
        ("-np 1 a x : -np 2 -- b :", "--np=1 -- a x : --np=2 -- b :"),
        (
            "-m a -np 3 : -npernode 2 c",
            "--module=a -- -np 3 : --nproc-per-node=2 -- c",
        ),
    ];
    for (typed, meant) in table {
        assert_eq!(normalised(typed).0, meant, "{typed}");
    }
    assert_eq!(options("-m pkg.train -m x").program.command, words("-m x"));
    assert_eq!(options("-- doctor").program.command, words("doctor"));
    assert_eq!(options("./doctor").program.command, words("./doctor"));
    assert_eq!(options("-np 1 doctor").program.command, words("doctor"));
}

#[test]
fn foreign_words_take_their_values_and_are_noted() {
    let (text, notes) = normalised(
        "--allow-run-as-root --mca btl tcp,self -mca pml ob1 --cpu-set 0 -bind-to-core -np 2 true --mca a b",
    );
    assert_eq!(text, "--bind-to=core --np=2 -- true --mca a b");
    assert_eq!(
        notes,
        [
            "--mca is noted, not followed: a setting of Open MPI's own components",
            "--cpu-set is noted, not followed: cores are chosen among those that the host gives, and \
             whole",
        ]
    );
    assert_eq!(
        normalised("--map-by=ppr:2:node -bynode --np 4 true").0,
        "--map-by=ppr:2:node --map-by=node --np=4 -- true"
    );
    assert_eq!(
        normalised("--output tag,timestamp,merge,dir=/a/b -np 4 true").0,
        "--tag-output --timestamp --merge-stderr --output-dir=/a/b --np=4 -- true"
    );
}

/// Arguments that are not UTF-8, empty or hold newlines come out as they went in.
#[test]
fn bytes_are_kept() {
    use std::os::unix::ffi::OsStringExt;
    let odd = [
        b"prog".to_vec(),
        b"\xff\xfe".to_vec(),
        Vec::new(),
        b"a\nb 'c' \"d\" $HOME".to_vec(),
    ];
    let odd: Vec<OsString> = odd.into_iter().map(OsString::from_vec).collect();
    let Ok(Request::Job { options, .. }) = parse(odd.clone()) else {
        panic!("refused")
    };
    assert_eq!(options.program.command, odd);
    let value = OsString::from_vec(b"-xA=\xff".to_vec());
    let Ok(Request::Job { options, .. }) = parse([value, "p".into()]) else {
        panic!("refused")
    };
    assert_eq!(
        options.program.export,
        [OsString::from_vec(b"A=\xff".to_vec())]
    );
}

/// The last one of a repeated option counts; lists grow.
#[test]
fn repeats() {
    let options = options("-np 2 -np 3 -H a -H b -x A -x B -i k1 -i k2 -v -v true");
    assert_eq!(options.hosts.np.as_deref(), Some("3"));
    assert_eq!(options.hosts.host, ["a", "b"]);
    assert_eq!(options.program.export.len(), 2);
    assert_eq!(options.reach.identity.len(), 2);
    assert_eq!(options.output.verbose, 2);
}

#[test]
fn each_program_has_options_of_its_own() {
    let options = options("-np 1 --timeout 5 a x : -np 2 -x A=1 --wdir /w -H h b : -m c -np 3");
    assert_eq!(options.program.command, words("a x"));
    let [second, third] = options.others.as_slice() else {
        panic!("{options:?}")
    };
    assert_eq!(second.hosts.np.as_deref(), Some("2"));
    assert_eq!(second.program.command, words("b"));
    assert_eq!(second.hosts.host, ["h"]);
    assert_eq!(third.program.command, words("-np 3"));
    let known: Vec<String> = Options::command()
        .get_arguments()
        .map(|argument| argument.get_id().to_string())
        .collect();
    let is_known = |id: &&str| known.iter().any(|it| it == *id);
    assert!(OF_A_PROGRAM.iter().all(is_known), "{known:?}");
}

#[test]
fn mistakes_say_what_and_what_to_try() {
    let table = [
        (
            "--tagoutput true",
            "unknown option --tagoutput, did you mean --tag-output?; `rlaunch --help` lists all",
        ),
        (
            "-hostfil h true",
            "unknown option -hostfil, did you mean --hostfile?; `rlaunch --help` lists all",
        ),
        (
            "--zzzzzz true",
            "unknown option --zzzzzz; `rlaunch --help` lists all",
        ),
        (
            "--output xml true",
            "--output xml: known are tag, rank, timestamp, merge and dir=DIR",
        ),
        ("-np", "-np needs a value"),
        ("--mca btl", "--mca needs a value"),
        (
            "--tag-output=2 true",
            "--tag-output takes no value but true and false",
        ),
        (
            "-np 4",
            "no program given: rlaunch [options] PROGRAM [args]; see `rlaunch --help`",
        ),
        (
            "",
            "no program given: rlaunch [options] PROGRAM [args]; see `rlaunch --help`",
        ),
        (
            "-np 1 a : -np 2",
            "program 1: no program given: rlaunch [options] PROGRAM [args]; see `rlaunch --help`",
        ),
        (
            ": a",
            "program 0: no program given: rlaunch [options] PROGRAM [args]; see `rlaunch --help`",
        ),
        (
            "-np 1 a : -np 2 b : --timeout 3 c",
            "program 2: --timeout is an option of the whole job\n\
             hint: write it before the first program",
        ),
        (
            "a : -v b",
            "program 1: --verbose is an option of the whole job\n\
             hint: write it before the first program",
        ),
        (
            "doctor",
            "`doctor` is not in this version; a program of that name runs as `./doctor` or after `--`",
        ),
        (
            "--rankfile f true",
            "--rankfile: rankfiles are not in this version",
        ),
        (
            "--env some true",
            "invalid value 'some' for '--env <WHICH>' [possible values: all, none]",
        ),
    ];
    for (typed, text) in table {
        assert_eq!(mistake(typed), text, "{typed}");
    }
}

/// What could be read as a short option with a value, and is none; what others call otherwise.
#[test]
fn words_that_look_like_short_options() {
    let table = [
        (
            "-hostfilehosts true",
            "unknown option -hostfilehosts, did you mean -hostfile hosts?; `rlaunch --help` lists all",
        ),
        (
            "-npernod 2 true",
            "unknown option -npernod, did you mean --npernode?; `rlaunch --help` lists all",
        ),
        (
            "-Hostfile hosts true",
            "unknown option -Hostfile, did you mean --hostfile?; `rlaunch --help` lists all",
        ),
        ("-s all true", "-s: --stdin RANK, or --stdin all"),
        ("--nodelist=a,b true", "--nodelist: -H a,b picks hosts"),
    ];
    for (typed, text) in table {
        assert_eq!(mistake(typed), text, "{typed}");
    }
}

#[test]
fn help_and_version() {
    for (line, part) in [
        ("--help", "--on-failure <WHAT>"),
        ("-h", "-hostfile hosts"),
        ("-version", "rlaunch "),
    ] {
        match parse(words(line)) {
            Ok(Request::Show(text)) => assert!(text.contains(part), "{line}: {text}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn clap_agrees_with_its_table() {
    Options::command().debug_assert();
}

/// A foreign word must not hide an option, and each stands once.
#[test]
fn words_are_unique() {
    let mut seen = std::collections::BTreeSet::new();
    for name in foreign::names() {
        assert!(seen.insert(name.to_owned()), "{name} stands twice");
    }
    for argument in Options::command().get_arguments() {
        for name in argument
            .get_long()
            .into_iter()
            .chain(argument.get_all_aliases().unwrap_or_default())
        {
            assert!(seen.insert(name.to_owned()), "{name} stands twice");
        }
    }
}
