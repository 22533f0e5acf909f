//! What a measurement reports: one record per figure, printed as a line of JSON.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// One figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Which bench: `fabric.latency`, `fabric.bandwidth`, ...
    pub bench: String,
    /// What was measured: `ring`, `tcp`, ...
    pub path: String,
    /// Bytes per message.
    pub size: usize,
    /// What the value is.
    pub metric: Metric,
    /// The value, in `unit`.
    #[serde(deserialize_with = "number")]
    pub value: f64,
    /// The metric's unit; one that is read gets it from the metric.
    #[serde(skip_deserializing)]
    pub unit: &'static str,
    /// Whatever else is useful.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Record {
    /// How far the rounds behind the value lie from it, as a share: nothing where it is the same in each run, `None` where it is
    /// not known.
    pub fn spread(&self) -> Option<f64> {
        let is_simulated = self.extra.get("simulated").and_then(Value::as_bool) == Some(true);
        match self.extra.get("spread") {
            Some(told) => told.as_f64(),
            None => is_simulated.then_some(0.0),
        }
    }

    /// The record as one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a record has only plain values")
    }
}

/// A number; JSON has none for what could not be computed, and writes null.
fn number<'a, D: Deserializer<'a>>(source: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(source)?.unwrap_or(f64::NAN))
}

/// What a value is, by the names of the JSON output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Metric {
    /// Median time of a message from one end to the other.
    #[serde(rename = "one_way_p50")]
    OneWayP50,
    /// Mean time of a message from one end to the other.
    #[serde(rename = "one_way_mean")]
    OneWayMean,
    /// The time that 99 % of the messages stay within.
    #[serde(rename = "one_way_p99")]
    OneWayP99,
    /// The time that 99.9 % of the messages stay within.
    #[serde(rename = "one_way_p999")]
    OneWayP999,
    /// Median time of a call, until its reply is there.
    #[serde(rename = "round_trip_p50")]
    RoundTripP50,
    /// The time that 99 % of the calls stay within.
    #[serde(rename = "round_trip_p99")]
    RoundTripP99,
    /// Messages per second.
    #[serde(rename = "rate")]
    Rate,
    /// Bytes per second.
    #[serde(rename = "bandwidth")]
    Bandwidth,
    /// Median time of a call, from its beginning to its reply.
    #[serde(rename = "call_p50")]
    CallP50,
    /// The time that 99 % of the calls stay within.
    #[serde(rename = "call_p99")]
    CallP99,
    /// The time that 99.9 % of the calls stay within.
    #[serde(rename = "call_p999")]
    CallP999,
    /// Processor time of both ends per call.
    #[serde(rename = "cpu_per_call")]
    CpuPerCall,
    /// Processor time of both ends per message.
    #[serde(rename = "cpu_per_message")]
    CpuPerMessage,
    /// Time of one operation.
    #[serde(rename = "cost")]
    Cost,
    /// Ticks of the processor's counter in one operation.
    #[serde(rename = "cycles")]
    Cycles,
    /// Requests answered per second.
    #[serde(rename = "requests")]
    Requests,
    /// Connections made, used and closed per second.
    #[serde(rename = "connections")]
    Connections,
    /// Bytes that something is kept in.
    #[serde(rename = "memory")]
    Memory,
    /// What was looked for and not found.
    #[serde(rename = "misses")]
    Misses,
    /// The share of a buffer that holds bytes.
    #[serde(rename = "utilisation")]
    Utilisation,
    /// How many times better than something.
    #[serde(rename = "ratio")]
    Ratio,
    /// Bytes on the memory bus for each byte on the network.
    #[serde(rename = "bus_bytes")]
    BusBytes,
}

