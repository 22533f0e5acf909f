//! What the suites promise, and whether this run keeps it.

use std::fmt::Write;

use super::escape;
use crate::bench::{
    promise,
    record::{Record, digits},
};

/// A table of all records that have a verdict.
pub fn table(records: &[Record]) -> String {
    let judged: Vec<_> = records.iter().filter_map(|record| Some((record, promise::verdict(record)?))).collect();
    if judged.is_empty() {
        return String::new();
    }
    let kept = judged.iter().filter(|(_, (_, is_met))| *is_met).count();
    let mut out = format!(
        "<h2>Promises</h2>\n<p>{kept} of {} are kept by this run.</p>\n<div class=\"scroll\"><table><tr><th class=\"t\">bench</th>\
         <th class=\"t\">what</th><th class=\"t\">promised</th><th>found</th><th class=\"t\">verdict</th></tr>\n",
        judged.len()
    );
    for (record, (promised, is_met)) in judged {
        let word = |key: &str| record.extra.get(key).and_then(|value| value.as_str());
        let more = word("what").map_or(String::new(), |what| format!(", {what}"));
        let against = word("against").map_or(String::new(), |against| format!(" against {against}"));
        let what = format!("{}{more}{against}", record.path);
        let (class, verdict) = if is_met { ("good", "met") } else { ("bad", "missed") };
        let _ = writeln!(
            out,
            "<tr><td class=\"t n\">{}</td><td class=\"t\">{}</td><td class=\"t n\">{promised}</td><td>{}</td>\
             <td class=\"t\"><span class=\"{class}\">{verdict}</span></td></tr>",
            escape(&record.bench),
            escape(&what),
            digits(record.value),
        );
    }
    out + "</table></div>\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::record::Metric;

    #[test]
    fn promises_are_told_with_their_verdict() {
        let record = |path: &str, extra: serde_json::Value| Record {
            bench: "cache.rings".into(),
            path: path.into(),
            size: 0,
            metric: Metric::Ratio,
            value: 1.25,
            unit: "x",
            extra: extra.as_object().cloned().unwrap_or_default(),
        };
        let kept = record("one <way>", json!({"at_most": 1.5, "met": true}));
        let missed = record("own", json!({"against": "tcp", "at_least": 3.0, "met": false}));
        let text = table(&[kept, missed, record("other", json!({}))]);
        assert!(text.contains("one &lt;way&gt;") && text.contains("at most 1.5<") && text.contains(">met<"), "{text}");
        assert!(
            text.contains("own against tcp") && text.contains("at least 3<") && text.contains(">missed<"),
            "{text}"
        );
        assert!(text.contains("1 of 2 are kept"), "{text}");
        assert!(!text.contains("other") && table(&[]).is_empty());
    }
}
