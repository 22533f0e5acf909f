//! The result of a group does not depend on copies, schedules, sizes of buffers or queues.

mod kit;

use kit::{expected, line, run};
use proptest::prelude::*;
use sidestep_filters::{Graph, Group, Launcher, Place, Schedule, Settings};

const SCHEDULES: [Schedule; 3] = [Schedule::RoundRobin, Schedule::Demand, Schedule::Keyed];

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn results_do_not_depend_on_the_number_of_copies(
        copies in prop::array::uniform3(1usize..5),
        schedule in 0usize..3,
        most in 0u64..200,
        units in 1usize..5,
        queue in 1usize..6,
        pipelined in 1usize..4,
    ) {
        let places = [Place::Thread, Place::Thread, Place::Thread];
        let mut graph = line(copies, places, most, SCHEDULES[schedule]);
        graph.streams.iter_mut().for_each(|stream| stream.queue = queue);
        graph.pipelined = pipelined;
        let found = run(graph, units);
        prop_assert_eq!(found.len(), units);
        for values in found.values() {
            prop_assert_eq!(values, &expected(most));
        }
    }

    #[test]
    fn an_ordered_stream_keeps_the_order_through_copies(
        copies in prop::array::uniform2(1usize..5), schedule in 0usize..2, most in 0u64..200, queue in 1usize..4,
    ) {
        let graph = ordered(copies, SCHEDULES[schedule], most, queue);
        let found = kit::Found::default();
        let mut group = Group::start(graph, &kinds(&found), Launcher::this_program()).unwrap();
        for outcome in group.run(vec![Settings::default(); 2]).unwrap() {
            prop_assert_eq!(outcome.result, Ok(()));
        }
        for values in kit::all(&found).values() {
            prop_assert_eq!(values.clone(), (0..most).map(|number| number + 3).collect::<Vec<u64>>());
        }
    }
}

/// Two stages with copies, with one between them and one behind that must see the numbers in order.
fn ordered(copies: [usize; 2], schedule: Schedule, most: u64, queue: usize) -> Graph {
    let graph = Graph::new("ordered")
        .filter("numbers", "numbers", 1, Place::Thread)
        .set("most", most)
        .filter("one", "next", copies[0], Place::Thread)
        .filter("joint", "next", 1, Place::Thread)
        .filter("two", "next", copies[1], Place::Thread)
        .filter("gather", "gather", 1, Place::Thread);
    let graph = graph.stream("numbers.out", "one.in", 64).dealt(schedule).queued(queue);
    let graph = graph.stream("one.out", "joint.in", 64).queued(queue).in_order();
    let graph = graph.stream("joint.out", "two.in", 64).dealt(schedule).queued(queue);
    graph.stream("two.out", "gather.in", 64).queued(queue).in_order()
}

/// Space that was reserved and not committed takes no number of an ordered stream.
#[test]
fn a_buffer_that_is_given_up_has_no_number() {
    use sidestep_filters::{Kind, function};
    let found = kit::Found::default();
    let hesitant = Kind::new("reserves twice for each number", |_| {
        Ok(function(|work| {
            for number in 0..50u64 {
                let _ = work.outputs.reserve()?;
                work.outputs.port("out")?.put(&number.to_le_bytes())?;
            }
            Ok(())
        }))
    });
    let kinds = kinds(&found).with("hesitant", hesitant.output("out", "numbers"));
    let mut graph = ordered([2, 2], Schedule::RoundRobin, 50, 2);
    (graph.filters[0].kind, graph.filters[0].settings) = ("hesitant".into(), Settings::default());
    let mut group = Group::start(graph, &kinds, Launcher::this_program()).unwrap();
    for outcome in group.run(vec![Settings::default(); 2]).unwrap() {
        outcome.result.unwrap();
    }
    assert!(kit::all(&found).values().all(|values| *values == (3..53).collect::<Vec<u64>>()));
}

fn kinds(found: &kit::Found) -> sidestep_filters::Kinds {
    use sidestep_filters::{ANY, Kind, function};
    let next = Kind::new("adds one", |_| {
        Ok(function(|work| {
            while let Some(mut buffer) = work.inputs.take()? {
                let number = u64::from_le_bytes(buffer.array(0)?);
                if number % 3 == 0 {
                    (0..1000).for_each(|_| std::hint::spin_loop());
                }
                let mut out = work.outputs.reserve()?;
                out.copy_in(0, &(number + 1).to_le_bytes())?;
                out.commit(8)?;
            }
            Ok(())
        }))
    });
    kit::kinds(found).with("next", next.input("in", ANY).output("out", ANY))
}

#[test]
fn several_groups_run_at_once() {
    std::thread::scope(|scope| {
        for most in [10, 300, 50] {
            scope.spawn(move || {
                let graph = line([2, 3, 2], [Place::Thread, Place::Thread, Place::Thread], most, Schedule::Demand);
                let found = run(graph, 3);
                assert!(found.values().all(|values| *values == expected(most)) && found.len() == 3);
            });
        }
    });
}

/// A filter that leaves buffers behind does not keep the next unit from beginning where it should.
#[test]
fn what_a_filter_does_not_take_is_stepped_over() {
    use sidestep_filters::{Kind, function};
    let found = kit::Found::default();
    let early = Kind::new("takes one buffer", |_| {
        Ok(function(|work| {
            if let Some(mut buffer) = work.inputs.take()? {
                let number = u64::from_le_bytes(buffer.array(0)?);
                work.outputs.port("out")?.put(&number.to_le_bytes())?;
            }
            Ok(())
        }))
    });
    let kinds = kit::kinds(&found).with("early", early.input("in", "numbers").output("out", "mixed"));
    let mut graph = line([1, 1, 1], [Place::Thread, Place::Thread, Place::Thread], 500, Schedule::RoundRobin);
    graph.filters[1].kind = "early".into();
    let mut group = Group::start(graph, &kinds, Launcher::this_program()).unwrap();
    for outcome in group.run(vec![Settings::default(); 3]).unwrap() {
        outcome.result.unwrap();
    }
    assert!(kit::all(&found).values().all(|values| *values == [0]));
}
