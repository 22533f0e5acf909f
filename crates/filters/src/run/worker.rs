//! The part of a group that one process runs: it does what the coordinator orders, and reports.

use std::io::{BufRead, BufReader, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use sidestep_sys::clock;

use super::assembly::Assembly;
use super::copy::Copy;
use super::ending::Ending;
use super::message::{Order, Plan, Report};
use super::wiring::{Door, Ends, Gear};
use crate::counters::{Counters, Counts};
use crate::error::{Error, Result};
use crate::filter::{Kinds, Unit};
use crate::graph::CopyId;
use crate::link::Closer;
use crate::link::bell::Bell;
use crate::port::{Input, Output};

/// Set in the environment of a process that [`enter`] makes a worker.
pub(crate) const VARIABLE: &str = "SIDESTEP_FILTER_WORKER";

/// How long the threads of copies may take to end before the process does.
const FAREWELL: Duration = Duration::from_millis(500);

type Reporter = Arc<dyn Fn(Report) + Send + Sync>;

/// In a process that was started as a worker: works until the coordinator is gone, and ends the process. Elsewhere: nothing.
///
/// A program whose groups have filters in processes calls this first in `main`, with all its kinds.
pub fn enter(kinds: &Kinds) {
    if std::env::var_os(VARIABLE).is_some() {
        serve(kinds);
        std::process::exit(0);
    }
}

/// Works for the coordinator at the other end of standard input and output, until it is gone.
pub fn serve(kinds: &Kinds) {
    // Not for the programs that filters start: the end of this process is the end of its reports.
    let kept = |line| rustix::io::fcntl_dupfd_cloexec(line, 3);
    let (Ok(orders), Ok(reports)) = (kept(rustix::stdio::stdin()), kept(rustix::stdio::stdout())) else { return };
    // What filters read and print is theirs: the line to the coordinator is not.
    let _ = rustix::stdio::dup2_stdout(rustix::stdio::stderr());
    if let Ok(nothing) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
    }
    let mut reports = std::fs::File::from(reports);
    // Whoever started this process may have printed the beginning of a line.
    let _ = reports.write_all(b"\n");
    let reports = Mutex::new(reports);
    let reporter: Reporter = Arc::new(move |report| {
        let Ok(mut line) = serde_json::to_vec(&report) else { return };
        line.push(b'\n');
        // A coordinator that is gone is seen by the reader of orders.
        let _ = reports.lock().expect("no panic with a report").write_all(&line);
    });
    let mut worker = Worker::new(kinds.clone(), reporter);
    for line in BufReader::new(std::fs::File::from(orders)).lines().map_while(|line| line.ok()) {
        // What is no order is of another version of this program, and is left.
        if let Ok(order) = serde_json::from_str(&line) {
            worker.follow(order);
        }
    }
}

/// The worker of one process.
pub(crate) struct Worker {
    kinds: Kinds,
    reporter: Reporter,
    gear: Gear,
    epoch: Option<Arc<Epoch>>,
    door: Option<Door>,
}

/// One epoch in this process.
struct Epoch {
    plan: Plan,
    over: AtomicBool,
    ending: Arc<Ending>,
    running: Mutex<Running>,
}

/// The copies that run.
#[derive(Default)]
struct Running {
    units: Vec<mpsc::Sender<Unit>>,
    counters: Vec<(CopyId, Arc<Counters>)>,
    bells: Vec<Arc<Bell>>,
    closers: Vec<Closer>,
}

impl Worker {
    pub fn new(kinds: Kinds, reporter: Reporter) -> Worker {
        Worker { kinds, reporter, gear: Gear::default(), epoch: None, door: None }
    }

