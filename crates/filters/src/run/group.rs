//! The coordinator of a group.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attempts::Attempts;
use super::copy::follows_another;
use super::crew::{Crew, Event, Launcher};
use super::message::{Order, Plan, Report};
use super::outcome::{Canceller, Outcome, UnitError};
use crate::counters::Counts;
use crate::error::{Error, Result};
use crate::filter::{Kinds, Settings};
use crate::graph::{CopyId, Graph, OnDeath, check};

/// A group that runs. Dropping it ends all its threads and processes.
pub struct Group {
    graph: Arc<Graph>,
    crew: Crew,
    epoch: u64,
    stage: Stage,
    attempts: Attempts,
    outcomes: VecDeque<Outcome>,
    /// What the copies did, by epoch.
    counts: HashMap<(u64, CopyId), Counts>,
    /// Processes that have answered the last question for them.
    answers: usize,
    /// A failure that another one must have led to, of which nothing was heard yet.
    suspect: Option<Suspect>,
    /// How long a process may say nothing.
    patience: Duration,
    /// Restarts since the last time that a unit ended.
    restarts: u32,
}

/// A copy that failed because a neighbour was gone.
struct Suspect {
    copy: CopyId,
    unit: u64,
    what: String,
    /// When it is taken at its word.
    until: Instant,
}

/// How far an epoch is.
enum Stage {
    /// It could not begin. The next step tries it again.
    Over,
    /// Some do not listen yet.
    Preparing(BTreeMap<String, String>),
    /// Some have not made their connections yet.
    Connecting(usize),
    Running,
}

/// How long after the end of a connection the reason for it may come. Only the words of an error depend on it.
const REASON: Duration = Duration::from_secs(5);
/// Restarts in which no unit ends before the oldest unit fails, or a group that has none.
const RESTARTS: u32 = 5;
/// How long a process may take to say what it has done, in steps.
const PATIENCE_STEPS: u32 = 20;
const STEP: Duration = Duration::from_millis(100);

impl Group {
    /// Starts a group of filters of these kinds, and waits until its connections are made.
    pub fn start(graph: Graph, kinds: &Kinds, launcher: Launcher) -> Result<Group> {
        let problems = check(&graph, kinds);
        if !problems.is_empty() {
            return Err(Error::Description(problems));
        }
        let (crew, patience) = (Crew::start(&graph, kinds, launcher)?, graph.patience);
        let mut group = Group {
            graph: Arc::new(graph),
            crew,
            epoch: 0,
            stage: Stage::Over,
            attempts: Attempts::default(),
            outcomes: VecDeque::new(),
            counts: HashMap::new(),
            answers: 0,
            suspect: None,
            patience,
            restarts: 0,
        };
        while !matches!(group.stage, Stage::Running) {
            group.step(None)?;
        }
        group.restarts = 0;
        Ok(group)
    }

    /// The description.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Adds a unit of work; its number. It begins when [`wait`](Self::wait) or [`poll`](Self::poll) is called, at the latest.
    pub fn submit(&mut self, settings: Settings) -> u64 {
        let number = self.attempts.add(settings);
        self.feed();
        number
    }

    /// The end of the next unit of work, whichever it is; `None` if there are no more.
    pub fn wait(&mut self) -> Result<Option<Outcome>> {
        loop {
            if let Some(outcome) = self.outcomes.pop_front() {
                return Ok(Some(outcome));
            }
            if self.attempts.is_empty() {
                return Ok(None);
            }
            self.step(None)?;
        }
    }

    /// Like [`wait`](Self::wait), but returns after about this long even if no unit has ended.
    pub fn poll(&mut self, limit: Duration) -> Result<Option<Outcome>> {
        if self.outcomes.is_empty() {
            self.step(Some(limit))?;
        }
        Ok(self.outcomes.pop_front())
    }

    /// Whether units of work wait or are under way.
    pub fn is_busy(&self) -> bool {
        !self.attempts.is_empty() || !self.outcomes.is_empty()
    }

    /// Runs these units of work, and waits for all of them; by number.
    pub fn run(&mut self, units: impl IntoIterator<Item = Settings>) -> Result<Vec<Outcome>> {
        for settings in units {
            self.submit(settings);
        }
        let mut outcomes = Vec::new();
        while let Some(outcome) = self.wait()? {
            outcomes.push(outcome);
        }
        outcomes.sort_by_key(|outcome| outcome.unit);
        Ok(outcomes)
    }

