//! Two parts of a report that any suite may have: what it promises, and times that fall into bins.

use std::fmt::Write;

use super::escape;
use crate::bench::promise::VERDICT;
use crate::bench::record::{Record, digits};

/// Every promise of the run, and whether it is kept.
pub fn promises(records: &[Record]) -> String {
    let is_own = |record: &&Record| [VERDICT, "promised"].iter().all(|key| record.extra.contains_key(*key));
    let own: Vec<&Record> = records.iter().filter(is_own).collect();
    if own.is_empty() {
        return String::new();
    }
    let kept = own.iter().filter(|record| word(record, VERDICT) == "met").count();
    let mut out = format!(
        "<h2>Promises</h2>\n<p>{kept} of {} are kept by this run.</p>\n<div class=\"scroll\"><table><tr><th class=\"t\">bench</th>\
         <th class=\"t\">what</th><th class=\"t\">promised</th><th>found</th><th class=\"t\">verdict</th></tr>\n",
        own.len()
    );
    for record in own {
        let found = record.extra.get("found").and_then(|found| found.as_f64()).unwrap_or(f64::NAN);
        let verdict = word(record, VERDICT);
        let class = if verdict == "met" { "good" } else { "bad" };
        let _ = writeln!(
            out,
            "<tr><td class=\"t n\">{}</td><td class=\"t\">{}</td><td class=\"t n\">{}</td><td>{}</td>\
             <td class=\"t\"><span class=\"{class}\">{}</span></td></tr>",
            escape(&record.bench),
            escape(word(record, "what")),
            escape(word(record, "promised")),
            digits(found),
            escape(verdict),
        );
    }
    out + "</table></div>\n"
}

/// Histograms: of each record that has bins the share of each, as a bar and a number.
pub fn histograms(records: &[Record]) -> String {
    let list = |record: &Record, key: &str| record.extra.get(key).and_then(|list| list.as_array()).cloned();
    let own = records.iter().filter_map(|record| Some((record, list(record, "bins")?, list(record, "names")?)));
    let own: Vec<_> = own.filter(|(_, bins, names)| bins.len() == names.len()).collect();
    let Some((_, _, names)) = own.first() else { return String::new() };
    let mut out = String::from(
        "<h2>Histograms</h2>\n<p>How many percent fell into each bin of microseconds.</p>\n<div class=\"scroll\"><table><tr>\
         <th class=\"t\">bench</th><th class=\"t\">of</th>",
    );
    for name in names {
        let _ = write!(out, "<th>{}</th>", escape(name.as_str().unwrap_or_default()));
    }
    out += "<th>in all</th></tr>\n";
    for (record, bins, _) in own.iter().filter(|(_, _, own)| own == names) {
        let _ = write!(
            out,
            "<tr><td class=\"t n\">{}</td><td class=\"t n\">{}</td>",
            escape(&record.bench),
            escape(&record.path)
        );
        for share in bins {
            let percent = share.as_f64().unwrap_or(0.0).clamp(0.0, 1.0) * 100.0;
            let _ = write!(out, "<td class=\"bin\"><i style=\"width:{percent:.1}%\"></i>{percent:.1}</td>");
        }
        let count = record.extra.get("misses").and_then(|count| count.as_u64());
        let _ = writeln!(out, "<td>{}</td></tr>", count.map(|count| count.to_string()).unwrap_or_default());
    }
    out + "</table></div>\n"
}

fn word<'a>(record: &'a Record, key: &str) -> &'a str {
    record.extra.get(key).and_then(|value| value.as_str()).unwrap_or_default()
}
