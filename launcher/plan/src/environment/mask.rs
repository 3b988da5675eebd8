//! Secrets are not printed: `--dry-run` and the map show `***` in their place.

/// What is shown instead of a secret.
pub const MASK: &str = "***";

const SECRET_ENDINGS: [&[u8]; 6] = [b"KEY", b"KEYS", b"TOKEN", b"TOKENS", b"PASSWORD", b"PASSWD"];
/// Between underscores, anywhere: SECRET_KEY_BASE, GITHUB_PAT.
const SECRET_WORDS: [&[u8]; 7] = [
    b"SECRET",
    b"SECRETS",
    b"PASSWORD",
    b"PASSPHRASE",
    b"CREDENTIALS",
    b"PAT",
    b"PASS",
];

/// Whether the variable's name says that its value is a secret. Case does not matter.
pub fn is_secret(name: &[u8]) -> bool {
    let upper = name.to_ascii_uppercase();
    let mut words = upper.split(|byte| *byte == b'_');
    SECRET_ENDINGS.iter().any(|ending| upper.ends_with(ending))
        || words.any(|word| SECRET_WORDS.contains(&word))
}

/// A value as `--dry-run` shows it: masked if secret, so are passwords in URLs, control characters
/// escaped.
pub fn display_value(name: &[u8], value: &[u8]) -> String {
    if is_secret(name) && !value.is_empty() {
        return MASK.to_owned();
    }
    let mut shown = String::new();
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    mask_urls(&shown)
}

/// `http://user:password@proxy` as `http://user:***@proxy`.
fn mask_urls(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(['/', ' ', ',', '?', '#']).unwrap_or(after.len());
        rest = after;
        if let Some((login, _)) = after[..end].rsplit_once('@')
            && let Some((user, _)) = login.split_once(':')
        {
            shown.push_str(&format!("{user}:{MASK}"));
            rest = &after[login.len()..];
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        assert_eq!(display_value(b"AWS_SECRET_ACCESS_KEY", b"abc"), MASK);
        assert_eq!(display_value(b"hf_token", b"abc"), MASK);
        assert_eq!(display_value(b"DB_PASSWORD", b"abc"), MASK);
        assert_eq!(display_value(b"DB_PASSWORD", b""), "");
        assert_eq!(display_value(b"SECRET_KEY_BASE", b"abc"), MASK);
        assert_eq!(display_value(b"GITHUB_PAT", b"abc"), MASK);
        for name in [
            "KEYBOARD",
            "TOKENIZERS_PARALLELISM",
            "PATH",
            "PYTHONPATH",
            "BYPASS",
        ] {
            assert_eq!(display_value(name.as_bytes(), b"de"), "de", "{name}");
        }
    }

    #[test]
    fn passwords_in_urls_are_masked() {
        for (value, shown) in [
            ("http://me:pw@proxy:80/x@y", "http://me:***@proxy:80/x@y"),
            (
                "postgres://u:p@w@db a://b:c@d",
                "postgres://u:***@db a://b:***@d",
            ),
            ("http://proxy:80,me@x", "http://proxy:80,me@x"),
            ("ssh://me@host", "ssh://me@host"),
            ("a://", "a://"),
        ] {
            assert_eq!(display_value(b"URL", value.as_bytes()), shown);
        }
    }

    #[test]
    fn values_are_one_line() {
        assert_eq!(
            display_value(b"A", b"a\nb\x1b\xff\xc3\xa9"),
            "a\\nb\\u{1b}\\xff\u{e9}"
        );
    }
}
