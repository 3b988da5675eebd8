//! Secrets are not printed: `--dry-run` and the map show `***` in their place.

/// What is shown instead of a secret.
pub const MASK: &str = "***";

const SECRET_ENDINGS: [&[u8]; 5] = [b"KEY", b"TOKEN", b"SECRET", b"PASSWORD", b"PASSWD"];

/// Whether the variable's name says that its value is a secret. Case does not matter.
pub fn is_secret(name: &[u8]) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET_ENDINGS.iter().any(|ending| upper.ends_with(ending))
}

/// A value as `--dry-run` shows it: masked if secret, control characters escaped.
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
    shown
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
        assert_eq!(display_value(b"KEYBOARD", b"de"), "de");
    }

    #[test]
    fn values_are_one_line() {
        assert_eq!(
            display_value(b"A", b"a\nb\x1b\xff\xc3\xa9"),
            "a\\nb\\u{1b}\\xff\u{e9}"
        );
    }
}
