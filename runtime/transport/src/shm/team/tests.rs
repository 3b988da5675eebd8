use std::sync::Arc;

use super::*;

const DESCRIPTOR: [u8; Descriptor::BYTES] = [7; Descriptor::BYTES];

fn teams(members: u32, slot_bytes: usize) -> Vec<Team> {
    let arena = Arena::create(members).unwrap();
    let ranks: Vec<u32> = (0..members).collect();
    let first = Team::create(arena.clone(), ranks.clone(), 0, slot_bytes).unwrap();
    let place = first.place();
    let open = |me| Team::open(arena.clone(), place, ranks.clone(), me).unwrap();
    let others: Vec<Team> = (1..members).map(open).collect();
    std::iter::once(first).chain(others).collect()
}

fn post(team: &mut Team, data: &[u8]) {
    while !team.begin() {
        std::thread::yield_now();
    }
    // SAFETY: a slice is valid for its length.
    unsafe { team.post(&DESCRIPTOR, data.as_ptr(), data.len()).unwrap() };
}

fn in_threads(teams: Vec<Team>, body: impl Fn(&mut Team) + Sync) {
    let body = &body;
    std::thread::scope(|scope| {
        for mut team in teams {
            scope.spawn(move || body(&mut team));
        }
    });
}

#[test]
fn every_member_reads_every_post_of_each_round() {
    for members in 1..=9 {
        in_threads(teams(members, 4096), |team| {
            for round in 0..200usize {
                let bytes = [0, 8, 24, 25, 1000, FLAT_BYTES_MAX][round % 6];
                let byte = |member: u32| (round as u32 * 31 + member) as u8;
                post(team, &vec![byte(team.me()); bytes]);
                for member in 0..members {
                    while !team.has_posted(member) {
                        std::thread::yield_now();
                    }
                    assert_eq!(team.posted_descriptor(member), DESCRIPTOR);
                    // SAFETY: the member has posted so many bytes.
                    let data = unsafe {
                        std::slice::from_raw_parts(team.posted_data(member, bytes), bytes)
                    };
                    assert!(data.iter().all(|other| *other == byte(member)));
                }
                team.note_all_equal();
            }
        });
    }
}

/// What errors tell of a member that has died: however many rounds the members are apart.
#[test]
fn the_last_post_of_each_member_is_seen_by_all() {
    let mut teams = teams(3, 4096);
    let call = |round: u8| [round; Descriptor::BYTES];
    for member in [1, 2] {
        assert_eq!(teams[0].last_post(member), None);
    }
    let mut posted = [0u8; 3];
    for step in 0..300 {
        // Members go on by turns of one, two and three rounds, as far as they may.
        let member = step % 3;
        for _ in 0..=(step / 3) % 3 {
            if teams[member].begin() {
                posted[member] += 1;
                let call = call(posted[member]);
                // SAFETY: no data.
                unsafe { teams[member].post(&call, std::ptr::null(), 0).unwrap() };
            }
            teams[member].settle(0).unwrap();
        }
        for seen in 0..3 {
            for team in &teams {
                let expected = (posted[seen] > 0).then(|| call(posted[seen]));
                assert_eq!(team.last_post(seen as u32), expected, "{posted:?}");
            }
        }
    }
    assert!(posted.iter().all(|rounds| *rounds > 50), "{posted:?}");
}

#[test]
fn a_member_that_waits_for_nobody_is_held_back_in_time() {
    let mut teams = teams(2, 4096);
    let (ahead, behind) = teams.split_at_mut(1);
    let mut rounds = 0;
    while rounds < 100 && ahead[0].begin() {
        // SAFETY: no data.
        unsafe { ahead[0].post(&DESCRIPTOR, std::ptr::null(), 0).unwrap() };
        rounds += 1;
    }
    assert_eq!(rounds, AHEAD - 1);
    post(&mut behind[0], &[]);
    post(&mut ahead[0], &[]);
    assert!(
        !ahead[0].begin(),
        "the slot of the first round may still be read"
    );
    post(&mut behind[0], &[]);
    ahead[0].settle(0).unwrap();
    assert!(ahead[0].begin());
}

