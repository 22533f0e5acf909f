//! Filters with several inputs and outputs: joins, splits, and diamonds of both, within a process and between processes.

mod kit;

use kit::{Found, launcher};
use sidestep_filters::{
    Failure, Graph, Group, Kind, Kinds, Place, Schedule, Settings, Transport, Work, function, worker,
};

const TRANSPORTS: [Transport; 3] = [Transport::Channel, Transport::Tcp, Transport::Vi];

/// Beside the kinds of the kit: `split` gives even and odd numbers to an output of their own, `join` takes from two inputs in
/// turn, `merge` takes all of one input before the other, `double` doubles.
fn kinds(found: &Found) -> Kinds {
    let split = Kind::new("even and odd numbers", |_| Ok(function(split)));
    let join = Kind::new("takes from both in turn", |_| Ok(function(join)));
    let merge = Kind::new("takes all of one, then all of the other", |_| Ok(function(merge)));
    let double = Kind::new("doubles", |_| Ok(function(double)));
    let three = Kind::new("sums of three inputs", |_| Ok(function(three)));
    kit::kinds(found)
        .with("split", split.input("in", "numbers").output("even", "numbers").output("odd", "numbers"))
        .with("join", join.input("left", "numbers").input("right", "numbers").output("out", "mixed"))
        .with("merge", merge.input("left", "numbers").input("right", "numbers").output("out", "mixed"))
        .with("double", double.input("in", "numbers").output("out", "numbers"))
        .with("three", three.input("a", "numbers").input("b", "numbers").input("c", "numbers").output("out", "mixed"))
}

fn split(work: &mut Work<'_>) -> Result<(), Failure> {
    while let Some(number) = taken(work, "in")? {
        work.outputs.port(if number % 2 == 0 { "even" } else { "odd" })?.put(&number.to_le_bytes())?;
    }
    Ok(())
}

fn join(work: &mut Work<'_>) -> Result<(), Failure> {
    let mut open = vec!["left", "right"];
    while !open.is_empty() {
        for port in open.clone() {
            match taken(work, port)? {
                Some(number) => work.outputs.port("out")?.put(&number.to_le_bytes())?,
                None => open.retain(|other| *other != port),
            }
        }
    }
    Ok(())
}

fn merge(work: &mut Work<'_>) -> Result<(), Failure> {
    for port in ["left", "right"] {
        while let Some(number) = taken(work, port)? {
            work.outputs.port("out")?.put(&number.to_le_bytes())?;
        }
    }
    Ok(())
}

fn double(work: &mut Work<'_>) -> Result<(), Failure> {
    while let Some(number) = taken(work, "in")? {
        work.outputs.port("out")?.put(&(2 * number).to_le_bytes())?;
    }
    Ok(())
}

fn three(work: &mut Work<'_>) -> Result<(), Failure> {
    while let Some(first) = taken(work, "a")? {
        let (second, third) = (taken(work, "b")?, taken(work, "c")?);
        let sum = first + second.unwrap_or_default() + third.unwrap_or_default();
        work.outputs.port("out")?.put(&sum.to_le_bytes())?;
    }
    Ok(())
}

fn taken(work: &mut Work<'_>, port: &str) -> Result<Option<u64>, Failure> {
    match work.inputs.port(port)?.take()? {
        Some(mut buffer) => Ok(Some(u64::from_le_bytes(buffer.array(0)?))),
        None => Ok(None),
    }
}

#[test]
fn role() {
    worker::enter(&kinds(&Found::default()));
}

/// What the sinks find in each of three units, sorted.
fn run(graph: &Graph) -> Vec<Vec<u64>> {
    let found = Found::default();
    let mut group = Group::start(graph.clone(), &kinds(&found), launcher()).unwrap();
    for outcome in group.run(vec![Settings::default(); 3]).unwrap() {
        outcome.result.unwrap_or_else(|error| panic!("{error} of {graph:?}"));
    }
    drop(group);
    let mut found: Vec<Vec<u64>> = kit::all(&found).into_values().collect();
    found.iter_mut().for_each(|values| values.sort_unstable());
    found
}

/// A graph with all in one process, and with every second filter but the sink in processes, over each transport.
fn everywhere(graph: &Graph, expected: &[u64]) {
    let mut graphs = vec![graph.clone()];
    for transport in TRANSPORTS {
        let mut apart = graph.clone().over(transport);
        for (at, filter) in apart.filters.iter_mut().enumerate() {
            if at % 2 == 1 && filter.kind != "gather" {
                filter.place = Place::Process;
            }
        }
        graphs.push(apart);
    }
    for graph in &graphs {
        let found = run(graph);
        assert_eq!(found.len(), 3);
        for values in found {
            assert_eq!(values, expected, "over {:?}", graph.transport);
        }
    }
}

