//! A copy that is killed at any moment fails its unit of work, by name, or lets it be repeated: copies in processes, whole
//! programs, and threads (which panic). Nothing hangs or is left behind, no buffer either. Alone in its file: it counts what its
//! process holds.

mod kit;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kit::{Found, expected, launcher};
use rustix::process::{Pid, Signal, kill_process};
use sidestep_filters::{
    ANY, Graph, Group, Kind, Kinds, OnDeath, Outcome, Place, Schedule, Settings, Transport, builtin, function,
};
use sidestep_testkit::allocator::Counting;
use sidestep_testkit::process::{Census, PATIENCE, full, seed_or};
use sidestep_testkit::seeded::Seeded;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const TRANSPORTS: [Transport; 3] = [Transport::Channel, Transport::Tcp, Transport::Vi];
/// Buffers of each unit, and units of each round.
const BUFFERS: u64 = 100;
const UNITS: usize = 3;

#[test]
fn role() {
    sidestep_filters::worker::enter(&kinds(&Found::default(), &Arc::default()));
}

/// Kills of any copy at any moment. The numbers are those of the long form, and of the other.
#[test]
fn kills_fail_a_unit_or_repeat_it() {
    let seed = seed_or(7);
    eprintln!("SIDESTEP_SEED={seed}");
    let mut random = Seeded::new(seed);
    let rounds = |long: usize, short: usize| if full() { long } else { short };
    let mut killed = 0;
    for (at, transport) in TRANSPORTS.into_iter().enumerate() {
        let on_death = if at == 0 { OnDeath::Repeat } else { OnDeath::Fail };
        killed += nothing_is_left(|| processes(transport, on_death, rounds(72, 3), &mut random));
        killed += nothing_is_left(|| programs(transport, rounds(20, 1), &mut random));
    }
    killed += nothing_is_left(|| threads(rounds(200, 10), &mut random));
    eprintln!("{killed} kills");
    assert!(!full() || killed >= 200, "{killed} kills");
}

/// The kinds of the kit, `pass` and `program`, and `mortal`, which panics when its `doom` has come.
fn kinds(found: &Found, doom: &Arc<AtomicI64>) -> Kinds {
    let doom = doom.clone();
    let mortal = Kind::new("hands buffers on, until it panics", move |_| {
        let doom = doom.clone();
        Ok(function(move |work| {
            while let Some(mut buffer) = work.inputs.take()? {
                if doom.fetch_sub(1, Ordering::Relaxed) == 1 {
                    // Without the report, which takes memory for ever.
                    std::panic::resume_unwind(Box::new("killed"));
                }
                let mut out = work.outputs.reserve()?;
                out.copy_from(&mut buffer)?;
                out.commit(buffer.len())?;
            }
            Ok(())
        }))
    });
    let own = builtin::kinds();
    let builtin = |name: &str| own.kind(name).unwrap().clone();
    kit::kinds(found)
        .with("pass", builtin("pass"))
        .with("program", builtin("program"))
        .with("mortal", mortal.input("in", ANY).output("out", ANY))
}

