//! What a run was measured on: figures of two machines are not comparable, and the reader has to see which it was.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine and the versions of what took part, as names and values in the order of showing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// What it is.
    pub facts: Vec<(String, String)>,
}

impl Machine {
    /// This machine, now.
    pub fn describe() -> Machine {
        let mut facts = vec![
            ("Sidestep", format!("{}, {} build", env!("CARGO_PKG_VERSION"), build())),
            ("date", date()),
            ("processor", field("/proc/cpuinfo", "model name")),
            ("cores", std::thread::available_parallelism().map_or(0, |cores| cores.get()).to_string()),
            ("kernel", word("/proc/sys/kernel/osrelease")),
            ("system", quoted("/etc/os-release", "PRETTY_NAME")),
            ("memory", gibibytes(&field("/proc/meminfo", "MemTotal"))),
            ("clock source", word("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
            ("load before the run", word("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")),
        ];
        facts.push(("C library", first_line("getconf", &["GNU_LIBC_VERSION"])));
        for (name, program) in [("Redis", "redis-server"), ("nginx", "nginx"), ("iperf3", "iperf3")] {
            let option = if program == "nginx" { "-v" } else { "--version" };
            facts.push((name, first_line(program, &[option])));
        }
        facts.retain(|(_, value)| !value.is_empty());
        Machine { facts: facts.into_iter().map(|(name, value)| (name.into(), value)).collect() }
    }
}

fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

fn word(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default().trim().into()
}

/// The value of the first line `NAME: VALUE`.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(':')).map_or(String::new(), |(_, value)| value.trim().into())
}

/// A number of kB as people say it.
fn gibibytes(text: &str) -> String {
    let kilobytes = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    kilobytes.map_or(String::new(), |kilobytes| format!("{:.1} GiB", kilobytes / 1_048_576.0))
}

/// The value of a line `NAME="VALUE"`.
fn quoted(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_default().trim_matches('"').into()
}

/// The first line that a program prints; some print their version where errors go.
fn first_line(program: &str, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else { return String::new() };
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().into()
}

/// Now, in universal time.
fn date() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(since / 86_400);
    let (hour, minute) = (since / 3600 % 24, since / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Year, month and day of a number of days since 1970: years begin in March here, so that leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_773), (2026, 11, 16));
    }

    #[test]
    fn this_machine_has_a_kernel() {
        let machine = Machine::describe();
        assert!(machine.facts.iter().any(|(name, value)| name == "kernel" && value.contains('.')), "{machine:?}");
        assert!(machine.facts.iter().all(|(_, value)| !value.is_empty()), "{machine:?}");
    }
}
