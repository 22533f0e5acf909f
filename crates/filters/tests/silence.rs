//! Processes that do not end and do not answer: stopped ones, and hosts that are gone. No connection ends with them.

mod kit;

use std::time::{Duration, Instant};

use kit::{Found, apart, expected, kinds, launcher};
use rustix::process::{Pid, Signal, kill_process};
use sidestep_filters::{Error, Group, HostSpec, OnDeath, Place, Schedule, Settings, Transport};
use sidestep_testkit::process::PATIENCE;

/// So long, in a test that knows that nobody answers.
const SHORT: Duration = Duration::from_millis(100);

#[test]
fn role() {
    kit::role();
}

/// A process is stopped in the middle of a unit that would take for ever. Nobody else is asked, so a busy machine changes nothing.
fn stopped(transport: Transport, on_death: OnDeath) {
    let found = Found::default();
    let mut graph = apart(1, 100, Schedule::Demand, transport);
    graph.filters[1].settings = Settings::default().with("pause_us", 100);
    graph.on_death = on_death;
    graph.pipelined = 1;
    let mut group = Group::start(graph, &kinds(&found), launcher()).unwrap();
    group.set_patience(PATIENCE);
    group.submit(Settings::default().with("most", 1_000_000));
    while group.counts().iter().all(|(copy, counts)| copy.filter != 1 || counts.buffers_in < 10) {
        group.ask_counts();
        assert_eq!(group.poll(Duration::from_millis(1)).unwrap(), None);
    }
    let (process, pid) = group.pids().remove(0);
    let pid = Pid::from_raw(pid as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    if on_death == OnDeath::Repeat {
        // It is done again by another process, and given up.
        group.set_patience(SHORT);
        while group.pids().first().is_none_or(|(_, now)| *now == pid.as_raw_nonzero().get() as u32) {
            assert_eq!(group.poll(Duration::from_millis(1)).unwrap(), None);
        }
        group.set_patience(PATIENCE);
        group.canceller().cancel(0);
        assert!(group.wait().unwrap().unwrap().result.unwrap_err().what.contains("given up"));
    } else {
        group.set_patience(SHORT);
        let error = group.wait().unwrap().unwrap().result.unwrap_err();
        group.set_patience(PATIENCE);
        assert_eq!(error.to_string(), format!("mix in process {process}: its process has not answered for 100ms"));
    }
    assert!(kill_process(pid, Signal::CONT).is_err(), "it is still there");
    // The next one goes well.
    assert_eq!(group.run([Settings::default()]).unwrap()[0].result, Ok(()));
    let mut values = kit::all(&found)[&1].clone();
    values.sort_unstable();
    assert_eq!(values, expected(100));
}

#[test]
fn a_stopped_process_is_given_up_over_channels() {
    stopped(Transport::Channel, OnDeath::Fail);
}

#[test]
fn a_stopped_process_is_given_up_over_sockets() {
    stopped(Transport::Tcp, OnDeath::Fail);
}

#[test]
fn a_stopped_process_is_given_up_over_vis() {
    stopped(Transport::Vi, OnDeath::Fail);
}

#[test]
fn what_a_stopped_process_did_is_repeated() {
    for transport in [Transport::Channel, Transport::Tcp, Transport::Vi] {
        stopped(transport, OnDeath::Repeat);
    }
}

fn host(name: &str, command: &[&str]) -> HostSpec {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    HostSpec { name: name.into(), address: [127, 0, 0, 1].into(), command, line: 0 }
}

/// A host whose worker never says anything: the group does not start, says which process, and does not wait for long.
#[test]
fn a_host_that_does_not_answer_fails_the_group() {
    for transport in [Transport::Channel, Transport::Tcp] {
        let mut graph = apart(1, 100, Schedule::Demand, transport);
        graph.hosts = vec![host("here", &[]), host("b", &["sleep", "600"])];
        (graph.filters[1].host, graph.filters[1].place) = (Some("b".into()), Place::Thread);
        graph.patience = SHORT;
        let began = Instant::now();
        let error = Group::start(graph, &kinds(&Found::default()), launcher()).unwrap_err();
        assert!(matches!(&error, Error::Start { process, .. } if process == "worker@b"), "{error}");
        assert!(error.to_string().contains("has not answered for 100ms"), "{error}");
        assert!(began.elapsed() < PATIENCE);
    }
}

/// The same for a host that was there once: the unit fails, later ones and calls fail too, and none waits for ever.
#[test]
fn a_host_that_is_gone_fails_its_unit_and_then_the_group() {
    let once = std::env::temp_dir().join(format!("sidestep-silence-{}", std::process::id()));
    std::fs::write(&once, "").unwrap();
    let program = std::env::current_exe().unwrap();
    // The first time a worker, from then on nobody.
    let script = format!(
        "test -e {0} && rm {0} && exec {1} role --exact --nocapture --test-threads=1; exec sleep 600",
        once.display(),
        program.display()
    );
    let mut graph = apart(1, 100, Schedule::Demand, Transport::Tcp);
    graph.hosts = vec![host("here", &[]), host("b", &["sh", "-c", &script])];
    (graph.filters[1].host, graph.filters[1].place) = (Some("b".into()), Place::Thread);
    graph.filters[1].settings = Settings::default().with("pause_us", 100);
    let mut group = Group::start(graph, &kinds(&Found::default()), launcher()).unwrap();
    group.submit(Settings::default().with("most", 1_000_000));
    group.submit(Settings::default());
    let pid = Pid::from_raw(group.pids()[0].1 as i32).unwrap();
    while group.counts().iter().all(|(copy, counts)| copy.filter != 1 || counts.buffers_in < 10) {
        group.ask_counts();
        assert_eq!(group.poll(Duration::from_millis(1)).unwrap(), None);
    }
    group.set_patience(SHORT);
    kill_process(pid, Signal::STOP).unwrap();
    let failed = group.wait().unwrap().unwrap();
    assert_eq!(failed.unit, 0);
    assert!(failed.result.unwrap_err().to_string().starts_with("mix in process worker@b: its process has not"));
    for _ in 0..2 {
        let error = group.wait().unwrap_err();
        assert!(matches!(&error, Error::Start { process, .. } if process == "worker@b"), "{error}");
    }
}
