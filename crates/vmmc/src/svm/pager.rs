//! The pager: a thread that resolves the page faults of a process, and what it knows of every page.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use sidestep_shm::faults::{Faults, Lack};

use super::diff;
use crate::error::{Error, Result};
use crate::id::{Address, PAGE};
use crate::process::{Process, Remote};
use crate::workload::Step;

#[derive(Debug)]
pub(super) struct Pager {
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) process: Process,
    rank: usize,
    homes: Vec<u8>,
    /// The pages of each process; none for the own.
    remotes: Vec<Option<Remote>>,
    pages: Vec<Page>,
    steps: Vec<Step>,
    error: Option<Error>,
}

/// A page, as this process has it.
///
/// A home's own pages are never absent, and have no twin: its copy is the one that counts.
#[derive(Debug)]
enum Page {
    /// It must be fetched.
    Absent,
    /// It is as the home has it, or this is the home.
    Clean,
    /// It was written since the last barrier.
    Written(Option<Box<[u8; PAGE]>>),
}

impl Pager {
    pub(super) fn start(faults: Arc<Faults>, state: State) -> Result<Pager> {
        let (state, stop) = (Arc::new(Mutex::new(state)), Arc::new(AtomicBool::new(false)));
        let (own, end) = (state.clone(), stop.clone());
        let run = move || {
            while !end.load(Ordering::Relaxed) {
                match faults.wait(LOOK_MS) {
                    Ok(None) => {}
                    Ok(Some(fault)) => lock(&own).resolve(&faults, fault.at, fault.lacks),
                    Err(error) => {
                        lock(&own).error = Some(error.into());
                        return;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("vmmc-pager".into())
            .spawn(run)
            .map_err(|source| Error::Kernel { what: "start a thread", remedy: "raise `ulimit -u`", source })?;
        Ok(Pager { state, stop, thread: Some(thread) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    pub(super) fn new(process: Process, rank: usize, homes: Vec<u8>, remotes: Vec<Option<Remote>>) -> State {
        let own = |home: &u8| if usize::from(*home) == rank { Page::Clean } else { Page::Absent };
        let pages = homes.iter().map(own).collect();
        State { process, rank, homes, remotes, pages, steps: Vec::new(), error: None }
    }

    pub(super) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    pub(super) fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// Resolves a fault. A failure is told at the next barrier; the thread that waits goes on, with whatever is in the page.
    fn resolve(&mut self, faults: &Faults, at: usize, lacks: Lack) {
        let page = at / PAGE;
        let outcome = match lacks {
            Lack::Page => {
                let fetched = self.fetch(page);
                let admitted = faults.admit(at, PAGE).map_err(Error::from);
                fetched.and(admitted)
            }
            Lack::Permission => {
                let kept = self.keep_twin(page);
                kept.and(faults.allow_writes(at, PAGE).map_err(Error::from))
            }
        };
        if let Err(error) = outcome {
            self.error.get_or_insert(error);
        }
    }

    /// Gets a page from its home, if it is not here: the kernel may have dropped the mapping of one that is.
    fn fetch(&mut self, page: usize) -> Result<()> {
        // A page beyond the shared ones is one of the lists, which the view does not use.
        let Some(known @ Page::Absent) = self.pages.get_mut(page) else { return self.touch(page) };
        *known = Page::Clean;
        // A page that nobody has touched is not in the file yet, and what is not there cannot be admitted.
        self.touch(page)?;
        let at = (page * PAGE) as u64;
        let Some(remote) = self.remotes[usize::from(self.homes[page])] else { return Ok(()) };
        self.steps.push(Step::Fetch(page as u32));
        self.process.fetch(&remote, at, PAGE as u64, Address(at))
    }

    fn touch(&self, page: usize) -> Result<()> {
        self.process.read(Address((page * PAGE) as u64), &mut [0; 1])
    }

    fn keep_twin(&mut self, page: usize) -> Result<()> {
        let Some(Page::Clean) = self.pages.get(page) else { return Ok(()) };
        let is_home = usize::from(self.homes[page]) == self.rank;
        let twin = if is_home { None } else { Some(self.copy(page)?) };
        self.pages[page] = Page::Written(twin);
        Ok(())
    }

    fn copy(&self, page: usize) -> Result<Box<[u8; PAGE]>> {
        let mut bytes = Box::new([0; PAGE]);
        self.process.read(Address((page * PAGE) as u64), &mut bytes[..])?;
        Ok(bytes)
    }

    /// Sends what was written since the last barrier to the homes, and waits until it is there.
    pub(super) fn send_changes(&mut self) -> Result<()> {
        let mut posted = Vec::new();
        for page in 0..self.pages.len() {
            let Page::Written(Some(twin)) = &self.pages[page] else { continue };
            let runs = diff::runs(twin, &*self.copy(page)?);
            let Some(remote) = self.remotes[usize::from(self.homes[page])] else { continue };
            let bytes: usize = runs.iter().map(|(_, len)| len).sum();
            if bytes > 0 {
                self.steps.push(Step::Send(page as u32, bytes as u32));
            }
            for (begin, len) in runs {
                let at = (page * PAGE + begin) as u64;
                posted.push(self.process.post_send(Address(at), len as u64, &remote, at, false)?);
                if posted.len() >= MOST_SENDS {
                    posted.drain(..).try_for_each(|work| self.process.wait(work, None))?;
                }
            }
        }
        self.steps.push(Step::Barrier);
        posted.into_iter().try_for_each(|work| self.process.wait(work, None))
    }

    /// A bit for each page that was written here since the last barrier.
    pub(super) fn written_list(&self, len: usize) -> Vec<u8> {
        let mut list = vec![0; len];
        for (page, _) in self.pages.iter().enumerate().filter(|(_, page)| matches!(page, Page::Written(_))) {
            list[page / 8] |= 1 << (page % 8);
        }
        list
    }

    /// Ends an interval: what others wrote is forgotten, unless this is its home, and what was written here is protected again.
    pub(super) fn settle(&mut self, faults: &Faults, written: &[u8]) -> Result<()> {
        for page in 0..self.pages.len() {
            let is_home = usize::from(self.homes[page]) == self.rank;
            let is_stale = !is_home && written[page / 8] & (1 << (page % 8)) != 0;
            match &self.pages[page] {
                Page::Clean | Page::Written(_) if is_stale => {
                    self.pages[page] = Page::Absent;
                    faults.forget(page * PAGE, PAGE)?;
                }
                Page::Written(_) => {
                    self.pages[page] = Page::Clean;
                    faults.protect(page * PAGE, PAGE)?;
                }
                Page::Clean | Page::Absent => {}
            }
        }
        Ok(())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no panic with the pages")
}

/// How often the thread looks whether it is to end.
const LOOK_MS: u32 = 20;
/// Sends that a process has under way.
const MOST_SENDS: usize = 32;