/// Members that left a round early find later that the others meant another call.
#[test]
fn a_difference_shows_after_the_round() {
    let mut teams = teams(2, 4096);
    let (one, other) = teams.split_at_mut(1);
    post(&mut one[0], &[]);
    assert_eq!(one[0].settle(0), Ok(()), "the other has not come");
    let another = [8; Descriptor::BYTES];
    assert!(other[0].begin());
    // SAFETY: no data.
    unsafe { other[0].post(&another, std::ptr::null(), 0).unwrap() };
    let differences = [one[0].settle(0), other[0].settle(0)];
    let difference = |member, mine, theirs| {
        Err(Difference {
            member,
            mine,
            theirs,
        })
    };
    assert_eq!(differences[0], difference(1, DESCRIPTOR, another));
    assert_eq!(differences[1], difference(0, another, DESCRIPTOR));
}

/// Blocks pass from each to all, in both kinds of slots, across the end of the counters' range.
#[test]
fn exchanges_go_on_when_counters_wrap_around() {
    for begin in [0, (1 << 32) - 3, (1 << 20) - 2] {
        let mut all = teams(3, 4096);
        for team in &mut all {
            team.start_at(begin);
        }
        all.iter().for_each(Team::look_at_all);
        in_threads(all, |team| {
            for exchange in 0..6u64 {
                post(team, &[]);
                team.begin_exchange().unwrap();
                run_exchange(team, exchange % 4 + 1, exchange);
                for member in team.others() {
                    while !team.has_posted(member) {
                        std::thread::yield_now();
                    }
                }
                team.note_all_equal();
                team.end_exchange();
            }
        });
    }
}

fn run_exchange(team: &mut Team, blocks: u64, exchange: u64) {
    let value = |member: u32, block: u64| exchange * 1000 + block * 10 + u64::from(member);
    for block in 0..blocks {
        let slot = loop {
            if let Some(slot) = team.in_slot(block) {
                break slot;
            }
        };
        // SAFETY: the slot is ours and holds a page.
        unsafe { slot.cast().write(value(team.me(), block)) };
        team.publish(Stage::Put, block + 1);
        let mut sum = value(team.me(), block);
        for member in team.others() {
            while !team.has_come(member, Stage::Put, block + 1) {
                std::thread::yield_now();
            }
            // SAFETY: the member has put the block.
            let theirs = unsafe { team.put_by(member, block).cast::<u64>().read() };
            assert_eq!(theirs, value(member, block));
            sum += theirs;
        }
        let result = loop {
            if let Some(result) = team.out_slot(block) {
                break result;
            }
        };
        // SAFETY: as above.
        unsafe { result.cast().write(sum) };
        team.publish(Stage::Taken, block + 1);
        for member in team.others() {
            while !team.has_come(member, Stage::Taken, block + 1) {
                std::thread::yield_now();
            }
            // SAFETY: the member has left its result.
            let theirs = unsafe { team.result_of(member, block).cast::<u64>().read() };
            assert_eq!(theirs, sum);
        }
        team.publish(Stage::Fetched, block + 1);
    }
}

#[test]
fn an_area_is_used_again_once_all_members_have_closed_it() {
    let arena = Arena::create(2).unwrap();
    let mut places = std::collections::HashSet::new();
    for _ in 0..1000 {
        let maker = Team::create(arena.clone(), vec![0, 1], 0, 4096).unwrap();
        let other = Team::open(Arc::clone(&arena), maker.place(), vec![0, 1], 1).unwrap();
        places.insert(maker.place());
        drop(maker);
        drop(other);
    }
    assert!(places.len() <= 2, "{} areas", places.len());
}

#[test]
fn a_place_without_a_team_is_refused() {
    let arena = Arena::create(2).unwrap();
    let place = arena.first_place();
    assert!(Team::open(arena.clone(), place, vec![0, 1], 0).is_err());
    assert!(Team::open(arena, 12345, vec![0, 1], 0).is_err());
}
