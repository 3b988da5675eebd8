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
    let placement = place(&allocation(text), request).map_err(|error| error.to_string())?;
    let nodes = placement
        .nodes
        .iter()
        .map(|node| format!("{}:{}", node.host, node.ranks));
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
    let placement = place(&allocation(text), &request(7)).unwrap();
    let last = placement.ranks[6];
    let expected = RankPlace {
        rank: 6,
        host: 3,
        node_rank: 2,
        local_rank: 0,
        local_world_size: 1,
    };
    assert_eq!(last, expected);
    assert_eq!(placement.nodes[1].first_rank, 2);
}

#[test]
fn too_many_ranks_name_both_numbers_and_the_way_out() {
    let text = "a slots=4\nb slots=4\n";
    let expected = "-np 9 asks for more ranks than there are slots (8): a 4, b 4\n\
                    hint: ask for at most 8, add hosts or slots, or pass --oversubscribe";
    assert_eq!(counts(text, &request(9)).unwrap_err(), expected);
    let before = check_before_survey(&allocation(text), &request(9)).unwrap_err();
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
        oversubscribe: false,
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
    assert!(check_before_survey(&open, &request(1000)).is_ok());
    assert!(check_before_survey(&open, &request(0)).is_err());
    assert!(check_before_survey(&open, &request(70_000)).is_err());
    let per_host = PlacementRequest {
        per_host: Some(3),
        ..PlacementRequest::default()
    };
    assert!(check_before_survey(&open, &per_host).is_err());
    let none = PlacementRequest {
        per_host: Some(0),
        ..PlacementRequest::default()
    };
    assert_eq!(
        check_before_survey(&open, &none),
        Err(PlacementError::NoRanksPerHost)
    );
    let few = PlacementRequest {
        per_host: Some(2),
        ..request(5)
    };
    assert!(check_before_survey(&open, &few).is_err());
    assert!(matches!(
        place(&open, &request(1)),
        Err(PlacementError::SlotsUnknown { .. })
    ));
    let empty = allocation("a slots=0\n");
    assert!(matches!(
        check_before_survey(&empty, &PlacementRequest::default()),
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
    let placed = place(&allocation(text), request);
    let fits = slots > 0 && (ranks <= slots || request.oversubscribe);
    assert_eq!(placed.is_ok(), fits, "{text} {request:?}");
    let Ok(placement) = placed else { return };
    assert_eq!(placement.ranks.len(), ranks as usize);
    let mut rank = 0;
    for (node_rank, node) in placement.nodes.iter().enumerate() {
        assert_eq!(node.first_rank, rank);
        assert!(node.ranks > 0 && node.slots > 0);
        assert!(request.oversubscribe || node.ranks <= node.slots);
        for local_rank in 0..node.ranks {
            let place = placement.ranks[rank as usize];
            assert_eq!(place.rank, rank);
            assert_eq!(place.node_rank as usize, node_rank);
            assert_eq!(
                (place.local_rank, place.local_world_size),
                (local_rank, node.ranks)
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
