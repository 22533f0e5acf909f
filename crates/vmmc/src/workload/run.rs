//! A workload on a cluster under virtual time: what it takes with caches, and with static tables.

use std::collections::HashMap;

use super::{PER_NODE, Step, Workload};
use crate::card::{Event, Operation, Post, Source};
use crate::config::Config;
use crate::driver::{Export, Marks, Timing};
use crate::error::Result;
use crate::id::{Address, NodeId, PAGE, ProcessId, Rights, Work};
use crate::simulation::{Capability, Cluster, Costs, Weather};

/// What a run took, and what the cards counted in all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Execution {
    /// From the beginning to the last process's end.
    pub time_ns: u64,
    /// Lines asked for.
    pub misses: u64,
    /// Pages found.
    pub hits: u64,
    /// Packets that were sent again.
    pub resent: u64,
    /// Retransmissions, each of as many packets as were under way.
    pub went_back: u64,
    /// Packets that a card had no room for.
    pub overflowed: u64,
    /// Packets that were dropped for a miss.
    pub dropped: u64,
    /// How long misses took.
    pub timing: Timing,
}

struct Process {
    node: NodeId,
    id: ProcessId,
    at: usize,
    /// When its processor is free.
    ready: u64,
    /// The fetch that it waits for.
    waits: Option<Work>,
    /// Sends whose end is not known.
    sends: usize,
    at_barrier: bool,
}

/// Runs a workload on cards of these parameters.
pub fn execute(workload: &Workload, config: &Config, costs: Costs) -> Result<Execution> {
    let mut cluster = Cluster::new(&vec![*config; workload.nodes()], Marks::default(), costs, Weather::default())?;
    let mut processes: Vec<Process> = (0..workload.steps.len())
        .map(|number| {
            let node = NodeId((number / PER_NODE) as u16);
            let id = cluster.attach(node, workload.pages.into());
            Process { node, id, at: 0, ready: 0, waits: None, sends: 0, at_barrier: false }
        })
        .collect();
    let len = u64::from(workload.pages) * PAGE as u64;
    let export = Export { address: Address(0), len, rights: Rights::ALL, notify: false };
    let mut buffers = Vec::new();
    for process in &processes {
        buffers.push(cluster.export(process.node, process.id, export)?);
    }
    for process in &processes {
        cluster.prepare(process.node, process.id, 0, &buffers)?;
    }
    let owners: HashMap<(NodeId, ProcessId), usize> =
        processes.iter().enumerate().map(|(number, process)| ((process.node, process.id), number)).collect();
    let mut work = 0;
    loop {
        for process in &mut processes {
            proceed(&mut cluster, workload, process, &buffers, &mut work);
        }
        if processes.iter().all(|process| process.at_barrier && process.sends == 0) {
            let all = processes.iter().map(|process| process.ready).max().unwrap_or(0).max(cluster.now());
            for process in &mut processes {
                (process.at_barrier, process.ready) = (false, all);
                process.at += 1;
            }
            continue;
        }
        let is_over = |process: &Process, steps: &Vec<Step>| process.at >= steps.len() && process.sends == 0;
        if processes.iter().zip(&workload.steps).all(|(process, steps)| is_over(process, steps)) {
            break;
        }
        // The next thing: an event of a card, or the end of a computation.
        let computing = |process: &&Process| process.waits.is_none() && !process.at_barrier;
        let next =
            processes.iter().filter(computing).map(|process| process.ready).filter(|at| *at > cluster.now()).min();
        match next {
            Some(at) => cluster.step_until(at),
            None => drop(cluster.step()),
        }
        for node in (0..workload.nodes() as u16).map(NodeId) {
            for (at, event) in cluster.take_events(node) {
                let Event::Completed { process, work, outcome } = event else { continue };
                outcome?;
                let process = &mut processes[owners[&(node, process)]];
                match process.waits == Some(work) {
                    true => (process.waits, process.ready) = (None, at),
                    false => process.sends -= 1,
                }
            }
        }
    }
    let mut execution = Execution { time_ns: cluster.now(), ..Execution::default() };
    for node in (0..workload.nodes() as u16).map(NodeId) {
        let counters = cluster.counters(node);
        execution.misses += counters.vmh_misses.iter().sum::<u64>() + counters.cbh_misses;
        execution.hits += counters.vmh_hits.iter().sum::<u64>();
        execution.resent += counters.resent;
        execution.went_back += counters.went_back;
        execution.overflowed += counters.overflowed;
        execution.dropped += counters.dropped;
        let timing = cluster.timing(node);
        for bin in 0..timing.delay.counts.len() {
            execution.timing.delay.counts[bin] += timing.delay.counts[bin];
            execution.timing.processing.counts[bin] += timing.processing.counts[bin];
        }
    }
    Ok(execution)
}

/// Does what a process can do at this moment.
fn proceed(cluster: &mut Cluster, workload: &Workload, own: &mut Process, buffers: &[Capability], work: &mut u64) {
    let number = usize::from(own.node.0) * PER_NODE + (own.id.0 as usize - 1);
    while own.waits.is_none() && !own.at_barrier && own.ready <= cluster.now() {
        let Some(step) = workload.steps[number].get(own.at) else { return };
        let (page, len, operation) = match *step {
            Step::Barrier => {
                own.at_barrier = true;
                return;
            }
            Step::Compute(ns) => {
                own.ready = cluster.now() + u64::from(ns);
                own.at += 1;
                continue;
            }
            Step::Fetch(page) => {
                let destination = Address(u64::from(page) * PAGE as u64);
                (page, PAGE as u64, Operation::Fetch { destination })
            }
            Step::Send(page, bytes) => {
                let source = Source::Memory(Address(u64::from(page) * PAGE as u64));
                (page, u64::from(bytes), Operation::Send { source, notify: false })
            }
        };
        if own.sends >= MOST_SENDS && matches!(operation, Operation::Send { .. }) {
            return;
        }
        *work += 1;
        match operation {
            Operation::Fetch { .. } => own.waits = Some(Work(*work)),
            Operation::Send { .. } => own.sends += 1,
        }
        own.at += 1;
        let Capability { node, cbh, key, .. } = buffers[usize::from(workload.homes[page as usize])];
        let at = u64::from(page) * PAGE as u64;
        cluster.post(own.node, own.id, Post { work: Work(*work), node, cbh, key, at, len, operation });
    }
}

/// Sends that a process has under way.
const MOST_SENDS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_ends_with_caches_and_with_tables() {
        let workload = Workload::named("water-spatial", 1).unwrap();
        let run = |config: &Config| execute(&workload, config, Costs::default()).unwrap();
        let (cached, fixed) = (run(&Config::default()), run(&Config::baseline()));
        assert_eq!(fixed.misses, 0);
        assert!(cached.misses > 0 && cached.hits == fixed.hits, "{cached:?} {fixed:?}");
        assert!(cached.time_ns > fixed.time_ns);
        assert!(cached.timing.processing.total() == cached.misses);
    }
}
