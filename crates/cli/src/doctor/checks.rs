//! What is looked at, one function each.

use std::{fs, path::Path};

use rustix::process::{Resource, getrlimit};
use sidestep_shm::Memory;
use sidestep_sockets::{config::config, registry};
use sidestep_sys::{budget, user};

use super::{Finding, State, users};
use crate::{run::library, stat::table::bytes};

/// Everything, in the order in which it is needed.
pub fn all() -> Vec<Finding> {
    vec![
        kernel(),
        preload_library(),
        settings(),
        own_user(),
        users::look(),
        directory(),
        turned_off(),
        segments(),
        shared_memory(),
        memory(),
        descriptors(),
        sizes(),
        processors(),
        clock(),
        other_memory(),
        filter(),
    ]
}

fn kernel() -> Finding {
    let release = read("/proc/sys/kernel/osrelease");
    let state = if is_new_enough(&release) { State::Good } else { State::Broken };
    let consequence = "Calls that the library needs are missing.";
    Finding::new("kernel", state, format!("{release}, 5.10 or later is needed"), consequence, "Use a newer kernel.")
}

/// Whether a kernel is 5.10 or later.
fn is_new_enough(release: &str) -> bool {
    let mut parts = release.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (5, 10)
}

fn preload_library() -> Finding {
    let (consequence, remedy) = ("`sidestep run` has nothing to load.", "Build everything, or `./sidestep install`.");
    match library::find() {
        Ok(path) => Finding::new("library", State::Good, path.display().to_string(), "", ""),
        Err(why) => Finding::new("library", State::Broken, why, consequence, remedy),
    }
}

fn settings() -> Finding {
    match &config().wrong {
        None => Finding::new("environment", State::Good, "every SIDESTEP_ variable is allowed", "", ""),
        Some(wrong) => Finding::new(
            "environment",
            State::Broken,
            wrong.to_string(),
            "`sidestep run` does not start programs with it.",
            "Mend or unset the variable.",
        ),
    }
}

fn own_user() -> Finding {
    let consequence = "It stands for every user that this namespace has no number for, so it is not trusted.";
    match user::own() {
        Some(user) => Finding::new("user", State::Good, format!("{user}"), "", ""),
        None => {
            let found = format!("{}, the overflow id", user::overflow());
            Finding::new("user", State::Broken, found, consequence, "Map a user of its own into the user namespace.")
        }
    }
}

fn directory() -> Finding {
    let path = &config().directory;
    let consequence = "Programs cannot find each other.";
    let remedy = "It must be this user's or root's and written by nobody else, or have the sticky bit (mode 1777); \
                  SIDESTEP_DIR names another.";
    match registry::Registry::is_usable(path) {
        true => Finding::new("directory", State::Good, format!("{path} can be used"), "", ""),
        false => Finding::new("directory", State::Broken, format!("{path} cannot be used"), consequence, remedy),
    }
}

/// What was turned off by hand, and may have been forgotten.
fn turned_off() -> Finding {
    let view = registry::Registry::look(&config().directory);
    let ports = view.iter().flat_map(registry::View::ports_off).map(|port| format!("port {port}"));
    let processes = view.iter().flat_map(registry::View::processes_off).map(|pid| format!("process {pid}"));
    let off: Vec<String> = ports.chain(processes).collect();
    let (state, found) = match off.is_empty() {
        true => (State::Good, "nothing".to_owned()),
        false => (State::Limited, off.join(", ")),
    };
    Finding::new(
        "turned off",
        state,
        found,
        "Its connections stay on TCP.",
        "`sidestep on` with the process or the port.",
    )
}

fn segments() -> Finding {
    let number = |name: &str| read(format!("/proc/sys/kernel/{name}")).parse::<u64>().unwrap_or(u64::MAX);
    let (most, all) = (number("shmmax"), number("shmall").saturating_mul(rustix::param::page_size() as u64));
    let needed = registry::LEN as u64;
    let state = if most.min(all) >= needed { State::Good } else { State::Broken };
    let found = format!("the registry takes {}", bytes(needed));
    let remedy = "Raise kernel.shmmax and kernel.shmall (sysctl).";
    Finding::new("segments", state, found, "The registry cannot be made.", remedy)
}

