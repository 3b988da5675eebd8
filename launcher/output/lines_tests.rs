use super::*;

const TAG: Style = Style {
    tag: true,
    timestamp: false,
};
const PLAIN: Style = Style {
    tag: false,
    timestamp: false,
};

fn source(rank: u32, stream: Stream) -> Source {
    Source { rank, stream }
}

fn stdout(rank: u32, text: &str) -> Item {
    on(source(rank, Stream::Stdout), text)
}

fn on(source: Source, text: &str) -> Item {
    Item::Chunk(Chunk {
        source,
        data: text.to_owned().into(),
        host_time_us: 0,
        partial: !text.ends_with('\n'),
    })
}

fn text(lines: &mut Lines) -> String {
    let pieces = lines.take().0.into_iter();
    pieces
        .map(|piece| String::from_utf8(piece.data).unwrap())
        .collect()
}

fn shown(style: Style, chunks: &[(u32, &str, u64)]) -> String {
    let mut lines = Lines::new(style);
    for &(rank, text, at_ms) in chunks {
        let now = Duration::from_millis(at_ms);
        lines.handle_timeout(now);
        lines.handle(stdout(rank, text), now);
    }
    lines.finish();
    text(&mut lines)
}

/// Pieces of one line that come shortly after each other stay one line.
#[test]
fn pieces_meet_again() {
    let chunks = [
        (0, "abc", 0),
        (1, "x\n", 1),
        (0, "def", 2),
        (1, "y\n", 3),
        (0, "g\n", 4),
    ];
    assert_eq!(shown(PLAIN, &chunks), "x\ny\nabcdefg\n");
    assert_eq!(
        shown(TAG, &chunks),
        "[1]<stdout>: x\n[1]<stdout>: y\n[0]<stdout>: abcdefg\n"
    );
}

/// A prompt is seen after the hold; another rank's line does not end up inside it.
#[test]
fn an_open_line_is_closed_for_others() {
    let chunks = [
        (0, "10%", 0),
        (1, "x\n", 500),
        (0, "20%\n", 600),
        (0, "z\n", 700),
    ];
    assert_eq!(shown(PLAIN, &chunks), "10%\nx\n20%\nz\n");
    assert_eq!(
        shown(TAG, &chunks),
        "[0]<stdout>: 10%\n[1]<stdout>: x\n[0]<stdout>+ 20%\n[0]<stdout>: z\n"
    );
}

/// A line that was closed for others has its newline already.
#[test]
fn an_empty_rest_is_no_line() {
    let chunks = [
        (0, "100%", 0),
        (1, "x\n", 500),
        (0, "\n", 600),
        (0, "y\n", 700),
    ];
    assert_eq!(shown(PLAIN, &chunks), "100%\nx\ny\n");
    assert_eq!(
        shown(TAG, &chunks),
        "[0]<stdout>: 100%\n[1]<stdout>: x\n[0]<stdout>: y\n"
    );
}

/// A progress bar of the only rank that prints comes through byte for byte, and live.
#[test]
fn progress_bars_are_live() {
    let mut lines = Lines::new(PLAIN);
    for step in 0..5u64 {
        let drawing = format!("\r{step}0%");
        lines.handle(stdout(0, &drawing), Duration::from_millis(step * 200));
        lines.handle_timeout(Duration::from_millis(step * 200 + 60));
        assert_eq!(text(&mut lines), drawing);
    }
    assert_eq!(lines.poll_timeout(), None);
}

#[test]
fn the_end_shows_what_is_held() {
    let mut lines = Lines::new(PLAIN);
    lines.handle(stdout(0, "no newline"), Duration::ZERO);
    assert_eq!(text(&mut lines), "");
    assert_eq!(lines.poll_timeout(), Some(HOLD));
    lines.handle(Item::End(source(0, Stream::Stdout)), Duration::ZERO);
    assert_eq!(text(&mut lines), "no newline");
    lines.handle(stdout(1, "next\n"), Duration::ZERO);
    assert_eq!(text(&mut lines), "\nnext\n");
}

