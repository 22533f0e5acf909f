use super::*;

fn record(bench: &str, path: &str, size: usize, metric: Metric, value: f64, extra: serde_json::Value) -> Record {
    let extra = extra.as_object().cloned().unwrap_or_default();
    Record { bench: bench.into(), path: path.into(), size, metric, value, unit: metric.unit(), extra }
}

#[test]
fn verdicts_follow_from_the_ratios() {
    let verdict = |paper, times| verdict(paper, Ratio { times, noise: None }, "a reason").name();
    assert_eq!(verdict(Paper::Times(5.0), 4.6), "met");
    assert_eq!(verdict(Paper::Times(5.0), 50.0), "met");
    assert_eq!(verdict(Paper::Times(5.0), 1.4), "same direction");
    assert_eq!(verdict(Paper::Times(5.0), 0.9), "reversed");
    assert_eq!(verdict(Paper::Times(0.5), 0.4), "same direction");
    assert_eq!(verdict(Paper::Times(1.0), 0.85), "same direction");
    assert_eq!(verdict(Paper::Better, 1.2), "met");
    assert_eq!(verdict(Paper::Better, 0.5), "reversed");
}

/// A ratio that the noise covers is neither an effect nor its opposite.
#[test]
fn what_may_be_noise_has_no_direction() {
    let verdict = |paper, times| verdict(paper, Ratio { times, noise: Some(0.3) }, "").name();
    for (paper, times) in
        [(Paper::Times(5.0), 1.2), (Paper::Times(5.0), 0.9), (Paper::Times(0.5), 0.8), (Paper::Better, 1.1)]
    {
        assert_eq!(verdict(paper, times), "no difference", "{times}");
    }
    assert_eq!(verdict(Paper::Times(1.05), 0.9), "met", "there is none in the document, either");
    assert_eq!((verdict(Paper::Better, 1.5), verdict(Paper::Better, 0.5)), ("met", "reversed"));
    assert_eq!(verdict(Paper::Times(5.0), 1.5), "same direction");
}

/// A way that keeps a latency with no block has no updates: that is the other way round, and not a figure that is missing.
#[test]
fn a_ratio_of_nothing_is_a_ratio() {
    let lines = Lines { bench: "filters.rate", metric: Metric::Ratio, size: ANY, paths: ["via", "tcp"], of: Of::All };
    let of = |path, value, extra| record("filters.rate", path, 0, Metric::Ratio, value, extra);
    let none = [of("via", 0.0, json!({"spread": 0.0})), of("tcp", 1.0, json!({"spread": 0.0}))];
    let ratio = lines.ratio(&none).expect("it was measured");
    assert_eq!((ratio.times, verdict(Paper::Times(6.0), ratio, "").name()), (0.0, "reversed"));
    assert_eq!(lines.ratio(&[of("via", 1.0, json!({})), of("tcp", 0.0, json!({}))]), None);
    assert_eq!(lines.ratio(&[of("via", 0.0, json!({"note": "left out"})), of("tcp", 1.0, json!({}))]), None);
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
    assert_eq!(lines.ratio(&records), Some(Ratio { times: 3.0, noise: None }));
    assert_eq!(lines.ratio(&records[..2]), None);
    // The noise is that of the two that count.
    let spread = |path, value, spread: f64| Record {
        extra: json!({"connections": 4, "spread": spread}).as_object().cloned().unwrap_or_default(),
        ..of(path, value, 4)
    };
    let records = [spread("ring", 6.0, 0.1), spread("tcp", 2.0, 0.05), spread("tcp", 1.0, 0.9)];
    let ratio = lines.ratio(&records).expect("lines");
    assert!(ratio.times == 3.0 && ratio.noise.is_some_and(|noise| (noise - 0.3).abs() < 1e-9), "{ratio:?}");
    let share = Lines { paths: ["ring", WHOLE], ..lines };
    assert_eq!(share.ratio(&records), Some(Ratio { times: 6.0, noise: None }));
    assert_eq!(share.ratio(&[of("ring", 0.0, 4)]), Some(Ratio { times: 0.0, noise: None }), "nothing of it");
}

/// Every document has entries, no entry stands twice, and what cannot be had has a reason.
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
    for entry in ENTRIES {
        assert!(!matches!(entry.source, Source::NotHere("")), "{} has no reason", entry.what);
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
