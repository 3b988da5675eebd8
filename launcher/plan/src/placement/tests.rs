use super::*;
use crate::hostfile;

fn allocation(text: &str) -> Allocation {
    Allocation::from_hostfile(&hostfile::parse("hosts", text.as_bytes()).unwrap())
}

fn request(ranks: u32) -> PlacementRequest {
    PlacementRequest {
        ranks: Some(ranks),
        ..PlacementRequest::default()
    }
}

/// Ranks on each node, as `host index:ranks`.
fn counts(text: &str, request: &PlacementRequest) -> Result<String, String> {
    let placement = place(&allocation(text), std::slice::from_ref(request))
        .map_err(|error| error.to_string())?;
    let nodes = placement
        .nodes
        .iter()
        .map(|node| format!("{}:{}", node.host, node.ranks.len()));
    Ok(nodes.collect::<Vec<_>>().join(" "))
}

#[test]
fn hosts_are_filled_in_order() {
    let text = "a slots=2\nb slots=0\nc slots=4\nd slots=2\n";
    assert_eq!(counts(text, &request(5)).unwrap(), "0:2 2:3");
    assert_eq!(counts(text, &request(8)).unwrap(), "0:2 2:4 3:2");
    assert_eq!(
        counts(text, &PlacementRequest::default()).unwrap(),
        "0:2 2:4 3:2"
    );
    let placement = place(&allocation(text), &[request(7)]).unwrap();
    let last = placement.ranks[6];
    let expected = RankPlace {
        rank: 6,
        host: 3,
        node_rank: 2,
        local_rank: 0,
        local_world_size: 1,
        program: 0,
    };
    assert_eq!(last, expected);
    assert_eq!(placement.nodes[1].ranks, [2, 3, 4, 5]);
}

#[test]
fn too_many_ranks_name_both_numbers_and_the_way_out() {
    let text = "a slots=4\nb slots=4\n";
    let expected = "-np 9 asks for more ranks than there are slots (8): a 4, b 4\n\
                    hint: ask for at most 8, add hosts or slots, or pass --oversubscribe";
    assert_eq!(counts(text, &request(9)).unwrap_err(), expected);
    let before = check_before_survey(&allocation(text), &[request(9)]).unwrap_err();
    assert_eq!(before.to_string(), expected);
}

#[test]
fn a_surplus_goes_round() {
    let over = |ranks| PlacementRequest {
        oversubscribe: true,
        ..request(ranks)
    };
    let text = "a slots=1\nz slots=0\nb slots=2\n";
    assert_eq!(counts(text, &over(3)).unwrap(), "0:1 2:2");
    assert_eq!(counts(text, &over(4)).unwrap(), "0:2 2:2");
    assert_eq!(counts(text, &over(7)).unwrap(), "0:3 2:4");
    let capped = "a slots=1 max_slots=2\nb slots=1 max_slots=3\n";
    assert_eq!(counts(capped, &over(5)).unwrap(), "0:2 1:3");
    assert_eq!(
        counts(capped, &over(6))
            .unwrap_err()
            .lines()
            .next()
            .unwrap(),
        "-np 6 exceeds max_slots (5 in all): a 1 (at most 2), b 1 (at most 3)"
    );
}

#[test]
fn ranks_per_host() {
    let per = |per_host, ranks| PlacementRequest {
        ranks,
        per_host: Some(per_host),
        ..PlacementRequest::default()
    };
    let text = "a slots=4\nz slots=0\nb slots=2\n";
    assert_eq!(counts(text, &per(2, None)).unwrap(), "0:2 2:2");
    assert_eq!(counts(text, &per(2, Some(3))).unwrap(), "0:2 2:1");
    assert_eq!(counts(text, &per(2, Some(1))).unwrap(), "0:1");
    assert!(
        counts(text, &per(2, Some(5)))
            .unwrap_err()
            .starts_with("-np 5 does not fit: --nproc-per-node 2 on 2 hosts gives 4")
    );
    assert!(
        counts(text, &per(3, None))
            .unwrap_err()
            .starts_with("--nproc-per-node 3 is more than the 2 slots of b")
    );
    let over = PlacementRequest {
        oversubscribe: true,
        ..per(3, None)
    };
    assert_eq!(counts(text, &over).unwrap(), "0:3 2:3");
    assert_eq!(
        counts("a slots=1 max_slots=2\n", &over)
            .unwrap_err()
            .lines()
            .count(),
        2
    );
}