    /// Something that can give units of work up.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.crew.sender())
    }

    /// How long a process may say nothing before it is given up, from now on.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The processes and their numbers, but for this one.
    pub fn pids(&self) -> Vec<(String, u32)> {
        self.crew.pids()
    }

    /// Asks the copies what they have done; the answers are there some time later.
    pub fn ask_counts(&mut self) {
        self.answers = 0;
        self.crew.order_all(&Order::Count);
    }

    /// Asks the copies what they have done, and waits for the answers, but not for ever.
    pub fn final_counts(&mut self) -> Result<Vec<(CopyId, Counts)>> {
        self.ask_counts();
        for _ in 0..PATIENCE_STEPS {
            if self.answers >= self.crew.names().len() {
                break;
            }
            self.step(Some(STEP))?;
        }
        Ok(self.counts())
    }

    /// What the copies have done, by the last answers.
    pub fn counts(&self) -> Vec<(CopyId, Counts)> {
        let mut all: BTreeMap<CopyId, Counts> = self.graph.copies().map(|id| (id, Counts::default())).collect();
        for ((epoch, id), counts) in &self.counts {
            let sum = all.entry(*id).or_default();
            let waiting = if *epoch == self.epoch { counts.waiting } else { sum.waiting };
            sum.add(counts);
            sum.waiting = waiting;
        }
        all.into_iter().collect()
    }

    fn begin_epoch(&mut self) -> Result<()> {
        self.crew.order_all(&Order::Abort { epoch: self.epoch });
        self.epoch += 1;
        self.forget_epochs();
        self.suspect = None;
        self.stage = Stage::Over;
        let key = random()?;
        for process in self.crew.names() {
            self.crew.restart(&process)?;
            let (graph, address) = (self.graph.clone(), self.crew.address_of(&process));
            let plan = Plan { epoch: self.epoch, key, graph, process: process.clone(), address };
            self.crew.order(&process, &Order::Prepare(Box::new(plan)));
        }
        self.stage = Stage::Preparing(BTreeMap::new());
        Ok(())
    }

    /// Counts of epochs long over become those of the first; those of the last one may still come.
    fn forget_epochs(&mut self) {
        let old: Vec<(u64, CopyId)> = self
            .counts
            .keys()
            .filter(|(epoch, _)| (1..self.epoch.saturating_sub(1)).contains(epoch))
            .copied()
            .collect();
        for key in old {
            if let Some(counts) = self.counts.remove(&key) {
                self.counts.entry((0, key.1)).or_default().add(&counts);
            }
        }
    }

    /// Ends the epoch, and begins the next with what was not complete.
    fn restart(&mut self, copy: &str, what: &str) -> Result<()> {
        self.restarts += 1;
        if self.restarts > RESTARTS {
            match self.attempts.oldest() {
                Some(unit) => self.fail(unit, copy.to_owned(), what.to_owned()),
                None if matches!(self.stage, Stage::Running) => {}
                None => {
                    self.stage = Stage::Over;
                    return Err(Error::Start { process: copy.to_owned(), what: what.to_owned() });
                }
            }
        }
        self.attempts.restart();
        self.begin_epoch()
    }

    fn feed(&mut self) {
        if !matches!(self.stage, Stage::Running) {
            return;
        }
        while let Some(unit) = self.attempts.begin(self.graph.pipelined.max(1)) {
            self.crew.order_all(&Order::Work { epoch: self.epoch, unit });
        }
    }

    /// Waits for one event, at most so long, and follows it.
    fn step(&mut self, limit: Option<Duration>) -> Result<()> {
        if matches!(self.stage, Stage::Over) {
            self.begin_epoch()?;
        }
        self.feed();
        let reason = self.suspect.as_ref().map(|suspect| suspect.until.saturating_duration_since(Instant::now()));
        let limit = limit.into_iter().chain(reason).chain(self.crew.ask(self.patience)).min();
        match self.crew.next(limit) {
            Some((process, Event::Ended)) => self.process_ended(&process, "its process died"),
            Some((_, Event::Cancel(unit))) => self.cancelled(unit),
            Some((process, Event::Report(report))) => self.reported(process, report),
            None => self.nothing_happened(),
        }
    }

    /// Looks at what has waited for long enough.
    fn nothing_happened(&mut self) -> Result<()> {
        if let Some(process) = self.crew.silent(self.patience) {
            self.crew.dismiss(&process);
            let what = format!("its process has not answered for {:?}", self.patience);
            // A host that is gone would be tried again and again.
            return match self.stage {
                Stage::Over | Stage::Preparing(_) => {
                    self.stage = Stage::Over;
                    Err(Error::Start { process, what })
                }
                Stage::Connecting(_) | Stage::Running => self.process_ended(&process, &what),
            };
        }
        match self.suspect.take_if(|suspect| suspect.until <= Instant::now()) {
            Some(suspect) => self.copy_failed(suspect.copy, suspect.unit, suspect.what),
            None => Ok(()),
        }
    }

    fn reported(&mut self, process: String, report: Report) -> Result<()> {
        // A process speaks for its own copies alone.
        let copies = match &report {
            Report::Began { copy, .. } | Report::Finished { copy, .. } | Report::Failed { copy, .. } => vec![*copy],
            Report::Counts { counts, .. } => counts.iter().map(|(copy, _)| *copy).collect(),
            Report::Ready { .. } | Report::Connected { .. } | Report::Stuck { .. } | Report::Here => Vec::new(),
        };
        if copies.iter().any(|copy| !self.graph.has(*copy) || self.graph.process_of(*copy) != process) {
            return Ok(());
        }
        match report {
            Report::Ready { epoch, address } if epoch == self.epoch => {
                let Stage::Preparing(addresses) = &mut self.stage else { return Ok(()) };
                addresses.insert(process, address);
                if addresses.len() == self.crew.names().len() {
                    let order = Order::Connect { epoch, addresses: std::mem::take(addresses) };
                    self.stage = Stage::Connecting(0);
                    self.crew.order_all(&order);
                }
            }
            Report::Connected { epoch } if epoch == self.epoch => {
                let Stage::Connecting(count) = &mut self.stage else { return Ok(()) };
                *count += 1;
                if *count == self.crew.names().len() {
                    self.stage = Stage::Running;
                    self.feed();
                }
            }
            Report::Stuck { epoch, what } if epoch == self.epoch => self.restart(&process, &what)?,
            Report::Began { epoch, copy, unit } if epoch == self.epoch => self.attempts.copy_began(copy, unit),
            Report::Finished { epoch, copy, unit } if epoch == self.epoch => self.copy_finished(copy, unit),
            Report::Failed { epoch, copy, unit, what, cause } if epoch == self.epoch => {
                if !follows_another(cause) {
                    return self.copy_failed(copy, unit, what);
                }
                let until = Instant::now() + REASON;
                self.suspect.get_or_insert(Suspect { copy, unit, what, until });
            }
            // Those of the epoch before come when it ends.
            Report::Counts { epoch, counts } if epoch + 1 >= self.epoch => {
                self.answers += usize::from(epoch == self.epoch);
                self.counts.extend(counts.into_iter().map(|(id, counts)| ((epoch, id), counts)));
            }
            _ => {}
        }
        Ok(())
    }

    fn copy_finished(&mut self, copy: CopyId, unit: u64) {
        if self.attempts.copy_finished(copy, unit, self.graph.copies().count()) {
            self.ended(unit, Ok(()));
            self.feed();
        }
    }

    /// A copy has failed by itself.
    fn copy_failed(&mut self, copy: CopyId, unit: u64, what: String) -> Result<()> {
        let name = self.graph.copy_name(copy);
        self.fail(unit, name.clone(), what.clone());
        self.restart(&name, &what)
    }

    fn process_ended(&mut self, process: &str, what: &str) -> Result<()> {
        let graph = self.graph.clone();
        for copy in graph.copies().filter(|copy| graph.process_of(*copy) == process) {
            for unit in self.attempts.work_of(copy) {
                if self.graph.on_death == OnDeath::Repeat && self.attempts.may_repeat(unit) {
                    continue;
                }
                self.fail(unit, format!("{} in process {process}", graph.copy_name(copy)), what.to_owned());
            }
        }
        self.restart(process, what)
    }

    fn cancelled(&mut self, unit: u64) -> Result<()> {
        let under_way = self.attempts.is_under_way(unit);
        self.fail(unit, self.graph.name.clone(), "the unit of work was given up".into());
        if under_way {
            self.restart("", "")?;
        }
        Ok(())
    }

    fn fail(&mut self, unit: u64, copy: String, what: String) {
        if self.attempts.give_up(unit) {
            self.ended(unit, Err(UnitError { copy, what }));
        }
    }

    fn ended(&mut self, unit: u64, result: Result<(), UnitError>) {
        self.restarts = 0;
        self.outcomes.push_back(Outcome { unit, result });
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Group").field("name", &self.graph.name).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

fn random() -> Result<[u8; 16]> {
    let mut key = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut key));
    read.map_err(Error::system("/dev/urandom"))?;
    Ok(key)
}
