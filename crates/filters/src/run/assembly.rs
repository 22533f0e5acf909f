//! Gives the copies of a process their ports, and joins those that are within it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sidestep_fabric::EventQueue;

use super::copy::Copy;
use super::ending::Ending;
use super::message::{Edge, Plan};
use super::wiring::{Door, Ends};
use crate::error::{Error, Result};
use crate::filter::Kinds;
use crate::graph::CopyId;
use crate::link::bell::{Bell, BellKind};
use crate::link::{Rx, Tx, memory};
use crate::port::{Input, Inputs, Output, Outputs, Shared, Stream};
use crate::schedule::Schedule;

/// A port of a copy: the stream, the copy, and whether it is the end that gives.
type PortId = (u32, CopyId, bool);

/// The parts that copies are made of.
pub(super) struct Assembly<'a> {
    plan: &'a Plan,
    ends: Ends,
    /// One for each port: a filter may use its ports from different threads.
    bells: HashMap<PortId, Arc<Bell>>,
    tagged: Vec<bool>,
}

impl<'a> Assembly<'a> {
    pub fn new(plan: &'a Plan, mut ends: Ends, door: &Door) -> Result<Assembly<'a>> {
        // For each port here, whether each of its connections stays within the process.
        let mut ports: HashMap<PortId, Vec<bool>> = HashMap::new();
        for (edge, from, to) in plan.edges() {
            let within = plan.is_here(from) && plan.is_here(to);
            for (copy, outward) in [(from, true), (to, false)].into_iter().filter(|(copy, _)| plan.is_here(*copy)) {
                ports.entry((edge.stream, copy, outward)).or_default().push(within);
            }
        }
        let mut bells = HashMap::new();
        for (port, within) in ports {
            bells.insert(port, Bell::new(bell_kind(&within, door)?));
        }
        for (edge, from, to) in plan.edges() {
            let ports = (bells.get(&(edge.stream, from, true)), bells.get(&(edge.stream, to, false)));
            if let (Some(producer), Some(consumer)) = ports {
                let spec = plan.spec(edge);
                let (tx, rx) = memory::pair(spec.buffer, spec.queue + 1, producer.clone(), consumer.clone());
                ends.tx.insert(edge, Tx::Memory(tx));
                ends.rx.insert(edge, Rx::Memory(rx));
            }
        }
        Ok(Assembly { plan, ends, bells, tagged: plan.graph.tagged() })
    }

    /// A copy with all its ports.
    pub fn copy(&mut self, id: CopyId, kinds: &Kinds, ending: &Arc<Ending>) -> Result<Copy> {
        let graph = &self.plan.graph;
        let spec = &graph.filters[id.filter];
        let kind = kinds.kind(&spec.kind).ok_or_else(|| Error::Start {
            process: self.plan.process.clone(),
            what: format!("it has no kind `{}`: all processes of a group must be of one program", spec.kind),
        })?;
        let (counters, position) = (Arc::default(), Arc::default());
        let shared = |stream: usize, outward: bool| -> Result<Shared> {
            let bell = self.bells.get(&(stream as u32, id, outward)).ok_or_else(missing)?.clone();
            Ok(Shared { bell, counters: Arc::clone(&counters), position: Arc::clone(&position) })
        };
        let copies_of = |name: &str| graph.filter_index(name).map_or(0, |index| graph.filters[index].copies);
        let find = |outward: bool, port: &str| {
            let end = |stream: &'a crate::graph::StreamSpec| if outward { &stream.from } else { &stream.to };
            let own = |stream: &'a crate::graph::StreamSpec| *end(stream) == (spec.name.clone(), port.to_owned());
            self.plan.graph.streams.iter().position(own).ok_or_else(missing)
        };
        let mut outputs = Vec::new();
        let mut strict = false;
        for port in kind.outputs() {
            let at = find(true, port.name)?;
            strict |= self.tagged[at];
            let edge = |consumer| Edge { stream: at as u32, producer: id.copy as u32, consumer: consumer as u32 };
            let consumers = 0..copies_of(&graph.streams[at].to.0);
            let links = consumers.map(|consumer| self.ends.tx.remove(&edge(consumer)).ok_or_else(missing));
            let links = links.collect::<Result<_>>()?;
            outputs.push(Output::new(
                describe(self.plan, at, self.tagged[at], true, kind.outputs().len()),
                links,
                shared(at, true)?,
            )?);
        }
        let mut inputs = Vec::new();
        for port in kind.inputs() {
            let at = find(false, port.name)?;
            let edge = |producer| Edge { stream: at as u32, producer: producer as u32, consumer: id.copy as u32 };
            let producers = 0..copies_of(&graph.streams[at].from.0);
            let links = producers.map(|producer| self.ends.rx.remove(&edge(producer)).ok_or_else(missing));
            let links = links.collect::<Result<_>>()?;
            inputs.push(Input::new(
                describe(self.plan, at, self.tagged[at], false, kind.inputs().len()),
                links,
                shared(at, false)?,
                strict,
            )?);
        }
        Ok(Copy {
            id,
            copies: spec.copies,
            epoch: self.plan.epoch,
            kind: kind.clone(),
            settings: spec.settings.clone(),
            inputs: Inputs(inputs),
            outputs: Outputs(outputs),
            counters,
            ending: ending.clone(),
        })
    }

    /// What all ports sleep on.
    pub fn into_bells(self) -> Vec<Arc<Bell>> {
        self.bells.into_values().collect()
    }
}

/// What a port knows of its stream.
fn describe(plan: &Plan, at: usize, tagged: bool, outward: bool, ports: usize) -> Stream {
    let stream = &plan.graph.streams[at];
    let consumers = plan.graph.filter_index(&stream.to.0).map_or(0, |index| plan.graph.filters[index].copies);
    let port = if outward { &stream.from.1 } else { &stream.to.1 };
    Stream {
        port: port.clone(),
        capacity: stream.buffer,
        queue: stream.queue,
        schedule: stream.schedule,
        key: stream.key.filter(|_| stream.schedule == Schedule::Keyed),
        acknowledged: stream.schedule == Schedule::Demand && consumers > 1,
        tagged,
        is_only: ports == 1,
        ordered: stream.ordered && tagged,
    }
}

/// What a port sleeps on: it depends on which of its connections stay within the process.
fn bell_kind(within: &[bool], door: &Door) -> Result<BellKind> {
    let apart = within.iter().any(|within| !within);
    Ok(match door {
        Door::Socket(..) if apart => Bell::socket()?,
        Door::Vi(nic, ..) if apart => BellKind::Nic(nic.clone(), Mutex::default()),
        // One channel alone is waited for by itself.
        Door::Channel(node, _) if apart && within.len() > 1 => {
            let events = EventQueue::new(node);
            let source = events.attach(u64::MAX);
            BellKind::Events(events, source)
        }
        _ => Bell::local(),
    })
}

fn missing() -> Error {
    Error::Misuse("a port without a stream".into())
}
