//! Ways in which hosts and networks fail.
//!
//! | fault | the host sees | its peers see |
//! |---|---|---|
//! | unplug | no carrier | silence |
//! | black hole | nothing | silence |
//! | split | nothing | silence from the other group |
//! | kill | its end | connections that close at once |
//! | power off | its end | silence |

use crate::cluster::Cluster;
use crate::error::HarnessError;
use crate::network;
use crate::tools::Tool;
use std::fmt;
use std::str::FromStr;

/// A leg of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nic {
    Eth0,
    Ib0,
}

impl Nic {
    pub const ALL: [Self; 2] = [Self::Eth0, Self::Ib0];
}

impl fmt::Display for Nic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Eth0 => "eth0",
            Self::Ib0 => "ib0",
        })
    }
}

impl FromStr for Nic {
    type Err = HarnessError;

    fn from_str(name: &str) -> Result<Self, HarnessError> {
        let known = Self::ALL.into_iter().find(|nic| nic.to_string() == name);
        known.ok_or_else(|| HarnessError::Options(format!("no NIC `{name}`; there are eth0, ib0")))
    }
}

impl Cluster {
    /// The cable is pulled: no carrier on the host either.
    pub fn unplug(&self, host: &str, nic: Nic) -> Result<(), HarnessError> {
        self.link(self.number(host)?, nic, "down")
    }

    pub fn plug(&self, host: &str, nic: Nic) -> Result<(), HarnessError> {
        self.link(self.number(host)?, nic, "up")
    }

    /// The switch drops every frame of both legs; the host still has carriers.
    pub fn black_hole(&self, host: &str) -> Result<(), HarnessError> {
        self.forwarding(host, "0")
    }

    /// Ends a black hole.
    pub fn heal(&self, host: &str) -> Result<(), HarnessError> {
        self.forwarding(host, "3")
    }

    /// Two groups that don't reach each other; hosts in neither reach all.
    pub fn split(&self, one: &[&str], other: &[&str]) -> Result<(), HarnessError> {
        let ports = |group: &[&str]| -> Result<String, HarnessError> {
            let numbers = group
                .iter()
                .map(|host| self.number(host))
                .collect::<Result<Vec<_>, _>>()?;
            let all = numbers
                .iter()
                .flat_map(|host| Nic::ALL.map(|nic| format!("\"{nic}.{host}\"")));
            Ok(all.collect::<Vec<_>>().join(","))
        };
        let (one, other) = (ports(one)?, ports(other)?);
        let rules = format!(
            "table bridge split {{ chain forward {{ type filter hook forward priority 0;\n\
             iifname {{ {one} }} oifname {{ {other} }} drop\n\
             iifname {{ {other} }} oifname {{ {one} }} drop\n}}\n}}\n"
        );
        self.nft(rules)
    }

    /// Ends a split.
    pub fn join(&self) -> Result<(), HarnessError> {
        self.nft("delete table bridge split\n".to_owned())
    }

    /// Every process of the host dies at once; its network says so to peers.
    pub fn kill(&self, host: &str) -> Result<(), HarnessError> {
        self.end(host)
    }

    /// As [`Cluster::kill`], with the cables cut before, so that no peer is told.
    pub fn power_off(&self, host: &str) -> Result<(), HarnessError> {
        for nic in Nic::ALL {
            self.unplug(host, nic)?;
        }
        self.end(host)
    }

    pub(crate) fn plug_all(&self, host: usize) -> Result<(), HarnessError> {
        Nic::ALL
            .into_iter()
            .try_for_each(|nic| self.link(host, nic, "up"))
    }

    fn link(&self, host: usize, nic: Nic, state: &str) -> Result<(), HarnessError> {
        let port = format!("{nic}.{host}");
        self.on_switch("ip", &["link", "set", port.as_str(), state], String::new())
    }

    fn forwarding(&self, host: &str, state: &str) -> Result<(), HarnessError> {
        let number = self.number(host)?;
        Nic::ALL.into_iter().try_for_each(|nic| {
            let port = format!("{nic}.{number}");
            let words = ["link", "set", "dev", port.as_str(), "state", state];
            self.on_switch("bridge", &words, String::new())
        })
    }

    fn nft(&self, rules: String) -> Result<(), HarnessError> {
        self.on_switch("nft", &["-f", "-"], rules)
    }

    fn on_switch(
        &self,
        name: &'static str,
        words: &[&str],
        input: String,
    ) -> Result<(), HarnessError> {
        Tool::new(name)
            .words(words)
            .input(input)
            .within(self.guardian.switch())
            .run()
    }

    /// The address that peers reach a host by in the first network.
    pub fn address(&self, host: &str) -> Result<String, HarnessError> {
        Ok(format!("10.77.0.{}", network::number(self.number(host)?)))
    }
}
