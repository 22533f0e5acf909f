//! The driver's thread: resolves misses and changes the tables, in the order in which it is told.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use sidestep_fabric::EventQueue;
use sidestep_fabric::event::SourceId;
use sidestep_sys::clock;

use super::memory::Frames;
use crate::card::{Fill, Miss};
use crate::driver::{Driver, Export, Marks, MissEvent, Timing};
use crate::error::{Error, Result};
use crate::id::{Cbh, Key, ProcessId};

/// What the thread is told.
pub(super) enum Task {
    Miss(MissEvent),
    Attach(ProcessId, u64),
    Register {
        process: ProcessId,
        request: u64,
        export: Export,
        key: Key,
    },
    Deregister {
        request: u64,
        cbh: Cbh,
    },
    /// The buffers of a process are gone.
    Detach(ProcessId),
    /// The card uses nothing of it any more.
    Release(ProcessId),
    Count {
        process: ProcessId,
        request: u64,
    },
    Stop,
}

/// What it tells.
pub(super) enum Told {
    Fill(Fill),
    Registered {
        process: ProcessId,
        request: u64,
        outcome: Result<(Cbh, Key)>,
    },
    Deregistered {
        request: u64,
        cbh: Cbh,
        outcome: Result<()>,
    },
    /// The buffers are gone: the card may forget the process.
    Detached(ProcessId),
    Counted {
        process: ProcessId,
        request: u64,
        pinned: u64,
        timing: Timing,
    },
}

/// The thread, as the card sees it. Dropping it ends the thread.
pub(super) struct Thread {
    tasks: Sender<Task>,
    pub(super) told: Receiver<Told>,
    handle: Option<JoinHandle<Timing>>,
}

impl Thread {
    /// Starts it. It raises `wake` of the queue when it has told something.
    pub(super) fn start(
        frames: Frames,
        line: usize,
        marks: Marks,
        queue: EventQueue,
        wake: SourceId,
    ) -> Result<Thread> {
        let mut driver = Driver::new(frames, line, marks, MOST_BUFFERS)?;
        let ((tasks, inbox), (out, told)) = (channel(), channel());
        let run = move || {
            let mut timing = Timing::default();
            for task in inbox.iter() {
                let told = match task {
                    Task::Stop => break,
                    task => perform(&mut driver, task, &mut timing),
                };
                if let Some(told) = told {
                    if out.send(told).is_err() {
                        break;
                    }
                    queue.deliver(wake);
                }
            }
            timing
        };
        let handle = std::thread::Builder::new().name("vmmc-driver".into()).spawn(run);
        let handle =
            handle.map_err(|source| Error::Kernel { what: "start a thread", remedy: "raise `ulimit -u`", source })?;
        Ok(Thread { tasks, told, handle: Some(handle) })
    }

    pub(super) fn tell(&self, task: Task) {
        // It ends only with this value.
        let _ = self.tasks.send(task);
    }

    /// The interrupt.
    pub(super) fn interrupt(&self, miss: Miss) {
        self.tell(Task::Miss(MissEvent { miss, interrupt_ns: clock::now() }));
    }

    /// Ends it, and says how long the misses took.
    pub(super) fn stop(&mut self) -> Timing {
        self.tell(Task::Stop);
        self.handle.take().and_then(|handle| handle.join().ok()).unwrap_or_default()
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop();
    }
}

fn perform(driver: &mut Driver<Frames>, task: Task, timing: &mut Timing) -> Option<Told> {
    match task {
        Task::Miss(event) => {
            let taken = clock::now();
            let fill = driver.resolve(event.miss);
            timing.note(&event, taken, clock::now());
            Some(Told::Fill(fill))
        }
        Task::Attach(process, memory) => {
            driver.attach(process, memory);
            None
        }
        Task::Register { process, request, export, key } => {
            let outcome = driver.register(process, export, key).map(|(cbh, descriptor)| (cbh, descriptor.key));
            Some(Told::Registered { process, request, outcome })
        }
        Task::Deregister { request, cbh } => Some(Told::Deregistered { request, cbh, outcome: driver.deregister(cbh) }),
        Task::Detach(process) => {
            driver.detach(process);
            Some(Told::Detached(process))
        }
        Task::Release(process) => {
            driver.release(process);
            driver.pinning().detach(process);
            None
        }
        Task::Count { process, request } => {
            Some(Told::Counted { process, request, pinned: driver.pinned() as u64, timing: *timing })
        }
        Task::Stop => None,
    }
}

/// Buffers of all processes.
const MOST_BUFFERS: usize = 1 << 20;
