//! Python's tracebacks among what a rank prints: pure, line by line.
//!
//! ```text
//! Traceback (most recent call last):
//!   File "train.py", line 3, in <module>
//!     main()
//! ValueError: the loss is NaN            ◄ what is kept, the last one's
//! ```
//! Also with torch's `[rank3]: ` before each line, in chains ("During handling of the above
//! exception…"), inside exception groups (`  | ValueError: …`), and for a SyntaxError, whose
//! traceback may have no first line.

const BEGIN: &[u8] = b"Traceback (most recent call last):";
/// Told without that beginning.
const SYNTAX_ERROR: &[u8] = b"SyntaxError: ";
/// Longest line that is kept.
const LINE_KEPT_CHARACTERS: usize = 300;

/// Follows one stream.
#[derive(Debug, Default)]
pub struct Tracebacks {
    inside: bool,
    last: Option<String>,
}

impl Tracebacks {
    /// The next line, without its end. True if a traceback begins or an exception's name comes.
    pub fn push(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii_end();
        // Most lines are none of this, and there may be millions of them.
        if !self.inside && !line.ends_with(BEGIN) && !line.starts_with(SYNTAX_ERROR) {
            return false;
        }
        let line = String::from_utf8_lossy(line);
        let line = without_rank(&line);
        if line.as_bytes().ends_with(BEGIN) {
            self.inside = true;
            return true;
        }
        // Code, carets, `File …`; an empty line may stand in a message or between chained ones.
        if line.is_empty() || line.starts_with([' ', '\t']) {
            return false;
        }
        self.inside = false;
        let is_exception = is_exception(line);
        if is_exception {
            self.last = Some(line.chars().take(LINE_KEPT_CHARACTERS).collect());
        }
        is_exception
    }

    /// The last exception's line.
    pub fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }
}

/// torch's excepthook names the rank: `[rank0]: Traceback …`.
fn without_rank(line: &str) -> &str {
    let rest = line.strip_prefix("[rank").and_then(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        rest[end..].strip_prefix("]:")
    });
    let rest = rest.map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
    // Groups: `  + Exception Group Traceback …`, then `  | ` before each line.
    let line = rest.unwrap_or(line);
    let group = line.trim_start().strip_prefix("| ");
    group.unwrap_or(line)
}

/// `ValueError: text`, `KeyboardInterrupt`, `package.module.Error: text`
fn is_exception(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '_')
            && !word.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let group = name.split(" (").next().unwrap_or_default();
    name.split('.').all(is_word) || group.ends_with("Group")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(text: &str) -> Option<String> {
        let mut tracebacks = Tracebacks::default();
        for line in text.lines() {
            tracebacks.push(line.as_bytes());
        }
        tracebacks.last().map(str::to_owned)
    }

    #[test]
    fn the_exception_stands_below_the_code() {
        let text = "loading\nTraceback (most recent call last):\n  File \"a.py\", line 1, in \
                    <module>\n    raise ValueError(\"bad: x\")\n    ~~~^^^\nValueError: bad: x\nbye";
        assert_eq!(last(text).unwrap(), "ValueError: bad: x");
        assert_eq!(last("ValueError: printed by the program\n"), None);
        let bare = "Traceback (most recent call last):\n  File \"a\"\nKeyboardInterrupt\n";
        assert_eq!(last(bare).unwrap(), "KeyboardInterrupt");
        let dotted =
            "Traceback (most recent call last):\n  x\ntorch.cuda.OutOfMemoryError: CUDA out";
        assert_eq!(
            last(dotted).unwrap(),
            "torch.cuda.OutOfMemoryError: CUDA out"
        );
    }

    #[test]
    fn of_a_chain_the_last_one_counts() {
        let text = "Traceback (most recent call last):\n  x\nKeyError: 'a'\n\nDuring handling of \
                    the above exception, another exception occurred:\n\nTraceback (most recent \
                    call last):\n  y\nRuntimeError: b\n";
        assert_eq!(last(text).unwrap(), "RuntimeError: b");
    }

    #[test]
    fn torch_names_the_rank_in_each_line() {
        let text = "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"a\"\n[rank3]:     \
                    x()\n[rank3]: RuntimeError: c";
        assert_eq!(last(text).unwrap(), "RuntimeError: c");
    }

    #[test]
    fn groups_and_syntax_errors() {
        let text = "  + Exception Group Traceback (most recent call last):\n  |   File \"a\"\n  | \
                    ExceptionGroup: two (2 sub-exceptions)\n";
        assert_eq!(
            last(text).unwrap(),
            "ExceptionGroup: two (2 sub-exceptions)"
        );
        let text = "  File \"a.py\", line 1\n    x =\n       ^\nSyntaxError: invalid syntax\n";
        assert_eq!(last(text).unwrap(), "SyntaxError: invalid syntax");
    }

    #[test]
    fn endless_lines_are_cut() {
        let text = format!(
            "Traceback (most recent call last):\n  x\nValueError: {}",
            "é".repeat(9999)
        );
        assert_eq!(last(&text).unwrap().chars().count(), LINE_KEPT_CHARACTERS);
    }
}
