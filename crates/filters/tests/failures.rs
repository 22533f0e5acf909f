//! A copy that fails or panics fails its unit of work, by name; the group goes on. A slow one holds its producers back.

mod kit;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kit::{Found, expected, kinds, launcher, line};
use sidestep_filters::{Failure, Graph, Group, Kind, Place, Schedule, Settings, function};

#[test]
fn role() {
    kit::role();
}

/// One unit that fails, then one that goes well.
fn fails_once(graph: Graph, words: &str) {
    let found = Found::default();
    let mut group = Group::start(graph, &kinds(&found), launcher()).unwrap();
    let outcomes = group.run([Settings::default(), Settings::default().with("safe", "yes")]).unwrap();
    let error = outcomes[0].result.clone().unwrap_err();
    assert!(error.copy.starts_with("mix"), "{error}");
    assert!(error.what.contains(words), "{error}");
    assert_eq!(outcomes[1].result, Ok(()));
    let mut values = kit::all(&found)[&1].clone();
    values.sort_unstable();
    assert_eq!(values, expected(100));
}

#[test]
fn an_error_names_the_copy() {
    for place in [Place::Thread, Place::Process] {
        let mut graph = line([1, 3, 1], [Place::Thread, place, Place::Thread], 100, Schedule::Demand);
        graph.filters[1].settings = Settings::default().with("fatal", 50);
        fails_once(graph, "number 50 is fatal");
    }
}

/// However many units fail one after the other, no other unit fails with them.
#[test]
fn failures_in_a_row_are_those_of_their_units() {
    let found = Found::default();
    let mut graph = line([1, 2, 1], [Place::Thread, Place::Thread, Place::Thread], 100, Schedule::Demand);
    graph.filters[1].settings = Settings::default().with("fatal", 50);
    graph.pipelined = 3;
    let mut group = Group::start(graph, &kinds(&found), launcher()).unwrap();
    let (bad, safe) = (Settings::default(), Settings::default().with("safe", "yes"));
    let units: Vec<Settings> = (0..12).map(|at| if at % 9 == 8 { safe.clone() } else { bad.clone() }).collect();
    for outcome in group.run(units).unwrap() {
        assert_eq!(outcome.result.is_ok(), outcome.unit % 9 == 8, "{outcome:?}");
    }
}

#[test]
fn a_panic_names_the_copy() {
    let mut graph = line([1, 3, 1], [Place::Thread, Place::Process, Place::Thread], 100, Schedule::RoundRobin);
    graph.filters[1].settings = Settings::default().with("fatal", 50).with("panics", "yes");
    fails_once(graph, "it panicked: number 50 is fatal");
}

#[test]
fn a_unit_is_given_up() {
    for place in [Place::Thread, Place::Process] {
        let mut graph = line([1, 1, 1], [Place::Thread, place, Place::Thread], 1_000_000, Schedule::RoundRobin);
        graph.filters[1].settings = Settings::default().with("pause_us", 100);
        graph.pipelined = 1;
        let mut group = Group::start(graph, &kinds(&Found::default()), launcher()).unwrap();
        let canceller = group.canceller();
        let (first, second) = (group.submit(Settings::default()), group.submit(Settings::default()));
        canceller.cancel(second);
        canceller.cancel(first);
        for _ in 0..2 {
            let outcome = group.wait().unwrap().unwrap();
            assert!(outcome.result.unwrap_err().what.contains("given up"));
        }
        assert_eq!(group.wait().unwrap(), None);
    }
}

/// However fast the producer is, no more buffers are under way than the queues hold.
#[test]
fn a_slow_consumer_holds_its_producer_back() {
    let made = Arc::new(AtomicU64::new(0));
    let (given, queue) = (made.clone(), 3);
    let source = Kind::new("gives as fast as it can", move |_| {
        let given = given.clone();
        Ok(function(move |work| {
            for _ in 0..2000 {
                work.outputs.reserve()?.commit(8)?;
                given.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        }))
    });
    let sink = Kind::new("checks", move |_| {
        let made = made.clone();
        Ok(function(move |work| {
            let mut taken = 0;
            while let Some(buffer) = work.inputs.take()? {
                let ahead = made.load(Ordering::SeqCst).saturating_sub(taken);
                if ahead > queue + 2 {
                    return Err(Failure::new(format_args!("{ahead} buffers are under way")));
                }
                drop(buffer);
                taken += 1;
            }
            Ok(())
        }))
    });
    let kinds = kinds(&Found::default()).with("source", source.output("out", "x")).with("sink", sink.input("in", "x"));
    let graph = Graph::new("held")
        .filter("source", "source", 1, Place::Thread)
        .filter("sink", "sink", 1, Place::Thread)
        .stream("source.out", "sink.in", 64)
        .queued(queue as usize);
    let mut group = Group::start(graph, &kinds, launcher()).unwrap();
    assert_eq!(group.run([Settings::default()]).unwrap()[0].result, Ok(()));
}
