//! `-x 'NCCL_*'`: names by a pattern. `*` is any number of bytes, `?` one.

/// Whether the whole of `name` fits `pattern`. Takes at most their product in steps.
pub(super) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Behind the last `*`, and how much it has taken so far.
    let mut last: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                last = Some((at, read));
            }
            Some(&byte) if byte == b'?' || byte == name[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((behind, taken)) = last else {
                    return false;
                };
                last = Some((behind, taken + 1));
                (at, read) = (behind, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("NCCL_*", "NCCL_DEBUG", true),
            ("NCCL_*", "NCCL_", true),
            ("NCCL_*", "NCCL", false),
            ("*_IB_*", "NCCL_IB_HCA", true),
            ("*_IB_*", "NCCL_IBHCA", false),
            ("A?", "AB", true),
            ("A?", "A", false),
            ("*", "", true),
            ("a*b*c", "abbbcbc", true),
            ("a*b*c", "abbbcb", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
        let many = [b'a'; 2000];
        assert!(!fits(&b"*a*a*a*a*a*a*a*b".repeat(9), &many));
    }
}