#[test]
fn pieces_keep_the_order_of_streams() {
    let mut lines = Lines::new(PLAIN);
    lines.handle(stdout(0, "out\n"), Duration::ZERO);
    let stderr = on(source(0, Stream::Stderr), "err\n");
    lines.handle(stderr, Duration::ZERO);
    lines.handle(Item::Talk("rlaunch: word".into()), Duration::ZERO);
    let (pieces, shown) = lines.take();
    assert_eq!(pieces.len(), 2);
    assert_eq!(pieces[0].data, b"out\n");
    assert_eq!(pieces[1].data, b"err\nrlaunch: word\n");
    assert_eq!(shown.iter().map(|(_, bytes)| bytes).sum::<u64>(), 8);
}

/// A word of the launcher's, and another rank's stderr, begin their own line; of one rank the
/// streams meet as on a terminal of its own, unless tags must tell them apart.
#[test]
fn other_sources_close_an_open_line() {
    let table: [(Style, Item, &str); 4] = [
        (
            PLAIN,
            Item::Talk("rlaunch: word".into()),
            "oops\nrlaunch: word\n",
        ),
        (PLAIN, on(source(1, Stream::Stderr), "err\n"), "oops\nerr\n"),
        (PLAIN, on(source(0, Stream::Stderr), "err\n"), "oopserr\n"),
        (
            TAG,
            on(source(0, Stream::Stderr), "err\n"),
            "[0]<stdout>: oops\n[0]<stderr>: err\n",
        ),
    ];
    for (style, item, expected) in table {
        let mut lines = Lines::new(style);
        lines.handle(stdout(0, "oops"), Duration::ZERO);
        lines.handle_timeout(HOLD);
        lines.handle(item, HOLD);
        assert_eq!(text(&mut lines), expected);
    }
}

/// Two ranks with 20,000 characters a line, in pieces of any size: no line is mixed.
#[test]
fn long_lines_stay_whole() {
    let mut lines = Lines::new(PLAIN);
    for round in 0..20u64 {
        for part in 0..5 {
            for rank in 0..2u32 {
                let letter = if rank == 0 { "a" } else { "b" };
                let end = if part == 4 { "\n" } else { "" };
                let now = Duration::from_millis(round * 10);
                lines.handle(stdout(rank, &(letter.repeat(4000) + end)), now);
            }
        }
    }
    let text = text(&mut lines);
    assert_eq!(text.lines().count(), 40);
    for line in text.lines() {
        assert_eq!(line.len(), 20_000);
        assert!(line.bytes().all(|byte| byte == line.as_bytes()[0]));
    }
}

/// Lines past every bound, of two ranks at once: each is shown as it comes, one after the other,
/// and who waits gives no credit back.
#[test]
fn lines_of_any_length_stay_whole() {
    const PIECES: usize = 10;
    let mut lines = Lines::new(PLAIN);
    let long = ["a", "b"].map(|letter| letter.repeat(LINE_MAX_BYTES));
    for _ in 0..PIECES {
        for (rank, piece) in (0..).zip(&long) {
            lines.handle(stdout(rank, piece), Duration::ZERO);
        }
    }
    lines.handle(stdout(2, "short\n"), Duration::ZERO);
    let (pieces, shown) = lines.take();
    let bytes: usize = pieces.iter().map(|piece| piece.data.len()).sum();
    assert_eq!(
        bytes,
        PIECES * LINE_MAX_BYTES,
        "rank 0's is shown as it comes"
    );
    assert!(shown.iter().all(|(source, _)| source.rank == 0));
    lines.handle(stdout(0, "end\n"), Duration::ZERO);
    assert_eq!(text(&mut lines).len(), 4 + PIECES * LINE_MAX_BYTES);
    lines.handle(stdout(1, "end\n"), Duration::ZERO);
    assert_eq!(text(&mut lines), "end\nshort\n");
    assert_eq!(lines.poll_timeout(), None);
}