    pub fn follow(&mut self, order: Order) {
        match order {
            Order::Prepare(plan) => self.prepare(*plan),
            Order::Connect { epoch, addresses } => {
                let Some(own) = self.epoch.clone().filter(|own| own.plan.epoch == epoch) else { return };
                let Some(door) = self.door.take() else { return };
                let (kinds, reporter) = (self.kinds.clone(), self.reporter.clone());
                // In a thread, so that the end of the epoch is heard meanwhile.
                thread::spawn(move || {
                    let made = door.connect(&own.plan, &addresses, &own.over);
                    let started = made.and_then(|ends| own.start(ends, &door, &kinds, &reporter));
                    match started {
                        Ok(()) => reporter(Report::Connected { epoch }),
                        Err(Error::Cancelled) if own.over.load(Ordering::SeqCst) => {}
                        Err(error) => reporter(Report::Stuck { epoch, what: error.to_string() }),
                    }
                });
            }
            Order::Work { epoch, unit } => {
                if let Some(own) = self.epoch.as_ref().filter(|own| own.plan.epoch == epoch) {
                    let running = own.running.lock().expect("no panic with an epoch");
                    // A copy that has failed takes none.
                    running.units.iter().for_each(|units| drop(units.send(unit.clone())));
                }
            }
            Order::Abort { epoch } => {
                if self.epoch.as_ref().is_some_and(|own| own.plan.epoch <= epoch) {
                    self.abort();
                }
            }
            Order::Answer => (self.reporter)(Report::Here),
            Order::Count => {
                if let Some(own) = &self.epoch {
                    let counts = own.counts();
                    (self.reporter)(Report::Counts { epoch: own.plan.epoch, counts });
                }
            }
        }
    }

    fn prepare(&mut self, plan: Plan) {
        self.abort();
        let epoch = plan.epoch;
        match self.gear.listen(&plan) {
            Ok((door, address)) => {
                self.door = Some(door);
                let (over, ending, running) = (AtomicBool::new(false), Arc::default(), Mutex::default());
                self.epoch = Some(Arc::new(Epoch { plan, over, ending, running }));
                (self.reporter)(Report::Ready { epoch, address });
            }
            Err(error) => (self.reporter)(Report::Stuck { epoch, what: error.to_string() }),
        }
    }

    fn abort(&mut self) {
        self.door = None;
        if let Some(epoch) = self.epoch.take() {
            (self.reporter)(Report::Counts { epoch: epoch.plan.epoch, counts: epoch.counts() });
            epoch.end();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(epoch) = self.epoch.take() {
            epoch.end();
            // Programs that are filters are ended by the threads of their copies.
            epoch.ending.wait_empty(FAREWELL);
        }
    }
}

impl Epoch {
    fn counts(&self) -> Vec<(CopyId, Counts)> {
        let (running, now) = (self.running.lock().expect("no panic with an epoch"), clock::now());
        running.counters.iter().map(|(id, counters)| (*id, counters.read(now))).collect()
    }

    /// Ends every wait of every copy; their threads end by themselves.
    fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        let running = std::mem::take(&mut *self.running.lock().expect("no panic with an epoch"));
        running.bells.iter().for_each(|bell| bell.cancel());
        running.closers.iter().for_each(Closer::close);
        self.ending.announce();
    }

    /// Joins copies within the process, and starts the thread of each.
    fn start(&self, ends: Ends, door: &Door, kinds: &Kinds, reporter: &Reporter) -> Result<()> {
        let plan = &self.plan;
        let mut assembly = Assembly::new(plan, ends, door)?;
        let own = plan.graph.copies().filter(|id| plan.is_here(*id));
        let copies: Vec<Copy> = own.map(|id| assembly.copy(id, kinds, &self.ending)).collect::<Result<_>>()?;
        let mut running = self.running.lock().expect("no panic with an epoch");
        if self.over.load(Ordering::SeqCst) {
            return Err(Error::Cancelled);
        }
        running.bells = assembly.into_bells();
        for copy in copies {
            running.closers.extend(copy.inputs.0.iter().flat_map(Input::closers));
            running.closers.extend(copy.outputs.0.iter().flat_map(Output::closers));
            running.counters.push((copy.id, copy.counters.clone()));
            let (units, work) = mpsc::channel();
            running.units.push(units);
            let (reporter, name) = (reporter.clone(), plan.graph.copy_name(copy.id));
            let presence = self.ending.enter();
            let run = move || {
                copy.run(&work, &*reporter);
                drop(presence);
            };
            thread::Builder::new().name(name).spawn(run).map_err(Error::system("a thread"))?;
        }
        Ok(())
    }
}
