//! Links of a given speed.

use crate::cluster::Cluster;
use crate::error::HarnessError;
use crate::faults::Nic;
use crate::tools::Tool;

/// A burst of this long passes at once, so that the queue is woken a thousand times a second.
const BURST_MS: u64 = 1;
/// Large segments that the kernel hands down whole must fit.
const BURST_BYTES_MIN: u64 = 128 * 1024;
/// What the link's buffer holds.
const LATENCY: &str = "20ms";

impl Cluster {
    /// The cable of a NIC carries this much each way from now on.
    pub fn shape(&self, host: &str, nic: Nic, megabits: u32) -> Result<(), HarnessError> {
        let burst = (u64::from(megabits) * 1000 / 8 * BURST_MS).max(BURST_BYTES_MIN);
        let (rate, burst) = (format!("{megabits}mbit"), burst.to_string());
        self.queue(host, nic, |device| {
            let head = ["qdisc", "replace", "dev", device, "root", "tbf"];
            let tail = ["rate", &rate, "burst", &burst, "latency", LATENCY];
            head.iter().chain(&tail).map(ToString::to_string).collect()
        })
    }

    /// As fast as this machine again.
    pub fn unshape(&self, host: &str, nic: Nic) -> Result<(), HarnessError> {
        self.queue(host, nic, |device| {
            let words = ["qdisc", "replace", "dev", device, "root", "noqueue"];
            words.map(str::to_owned).to_vec()
        })
    }

    /// On both ends of the cable: what the host sends and what it is sent.
    fn queue(
        &self,
        host: &str,
        nic: Nic,
        words: impl Fn(&str) -> Vec<String>,
    ) -> Result<(), HarnessError> {
        let number = self.number(host)?;
        let ends = [
            (nic.to_string(), self.guardian.network(number)),
            (format!("{nic}.{number}"), self.guardian.switch()),
        ];
        ends.iter().try_for_each(|(device, network)| {
            Tool::new("tc").words(words(device)).within(network).run()
        })
    }
}
