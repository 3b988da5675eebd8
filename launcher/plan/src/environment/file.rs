//! `--env-file`: variables, one a line.
//!
//! ```text
//! WANDB_MODE=offline            # a comment begins the line, or stands behind a blank
//! export DATA="/data/my set"    # as in a shell; \n \t \" \\ \$ mean what they do there
//! RAW='as it $stands'
//! KEY="several
//! lines"
//! NCCL_*                        # without `=`: from the launcher, as -x
//! ```
//! Nothing is expanded and nothing is run. CRLF, a byte order mark and bytes that are not UTF-8 are
//! taken. The names are held to the same rules as those of `-x`.

use thiserror::Error;

use super::Export;
use crate::text::{count, show};

/// A line for each mistake: `train.env:3: …`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", lines.join("\n"))]
pub struct EnvFileError {
    lines: Vec<String>,
}

/// Mistakes told of one file.
const SHOWN_MAX: usize = 5;

/// The variables of a file that the user called `name`, in its order.
pub fn parse_file(name: &str, bytes: &[u8]) -> Result<Vec<Export>, EnvFileError> {
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let (mut number, mut exports, mut wrong) = (1, Vec::new(), Vec::new());
    while !rest.is_empty() {
        let (entry, behind) = entry(rest);
        match entry {
            Ok(None) => {}
            Ok(Some(export)) => exports.push(export),
            Err(problem) => wrong.push(format!("{name}:{number}: {problem}")),
        }
        number += rest[..rest.len() - behind.len()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        rest = behind;
    }
    if wrong.is_empty() {
        return Ok(exports);
    }
    let more = wrong.len().saturating_sub(SHOWN_MAX);
    wrong.truncate(SHOWN_MAX);
    if more > 0 {
        wrong.push(format!(
            "{name}: and {}",
            count(more as u64, "more mistake")
        ));
    }
    Err(EnvFileError { lines: wrong })
}

/// The first entry, and what stands behind its last line. At least one byte is taken.
fn entry(text: &[u8]) -> (Result<Option<Export>, String>, &[u8]) {
    let (line, behind) = line(text);
    let bare = line.trim_ascii_start();
    if bare.is_empty() || bare[0] == b'#' {
        return (Ok(None), behind);
    }
    let bare = bare.strip_prefix(b"export ").unwrap_or(bare);
    let Some(equals) = bare.iter().position(|&byte| byte == b'=') else {
        return (export(uncommented(bare), None), behind);
    };
    let name = bare[..equals].trim_ascii();
    let value = bare[equals + 1..].trim_ascii_start();
    let Some(&quote @ (b'"' | b'\'')) = value.first() else {
        return (export(name, Some(uncommented(value).to_vec())), behind);
    };
    // From behind the quote to the end of the text: it may span lines.
    let start = line.len() - value.len() + 1;
    let (value, rest) = match quoted(&text[start..], quote) {
        Ok(both) => both,
        Err(problem) => return (Err(problem), &[]),
    };
    let (left, behind) = self::line(rest);
    let left = uncommented(left).trim_ascii_start();
    if left.is_empty() {
        return (export(name, Some(value)), behind);
    }
    let left = show(&String::from_utf8_lossy(left));
    (Err(format!("`{left}` behind the closing quote")), behind)
}

/// What stands before the closing quote, and what behind it.
fn quoted(text: &[u8], quote: u8) -> Result<(Vec<u8>, &[u8]), String> {
    let mut value = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            _ if byte == quote => return Ok((value, &text[at..])),
            b'\\' if quote == b'"' => {
                let Some(&escaped) = text.get(at) else { break };
                at += 1;
                match escaped {
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'r' => value.push(b'\r'),
                    b'"' | b'\\' | b'$' | b'`' => value.push(escaped),
                    // As a shell keeps it.
                    _ => value.extend([b'\\', escaped]),
                }
            }
            _ => value.push(byte),
        }
    }
    let quote = char::from(quote);
    Err(format!("the quote {quote} has no end"))
}

fn export(name: &[u8], value: Option<Vec<u8>>) -> Result<Option<Export>, String> {
    match Export::new(name, value) {
        Ok(export) => Ok(Some(export)),
        Err(error) => Err(error
            .to_string()
            .replace("-x ", "")
            .replace("\nhint: ", "; ")),
    }
}

/// A line without its end, and what stands behind it.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let length = line_length(text);
    let line = text[..length]
        .strip_suffix(b"\n")
        .unwrap_or(&text[..length]);
    (line.strip_suffix(b"\r").unwrap_or(line), &text[length..])
}

/// With its end.
fn line_length(text: &[u8]) -> usize {
    let end = text.iter().position(|&byte| byte == b'\n');
    end.map_or(text.len(), |end| end + 1)
}

/// Without a comment behind a blank, and without blanks at the end.
fn uncommented(text: &[u8]) -> &[u8] {
    let comment = (0..text.len())
        .find(|&at| text[at] == b'#' && (at == 0 || text[at - 1].is_ascii_whitespace()));
    text[..comment.unwrap_or(text.len())].trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let exports = parse_file("f", text.as_bytes()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        exports
            .iter()
            .map(|export| match &export.value {
                Some(value) => format!("{}={}", text(&export.name), text(value)),
                None => text(&export.name),
            })
            .collect()
    }

    #[test]
    fn every_form_of_a_line() {
        let text = "\u{feff}A=1\r\n# x\n\n export B = two words # said\nC=\"a \\\"b\\\"\\n$X\\q\" # x\n\
                    D='as $it\\n'\nE=\"1\n2\"\nF=\nNCCL_*\nG=a#b";
        assert_eq!(
            shown(text),
            [
                "A=1",
                "B=two words",
                "C=a \"b\"\n$X\\q",
                "D=as $it\\n",
                "E=1\n2",
                "F=",
                "NCCL_*",
                "G=a#b"
            ]
        );
        assert_eq!(
            parse_file("f", b"A=\xff\n").unwrap()[0].value,
            Some(vec![0xff])
        );
        assert_eq!(shown(""), [""; 0]);
    }

    #[test]
    fn mistakes_are_told_together() {
        let text = "A B=1\nMASTER_ADDR=x\nC=\"1\n2\" 3\n=x\nD='";
        let error = parse_file("f", text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error,
            "f:1: A B: `A B` is no name of a variable; letters, digits and _\n\
             f:2: MASTER_ADDR: rlaunch sets MASTER_ADDR for each rank; --master-addr ADDRESS\n\
             f:3: `3` behind the closing quote\n\
             f:5: =: a name is missing; NAME or NAME=VALUE\n\
             f:6: the quote ' has no end"
        );
        let error = parse_file("f", "1\n".repeat(9).as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("\nf: and 4 more mistakes"), "{error}");
    }
}
