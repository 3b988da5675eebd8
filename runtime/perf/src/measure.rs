//! Times and checks the calls of one test.
//!
//! All ranks go through the same rows and take the same decisions: whatever one rank alone could
//! measure differently (how many calls fit in the time) is agreed on first.

use crate::Failure;
use crate::arguments::Arguments;
use crate::buffers::Block;
use crate::calls::{Kind, Prepared};
use crate::check::{Check, Offsets};
use crate::clock::Clock;
use crate::data::{Data, fill_neutral};
use crate::report::{Measured, Row};
use crate::statistics::Spread;
use crate::test::{Layout, Test};
use rlaunch_runtime::{Communicator, Error};
use rlaunch_wire::Op;

/// Buffers for the largest size, made once and touched before the clock starts.
pub(crate) struct Bench<'a> {
    world: &'a Communicator,
    /// The ranks that call together: all, or a group of a split.
    group: Communicator,
    arguments: &'a Arguments,
    input: Block,
    /// The only one where a call works in place.
    output: Block,
    /// Largest input and output together may be shifted within this much.
    room_bytes: usize,
}

/// With `--rotate`, buffers are at least this large: more than caches hold.
const ROTATED_BYTES: usize = 256 << 20;

impl<'a> Bench<'a> {
    /// Called by all ranks.
    pub(crate) fn new(
        world: &'a Communicator,
        group: Communicator,
        arguments: &'a Arguments,
    ) -> Result<Self, Failure> {
        let test = arguments.test;
        let bytes_max = match arguments.tune {
            Some(_) => arguments.tuned_sizes().largest(),
            None => arguments.sizes().largest(),
        };
        let needed = arguments.dtypes().into_iter().map(|dtype| {
            let size = dtype.size_bytes();
            // Of a calibration every test has its turn, none with more than the size's bytes.
            let count = test.count(bytes_max, size, group.size());
            let extent = test.size_elements(count, group.size()) * size;
            // Offsets in elements fit whatever the type.
            (extent, arguments.unaligned as usize * size)
        });
        let (extent, offset) = needed.fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
        let room_bytes = if arguments.rotate {
            ROTATED_BYTES.max(extent)
        } else {
            0
        };
        let kind = arguments.buffers();
        let block = || Block::new(&group, kind, offset, extent + room_bytes);
        let (input, output) = (block()?, block()?);
        Ok(Self {
            world,
            group,
            arguments,
            input,
            output,
            room_bytes,
        })
    }

