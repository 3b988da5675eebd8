//! Times and checks the calls of one test and type.

use crate::Failure;
use crate::arguments::{Arguments, Test};
use crate::report::Row;
use crate::sample::Sample;
use rlaunch_runtime::{Error, World};
use rlaunch_wire::Op;
use std::time::Instant;

/// Buffers for the largest size, made once and touched before the clock starts.
pub(crate) struct Bench<'a, T> {
    world: &'a World,
    arguments: &'a Arguments,
    /// The vector that holds the result; the only one where a call works in place.
    output: Vec<T>,
    input: Vec<T>,
}

impl<'a, T: Sample> Bench<'a, T> {
    pub(crate) fn new(world: &'a World, arguments: &'a Arguments) -> Self {
        let count_max = (arguments.sizes().largest() as usize).div_ceil(size_of::<T>());
        let input_count = match arguments.test {
            Test::AllReduce | Test::Broadcast | Test::Barrier => 0,
            Test::AllGather | Test::ReduceScatter | Test::SendRecv => count_max,
        };
        // Not zeros from the allocator: those are pages that the first call would have to make.
        let filled = |count| vec![T::from_small(1); count];
        Self {
            world,
            arguments,
            output: filled(count_max),
            input: filled(input_count),
        }
    }

    pub(crate) fn rows(
        &mut self,
        mut report: impl FnMut(Row) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        for op in self.arguments.ops() {
            for size in self.arguments.sizes() {
                report(self.row(op, size)?)?;
            }
        }
        Ok(())
    }

    fn row(&mut self, op: Op, bytes_wanted: u64) -> Result<Row, Error> {
        let test = self.arguments.test;
        let parts = if test.has_parts() {
            self.world.size() as usize
        } else {
            1
        };
        let count = bytes_wanted as usize / size_of::<T>() / parts;
        let bytes = (count * parts * size_of::<T>()) as u64;

        let time_us = self.time(op, count)? * 1e6;
        let mut wrong = None;
        for check in 0..self.arguments.checks {
            let found = self.count_wrong(op, count, u64::from(check) + 1)?;
            wrong = Some(wrong.unwrap_or(0) + found);
        }
        let algorithm_gbps = if time_us > 0.0 {
            bytes as f64 / time_us / 1e3
        } else {
            0.0
        };
        Ok(Row {
            bytes,
            count: count as u64,
            dtype: T::DTYPE,
            op: test.reduces().then_some(op),
            root: (test == Test::Broadcast).then_some(self.arguments.root),
            time_us,
            algorithm_gbps,
            bus_gbps: algorithm_gbps * test.bus_factor(self.world.size()),
            wrong,
        })
    }

    /// Seconds of one call, averaged over calls and ranks.
    fn time(&mut self, op: Op, count: usize) -> Result<f64, Error> {
        self.output.fill(T::neutral(op));
        self.input.fill(T::neutral(op));
        for _ in 0..self.arguments.warmups {
            self.call(op, count)?;
        }
        self.world.barrier()?;
        let start = Instant::now();
        for _ in 0..self.arguments.iterations {
            self.call(op, count)?;
        }
        let seconds = start.elapsed().as_secs_f64() / f64::from(self.arguments.iterations);
        let mut sum = [seconds];
        self.world.all_reduce(&mut sum, Op::Sum)?;
        Ok(sum[0] / f64::from(self.world.size()))
    }

    fn call(&mut self, op: Op, count: usize) -> Result<(), Error> {
        let world = self.world;
        let total = count * world.size() as usize;
        match self.arguments.test {
            Test::AllReduce => world.all_reduce(&mut self.output[..count], op),
            Test::Broadcast => world.broadcast(&mut self.output[..count], self.arguments.root),
            Test::AllGather => world.all_gather(&self.input[..count], &mut self.output[..total]),
            Test::ReduceScatter => {
                world.reduce_scatter(&self.input[..total], &mut self.output[..count], op)
            }
            Test::SendRecv => self.send_and_receive(count),
            Test::Barrier => world.barrier(),
        }
    }

    /// Calls block, so neighbours take turns: even ranks send first. Around an odd ring the last and
    /// the first are both even, and the last waits until the first has sent.
    fn send_and_receive(&mut self, count: usize) -> Result<(), Error> {
        let (world, size) = (self.world, self.world.size());
        if size == 1 {
            self.output[..count].copy_from_slice(&self.input[..count]);
            return Ok(());
        }
        let (to, from) = ((world.rank() + 1) % size, (world.rank() + size - 1) % size);
        if world.rank().is_multiple_of(2) {
            world.send(&self.input[..count], to, 0)?;
            world.recv(&mut self.output[..count], from, 0)
        } else {
            world.recv(&mut self.output[..count], from, 0)?;
            world.send(&self.input[..count], to, 0)
        }
    }

    /// One call on fresh contributions; the number of wrong elements on all ranks together.
    fn count_wrong(&mut self, op: Op, count: usize, seed: u64) -> Result<u64, Error> {
        let (rank, size) = (self.world.rank(), self.world.size());
        let ours = |element| T::sample(op, rank, element, seed);
        for (element, value) in self.output.iter_mut().enumerate() {
            *value = ours(element);
        }
        for (element, value) in self.input.iter_mut().enumerate() {
            *value = ours(element);
        }
        self.call(op, count)?;

        let root = self.arguments.root;
        let expected = |at: usize| match self.arguments.test {
            Test::AllReduce => T::expected(op, size, at, seed),
            Test::ReduceScatter => T::expected(op, size, rank as usize * count + at, seed),
            Test::Broadcast => T::sample(op, root, at, seed),
            Test::SendRecv => T::sample(op, (rank + size - 1) % size, at, seed),
            Test::AllGather => T::sample(op, (at / count) as u32, at % count, seed),
            Test::Barrier => unreachable!("a barrier has no elements"),
        };
        let elements = match self.arguments.test {
            Test::AllGather => count * size as usize,
            Test::Barrier => 0,
            _ => count,
        };
        let wrong = self.output[..elements].iter().enumerate();
        let mut wrong = [wrong.filter(|(at, value)| **value != expected(*at)).count() as i64];
        self.world.all_reduce(&mut wrong, Op::Sum)?;
        Ok(wrong[0] as u64)
    }
}
