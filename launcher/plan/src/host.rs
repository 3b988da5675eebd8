//! Who a host is: (user, name, port). Two containers behind one name differ by port.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Host {
    /// As the user wrote it, without brackets; a label for messages and what ssh is asked for.
    pub name: String,
    pub user: Option<String>,
    pub port: Option<u16>,
}

impl Host {
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            user: None,
            port: None,
        }
    }

    /// Whether a selection such as `-H a` means `other`: what it leaves open matches anything.
    pub fn selects(&self, other: &Self) -> bool {
        self.name == other.name
            && (self.user.is_none() || self.user == other.user)
            && (self.port.is_none() || self.port == other.port)
    }
}

/// `name`, `user@name`, `user@name port 2222`, `[::1] port 2222`
impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.name)?;
        if let Some(port) = self.port {
            write!(f, " port {port}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_selection_leaves_open_matches_anything() {
        let full = Host {
            name: "a".into(),
            user: Some("u".into()),
            port: Some(1),
        };
        assert!(Host::new("a").selects(&full));
        assert!(!Host::new("b").selects(&full));
        assert!(!full.selects(&Host::new("a")));
        assert!(full.selects(&full));
    }
}
