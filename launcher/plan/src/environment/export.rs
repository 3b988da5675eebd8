//! `-x NAME` and `-x NAME=VALUE`.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    pub name: Vec<u8>,
    /// Absent: the launcher's own value.
    pub value: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExportError {
    #[error("-x {word}: a name is missing\nhint: -x NAME or -x NAME=VALUE")]
    NoName { word: String },
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
        let _ = word;
        Err(ExportError::NoName {
            word: String::new(),
        })
    }
}