/// Evens are doubled, odds are not, and both come together again.
#[test]
fn a_diamond_comes_together() {
    // Whoever waits at one input holds the other up. One that takes in turn needs little room; copies of it, and one that
    // takes all of one input first, need room for everything.
    for (joint, copies, queue) in [("join", 1, 2), ("join", 3, 64), ("merge", 2, 64)] {
        let graph = Graph::new("diamond")
            .filter("numbers", "numbers", 1, Place::Thread)
            .set("most", 60)
            .filter("split", "split", copies, Place::Thread)
            .filter("double", "double", 2, Place::Thread)
            .filter("joint", joint, copies, Place::Thread)
            .filter("gather", "gather", 1, Place::Thread)
            .stream("numbers.out", "split.in", 64)
            .dealt(Schedule::Demand)
            .stream("split.even", "double.in", 64)
            .stream("split.odd", "joint.right", 64)
            .queued(queue)
            .stream("double.out", "joint.left", 64)
            .dealt(Schedule::Demand)
            .queued(queue)
            .stream("joint.out", "gather.in", 64);
        let mut expected: Vec<u64> = (0..60).map(|number| if number % 2 == 0 { 2 * number } else { number }).collect();
        expected.sort_unstable();
        everywhere(&graph, &expected);
    }
}

/// Three sources of different lengths: the join ends when all of them have ended, and steps over what is left.
#[test]
fn three_inputs_end_together() {
    let source =
        |graph: Graph, name: &str, most: u64| graph.filter(name, "numbers", 1, Place::Thread).set("most", most);
    let graph = source(source(source(Graph::new("three"), "first", 20), "second", 5), "third", 90)
        .filter("three", "three", 1, Place::Thread)
        .filter("gather", "gather", 1, Place::Thread)
        .stream("first.out", "three.a", 32)
        .stream("second.out", "three.b", 32)
        .stream("third.out", "three.c", 32)
        .stream("three.out", "gather.in", 32);
    let expected: Vec<u64> = (0..20).map(|at| 2 * at + if at < 5 { at } else { 0 }).collect();
    let mut expected = expected;
    expected.sort_unstable();
    everywhere(&graph, &expected);
}

/// A split into two sinks: the ends of a unit reach both.
#[test]
fn a_split_has_two_ends() {
    // Two copies of the split may get all evens and all odds, as the dealing goes: the join waits for one of them while the other goes
    // on, so that there must be room for everything.
    let graph = Graph::new("split")
        .filter("numbers", "numbers", 2, Place::Thread)
        .set("most", 50)
        .filter("split", "split", 2, Place::Thread)
        .filter("evens", "double", 2, Place::Thread)
        .filter("odds", "double", 1, Place::Thread)
        .filter("join", "join", 1, Place::Thread)
        .filter("gather", "gather", 1, Place::Thread)
        .stream("numbers.out", "split.in", 32)
        .stream("split.even", "evens.in", 32)
        .queued(64)
        .stream("split.odd", "odds.in", 32)
        .queued(64)
        .stream("evens.out", "join.left", 32)
        .queued(64)
        .stream("odds.out", "join.right", 32)
        .queued(64)
        .stream("join.out", "gather.in", 32);
    everywhere(&graph, &(0..50).map(|number| 2 * number).collect::<Vec<u64>>());
}

/// A failure in one arm of a diamond ends the unit for both, and the next one goes well.
#[test]
fn a_failure_in_one_arm_ends_both() {
    for place in [Place::Thread, Place::Process] {
        let found = Found::default();
        let fatal = Kind::new("fails in the first unit", |_| {
            Ok(function(|work| {
                if work.unit.number == 0 {
                    return Err(Failure::new("this arm is broken"));
                }
                double(work)
            }))
        });
        let all = kinds(&found).with("fatal", fatal.input("in", "numbers").output("out", "numbers"));
        let graph = Graph::new("arms")
            .filter("numbers", "numbers", 1, Place::Thread)
            .set("most", 400)
            .filter("split", "split", 1, Place::Thread)
            .filter("arm", "fatal", 1, Place::Thread)
            .filter("other", "double", 1, place)
            .filter("joint", "join", 1, Place::Thread)
            .filter("gather", "gather", 1, Place::Thread)
            .stream("numbers.out", "split.in", 32)
            .stream("split.even", "arm.in", 32)
            .stream("split.odd", "other.in", 32)
            .stream("arm.out", "joint.left", 32)
            .stream("other.out", "joint.right", 32)
            .stream("joint.out", "gather.in", 32);
        let mut group = Group::start(graph, &all, launcher()).unwrap();
        let outcomes = group.run(vec![Settings::default(); 2]).unwrap();
        let error = outcomes[0].result.clone().unwrap_err();
        assert_eq!((error.copy.as_str(), error.what.as_str()), ("arm", "this arm is broken"));
        assert_eq!(outcomes[1].result, Ok(()));
        let mut values = kit::all(&found)[&1].clone();
        values.sort_unstable();
        assert_eq!(values, (0..400).map(|number| 2 * number).collect::<Vec<u64>>());
    }
}
