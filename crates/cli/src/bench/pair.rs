//! Two processes that measure together: this one, which leads, and a worker.
//!
//! The worker is this program again, with its end of the control socket as standard input. It ends
//! with its parent (`PR_SET_PDEATHSIG`), and its own death ends every wait of the parent with an
//! error that tells how it died.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};

use super::control::{Answer, Control, Order};
use super::exercise::{Exercise, Run, Seen};
use super::hosts::Hosts;
use super::path::{Opening, Path, Wait, Work};
use super::place::{Cores, Placement, pin};

/// This process and one worker.
pub struct Pair {
    placement: Placement,
    cores: Cores,
    worker: Child,
    control: Control,
    ends: Vec<Box<dyn Exercise>>,
}

/// Which of the open paths of a pair.
#[derive(Clone, Copy, Debug)]
pub struct EndId(usize);

/// What the two sides saw of one measurement.
pub struct Outcome {
    /// The side of this process.
    pub leader: Seen,
    /// The side of the worker.
    pub worker: Seen,
}

impl Pair {
    /// Starts a worker for the paths of a suite, on the second of two hosts if there are any.
    pub fn start(suite: &str, placement: Placement, cores: Cores, hosts: Option<&Hosts>) -> Result<Pair> {
        let (control, there) = Control::pair()?;
        let worker_cores: Vec<String> = cores.worker(placement).iter().map(usize::to_string).collect();
        let worker = Command::new("/proc/self/exe")
            .args(["bench-worker", "--suite", suite])
            .args(["--parent", &std::process::id().to_string()])
            .args(["--cores", &worker_cores.join(",")])
            .args(hosts.map(|hosts| format!("--host={}", hosts.worker())))
            .stdin(Stdio::from(there))
            .spawn()
            .context("cannot start the worker process")?;
        Ok(Pair { placement, cores, worker, control, ends: Vec::new() })
    }

    /// Opens a path between the two.
    pub fn open(&mut self, path: &Path, wait: Wait) -> Result<EndId> {
        let Work::Pair { open, .. } = path.work else {
            bail!("{} is not a path between two processes", path.name);
        };
        let mut opening = Opening { control: &mut self.control, path: path.name, wait };
        let opened = open(&mut opening).and_then(|end| match self.answer()? {
            Answer::Opened => Ok(end),
            other => Err(anyhow!("the worker answered {other:?}")),
        });
        match opened {
            Ok(end) => {
                self.ends.push(end);
                Ok(EndId(self.ends.len() - 1))
            }
            Err(error) => Err(self.explain(error).context(format!("cannot open {}", path.name))),
        }
    }

    /// Measures once, each process on its cores.
    pub fn measure(&mut self, end: EndId, run: Run) -> Result<Outcome> {
        pin(&self.cores.leader(self.placement))?;
        let order = Order::Run { end: end.0, run };
        let sent = self.control.send(&order, &[]);
        let led = sent.and_then(|()| self.ends[end.0].lead(&run));
        let outcome = led.and_then(|leader| match self.answer()? {
            Answer::Done(worker) => Ok(Outcome { leader, worker }),
            other => Err(anyhow!("the worker answered {other:?}")),
        });
        outcome.map_err(|error| self.explain(error))
    }

    fn answer(&mut self) -> Result<Answer> {
        match self.control.receive()? {
            Some((Answer::Failed(reason), _)) => Err(anyhow!("the worker failed: {reason}")),
            Some((answer, _)) => Ok(answer),
            None => Err(anyhow!("the other process of the measurement has ended")),
        }
    }

    /// Adds what the worker had to say before it ended, and how it ended. An end that fails here
    /// first, with the worker well, is reported as it is.
    fn explain(&mut self, error: Error) -> Error {
        if !self.control.peer().ends_within(LAST_WORDS).unwrap_or(true) {
            return error;
        }
        let mut error = error;
        while let Ok(Some((answer, _))) = self.control.receive() {
            if let Answer::Failed(reason) = answer {
                error = error.context(format!("the worker failed: {reason}"));
            }
        }
        match self.worker.wait() {
            Ok(status) => error.context(format!("the worker process ended ({status})")),
            Err(wait) => error.context(wait),
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill, only to collect.
        let _ = self.worker.kill();
        let _ = self.worker.wait();
    }
}

/// How long a worker whose descriptors are already closed may take to end.
const LAST_WORDS: Duration = Duration::from_millis(200);
