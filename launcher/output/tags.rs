//! What stands before each line: `[3]<stdout>: `, and a time stamp before that. Pure.
//!
//! A line that is drawn over itself with CR (a progress bar) gets its tag at each drawing, for CR
//! goes back to where the tag stands. `[3]<stdout>+ ` stands before the rest of a line that was
//! closed early.

use memchr::memchr2;

use super::Source;
use super::stamp::stamp;

/// What stands before each line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub tag: bool,
    pub timestamp: bool,
}

/// What has to come before the next byte of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Due {
    #[default]
    Nothing,
    /// The tag of a new line.
    Tag,
    /// The tag of the rest of a line that was closed early.
    Rest,
    /// The line's tag again, unless the line ends here: a CR was the last byte.
    Redrawn,
}

impl Style {
    pub(super) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Appends `data` to `text` with tags, the first as `due` says; what is due after it.
    pub(super) fn append(
        self,
        text: &mut Vec<u8>,
        data: &[u8],
        source: Source,
        host_time_us: i64,
        mut due: Due,
    ) -> Due {
        let tag = self.tag(source, host_time_us, ':');
        let mut rest = data;
        while !rest.is_empty() {
            let end = memchr2(b'\n', b'\r', rest).map_or(rest.len(), |at| at + 1);
            let (part, after) = rest.split_at(end);
            rest = after;
            // A drawing begins with CR: the tag comes behind it, and once.
            if part == b"\r" && after.first() != Some(&b'\n') {
                due = if due == Due::Nothing {
                    Due::Redrawn
                } else {
                    due
                };
                text.extend(part);
                continue;
            }
            match due {
                Due::Tag => text.extend(&tag),
                Due::Rest => text.extend(self.tag(source, host_time_us, '+')),
                Due::Redrawn if part != b"\n" => text.extend(&tag),
                Due::Redrawn | Due::Nothing => {}
            }
            text.extend(part);
            due = match part.last() {
                Some(b'\n') => Due::Tag,
                Some(b'\r') if after.first() != Some(&b'\n') => Due::Redrawn,
                _ => Due::Nothing,
            };
        }
        due
    }

    fn tag(self, source: Source, host_time_us: i64, end: char) -> Vec<u8> {
        let mut tag = String::new();
        if self.timestamp {
            tag = stamp(host_time_us);
            tag.push(' ');
        }
        if self.tag {
            let Source { rank, stream } = source;
            tag.push_str(&format!("[{rank}]<{}>{end} ", stream.name()));
        }
        tag.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stream;
    use super::*;

    const STYLE: Style = Style {
        tag: true,
        timestamp: false,
    };
    const SOURCE: Source = Source {
        rank: 3,
        stream: Stream::Stderr,
    };

    /// In pieces of every size the text is the same, with `T` for the tag.
    fn tagged(text: &str) -> String {
        let mut results = Vec::new();
        for size in 1..=text.len() {
            let (mut to, mut due) = (Vec::new(), Due::Tag);
            for piece in text.as_bytes().chunks(size) {
                due = STYLE.append(&mut to, piece, SOURCE, 0, due);
            }
            let text = String::from_utf8(to).unwrap();
            results.push(text.replace("[3]<stderr>: ", "T"));
        }
        results.dedup();
        assert_eq!(results.len(), 1, "{results:?}");
        results.remove(0)
    }

    #[test]
    fn each_line_has_its_tag() {
        assert_eq!(tagged("a\nb\n"), "Ta\nTb\n");
        assert_eq!(tagged("\n\n"), "T\nT\n");
        assert_eq!(tagged("no end"), "Tno end");
    }

    #[test]
    fn each_drawing_of_a_progress_bar_has_its_tag() {
        assert_eq!(
            tagged("\r10%\r20%\r30%\nend\n"),
            "\rT10%\rT20%\rT30%\nTend\n"
        );
        assert_eq!(tagged("10%\r20%\r"), "T10%\rT20%\r");
        assert_eq!(tagged("a\r\r\rb\n"), "Ta\r\r\rTb\n");
    }

    #[test]
    fn lines_of_other_systems_are_lines() {
        assert_eq!(tagged("one\r\ntwo\r\n"), "Tone\r\nTtwo\r\n");
    }

    #[test]
    fn the_rest_of_a_closed_line_says_so() {
        let mut text = Vec::new();
        let due = STYLE.append(&mut text, b"20%\nnext", SOURCE, 0, Due::Rest);
        assert_eq!(text, b"[3]<stderr>+ 20%\n[3]<stderr>: next");
        assert_eq!(due, Due::Nothing);
    }

    #[test]
    fn time_stands_before_the_tag() {
        let style = Style {
            tag: true,
            timestamp: true,
        };
        let mut text = Vec::new();
        style.append(&mut text, b"x\n", SOURCE, 0, Due::Tag);
        assert_eq!(text, b"1970-01-01T00:00:00.000Z [3]<stderr>: x\n");
    }
}