/// Units that went well have all their values; the errors of the others.
fn judged(outcomes: Vec<Outcome>, found: &Found, expected: &[u64]) -> Vec<String> {
    let mut errors = Vec::new();
    for outcome in outcomes {
        match outcome.result {
            Ok(()) => {
                let mut values = kit::all(found)[&outcome.unit].clone();
                values.sort_unstable();
                assert_eq!(values, expected, "unit {}", outcome.unit);
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    errors
}

/// Runs a round of units, while someone is killed in another thread.
fn round(group: &mut Group, pause: Duration, kill: impl FnOnce() -> usize + Send) -> (Vec<Outcome>, usize) {
    std::thread::scope(|scope| {
        let killer = scope.spawn(move || {
            std::thread::sleep(pause);
            kill()
        });
        let outcomes = group.run(vec![Settings::default(); UNITS]).unwrap();
        (outcomes, killer.join().unwrap())
    })
}

fn kill(pid: u32) -> usize {
    usize::from(kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).is_ok())
}

/// A source, two copies, two more in one process, and a sink here: any of the processes is killed.
fn processes(transport: Transport, on_death: OnDeath, rounds: usize, random: &mut Seeded) -> usize {
    let found = Found::default();
    let mut graph = Graph::new("processes")
        .over(transport)
        .filter("numbers", "numbers", 1, Place::Process)
        .set("most", BUFFERS)
        .filter("mix", "mix", 2, Place::Process)
        .filter("pass", "pass", 2, Place::Shared("passing".into()))
        .filter("gather", "gather", 1, Place::Thread)
        .stream("numbers.out", "mix.in", 256)
        .dealt(Schedule::Demand)
        .stream("mix.out", "pass.in", 64)
        .dealt(Schedule::Demand)
        .stream("pass.out", "gather.in", 64);
    graph.on_death = on_death;
    let mut group = Group::start(graph, &kinds(&found, &Arc::default()), launcher()).unwrap();
    let mut killed = 0;
    for _ in 0..rounds {
        let pids = group.pids();
        let victim = pids[random.below(pids.len() as u64) as usize].1;
        let (outcomes, now) = round(&mut group, Duration::from_micros(random.below(20_000)), || kill(victim));
        killed += now;
        for error in judged(outcomes, &found, &expected(BUFFERS)) {
            assert!(on_death == OnDeath::Fail, "{error}");
            assert!(error.contains(" in process ") && error.contains("its process died"), "{error}");
        }
    }
    killed
}

/// Two copies of a program, one of each in a process of its own: the program is killed, not the copy.
fn programs(transport: Transport, rounds: usize, random: &mut Seeded) -> usize {
    let word = format!("--label=sidestep-kills-{}", std::process::id());
    let found = Found::default();
    let sums = Kind::new("adds lines up", {
        let found = found.clone();
        move |_| {
            let found = found.clone();
            let mut bytes = Vec::new();
            Ok(function(move |work| {
                let mut text = Vec::new();
                while let Some(mut buffer) = work.inputs.take()? {
                    buffer.read_into(&mut bytes)?;
                    text.extend_from_slice(&bytes);
                }
                let lines = String::from_utf8(text)?;
                let values = lines.lines().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
                found.lock().unwrap().insert((work.unit.number, 0), values);
                Ok(())
            }))
        }
    });
    let lines = Kind::new("gives lines", |_| {
        Ok(function(|work| {
            for number in 0..BUFFERS {
                work.outputs.port("out")?.put(format!("{number}\n").as_bytes())?;
                if number % 10 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        }))
    });
    let all = kinds(&found, &Arc::default());
    let all = all.with("numbered", lines.output("out", "lines")).with("sums", sums.input("in", ANY));
    let graph = Graph::new("programs")
        .over(transport)
        .filter("lines", "numbered", 1, Place::Thread)
        .filter("one", "program", 2, Place::Process)
        .set("command", format!("grep\n-a\n{word}\n"))
        .filter("two", "program", 2, Place::Thread)
        .set("command", format!("grep\n-a\n{word}\n"))
        .filter("sums", "sums", 1, Place::Thread)
        .stream("lines.out", "one.in", 64)
        .stream("one.out", "two.in", 64)
        .stream("two.out", "sums.in", 64);
    let mut group = Group::start(graph, &all, launcher()).unwrap();
    let expected: Vec<u64> = (0..BUFFERS).collect();
    let mut killed = 0;
    for _ in 0..rounds {
        let (chance, word) = (random.below(1 << 32), &word);
        let (outcomes, now) = round(&mut group, Duration::from_micros(random.below(20_000)), move || {
            let running = running(word);
            if running.is_empty() { 0 } else { kill(running[chance as usize % running.len()]) }
        });
        killed += now;
        for error in judged(outcomes, &found, &expected) {
            assert!((error.starts_with("one[") || error.starts_with("two[")) && error.contains("signal: 9"), "{error}");
        }
    }
    drop(group);
    wait_until("programs are left", || running(&word).is_empty());
    killed
}

/// Processes with this word among their arguments.
fn running(word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_own = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    pids.filter(is_own).collect()
}

/// Copies in threads of this process panic at any buffer.
fn threads(rounds: usize, random: &mut Seeded) -> usize {
    const BUFFER: usize = 64 << 10;
    let (found, doom) = (Found::default(), Arc::new(AtomicI64::new(0)));
    let stages = ["first", "second", "third"];
    let graph = Graph::new("threads").filter("numbers", "numbers", 1, Place::Thread).set("most", 30);
    let graph = stages.iter().fold(graph, |graph, stage| graph.filter(stage, "mortal", 2, Place::Thread));
    let graph = graph
        .filter("mix", "mix", 2, Place::Thread)
        .filter("gather", "gather", 1, Place::Thread)
        .stream("numbers.out", "first.in", BUFFER)
        .stream("first.out", "second.in", BUFFER)
        .dealt(Schedule::Demand)
        .stream("second.out", "third.in", BUFFER)
        .stream("third.out", "mix.in", BUFFER)
        .stream("mix.out", "gather.in", 64);
    let before = ALLOCATOR.live();
    let mut group = Group::start(graph, &kinds(&found, &doom), launcher()).unwrap();
    let mut killed = 0;
    for _ in 0..rounds {
        // Three stages with thirty buffers each of three units.
        doom.store(1 + random.below(3 * 30 * UNITS as u64) as i64, Ordering::Relaxed);
        let outcomes = group.run(vec![Settings::default(); UNITS]).unwrap();
        for error in judged(outcomes, &found, &expected(30)) {
            assert!(stages.iter().any(|stage| error.starts_with(stage)), "{error}");
            assert!(error.ends_with("it panicked: killed"), "{error}");
            killed += 1;
        }
        found.lock().unwrap().clear();
    }
    assert_eq!(killed, rounds);
    drop(group);
    // A single buffer that was not freed would show.
    wait_until("buffers are left", || ALLOCATOR.live() < before + BUFFER as u64);
    killed
}

/// Descriptors, mappings and names are those that they were before.
fn nothing_is_left(run: impl FnOnce() -> usize) -> usize {
    let word = format!("filters-{}", std::process::id());
    let before = Census::take(&word);
    let killed = run();
    // Threads of units that were given up end by themselves.
    wait_until(&format!("more is left than {before}"), || {
        let after = Census::take(&word);
        after.descriptors <= before.descriptors && after.mappings <= before.mappings && after.names == before.names
    });
    killed
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 10 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}
