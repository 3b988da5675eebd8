use std::sync::Arc;

use rlaunch_transport::shm::Arena;
use rlaunch_wire::{Collective, DType, Op};

use super::*;
use crate::call::{Counts, UserOp};

const SLOT_BYTES: usize = 4096;
/// Around what a post, a line and a slot hold, in elements of 4 bytes.
const COUNTS: [usize; 12] = [1, 0, 6, 7, 17, 1025, 1023, 1024, 2048, 5000, 2049, 10_000];

/// Runs `body` as each member of a team.
fn members<R: Send>(members: u32, body: impl Fn(&mut Member) -> R + Sync) -> Vec<R> {
    members_with(SLOT_BYTES, members, body)
}

fn members_with<R: Send>(
    slot_bytes: usize,
    members: u32,
    body: impl Fn(&mut Member) -> R + Sync,
) -> Vec<R> {
    let arena = Arena::create(members).unwrap();
    let ranks: Vec<u32> = (0..members).collect();
    let first = Team::create(arena.clone(), ranks.clone(), 0, slot_bytes).unwrap();
    let place = first.place();
    let open = |me| Team::open(Arc::clone(&arena), place, ranks.clone(), me).unwrap();
    let others: Vec<Team> = (1..members).map(open).collect();
    let body = &body;
    std::thread::scope(|scope| {
        let run = |team| scope.spawn(move || body(&mut Member { team, calls: 0 }));
        let threads: Vec<_> = std::iter::once(first).chain(others).map(run).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

struct Member {
    team: Team,
    calls: u64,
}

impl Member {
    fn try_run(&mut self, call: &Call, count: u64) -> Result<(), Failure> {
        let descriptor = Descriptor {
            communicator: 0,
            sequence: self.calls,
            collective: call.collective,
            dtype: call.dtype,
            op: call.reduction.as_ref().map(|reduction| reduction.op),
            root: call.root,
            digest: 0,
            count,
        };
        self.calls += 1;
        // SAFETY: tests give buffers that fit their calls.
        let mut operation = unsafe { LocalOperation::new(&self.team, call, &descriptor) };
        while operation.poll(&mut self.team)? != Progress::Done {
            std::thread::yield_now();
        }
        // Completion shows again, and nothing is combined twice.
        assert_eq!(operation.poll(&mut self.team)?, Progress::Done);
        Ok(())
    }

    fn run(&mut self, call: &Call) {
        self.try_run(call, call.count as u64).unwrap();
    }
}

/// An element's value at a rank: small, so that sums are exact.
fn value(rank: u32, at: usize) -> f32 {
    (rank as usize * 7 + at % 101) as f32
}

/// A vector that begins one byte off where it is asked to be unaligned.
struct Unaligned {
    bytes: Vec<u8>,
    shift: usize,
}

impl Unaligned {
    fn new(count: usize, shift: usize, of: impl Fn(usize) -> f32) -> Self {
        let mut bytes = vec![0; shift];
        bytes.extend((0..count).flat_map(|at| of(at).to_ne_bytes()));
        Self { bytes, shift }
    }

    fn ptr(&mut self) -> *mut u8 {
        self.bytes[self.shift..].as_mut_ptr()
    }

    fn values(&self) -> Vec<f32> {
        let elements = self.bytes[self.shift..].chunks_exact(4);
        elements
            .map(|element| f32::from_ne_bytes(element.try_into().unwrap()))
            .collect()
    }
}

/// Input and output lengths of a rank, per `count`.
fn lengths(collective: Collective, size: usize) -> (usize, usize) {
    use Collective as C;
    match collective {
        C::AllGather | C::Gather => (1, size),
        C::ReduceScatter | C::Scatter => (size, 1),
        C::AllToAll => (size, size),
        _ => (1, 1),
    }
}

/// What member `me` must have; `None` where its output is nobody's concern.
fn expected(
    collective: Collective,
    size: u32,
    me: u32,
    root: u32,
    count: usize,
) -> Option<Vec<f32>> {
    use Collective as C;
    let sum = |end: u32, at: usize| (0..end).map(|rank| value(rank, at)).sum();
    let every = |of: &dyn Fn(usize) -> f32| (0..count).map(of).collect::<Vec<f32>>();
    Some(match collective {
        C::AllReduce => every(&|at| sum(size, at)),
        C::Reduce if me == root => every(&|at| sum(size, at)),
        C::Scan => every(&|at| sum(me + 1, at)),
        C::Exscan if me > 0 => every(&|at| sum(me, at)),
        C::Broadcast => every(&|at| value(root, at)),
        C::ReduceScatter => every(&|at| sum(size, me as usize * count + at)),
        C::Scatter => every(&|at| value(root, me as usize * count + at)),
        C::AllGather => (0..size)
            .flat_map(|rank| every(&|at| value(rank, at)))
            .collect(),
        C::Gather if me == root => (0..size)
            .flat_map(|rank| every(&|at| value(rank, at)))
            .collect(),
        C::AllToAll => {
            let from = |rank| every(&|at| value(rank, me as usize * count + at));
            (0..size).flat_map(from).collect()
        }
        _ => return None,
    })
}

fn check(member: &mut Member, collective: Collective, count: usize, shift: usize, in_place: bool) {
    let (me, size) = (member.team.me(), member.team.size());
    let root = (count as u32 + 1) % size;
    let (of_input, of_output) = lengths(collective, size as usize);
    let mut input = Unaligned::new(of_input * count, shift, |at| value(me, at));
    let mut output = Unaligned::new(of_output * count, shift, |_| -1.0);
    let mut call = Call {
        collective,
        dtype: DType::F32,
        reduction: collective.reduces().then(|| Op::Sum.into()),
        root: if collective.has_root() { root } else { 0 },
        input: input.ptr(),
        output: output.ptr(),
        count,
        ..Call::barrier()
    };
    let own = me as usize * count;
    let is_alone = collective.has_root() && me != root;
    let mut place = 0;
    if in_place && of_input == of_output {
        call.output = call.input.cast_mut();
    } else if in_place && of_input < of_output && !is_alone {
        let elements = Unaligned::new(of_output * count, shift, |at| {
            if at >= own && at < own + count {
                value(me, at - own)
            } else {
                -1.0
            }
        });
        output = elements;
        call.output = output.ptr();
        call.input = call.output.wrapping_add(own * 4);
    } else if in_place && of_input > of_output && !is_alone {
        call.output = call.input.cast_mut().wrapping_add(own * 4);
        place = own;
    }
    member.run(&call);
    let result = if call.output == output.ptr() {
        output
    } else {
        input
    };
    if let Some(expected) = expected(collective, size, me, root, count) {
        let values = result.values();
        assert_eq!(
            values[place..place + expected.len()],
            expected[..],
            "{collective} of {count} at {me} of {size}, in place {in_place}"
        );
    }
}

#[test]
fn every_collective_at_every_border() {
    use Collective as C;
    let collectives = [
        C::Barrier,
        C::Broadcast,
        C::AllReduce,
        C::Reduce,
        C::AllGather,
        C::Gather,
        C::ReduceScatter,
        C::Scatter,
        C::AllToAll,
        C::Scan,
        C::Exscan,
    ];
    for size in 1..=9 {
        members(size, |member| {
            // Larger teams differ in who takes part, not in what fits.
            let step = if size <= 4 { 1 } else { 4 };
            for count in COUNTS.into_iter().step_by(step) {
                for collective in collectives {
                    let count = if collective == C::Barrier { 0 } else { count };
                    check(member, collective, count, 0, false);
                    check(member, collective, count, 1, true);
                }
            }
        });
    }
}

/// Vectors that pass from member to member, among others, so that each way leaves the slots to the
/// next as it must.
#[test]
fn members_that_share_cores_pass_long_vectors_on() {
    use Collective as C;
    let collectives = [
        C::AllReduce,
        C::AllReduce,
        C::Reduce,
        C::AllToAll,
        C::AllReduce,
        C::Broadcast,
        C::Scan,
        C::Reduce,
    ];
    for size in 3..=6 {
        members_with(slot_bytes(false), size, |member| {
            for count in [32 << 10, 70_001, (1 << 20) + 3, 32_769] {
                for collective in collectives {
                    check(member, collective, count, 0, false);
                    check(member, collective, count, 1, true);
                }
            }
        });
    }
}

/// The same bits as members that have a core each make.
#[test]
fn what_is_passed_on_is_rounded_as_everywhere() {
    let result = |slot_bytes: usize, dtype: DType, op: Op| {
        let results = members_with(slot_bytes, 4, |member| {
            let size = dtype.size_bytes();
            let mut bytes: Vec<u8> = (0..(40 << 10) * size)
                .map(|at| (at * (member.team.me() as usize * 2 + 3) % 251) as u8 & 0x3f)
                .collect();
            let buffer = bytes.as_mut_ptr();
            member.run(&Call::all_reduce(buffer, buffer, 40 << 10, dtype, op));
            bytes
        });
        assert!(results.iter().all(|bytes| *bytes == results[0]));
        results[0].clone()
    };
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::I32, DType::U8] {
        for op in [Op::Sum, Op::Avg, Op::Max, Op::Prod] {
            let (chained, shared) = (slot_bytes(false), slot_bytes(true));
            assert_eq!(
                result(chained, dtype, op),
                result(shared, dtype, op),
                "{dtype} {op}"
            );
        }
    }
}

/// Each pair exchanges a count of its own, some of them none.
#[test]
fn counts_may_differ_between_pairs() {
    let count = |from: u32, to: u32| [0, 1, 3000, 1500][(from * 3 + to) as usize % 4];
    for size in 2..=5 {
        members(size, |member| {
            let me = member.team.me();
            let send: Vec<usize> = (0..size).map(|to| count(me, to)).collect();
            let recv: Vec<usize> = (0..size).map(|from| count(from, me)).collect();
            let mut input = Unaligned::new(send.iter().sum(), 0, |at| value(me, at));
            let mut output = Unaligned::new(recv.iter().sum(), 0, |_| -1.0);
            let counts = Counts::contiguous(&send, &recv);
            let call = Call::all_to_all_v(input.ptr(), output.ptr(), DType::F32, counts);
            // Twice, so that the slots of members with fewer blocks are waited for.
            member.run(&call);
            member.run(&call);
            let from = |rank| {
                let before: usize = (0..me).map(|to| count(rank, to)).sum();
                (0..count(rank, me)).map(move |at| value(rank, before + at))
            };
            let expected: Vec<f32> = (0..size).flat_map(from).collect();
            assert_eq!(output.values(), expected);
        });
    }
}

/// `2a + b` does not commute, so any other order of members shows.
#[test]
fn a_users_operation_sees_members_in_order() {
    let user = UserOp {
        function: Arc::new(|inout: *mut u8, input: *const u8, count: usize| {
            for at in 0..count {
                // SAFETY: the runtime gives `count` aligned elements.
                unsafe {
                    let to = inout.cast::<u64>().add(at);
                    *to = to
                        .read()
                        .wrapping_mul(2)
                        .wrapping_add(*input.cast::<u64>().add(at));
                }
            }
        }),
        is_commutative: false,
    };
    for (count, slot_bytes) in [1, 3, 4000, 50_000].into_iter().zip([
        SLOT_BYTES,
        SLOT_BYTES,
        SLOT_BYTES,
        slot_bytes(false),
    ]) {
        members_with(slot_bytes, 4, |member| {
            let mut values = vec![u64::from(member.team.me()) + 1; count];
            let buffer = values.as_mut_ptr().cast::<u8>();
            let reduction = crate::call::Reduction::user(user.clone());
            member.run(&Call::all_reduce(
                buffer,
                buffer,
                count,
                DType::U64,
                reduction,
            ));
            assert!(values.iter().all(|value| *value == 8 + 8 + 6 + 4));
        });
    }
}

#[test]
fn averages_and_scaled_sums_need_no_copy_of_the_input() {
    for count in [2, 5000] {
        members(3, |member| {
            let me = member.team.me() as i32;
            let input = vec![me * 2 + 1; count];
            let mut output = vec![0i32; count];
            let to = output.as_mut_ptr().cast::<u8>();
            member.run(&Call::all_reduce(
                input.as_ptr().cast(),
                to,
                count,
                DType::I32,
                Op::Avg,
            ));
            assert!(output.iter().all(|value| *value == 3));
            let scaled = crate::call::Reduction::premul_sum(me + 1);
            member.run(&Call::all_reduce(
                input.as_ptr().cast(),
                to,
                count,
                DType::I32,
                scaled,
            ));
            assert!(output.iter().all(|value| *value == 1 + 6 + 15));
        });
    }
}

/// Whatever the ways that the two calls would go.
#[test]
fn a_different_call_is_found_on_every_way() {
    for (mine, theirs) in [(2, 3), (2, 9000), (9000, 2), (9000, 9001)] {
        let found = members(2, |member| {
            let count = if member.team.me() == 0 { mine } else { theirs };
            let mut values = vec![0f32; count];
            let buffer = values.as_mut_ptr().cast::<u8>();
            let call = Call::all_reduce(buffer, buffer, count, DType::F32, Op::Sum);
            matches!(
                member.try_run(&call, count as u64),
                Err(Failure::Differs(_))
            )
        });
        assert_eq!(found, [true, true], "{mine} and {theirs}");
    }
}