impl Metric {
    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::OneWayP50 | Metric::OneWayMean | Metric::OneWayP99 | Metric::OneWayP999 => "ns",
            Metric::RoundTripP50 | Metric::RoundTripP99 => "ns",
            Metric::Rate => "messages/s",
            Metric::Bandwidth => "bytes/s",
            Metric::CallP50 | Metric::CallP99 | Metric::CallP999 => "ns",
            Metric::CpuPerMessage | Metric::CpuPerCall | Metric::Cost => "ns",
            Metric::Cycles => "cycles",
            Metric::Requests | Metric::Connections => "1/s",
            Metric::Ratio => "x",
            Metric::BusBytes => "bytes/byte",
            Metric::Utilisation | Metric::Misses => "share",
            Metric::Memory => "bytes",
        }
    }

    /// Whether a larger value is the better one.
    pub fn larger_is_better(self) -> bool {
        matches!(
            self,
            Metric::Rate
                | Metric::Bandwidth
                | Metric::Requests
                | Metric::Connections
                | Metric::Ratio
                | Metric::Utilisation
        )
    }

    /// How tables head its column.
    pub fn heading(self) -> &'static str {
        match self {
            Metric::RoundTripP50 => "round trip",
            Metric::OneWayMean => "mean",
            Metric::OneWayP50 | Metric::CallP50 => "p50",
            Metric::OneWayP99 | Metric::CallP99 | Metric::RoundTripP99 => "p99",
            Metric::OneWayP999 | Metric::CallP999 => "p99.9",
            Metric::CpuPerCall => "cpu/call",
            Metric::Rate => "rate",
            Metric::Bandwidth => "bandwidth",
            Metric::CpuPerMessage => "cpu/message",
            Metric::Cost => "cost",
            Metric::Cycles => "cycles",
            Metric::Requests => "requests",
            Metric::Connections => "connections",
            Metric::Ratio => "ratio",
            Metric::BusBytes => "bus bytes",
            Metric::Utilisation => "in use",
            Metric::Memory => "memory",
            Metric::Misses => "misses",
        }
    }

    /// A value as tables show it.
    pub fn shown(self, value: f64) -> String {
        match self {
            Metric::Rate => format!("{} M/s", digits(value / 1e6)),
            Metric::Bandwidth => format!("{} GB/s", digits(value / 1e9)),
            Metric::Cycles | Metric::BusBytes => digits(value),
            Metric::Requests | Metric::Connections => format!("{} k/s", digits(value / 1e3)),
            Metric::Utilisation | Metric::Misses => format!("{} %", digits(value * 100.0)),
            Metric::Memory => format!("{} KiB", digits(value / 1024.0)),
            Metric::Ratio => format!("{} times", digits(value)),
            _ if value < 1e3 => format!("{} ns", digits(value)),
            _ if value < 1e6 => format!("{} us", digits(value / 1e3)),
            _ => format!("{} ms", digits(value / 1e6)),
        }
    }
}

/// About three digits, whatever the magnitude.
pub fn digits(value: f64) -> String {
    let places = match value.abs() {
        small if small < 0.1 => 4,
        small if small < 1.0 => 3,
        middle if middle < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_with_the_stated_keys() {
        let mut extra = Map::new();
        extra.insert("wait".into(), "spin".into());
        let record = Record {
            bench: "fabric.latency".into(),
            path: "ring".into(),
            size: 64,
            metric: Metric::OneWayP999,
            value: 1.5,
            unit: Metric::OneWayP999.unit(),
            extra,
        };
        let expected = concat!(
            r#"{"bench":"fabric.latency","path":"ring","size":64,"#,
            r#""metric":"one_way_p999","value":1.5,"unit":"ns","wait":"spin"}"#
        );
        assert_eq!(record.json(), expected);
        let read: Record = serde_json::from_str(&expected.replace("1.5", "null")).unwrap();
        assert!(read.value.is_nan());
    }

    #[test]
    fn values_keep_three_digits() {
        assert_eq!(Metric::OneWayP50.shown(77.26), "77.3 ns");
        assert_eq!(Metric::OneWayP99.shown(8_412.0), "8.41 us");
        assert_eq!(Metric::Bandwidth.shown(2.31e10), "23.1 GB/s");
        assert_eq!(Metric::Rate.shown(3.5e5), "0.350 M/s");
    }
}
