//! `docs/algorithms.md` says of each algorithm what the header of its file says.

use std::path::PathBuf;

use rlaunch_schedule::{Algorithm, reduces};
use rlaunch_wire::Collective;

const BEGIN: &str = "<!-- from the headers of runtime/schedule/src/algorithms -->\n";
const END: &str = "<!-- end -->\n";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    #[expect(
        clippy::disallowed_methods,
        reason = "the crate is pure, its test reads its files"
    )]
    let text = std::fs::read_to_string(&path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of an algorithm's header: collectives, and what is said of them.
fn rows(algorithm: Algorithm) -> Vec<(Vec<String>, String)> {
    let source = read(&format!("runtime/schedule/src/algorithms/{algorithm}.rs"));
    let lines = source
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "));
    let rows = lines.filter(|line| !line.starts_with("collective |"));
    rows.map(|row| {
        let (names, rest) = row.split_once(" | ").expect("a row has columns");
        let names = names.split(", ").map(str::to_owned).collect();
        (names, rest.to_owned())
    })
    .collect()
}

fn table() -> String {
    let mut table = "| collective | algorithm | order of ranks | steps | bytes sent by a rank | scratch | wins |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    for &collective in Collective::ALL {
        for algorithm in Algorithm::serving(collective) {
            let base = collective.name().trim_end_matches("_v");
            let rows = rows(algorithm);
            let row = rows
                .iter()
                .find(|(names, _)| names.iter().any(|name| name == base));
            let (_, row) =
                row.unwrap_or_else(|| panic!("{algorithm}.rs says nothing of {collective}"));
            let order = match (reduces(collective), algorithm.keeps_order(collective)) {
                (false, _) => "–",
                (_, true) => "kept where asked for",
                (_, false) => "not kept",
            };
            table += &format!("| {collective} | {algorithm} | {order} | {row}\n");
        }
    }
    table
}

/// With UPDATE_DOCS=1 the table is written instead.
#[test]
fn the_document_is_that_of_the_code() {
    let document = read("docs/algorithms.md");
    let (before, rest) = document.split_once(BEGIN).expect("the table's begin");
    let (found, after) = rest.split_once(END).expect("the table's end");
    let table = table();
    #[expect(clippy::disallowed_methods, reason = "a switch of this test")]
    let is_update = std::env::var_os("UPDATE_DOCS").is_some();
    if is_update {
        let document = format!("{before}{BEGIN}{table}{END}{after}");
        std::fs::write(root().join("docs/algorithms.md"), document).unwrap();
    } else {
        assert_eq!(
            found, table,
            "run the test with UPDATE_DOCS=1 to write the table anew"
        );
    }
}

/// Every row of a header is of a collective that the algorithm serves.
#[test]
fn headers_say_nothing_of_what_is_not_served() {
    for &algorithm in Algorithm::ALL {
        for name in rows(algorithm).into_iter().flat_map(|(names, _)| names) {
            let collective = Collective::ALL.iter().find(|one| one.name() == name);
            let collective = collective.unwrap_or_else(|| panic!("{algorithm}.rs: `{name}`"));
            assert!(algorithm.serves(*collective), "{algorithm}.rs: {name}");
        }
    }
}
