//! Times that fell into bins.

use std::fmt::Write;

use super::escape;
use crate::bench::record::Record;

/// Of each record that has bins the share of each, as a bar and a number.
pub fn table(records: &[Record]) -> String {
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
