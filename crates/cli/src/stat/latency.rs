//! How long answers take, by connection: the time from the last piece that one end wrote to the first that the other one wrote after it.
//! Measured from a tap that keeps no bytes, so it costs what a tap costs, and nothing while nobody asks for it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use anyhow::Result;
use sidestep_sockets::{
    address::Key,
    tap::{
        Filter,
        record::{Kind, Record},
    },
};
use sidestep_sys::clock;

use crate::{census::Census, tap::source::Source};

/// Upper bounds of the histogram: nanoseconds, and seconds as the format writes them.
const BOUNDS: [(u64, &str); 19] = [
    (1_000, "1e-06"),
    (2_000, "2e-06"),
    (5_000, "5e-06"),
    (10_000, "1e-05"),
    (20_000, "2e-05"),
    (50_000, "5e-05"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1.0"),
];
/// Pieces of two processes are put into order for so long.
const ORDER_NS: u64 = 10_000_000;
const PAUSE: Duration = Duration::from_millis(1);
/// As many as the registry has records.
const MOST: usize = 16_384;

/// The answers of every connection that was seen, by the end that answers.
#[derive(Debug, Clone, Default)]
pub struct Latencies(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Pieces that are not old enough to be in order.
    waiting: Vec<Record>,
    /// By the address of the end that answers, and that of the other one.
    ends: BTreeMap<(SocketAddr, SocketAddr), Answers>,
    lost: u64,
}

#[derive(Debug, Default)]
struct Answers {
    /// The process that answered last.
    pid: u32,
    /// When the other end asked last, and has not been answered.
    asked: Option<u64>,
    counts: [u64; BOUNDS.len() + 1],
    sum: u64,
}

impl Latencies {
    /// Begins to measure, until the process ends.
    pub fn start() -> Result<Latencies> {
        let mut source = Source::open(&Filter::default(), 0)?;
        let latencies = Latencies::default();
        let state = latencies.0.clone();
        thread::spawn(move || {
            loop {
                let mut found = Vec::new();
                source.drain(|record, _, _| found.push(record));
                let idle = found.is_empty();
                if let Ok(mut state) = state.lock() {
                    state.lost = source.losses().pieces;
                    state.waiting.append(&mut found);
                    state.settle(clock::now().saturating_sub(ORDER_NS));
                }
                if idle {
                    thread::sleep(PAUSE);
                }
            }
        });
        Ok(latencies)
    }

    /// The histograms, in the OpenMetrics text format.
    pub fn text(&self, census: &Census) -> String {
        let mut text = "# TYPE sidestep_response_seconds histogram\n# UNIT sidestep_response_seconds seconds\n\
                        # HELP sidestep_response_seconds Time from the last write of one end to the next write of the other.\n"
            .to_owned();
        let Ok(state) = self.0.lock() else { return text };
        let name = "sidestep_response_seconds";
        let answered = |answers: &&Answers| answers.counts.iter().any(|count| *count > 0);
        for ((local, remote), answers) in state.ends.iter().filter(|(_, answers)| answered(answers)) {
            let of_process = super::metrics::labels(census, answers.pid);
            let labels = format!("{of_process},local=\"{local}\",remote=\"{remote}\"");
            let mut sum = 0;
            for ((_, bound), count) in BOUNDS.iter().zip(&answers.counts) {
                sum += count;
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
            }
            sum += answers.counts[BOUNDS.len()];
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {sum}");
            let _ = writeln!(text, "{name}_count{{{labels}}} {sum}");
            let _ = writeln!(text, "{name}_sum{{{labels}}} {:?}", answers.sum as f64 / 1e9);
        }
        text += "# TYPE sidestep_response_lost counter\n# HELP sidestep_response_lost Writes that were not seen.\n";
        let _ = writeln!(text, "sidestep_response_lost_total {}", state.lost);
        text
    }
}

impl State {
    /// Takes in what was written before this time.
    fn settle(&mut self, until: u64) {
        self.waiting.sort_by_key(|record| record.time);
        let count = self.waiting.partition_point(|record| record.time < until);
        for record in self.waiting.drain(..count).collect::<Vec<_>>() {
            self.take(&record);
        }
    }

    fn take(&mut self, record: &Record) {
        let Key { local, remote, .. } = record.key;
        if record.kind == Kind::End {
            self.ends.remove(&(local, remote));
            return;
        }
        if self.ends.len() + 2 > MOST && !self.ends.contains_key(&(local, remote)) {
            return;
        }
        let own = self.ends.entry((local, remote)).or_default();
        own.pid = record.pid;
        if let Some(asked) = own.asked.take() {
            let time = record.time.saturating_sub(asked);
            let at = BOUNDS.iter().position(|(bound, _)| time <= *bound).unwrap_or(BOUNDS.len());
            own.counts[at] += 1;
            own.sum = own.sum.saturating_add(time);
        }
        self.ends.entry((remote, local)).or_default().asked = Some(record.time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_counted_once_from_the_last_question() {
        let (client, server) = ("127.0.0.1:4000", "127.0.0.1:80");
        let piece = |from: &str, to: &str, time: u64| Record {
            kind: Kind::Bytes,
            key: Key { namespace: 1, local: from.parse().unwrap(), remote: to.parse().unwrap() },
            cookie: 1,
            time,
            pid: 7,
            position: 0,
            read: 0,
            len: 1,
            kept: 0,
        };
        let mut state = State::default();
        // In any order; the second question is the one that is answered, and the answer has two pieces.
        for (from, to, time) in
            [(server, client, 13_000), (client, server, 10_000), (client, server, 9_000), (server, client, 14_000)]
        {
            state.waiting.push(piece(from, to, time));
        }
        state.settle(13_500);
        state.settle(20_000);
        let answers = &state.ends[&(server.parse().unwrap(), client.parse().unwrap())];
        assert_eq!((answers.counts[2], answers.counts.iter().sum::<u64>(), answers.sum), (1, 1, 3_000));
        assert_eq!(state.ends[&(client.parse().unwrap(), server.parse().unwrap())].counts.iter().sum::<u64>(), 0);
    }
}
