//! ssh's patterns: `*` for any text, `?` for one byte.

/// Takes time by the product of the lengths at most.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[position] => {
                at += 1;
                position += 1;
            }
            _ => match &mut star {
                Some((after, taken)) => {
                    *taken += 1;
                    (at, position) = (*after + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks_match_as_in_ssh() {
        for (pattern, name, matched) in [
            ("node1", "node1", true),
            ("node?", "node1", true),
            ("node?", "node", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*.example.com", "a.b.example.com", true),
            ("n*1*3", "n123123", true),
            ("n*1*3", "n12312", false),
            ("Node1", "node1", false),
        ] {
            assert_eq!(matches(pattern, name), matched, "{pattern} {name}");
        }
        let pattern = "*a".repeat(500);
        assert!(!matches(&pattern, &"a".repeat(499)));
    }
}
