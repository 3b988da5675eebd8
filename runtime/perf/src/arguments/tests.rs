use super::*;

fn parse(line: &str) -> Result<Arguments, String> {
    Arguments::read(line.split(' ')).map_err(|error| error.to_string())
}

#[test]
fn takes_the_flags_of_nccl_tests() {
    let line = "rperf all_reduce_perf -b 8 -e 1G -f 2 -n 7 -w 3 -d all -o max -c 0 -r 1 -g 1 -t 1 \
                -m 2 -N 3 -z 1 -a 3 -C 1 -S 1 -M 1 -u 1 -I 1 -K 2 -T 9 -G 0 -p 1 -J out.json";
    let arguments = parse(line).unwrap();
    assert_eq!(arguments.test, Test::AllReduce);
    assert_eq!(arguments.sizes().count(), 28);
    assert_eq!(
        (arguments.iterations, arguments.warmups, arguments.checks),
        (Some(7), 3, 0)
    );
    assert_eq!(arguments.dtypes(), COMMON);
    assert_eq!(arguments.ops(DType::F32), [Op::Max]);
    assert_eq!(arguments.roots(4), [0], "an all-reduce has no root");
    assert!(arguments.times_each());
    assert!(parse("rperf sendrecv --minbytes 64K --maxbytes 128K -i 64K").is_ok());
}

#[test]
fn every_test_is_known_by_nccl_tests_name() {
    for test in Test::value_variants() {
        for name in [test.name().to_owned(), format!("{}_perf", test.name())] {
            let arguments = parse(&format!("rperf {name}")).unwrap();
            assert_eq!(arguments.test, *test);
        }
    }
}

#[test]
fn all_means_what_the_type_and_test_allow() {
    let arguments = parse("rperf reduce -o all -d all -r all").unwrap();
    assert_eq!(arguments.roots(3), [0, 1, 2]);
    assert!(arguments.ops(DType::I32).contains(&Op::Bxor));
    assert!(!arguments.ops(DType::F32).contains(&Op::Bxor));
    assert_eq!(arguments.ops(DType::F32I32), [Op::MinLoc, Op::MaxLoc]);
}

#[test]
fn a_calibration_needs_no_test() {
    let arguments = parse("rperf --tune out.toml").unwrap();
    assert_eq!(arguments.tuned_sizes().count(), 7);
    assert!(parse("rperf").is_err());
}

#[test]
fn latency_begins_with_small_messages() {
    let sizes = |line: &str| parse(line).unwrap().sizes().collect::<Vec<u64>>();
    let all = sizes("rperf latency");
    assert_eq!((all[0], all[1], all.len()), (8, 16, 20));
    assert_eq!(all.last(), Some(&(4 << 20)));
    assert_eq!(sizes("rperf latency -b 64 -e 256"), [64, 128, 256]);
    assert_eq!(sizes("rperf latency -e 4"), [4]);
    assert_eq!(sizes("rperf latency -b 1K -e 3K -i 1K"), [1024, 2048, 3072]);
    assert_eq!(sizes("rperf all_reduce"), [32 << 20]);
}

#[test]
fn no_tip_leads_nowhere() {
    for line in [
        "rperf all_reduce --bogus",
        "rperf all_reduce --ngpuss 1",
        "rperf all_reduce x y",
    ] {
        let error = parse(line).map(|_| ()).unwrap_err();
        assert!(!error.contains("tip:"), "{error}");
        assert!(error.contains("Usage: rperf TEST [OPTIONS]"), "{error}");
    }
    let near = parse("rperf all_reduce --jsn").map(|_| ()).unwrap_err();
    assert!(near.contains("'--json'"), "{near}");
}

#[test]
fn says_what_there_is() {
    for (line, word) in [
        ("rperf all_reduce -d quad", "double"),
        ("rperf all_reduce -o mean", "avg"),
        ("rperf all_reduce -o band", "bitwise"),
        ("rperf all_reduce -b 8X", "K, M or G"),
        ("rperf all_to_some", "all_gather"),
        ("rperf all_reduce -f 1", "2"),
        ("rperf all_reduce -b 2K -e 1K", "below"),
        ("rperf all_reduce -g 8", "-np N"),
        ("rperf all_reduce -G 1", "host memory"),
        ("rperf all_reduce -J out.txt", ".json"),
        ("rperf all_reduce --plot out.gif", ".svg"),
        ("rperf all_reduce --split 8", "MOD 8"),
        ("rperf latency -m 2", "no single call"),
        (
            "rperf all_reduce -n -1",
            "invalid value '-1' for '--iters <N>'",
        ),
        (
            "rperf all_reduce -w -5",
            "invalid value '-5' for '--warmup_iters <N>'",
        ),
        ("rperf all_reduce -c -1", "'--check <N>'"),
        (
            "rperf all_reduce -d float99",
            "float (float32), double (float64)",
        ),
        ("rperf all_reduce --bogus", "unexpected argument '--bogus'"),
    ] {
        let error = parse(line).map(|_| ()).unwrap_err();
        assert!(error.contains(word), "{line}: {error}");
    }
}