    /// Each row of the table, in the same order on all ranks.
    pub(crate) fn rows(
        &mut self,
        mut report: impl FnMut(Row) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        for dtype in self.arguments.dtypes() {
            for op in self.arguments.ops(dtype) {
                for root in self.arguments.roots(self.group.size()) {
                    for size in self.arguments.sizes() {
                        let kind = Kind {
                            test: self.arguments.test,
                            dtype,
                            op,
                            root,
                            schedule: None,
                        };
                        report(self.row(kind, size)?)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Microseconds of an out-of-place call, by whatever algorithm `kind` asks for.
    pub(crate) fn time_us(&mut self, kind: Kind, count: usize) -> Result<f64, Error> {
        let layout = kind
            .test
            .layout(count, self.group.rank(), self.group.size());
        let offsets = Offsets {
            is_in_place: false,
            input: 0,
            output: 0,
        };
        Ok(self.time(kind, layout, offsets)?.time_us)
    }

    fn row(&mut self, kind: Kind, bytes_wanted: u64) -> Result<Row, Error> {
        let (test, size) = (kind.test, kind.dtype.size_bytes());
        let world = self.group.size();
        let count = test.count(bytes_wanted, size, world);
        let layout = test.layout(count, self.group.rank(), world);
        let bytes = (test.size_elements(count, world) * size) as u64;
        let out_of_place = Offsets {
            is_in_place: false,
            input: 0,
            output: 0,
        };
        let in_place = layout.in_place.map(|(input, output)| Offsets {
            is_in_place: true,
            input,
            output,
        });
        let mut measure = |offsets| self.placement(kind, layout, offsets, bytes);
        Ok(Row {
            bytes,
            count: count as u64,
            dtype: kind.dtype,
            op: test.reduces().then_some(kind.op),
            root: test.has_root().then_some(kind.root),
            out_of_place: measure(out_of_place)?,
            in_place: in_place.map(measure).transpose()?,
        })
    }

    fn placement(
        &mut self,
        kind: Kind,
        layout: Layout,
        offsets: Offsets,
        bytes: u64,
    ) -> Result<Measured, Error> {
        for block in [&mut self.input, &mut self.output] {
            let whole = block.bytes();
            fill_neutral(kind.dtype, kind.op, whole_elements(block, kind, whole));
        }
        let timed = self.time(kind, layout, offsets)?;
        let mut wrong = None;
        if kind.test != Test::Barrier {
            for check in 0..self.arguments.checks {
                let found = self.check(kind, layout, offsets, u64::from(check) + 1)?;
                wrong = Some(wrong.unwrap_or(0) + found);
            }
        }
        let algorithm_gbps = if timed.time_us > 0.0 {
            bytes as f64 / timed.time_us / 1e3
        } else {
            0.0
        };
        Ok(Measured {
            time_us: timed.time_us,
            algorithm_gbps,
            bus_gbps: algorithm_gbps * kind.test.bus_factor(self.group.size()),
            iterations: timed.iterations,
            spread: timed.spread,
            wrong,
        })
    }

    /// The calls of one row, one for each place that they rotate through.
    fn prepare(&self, kind: Kind, layout: Layout, offsets: Offsets) -> Vec<Prepared<'_>> {
        let size = kind.dtype.size_bytes();
        let extent = layout.input.max(layout.output).max(1) * size;
        let places = 1 + self.room_bytes / extent;
        let prepared = (0..places.min(PLACES_MAX)).map(|place| {
            let shift = place * extent;
            let from = if offsets.is_in_place {
                &self.output
            } else {
                &self.input
            };
            let input = from.at(shift + offsets.input * size);
            let output = self.output.at(shift + offsets.output * size);
            // SAFETY: each block has room for the largest layout behind every shift up to
            // `room_bytes`; the two are apart, and in place offsets are as the layout says.
            unsafe { Prepared::new(&self.group, kind, layout, input, output) }
        });
        prepared.collect()
    }

    fn time(&self, kind: Kind, layout: Layout, offsets: Offsets) -> Result<Timed, Error> {
        let calls = self.prepare(kind, layout, offsets);
        let together = self.arguments.aggregated;
        let call = |at: u32| calls[at as usize % calls.len()].run_together(together);
        (0..self.arguments.warmups).try_for_each(call)?;
        let iterations = match self.arguments.iterations {
            Some(iterations) => iterations,
            None => self.fitting(&call)?,
        };
        let clock = Clock::new(self.arguments.processor_time > 0);
        let blocking = self.arguments.blocking;
        let mut each_us = Vec::new();
        self.group.barrier()?;
        let total_us = if blocking == 3 {
            each_us = self.each_us(&clock, iterations, call)?;
            each_us.iter().sum()
        } else {
            let start = clock.now_us();
            for at in 0..iterations {
                call(at)?;
                if blocking == 1 {
                    self.group.barrier()?;
                }
            }
            clock.now_us() - start
        };
        // Looking at the clock takes longer than a short call may, so the mean is without it.
        if self.arguments.times_each() && blocking != 3 {
            self.group.barrier()?;
            each_us = self.each_us(&clock, iterations, call)?;
        }
        // The ways there and back of a ping-pong are timed as one.
        let ways = if kind.test == Test::Latency { 2.0 } else { 1.0 };
        let per_call = f64::from(together) * ways;
        let spread = if self.arguments.times_each() {
            each_us.iter_mut().for_each(|time| *time /= per_call);
            self.world.all_reduce(&mut each_us, Op::Max)?;
            let skipped = self.arguments.per_iteration_skip as usize;
            Spread::of(each_us.get(skipped..).unwrap_or_default())
        } else {
            None
        };
        Ok(Timed {
            time_us: self.over_ranks(kind, total_us / f64::from(iterations) / per_call)?,
            iterations,
            spread,
        })
    }

    /// Calls timed one by one.
    fn each_us(
        &self,
        clock: &Clock,
        iterations: u32,
        call: impl Fn(u32) -> Result<(), Error>,
    ) -> Result<Vec<f64>, Error> {
        let blocking = self.arguments.blocking;
        let mut each_us = Vec::with_capacity(iterations as usize);
        for at in 0..iterations {
            let start = clock.now_us();
            call(at)?;
            if blocking == 1 {
                self.group.barrier()?;
            }
            each_us.push(clock.now_us() - start);
            if blocking == 3 {
                self.group.barrier()?;
            }
        }
        Ok(each_us)
    }

    /// How many calls fit in some milliseconds; the same on every rank of the world.
    fn fitting(&self, call: &impl Fn(u32) -> Result<(), Error>) -> Result<u32, Error> {
        const TRIED: u32 = 3;
        const GOAL_US: f64 = 20_000.0;
        let clock = Clock::new(false);
        self.group.barrier()?;
        let start = clock.now_us();
        (0..TRIED).try_for_each(call)?;
        let mut call_us = [(clock.now_us() - start) / f64::from(TRIED)];
        self.world.all_reduce(&mut call_us, Op::Max)?;
        Ok((GOAL_US / call_us[0].max(0.01)).clamp(20.0, 5000.0) as u32)
    }

    /// As `-a` says.
    fn over_ranks(&self, kind: Kind, time_us: f64) -> Result<f64, Error> {
        let idle = kind.test == Test::Latency
            && self.group.rank() > 0
            && self.group.rank() + 1 < self.group.size();
        let mut time = [time_us];
        match self.arguments.average {
            0 => self.world.broadcast(&mut time, 0)?,
            1 => {
                let mut sum_count = if idle { [0.0, 0.0] } else { [time_us, 1.0] };
                self.world.all_reduce(&mut sum_count, Op::Sum)?;
                time = [sum_count[0] / sum_count[1]];
            }
            2 => {
                time = [if idle { f64::INFINITY } else { time_us }];
                self.world.all_reduce(&mut time, Op::Min)?;
            }
            _ => self.world.all_reduce(&mut time, Op::Max)?,
        }
        Ok(time[0])
    }

    /// The number of wrong elements on all ranks together.
    fn check(
        &mut self,
        kind: Kind,
        layout: Layout,
        offsets: Offsets,
        seed: u64,
    ) -> Result<u64, Error> {
        let check = Check {
            kind,
            data: Data {
                dtype: kind.dtype,
                op: kind.op,
                world: self.group.size(),
                seed,
            },
            rank: self.group.rank(),
            layout,
        };
        check.fill(&mut self.input, &mut self.output, offsets);
        // Nobody's call may reach a buffer that its owner still fills.
        self.group.barrier()?;
        self.prepare(kind, layout, offsets)[0].run()?;
        let mut wrong = [check.count_wrong(&self.output, offsets.output) as i64];
        self.world.all_reduce(&mut wrong, Op::Sum)?;
        Ok(wrong[0] as u64)
    }
}

/// Rotation needs no more places than these to leave the caches.
const PLACES_MAX: usize = 4096;

struct Timed {
    time_us: f64,
    iterations: u32,
    spread: Option<Spread>,
}

fn whole_elements(block: &mut Block, kind: Kind, bytes: usize) -> &mut [u8] {
    let size = kind.dtype.size_bytes();
    block.slice_mut(0, bytes / size * size)
}
