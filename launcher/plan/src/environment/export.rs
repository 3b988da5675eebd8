//! `-x NAME`, `-x NAME=VALUE` and `-x 'NAMES_*'`.

use rlaunch_wire::owner::is_set_for_each_rank;
use thiserror::Error;

use crate::text::show;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Without a value it may be a pattern.
    pub name: Vec<u8>,
    /// Absent: the launcher's own value.
    pub value: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExportError {
    #[error("-x {word}: a name is missing\nhint: -x NAME or -x NAME=VALUE")]
    NoName { word: String },
    #[error("-x {word}: a value can't hold a NUL byte")]
    Nul { word: String },
    #[error("-x {word}: a pattern can't have a value\nhint: one name, or no value")]
    Pattern { word: String },
    #[error("-x {word}: one variable at a time\nhint: {hint}")]
    Several { word: String, hint: String },
    #[error("-x {word}: `{name}` is no name of a variable\nhint: letters, digits and _")]
    BadName { word: String, name: String },
    #[error("-x {name}: rlaunch sets {name} for each rank\nhint: {hint}")]
    SetByLauncher { name: String, hint: String },
}

impl Export {
    /// Parses what stands behind one `-x`.
    pub fn parse(word: &[u8]) -> Result<Self, ExportError> {
        match word.iter().position(|&byte| byte == b'=') {
            Some(at) => Self::new(&word[..at], Some(word[at + 1..].to_vec())),
            None => Self::new(word, None),
        }
    }

    pub(super) fn new(name: &[u8], value: Option<Vec<u8>>) -> Result<Self, ExportError> {
        let shown = || {
            let equals = if value.is_some() { "=" } else { "" };
            show(&(String::from_utf8_lossy(name) + equals))
        };
        if name.is_empty() {
            return Err(ExportError::NoName { word: shown() });
        }
        if name.contains(&b',') {
            let text = String::from_utf8_lossy(name);
            let each = text.split(',').map(|part| format!("-x {}", part.trim()));
            let hint = show(&each.collect::<Vec<_>>().join(" "));
            return Err(ExportError::Several {
                word: shown(),
                hint,
            });
        }
        // It would end there.
        if value.as_ref().is_some_and(|value| value.contains(&0)) {
            return Err(ExportError::Nul { word: shown() });
        }
        if is_pattern(name) && value.is_some() {
            return Err(ExportError::Pattern { word: shown() });
        }
        // Shell functions travel as BASH_FUNC_name%%; beyond those, names as every shell knows.
        let plain = |&byte: &u8| byte.is_ascii_alphanumeric() || b"_%()-.*?".contains(&byte);
        if name[0].is_ascii_digit() || !name.iter().all(plain) {
            let name = show(&String::from_utf8_lossy(name));
            let word = shown().trim_end_matches('=').to_owned();
            return Err(ExportError::BadName { word, name });
        }
        if is_set_for_each_rank(name) {
            let hint = match name {
                b"MASTER_ADDR" => "--master-addr ADDRESS",
                b"MASTER_PORT" => "--master-port PORT",
                b"WORLD_SIZE" => "-np N",
                _ => "leave it out",
            };
            let name = String::from_utf8_lossy(name).into_owned();
            return Err(ExportError::SetByLauncher {
                name,
                hint: hint.to_owned(),
            });
        }
        Ok(Self {
            name: name.to_vec(),
            value,
        })
    }

    /// Whether it stands for all names that fit.
    pub fn is_pattern(&self) -> bool {
        is_pattern(&self.name)
    }
}

fn is_pattern(name: &[u8]) -> bool {
    name.contains(&b'*') || name.contains(&b'?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_name_and_its_value() {
        let export = Export::parse(b"NCCL_DEBUG").unwrap();
        assert_eq!(
            (export.name.as_slice(), export.value),
            (&b"NCCL_DEBUG"[..], None)
        );
        let export = Export::parse(b"A=b=c,\n\xff").unwrap();
        assert_eq!(export.value.unwrap(), b"b=c,\n\xff");
        assert_eq!(Export::parse(b"A=").unwrap().value.unwrap(), b"");
        assert!(Export::parse(b"BASH_FUNC_module%%").is_ok());
        assert!(Export::parse(b"NCCL_*").unwrap().is_pattern());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let error = Export::parse(b"A,B").unwrap_err().to_string();
        assert_eq!(error, "-x A,B: one variable at a time\nhint: -x A -x B");
        for word in [&b""[..], b"=x", b"1A", b"A B=1", b"\xff", b"A*=1"] {
            assert!(Export::parse(word).is_err(), "{word:?}");
        }
    }

    #[test]
    fn what_each_rank_gets_is_refused() {
        let error = Export::parse(b"MASTER_ADDR=a").unwrap_err().to_string();
        assert!(error.ends_with("hint: --master-addr ADDRESS"), "{error}");
        assert!(Export::parse(b"RANK").is_err());
        assert!(Export::parse(b"OMPI_MCA_btl=tcp").is_ok());
        assert!(Export::parse(b"CUDA_VISIBLE_DEVICES=1").is_ok());
        assert!(Export::parse(b"RLAUNCH_TRANSPORT=tcp").is_ok());
    }
}
