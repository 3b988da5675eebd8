//! A command line split into words as a POSIX shell would, without expansions.

/// None if a quote is open or nothing is there.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => quoted_single(&mut characters, word.get_or_insert_default())?,
            '"' => quoted_double(&mut characters, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(characters.next()?),
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    (!words.is_empty()).then_some(words)
}

fn quoted_single(characters: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match characters.next()? {
            '\'' => return Some(()),
            other => word.push(other),
        }
    }
}

fn quoted_double(characters: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match characters.next()? {
            '"' => return Some(()),
            '\\' => match characters.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_split_as_a_shell_would() {
        let cases: [(&str, &[&str]); 7] = [
            ("ssh", &["ssh"]),
            ("  ssh -J  gate ", &["ssh", "-J", "gate"]),
            (
                "ssh -o 'ProxyCommand=nc %h %p'",
                &["ssh", "-o", "ProxyCommand=nc %h %p"],
            ),
            (r#"a"b c"d"#, &["ab cd"]),
            (r#""a\"b\n" c\ d"#, &[r#"a"b\n"#, "c d"]),
            ("x '' \"\"", &["x", "", ""]),
            ("é\tü", &["é", "ü"]),
        ];
        for (line, words) in cases {
            assert_eq!(split(line).as_deref().unwrap(), words, "{line}");
        }
        for bad in ["", "  ", "'a", "\"a", "a\\"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }
}
