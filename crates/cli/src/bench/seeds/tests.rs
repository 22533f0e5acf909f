use super::*;

fn record(bench: &str, path: &str, size: usize, metric: Metric, value: f64, extra: serde_json::Value) -> Record {
    let extra = extra.as_object().cloned().unwrap_or_default();
    Record { bench: bench.into(), path: path.into(), size, metric, value, unit: metric.unit(), extra }
}

#[test]
fn verdicts_follow_from_the_ratios() {
    let verdict = |paper, ours| verdict(paper, ours, "a reason").name();
    assert_eq!(verdict(Paper::Times(5.0), 4.6), "met");
    assert_eq!(verdict(Paper::Times(5.0), 50.0), "met");
    assert_eq!(verdict(Paper::Times(5.0), 1.4), "same direction");
    assert_eq!(verdict(Paper::Times(5.0), 0.9), "reversed");
    assert_eq!(verdict(Paper::Times(0.5), 0.4), "same direction");
    assert_eq!(verdict(Paper::Times(1.0), 0.85), "same direction");
    assert_eq!(verdict(Paper::Better, 1.2), "met");
    assert_eq!(verdict(Paper::Better, 0.5), "reversed");
}

#[test]
fn each_path_counts_where_it_is_at_its_best() {
    let lines = Lines {
        bench: "sockets.fanin",
        metric: Metric::Bandwidth,
        size: 16384,
        paths: ["ring", "tcp"],
        of: Of::Connections(4),
    };
    let of = |path, value, count: u64| {
        record("sockets.fanin", path, 16384, Metric::Bandwidth, value, json!({"connections": count}))
    };
    let records = [of("ring", 6.0, 4), of("ring", 99.0, 8), of("tcp", 1.0, 4), of("tcp", 2.0, 4)];
    assert_eq!(lines.ratio(&records), Some(3.0));
    assert_eq!(lines.ratio(&records[..2]), None);
}

/// Every document has entries, no entry stands twice, and what is measured names benches that exist.
#[test]
fn the_registry_is_whole() {
    for document in ["000", "001", "002", "003", "004"] {
        assert!(ENTRIES.iter().any(|entry| entry.document.starts_with(document)), "{document}");
    }
    for (at, entry) in ENTRIES.iter().enumerate() {
        let same =
            |other: &&Entry| (other.document, other.place, other.what) == (entry.document, entry.place, entry.what);
        assert_eq!(ENTRIES[at..].iter().filter(same).count(), 1, "{} {} {}", entry.document, entry.place, entry.what);
        assert!(entry.what.chars().count() <= 62, "{} is too long for its column", entry.what);
    }
    for ((suite, _), benches) in needed(&[]) {
        for bench in benches {
            let known = match suite {
                "sockets" => super::super::sockets::benches().any(|own| own.name == bench),
                "orb" => super::super::orb::TABLES.iter().any(|(name, _)| *name == bench),
                "rpc" => bench == "null" || bench == "sizes" || bench == "threads",
                "filters" => super::super::filters::TABLES.iter().any(|(name, _)| *name == bench),
                "vmmc" => super::super::vmmc::BENCHES.iter().any(|(name, _)| *name == bench),
                "extended" => super::super::extended::BENCHES.iter().any(|(name, _)| *name == bench),
                "balance" => super::super::balance::BENCHES.iter().any(|(name, _)| *name == bench),
                "cache" => super::super::cache::BENCHES.iter().any(|(name, _)| *name == bench),
                "sovia" if bench == "ftp" || bench == "rpc" => true,
                _ => super::super::path::Bench::ALL.iter().any(|own| own.name() == bench),
            };
            assert!(known, "{suite}.{bench}");
        }
    }
}

#[test]
fn filters_name_documents_and_places() {
    let count = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        entries(&words).count()
    };
    assert_eq!(count(&[]), ENTRIES.len());
    assert!(count(&["001"]) > 5 && count(&["001"]) < ENTRIES.len());
    assert_eq!(count(&["fig 8.2"]), 1);
    assert!(needed(&["001".into()]).keys().all(|(suite, _)| ["sovia", "rpc"].contains(suite)));
}
