//! One allocation of a job whose programs name hosts of their own.

use super::{Allocation, Slots};
use crate::placement::HostChoice;

impl Allocation {
    /// Adds the hosts that one program named; where they stand now, and how much of each is the
    /// program's.
    ///
    /// The first `fixed` hosts are of the job's hostfile: their slots are what there is, whatever
    /// a program takes of them. Others' slots add up, for each program brings its own.
    pub fn join(&mut self, fixed: usize, own: Self) -> Vec<HostChoice> {
        let mut chosen = Vec::with_capacity(own.hosts.len());
        for host in own.hosts {
            let slots = host.slots.known();
            let at = self.hosts.iter().position(|it| it.host == host.host);
            let at = match at {
                Some(at) => {
                    if at >= fixed {
                        self.hosts[at].slots = sum(self.hosts[at].slots, host.slots);
                    }
                    at
                }
                None => {
                    self.hosts.push(host);
                    self.hosts.len() - 1
                }
            };
            chosen.push(HostChoice { host: at, slots });
        }
        chosen
    }
}

fn sum(one: Slots, other: Slots) -> Slots {
    let max = one.max().zip(other.max());
    let max = max.map(|(one, other)| one.saturating_add(other));
    match (one.known(), other.known()) {
        (Some(one), Some(other)) => Slots::Given {
            slots: one.saturating_add(other),
            max,
        },
        _ => Slots::FromSurvey { max },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{allocation, hostfile};

    fn list(text: &str) -> Allocation {
        Allocation::from_list(&allocation::parse_host_list(text).unwrap())
    }

    fn shown(allocation: &Allocation) -> String {
        let hosts = allocation.hosts.iter();
        let hosts = hosts.map(|host| format!("{} {}", host.host, host.slots));
        hosts.collect::<Vec<_>>().join(", ")
    }

    fn chosen(choices: &[HostChoice]) -> Vec<(usize, Option<u32>)> {
        choices.iter().map(|it| (it.host, it.slots)).collect()
    }

    #[test]
    fn slots_of_lists_add_up() {
        let mut job = Allocation { hosts: Vec::new() };
        assert_eq!(
            chosen(&job.join(0, list("a:2,b"))),
            [(0, Some(2)), (1, Some(1))]
        );
        assert_eq!(
            chosen(&job.join(0, list("c:*,a:3"))),
            [(2, None), (0, Some(3))]
        );
        assert_eq!(shown(&job), "a 5, b 1, c ?");
        job.join(0, list("b:*"));
        assert_eq!(shown(&job), "a 5, b ?, c ?");
    }

    #[test]
    fn slots_of_the_hostfile_stay() {
        let file = hostfile::parse("hosts", b"a slots=4\nb slots=2\n").unwrap();
        let mut job = Allocation::from_hostfile(&file);
        let entries = allocation::parse_host_list("b:1").unwrap();
        let own = Allocation::select(&file, &entries, false).unwrap();
        assert_eq!(chosen(&job.join(2, own)), [(1, Some(1))]);
        assert_eq!(shown(&job), "a 4, b 2");
    }
}