#[test]
fn what_needs_no_survey_is_refused_before() {
    let open = allocation("a\nb slots=2\n");
    assert!(check_before_survey(&open, &[request(1000)]).is_ok());
    assert!(check_before_survey(&open, &[request(0)]).is_err());
    assert!(check_before_survey(&open, &[request(70_000)]).is_err());
    let per_host = PlacementRequest {
        per_host: Some(3),
        ..PlacementRequest::default()
    };
    assert!(check_before_survey(&open, &[per_host]).is_err());
    let none = PlacementRequest {
        per_host: Some(0),
        ..PlacementRequest::default()
    };
    assert_eq!(
        check_before_survey(&open, &[none]),
        Err(PlacementError::NoRanksPerHost)
    );
    let few = PlacementRequest {
        per_host: Some(2),
        ..request(5)
    };
    assert!(check_before_survey(&open, &[few]).is_err());
    assert!(matches!(
        place(&open, &[request(1)]),
        Err(PlacementError::SlotsUnknown { .. })
    ));
    let empty = allocation("a slots=0\n");
    assert!(matches!(
        check_before_survey(&empty, &[PlacementRequest::default()]),
        Err(PlacementError::NoSlots { .. })
    ));
}

/// Sweep: every placement is dense, in host order, and within its bounds.
#[test]
fn every_placement_is_consistent() {
    for a in 0..4_u32 {
        for b in 0..4 {
            for c in 0..4 {
                let text = format!("a slots={a}\nb slots={b}\nc slots={c}\n");
                for ranks in 1..=14 {
                    for oversubscribe in [false, true] {
                        let request = PlacementRequest {
                            oversubscribe,
                            ..request(ranks)
                        };
                        check(&text, &request, a + b + c);
                    }
                }
            }
        }
    }
}

fn check(text: &str, request: &PlacementRequest, slots: u32) {
    let ranks = request.ranks.unwrap();
    let placed = place(&allocation(text), std::slice::from_ref(request));
    let fits = slots > 0 && (ranks <= slots || request.oversubscribe);
    assert_eq!(placed.is_ok(), fits, "{text} {request:?}");
    let Ok(placement) = placed else { return };
    assert_eq!(placement.ranks.len(), ranks as usize);
    let mut rank = 0;
    for (node_rank, node) in placement.nodes.iter().enumerate() {
        let ranks_here = u32::try_from(node.ranks.len()).unwrap();
        assert!(ranks_here > 0 && node.slots > 0);
        assert!(request.oversubscribe || !node.is_oversubscribed());
        for local_rank in 0..ranks_here {
            assert_eq!(node.ranks[local_rank as usize], rank);
            let place = placement.ranks[rank as usize];
            assert_eq!(place.rank, rank);
            assert_eq!(place.node_rank as usize, node_rank);
            assert_eq!(
                (place.local_rank, place.local_world_size),
                (local_rank, ranks_here)
            );
            assert_eq!(place.host, node.host);
            rank += 1;
        }
    }
    assert_eq!(rank, ranks);
    assert!(
        placement
            .nodes
            .windows(2)
            .all(|pair| pair[0].host < pair[1].host)
    );
}

/// The host of each rank, by name.
fn hosts(text: &str, requests: &[PlacementRequest]) -> Result<String, String> {
    let allocation = allocation(text);
    let placement = place(&allocation, requests).map_err(|error| error.to_string())?;
    for place in &placement.ranks {
        let node = &placement.nodes[place.node_rank as usize];
        assert_eq!(node.ranks[place.local_rank as usize], place.rank);
        assert_eq!(
            (node.host, node.ranks.len()),
            (place.host, place.local_world_size as usize)
        );
        let program = placement.programs[place.program as usize];
        assert!((program.first_rank..program.first_rank + program.ranks).contains(&place.rank));
    }
    assert!(placement.nodes.is_sorted_by_key(|node| node.ranks[0]));
    let names = placement
        .ranks
        .iter()
        .map(|place| &allocation.hosts[place.host].host.name);
    Ok(names.map(String::as_str).collect::<Vec<_>>().join(""))
}