/// A rank that stops inside a line past every bound is waited for no longer than said.
#[test]
fn a_long_line_that_stands_still_is_closed() {
    let piece = "a".repeat(LINE_MAX_BYTES);
    for end in [false, true] {
        let mut lines = Lines::new(PLAIN);
        lines.handle(stdout(0, &piece), Duration::ZERO);
        lines.handle(stdout(1, "x\n"), Duration::ZERO);
        lines.handle(Item::Talk("word".into()), Duration::ZERO);
        assert_eq!(lines.poll_timeout(), Some(LINE_RUN_PAUSE_MAX));
        if end {
            lines.handle(Item::End(source(0, Stream::Stdout)), Duration::ZERO);
        } else {
            lines.handle_timeout(LINE_RUN_PAUSE_MAX);
        }
        assert!(text(&mut lines).ends_with("a\nx\nword\n"));
    }
    let mut lines = Lines::new(PLAIN);
    lines.handle(stdout(0, &piece), Duration::ZERO);
    lines.handle(stdout(1, &piece), Duration::ZERO);
    lines.handle(stdout(2, "x\n"), Duration::ZERO);
    lines.finish();
    assert!(text(&mut lines).ends_with("a\nx\n") || lines.waiting.is_empty());
}

/// Nobody waits for ever for a line that has no end.
#[test]
fn an_endless_line_is_closed_in_the_end() {
    let mut lines = Lines::new(TAG);
    let piece = "a".repeat(LINE_MAX_BYTES);
    lines.handle(stdout(1, "b\n"), Duration::ZERO);
    let mut bytes = 0;
    let mut has_waited = false;
    while !has_waited {
        lines.handle(stdout(0, &piece), Duration::ZERO);
        bytes += piece.len() as u64;
        if bytes == 2 * piece.len() as u64 {
            lines.handle(stdout(1, "waits\n"), Duration::ZERO);
        }
        let end = b"\n[1]<stdout>: waits\n";
        has_waited = lines.take().0.iter().any(|it| it.data.ends_with(end));
        assert!(bytes <= LINE_RUN_MAX_BYTES + piece.len() as u64);
    }
    lines.handle(stdout(0, "rest\n"), Duration::ZERO);
    assert_eq!(text(&mut lines), "[0]<stdout>+ rest\n");
}

/// Whatever comes in whatever order and time: no byte is lost, doubled or out of order, and all
/// credit comes back.
#[test]
fn nothing_is_lost_in_any_order() {
    for seed in 0..40u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut lines = Lines::new(if seed % 2 == 0 { PLAIN } else { TAG });
        let mut sent = vec![0u64; 4];
        let (mut now, mut seen, mut credit, mut total) = (Duration::ZERO, String::new(), 0, 0);
        for _ in 0..40 {
            let rank = u32::try_from(random(4)).unwrap();
            let stream = [Stream::Stdout, Stream::Stderr][usize::try_from(rank % 2).unwrap()];
            let len = [0, 1, 3, 50][usize::try_from(random(4)).unwrap()];
            let long = random(30) == 0;
            let len = if long { LINE_MAX_BYTES } else { len };
            let letter = ["A", "B", "C", "D"][rank as usize];
            let end = ["", "", "\n", "\r"][usize::try_from(random(4)).unwrap()];
            let piece = letter.repeat(len) + end;
            sent[rank as usize] += len as u64;
            total += piece.len() as u64;
            lines.handle(on(source(rank, stream), &piece), now);
            if random(20) == 0 {
                lines.handle(Item::Talk("word".into()), now);
            }
            now += Duration::from_millis(random(300));
            lines.handle_timeout(now);
            let (pieces, shown) = lines.take();
            credit += shown.iter().map(|(_, bytes)| bytes).sum::<u64>();
            seen.extend(
                pieces
                    .into_iter()
                    .map(|it| String::from_utf8(it.data).unwrap()),
            );
        }
        lines.finish();
        let (pieces, shown) = lines.take();
        credit += shown.iter().map(|(_, bytes)| bytes).sum::<u64>();
        seen.extend(
            pieces
                .into_iter()
                .map(|it| String::from_utf8(it.data).unwrap()),
        );
        let seen = seen.as_bytes();
        let counts = *b"ABCD";
        let counts = counts.map(|letter| memchr::memchr_iter(letter, seen).count() as u64);
        assert_eq!((counts.to_vec(), credit), (sent, total), "seed {seed}");
        let mut rest = seen;
        while !rest.is_empty() {
            let end = memchr::memchr2(b'\n', b'\r', rest).map_or(rest.len(), |at| at + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            let has = |letter: &u8| memchr::memchr(*letter, line).is_some();
            let ranks = b"ABCD".iter().filter(|letter| has(letter));
            assert!(ranks.count() <= 1, "seed {seed}");
        }
    }
}