fn shared_memory() -> Finding {
    let consequence = "Rings cannot be made.";
    match Memory::create("doctor", 1 << 20) {
        Ok(_) => Finding::new("shared memory", State::Good, "sealed memory files can be made", "", ""),
        Err(error) => {
            let remedy = "Allow memfd_create and file seals; see the limits below.";
            Finding::new("shared memory", State::Broken, error.to_string(), consequence, remedy)
        }
    }
}

/// A connection takes two rings of 128 KiB; less memory makes them smaller.
const MUCH_MEMORY: u64 = 256 << 20;
/// Below this there is no room for the smallest rings.
const SOME_MEMORY: u64 = 1 << 20;

fn memory() -> Finding {
    let left = budget::left();
    let state = match left {
        0..SOME_MEMORY => State::Broken,
        SOME_MEMORY..MUCH_MEMORY => State::Limited,
        _ => State::Good,
    };
    let remedy = "Raise the limit of the control group (memory.max), or free memory.";
    let found = format!("{} may be taken for rings", bytes(left));
    Finding::new("memory", state, found, "Rings are smaller, and some connections stay on TCP.", remedy)
}

fn descriptors() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let state = match (soft, hard) {
        (_, 0..32) => State::Broken,
        (_, 32..1024) => State::Limited,
        _ => State::Good,
    };
    let remedy = "Raise the hard limit (ulimit -Hn, LimitNOFILE= in a systemd unit).";
    let consequence = "The library takes descriptors above the program's own limit, and finds few or none.";
    Finding::new("descriptors", state, format!("soft limit {soft}, hard limit {hard}"), consequence, remedy)
}

fn sizes() -> Finding {
    let limit = |resource| getrlimit(resource).current;
    let remedy = "Lift the limit (ulimit -v unlimited, ulimit -f unlimited).";
    match (limit(Resource::As), limit(Resource::Fsize)) {
        (None, None) => Finding::new("size limits", State::Good, "address space and files are unlimited", "", ""),
        (space, file) => {
            let shown = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), bytes);
            let found = format!("address space {}, files {}", shown(space), shown(file));
            let broken = space.is_some_and(|space| space < 64 << 20) || file.is_some_and(|file| file < 1 << 20);
            let state = if broken { State::Broken } else { State::Limited };
            Finding::new("size limits", state, found, "Rings and the registry may not fit.", remedy)
        }
    }
}

fn processors() -> Finding {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let state = if count > 1 { State::Good } else { State::Limited };
    let consequence = "Two ends cannot run at the same time, so each message waits for a change of process.";
    Finding::new(
        "processors",
        state,
        format!("{count} may be used"),
        consequence,
        "Allow two or more (taskset, cpuset).",
    )
}

fn clock() -> Finding {
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let state =
        if ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", ""].contains(&source.as_str()) {
            State::Good
        } else {
            State::Limited
        };
    let found = if source.is_empty() { "not told".to_owned() } else { source };
    let consequence = "Each look at the clock is a system call, which waits make often.";
    Finding::new("clock source", state, found, consequence, "Use tsc, if the machine allows it (clocksource=tsc).")
}

fn other_memory() -> Finding {
    let scope = read("/proc/sys/kernel/yama/ptrace_scope");
    let found =
        if scope.is_empty() { "no restriction".to_owned() } else { format!("kernel.yama.ptrace_scope is {scope}") };
    let state = if ["", "0", "1"].contains(&scope.as_str()) { State::Good } else { State::Limited };
    let consequence = "Long messages over VIA are copied twice; rings are not concerned.";
    Finding::new("ptrace scope", state, found, consequence, "Set kernel.yama.ptrace_scope to 1 or 0.")
}

fn filter() -> Finding {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map_or("0", str::trim);
    // A container's filter is there before the program, and lets through what the checks above have used.
    let found = if mode == "0" { "none" } else { "a filter of system calls is on, as in containers" };
    Finding::new("sandbox", State::Good, found, "", "")
}

/// A line that the kernel tells; empty if it does not.
fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for new in ["5.10.0-21-amd64", "5.15", "6.1.0", "10.0"] {
            assert!(is_new_enough(new), "{new}");
        }
        for old in ["5.9.16", "4.19.0-23", "", "linux"] {
            assert!(!is_new_enough(old), "{old}");
        }
    }
}
