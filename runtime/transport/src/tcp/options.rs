//! What a user can say about TCP, read from variables; pure.

use std::ops::RangeInclusive;

use rlaunch_wire::environment as name;

use super::interfaces::{Family, InterfaceFilter};

/// Choices for all TCP connections of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TcpOptions {
    pub filter: Option<InterfaceFilter>,
    pub family: Family,
    /// Only these ports are listened on; else the system chooses one.
    pub ports: Option<RangeInclusive<u16>>,
    /// Sockets to each peer; else one inside a host, and between hosts what links are worth.
    pub sockets: Option<usize>,
}

/// More sockets to one peer than any link needs.
pub const SOCKETS_MAX: usize = 32;

impl TcpOptions {
    /// Reads RLAUNCH_SOCKET_IFNAME (else NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME),
    /// RLAUNCH_SOCKET_FAMILY (else NCCL_SOCKET_FAMILY), RLAUNCH_PORT_RANGE and RLAUNCH_SOCKETS. The
    /// error names the variable.
    pub fn from_variables(read: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut options = Self::default();
        let first = |names: &[&'static str]| {
            let mut found = names.iter().filter_map(|name| Some((*name, read(name)?)));
            found.find(|(_, value)| !value.trim().is_empty())
        };
        let filters = [
            name::RLAUNCH_SOCKET_IFNAME,
            name::NCCL_SOCKET_IFNAME,
            name::GLOO_SOCKET_IFNAME,
        ];
        if let Some((name, value)) = first(&filters) {
            options.filter = Some(InterfaceFilter::parse(name, &value)?);
        }
        if let Some((name, value)) = first(&[name::RLAUNCH_SOCKET_FAMILY, name::NCCL_SOCKET_FAMILY])
        {
            options.family = match value.trim() {
                "4" | "AF_INET" => Family::V4,
                "6" | "AF_INET6" => Family::V6,
                _ => return Err(format!("{name}={value:?} is not 4 or 6")),
            };
        }
        if let Some((name, value)) = first(&[name::RLAUNCH_PORT_RANGE]) {
            options.ports = Some(parse_ports(&value).ok_or_else(|| {
                format!("{name}={value:?} is not a range of ports like 20000-20099")
            })?);
        }
        if let Some((name, value)) = first(&[name::RLAUNCH_SOCKETS]) {
            match value.trim().parse() {
                Ok(sockets) if (1..=SOCKETS_MAX).contains(&sockets) => {
                    options.sockets = Some(sockets);
                }
                _ => return Err(format!("{name}={value:?} is not from 1 to {SOCKETS_MAX}")),
            }
        }
        Ok(options)
    }
}

fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let low: u16 = low.trim().parse().ok()?;
    let high: u16 = high.trim().parse().ok()?;
    (low > 0 && low <= high).then_some(low..=high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> Result<TcpOptions, String> {
        TcpOptions::from_variables(|name| {
            let mut found = variables.iter().filter(|(key, _)| *key == name);
            found.next().map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn the_own_variable_comes_before_those_of_others() {
        let options = parse(&[
            ("GLOO_SOCKET_IFNAME", "g"),
            ("NCCL_SOCKET_IFNAME", "n"),
            ("RLAUNCH_SOCKET_IFNAME", "r"),
            ("NCCL_SOCKET_FAMILY", "AF_INET6"),
        ]);
        let options = options.unwrap();
        let filter = options.filter.unwrap().to_string();
        assert_eq!(filter, "RLAUNCH_SOCKET_IFNAME=r");
        assert_eq!(options.family, Family::V6);
        let gloo = parse(&[("GLOO_SOCKET_IFNAME", "^docker")]).unwrap();
        assert!(!gloo.filter.unwrap().is_positive());
    }

    #[test]
    fn wrong_values_name_their_variable() {
        for (name, value) in [
            ("RLAUNCH_PORT_RANGE", "20"),
            ("RLAUNCH_PORT_RANGE", "9-8"),
            ("RLAUNCH_PORT_RANGE", "0-8"),
            ("RLAUNCH_PORT_RANGE", "1-70000"),
            ("RLAUNCH_SOCKETS", "0"),
            ("RLAUNCH_SOCKETS", "33"),
            ("RLAUNCH_SOCKET_FAMILY", "5"),
            ("NCCL_SOCKET_IFNAME", "^"),
        ] {
            match parse(&[(name, value)]) {
                Err(error) => assert!(error.starts_with(name), "{error}"),
                // One port is a range too.
                Ok(options) => assert_eq!(options.ports, Some(20..=20)),
            }
        }
    }
}