#[test]
fn by_node_goes_round_and_numbers_in_turn() {
    let text = "a slots=3\nz slots=0\nb slots=1\nc slots=2\n";
    let by = |ranks, map_by, rank_by| PlacementRequest {
        ranks,
        map_by,
        rank_by,
        ..PlacementRequest::default()
    };
    let node = |ranks| by(ranks, MapBy::Node, None);
    assert_eq!(hosts(text, &[node(Some(4))]).unwrap(), "abca");
    assert_eq!(hosts(text, &[node(None)]).unwrap(), "abcaca");
    let by_slot = by(Some(4), MapBy::Node, Some(RankBy::Slot));
    assert_eq!(hosts(text, &[by_slot]).unwrap(), "aabc");
    let numbered = by(Some(5), MapBy::Slot, Some(RankBy::Node));
    assert_eq!(hosts(text, &[numbered]).unwrap(), "abcaa");
    assert_eq!(
        hosts(text, &[by(Some(4), MapBy::Numa, None)]).unwrap(),
        "aaab"
    );
    let over = PlacementRequest {
        oversubscribe: true,
        ..node(Some(8))
    };
    assert_eq!(hosts(text, &[over]).unwrap(), "abcabcaa");
    let per_host = PlacementRequest {
        per_host: Some(1),
        ..node(None)
    };
    assert_eq!(hosts(text, &[per_host]).unwrap(), "abc");
}

#[test]
fn programs_follow_each_other_on_what_is_left() {
    let text = "a slots=2\nb slots=2\n";
    let of = |ranks, label: &str| PlacementRequest {
        label: Some(label.to_owned()),
        ranks,
        ..PlacementRequest::default()
    };
    let chosen = |request, host, slots| PlacementRequest {
        hosts: Some(vec![HostChoice { host, slots }]),
        ..request
    };
    let (one, two) = (of(Some(1), "program 0 (x)"), of(Some(2), "program 1 (y)"));
    assert_eq!(hosts(text, &[one.clone(), two.clone()]).unwrap(), "aab");
    let rest = of(None, "program 1 (y)");
    assert_eq!(hosts(text, &[one.clone(), rest.clone()]).unwrap(), "aabb");
    // Rank 0 is on node 0, whatever the order of the hosts.
    let on_b = chosen(two.clone(), 1, None);
    assert_eq!(hosts(text, &[on_b.clone(), one.clone()]).unwrap(), "bba");
    let error = hosts(text, &[on_b, chosen(one.clone(), 1, Some(2))]).unwrap_err();
    let expected = "program 0 (x): no slots are left: b 0\nhint: give each program its -np";
    assert!(error.starts_with(expected), "{error}");
    let error = hosts(text, &[rest, one.clone()]).unwrap_err();
    assert!(
        error.starts_with("program 0 (x): no slots are left: a 0, b 0"),
        "{error}"
    );
    let error = hosts(text, &[one, chosen(two, 0, None)]).unwrap_err();
    let expected = "program 1 (y): -np 2 asks for more ranks than there are slots (1): a 1\n";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_program_takes_no_more_of_a_host_than_it_chose() {
    let request = |slots| PlacementRequest {
        hosts: Some(vec![
            HostChoice { host: 1, slots },
            HostChoice {
                host: 0,
                slots: None,
            },
        ]),
        ..PlacementRequest::default()
    };
    let text = "a slots=2\nb slots=4\n";
    assert_eq!(hosts(text, &[request(Some(1))]).unwrap(), "baa");
    assert_eq!(hosts(text, &[request(Some(0))]).unwrap(), "aa");
    assert_eq!(hosts(text, &[request(None)]).unwrap(), "bbbbaa");
}
