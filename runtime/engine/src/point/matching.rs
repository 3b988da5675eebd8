//! Which message goes to which receive, within one communicator. Pure.
//!
//! MPI's order: a message goes to the receive that was posted first among those it matches; a
//! receive takes the message that arrived first among those that match it. Since messages of one
//! pair arrive in the order in which they were sent, none overtakes another.
//!
//! For each message: [`Matching::arrive`], and where that finds no receive, [`Matching::keep`].
//! For each receive: [`Matching::find`], and where that finds no message, [`Matching::post`].

use std::collections::VecDeque;

/// What a receive knows a message by. Ranks are those of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) source: u32,
    pub(crate) tag: u32,
}

/// What a receive takes; `None` takes any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) source: Option<u32>,
    pub(crate) tag: Option<u32>,
}

/// Receives `R` that wait for a message, and messages `M` that no receive has asked for.
#[derive(Debug)]
pub(crate) struct Matching<R, M> {
    posted: VecDeque<(Pattern, R)>,
    kept: VecDeque<(Envelope, M)>,
}

impl Pattern {
    pub(crate) fn takes(self, envelope: Envelope) -> bool {
        self.source.is_none_or(|source| source == envelope.source)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

impl<R, M> Default for Matching<R, M> {
    fn default() -> Self {
        Self {
            posted: VecDeque::new(),
            kept: VecDeque::new(),
        }
    }
}

impl<R: PartialEq, M> Matching<R, M> {
    /// The receive that an arriving message belongs to; it is posted no longer.
    pub(crate) fn arrive(&mut self, envelope: Envelope) -> Option<R> {
        let is_for = |(pattern, _): &(Pattern, R)| pattern.takes(envelope);
        let index = self.posted.iter().position(is_for)?;
        self.posted.remove(index).map(|(_, receive)| receive)
    }

    /// Keeps a message that no receive waits for.
    pub(crate) fn keep(&mut self, envelope: Envelope, message: M) {
        self.kept.push_back((envelope, message));
    }

    /// Takes the oldest message that matches.
    pub(crate) fn find(&mut self, pattern: Pattern) -> Option<(Envelope, M)> {
        let index = self.position(pattern)?;
        self.kept.remove(index)
    }

    /// Looks at the oldest message that matches.
    pub(crate) fn look(&self, pattern: Pattern) -> Option<&(Envelope, M)> {
        self.kept.get(self.position(pattern)?)
    }

    /// A receive waits behind those posted before.
    pub(crate) fn post(&mut self, pattern: Pattern, receive: R) {
        self.posted.push_back((pattern, receive));
    }

    /// A receive waits no longer; false if it was not posted.
    pub(crate) fn withdraw(&mut self, receive: &R) -> bool {
        let index = self.posted.iter().position(|(_, posted)| posted == receive);
        index.is_some_and(|index| self.posted.remove(index).is_some())
    }

    /// Takes the message that `is_it` names.
    pub(crate) fn remove(&mut self, is_it: impl Fn(&M) -> bool) -> Option<M> {
        let index = self.kept.iter().position(|(_, message)| is_it(message))?;
        self.kept.remove(index).map(|(_, message)| message)
    }

    /// What no receive has asked for, oldest first.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &(Envelope, M)> {
        self.kept.iter()
    }

    /// Everything kept, oldest first; for the end of a communicator.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Envelope, M)> {
        self.kept.drain(..)
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.posted.is_empty() && self.kept.is_empty()
    }

    fn position(&self, pattern: Pattern) -> Option<usize> {
        let matches = |(envelope, _): &(Envelope, M)| pattern.takes(*envelope);
        self.kept.iter().position(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Pattern = Pattern {
        source: None,
        tag: None,
    };

    fn from(source: u32, tag: u32) -> Envelope {
        Envelope { source, tag }
    }

    fn of(source: Option<u32>, tag: Option<u32>) -> Pattern {
        Pattern { source, tag }
    }

    #[test]
    fn a_message_goes_to_the_first_receive_that_takes_it() {
        let mut matching = Matching::<u32, ()>::default();
        matching.post(of(Some(1), Some(7)), 0);
        matching.post(of(None, Some(5)), 1);
        matching.post(ANY, 2);
        matching.post(of(Some(1), Some(5)), 3);
        assert_eq!(matching.arrive(from(1, 5)), Some(1));
        assert_eq!(matching.arrive(from(1, 5)), Some(2));
        assert_eq!(matching.arrive(from(1, 5)), Some(3));
        assert_eq!(matching.arrive(from(1, 5)), None);
        assert_eq!(matching.arrive(from(1, 7)), Some(0));
        assert!(matching.is_empty());
    }

    #[test]
    fn a_receive_takes_the_message_that_came_first() {
        let mut matching = Matching::<u32, u32>::default();
        for (number, envelope) in [from(2, 1), from(1, 1), from(2, 3), from(2, 1)]
            .into_iter()
            .enumerate()
        {
            assert_eq!(matching.arrive(envelope), None);
            matching.keep(envelope, number as u32);
        }
        assert_eq!(matching.look(of(Some(2), None)), Some(&(from(2, 1), 0)));
        assert_eq!(matching.find(of(None, Some(3))), Some((from(2, 3), 2)));
        assert_eq!(matching.find(of(Some(2), Some(1))), Some((from(2, 1), 0)));
        assert_eq!(matching.find(of(Some(2), None)), Some((from(2, 1), 3)));
        assert_eq!(matching.find(of(Some(2), None)), None);
        assert_eq!(matching.find(ANY), Some((from(1, 1), 1)));
    }

    #[test]
    fn a_withdrawn_receive_takes_nothing() {
        let mut matching = Matching::<u32, u32>::default();
        matching.post(ANY, 4);
        assert!(matching.withdraw(&4));
        assert!(!matching.withdraw(&4));
        assert_eq!(matching.arrive(from(0, 0)), None);
    }

    /// Against the rule itself, spelled out over the history of all calls.
    #[test]
    fn any_sequence_matches_as_the_rule_says() {
        let mut state = 88_172_645_463_325_252u64;
        let mut below = |end: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % end
        };
        let mut matching = Matching::<u32, u32>::default();
        let (mut receives, mut messages) = (Vec::<(Pattern, bool)>::new(), Vec::new());
        for _ in 0..20_000 {
            let (source, tag) = (below(3) as u32, below(3) as u32);
            if below(2) == 0 {
                let envelope = from(source, tag);
                let expected = receives
                    .iter()
                    .position(|(pattern, open)| *open && pattern.takes(envelope));
                let found = matching.arrive(envelope);
                assert_eq!(found.map(|number| number as usize), expected);
                match expected {
                    Some(index) => receives[index].1 = false,
                    None => {
                        matching.keep(envelope, messages.len() as u32);
                    }
                }
                messages.push((envelope, expected.is_none()));
            } else {
                let wild = below(4);
                let source = (wild & 1 == 0).then_some(source);
                let pattern = of(source, (wild & 2 == 0).then_some(tag));
                let expected = messages
                    .iter()
                    .position(|(envelope, open)| *open && pattern.takes(*envelope));
                let found = matching.find(pattern);
                assert_eq!(found.map(|(_, number)| number as usize), expected);
                match expected {
                    Some(index) => messages[index].1 = false,
                    None => matching.post(pattern, receives.len() as u32),
                }
                receives.push((pattern, expected.is_none()));
            }
        }
    }
}
