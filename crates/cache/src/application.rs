//! The application side: reads and updates of documents take their turns ([`coherency`](crate::coherency)), and every update is told
//! to the table of versions before it begins and after it is done.

use std::{
    collections::{HashMap, HashSet},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use sidestep_extended::{Result, Stack};

use crate::{
    coherency::{Document, Input, Output, RequestId},
    versions::{VersionTable, changed_by},
};

/// The documents of an application.
#[derive(Debug)]
pub struct Application {
    table: VersionTable,
    turns: Mutex<Turns>,
    changed: Condvar,
    /// There is one writer.
    writer: Mutex<()>,
}

#[derive(Debug, Default)]
struct Turns {
    documents: HashMap<String, Document>,
    /// Who may go on and has not noticed yet.
    proceeding: HashSet<RequestId>,
    last: u64,
}

/// A document may be read while this lives.
#[derive(Debug)]
pub struct Reading<'a> {
    application: &'a Application,
    path: String,
    request: RequestId,
}

/// A document may be changed while this lives. When it is dropped the update is complete: no proxy answers with an older document
/// from then on.
#[derive(Debug)]
pub struct Updating<'a> {
    application: &'a Application,
    path: String,
    _writer: MutexGuard<'a, ()>,
}

impl Application {
    /// With no document in use.
    pub fn new(stack: &Stack) -> Result<Application> {
        let table = VersionTable::new(stack)?;
        Ok(Application { table, turns: Mutex::default(), changed: Condvar::new(), writer: Mutex::new(()) })
    }

    /// Its versions.
    pub fn versions(&self) -> &VersionTable {
        &self.table
    }

    /// Waits until a document may be read. For servers whose documents cannot be replaced in one step.
    pub fn read(&self, path: &str) -> Reading<'_> {
        let request = self.ask(path, Input::Read);
        Reading { application: self, path: path.to_string(), request }
    }

    /// Waits until a document may be changed: until nobody reads it, and no other update is being done.
    pub fn update(&self, path: &str) -> Result<Updating<'_>> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.ask(path, Input::Update);
        let updating = Updating { application: self, path: path.to_string(), _writer: writer };
        changed_by(path).iter().try_for_each(|path| self.table.begin(path))?;
        Ok(updating)
    }

    /// Asks for a turn, and waits for it.
    fn ask(&self, path: &str, input: impl FnOnce(RequestId) -> Input) -> RequestId {
        let mut turns = self.lock();
        turns.last += 1;
        let request = RequestId(turns.last);
        turns.step(path, input(request));
        while !turns.proceeding.remove(&request) {
            turns = self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
        request
    }

    fn tell(&self, path: &str, input: Input) {
        self.lock().step(path, input);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    fn step(&mut self, path: &str, input: Input) {
        let document = self.documents.entry(path.to_string()).or_default();
        // Guards keep count, and there is one writer: nothing here is misuse.
        let outputs = document.step(input).unwrap_or_default();
        if document.is_idle() {
            self.documents.remove(path);
        }
        self.proceeding.extend(outputs.into_iter().map(|output| match output {
            Output::ReadProceeds(request) | Output::UpdateProceeds(request) => request,
        }));
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.application.tell(&self.path, Input::ReadDone(self.request));
    }
}

impl Drop for Updating<'_> {
    fn drop(&mut self) {
        for path in changed_by(&self.path) {
            // The word is there: it was begun.
            let _ = self.application.table.end(&path);
        }
        self.application.tell(&self.path, Input::UpdateDone);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn readers_and_the_writer_are_apart_and_versions_follow() {
        let application = Application::new(&Stack::new().unwrap()).unwrap();
        let (inside, writing) = (AtomicU32::new(0), AtomicU32::new(0));
        const ROUNDS: u32 = 200;
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let _reading = application.read("/a");
                        inside.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(writing.load(Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let _updating = application.update("/a").unwrap();
                        assert!(application.versions().version("/a").unwrap().is_changing());
                        assert_eq!(writing.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(inside.load(Ordering::SeqCst), 0);
                        writing.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(application.versions().version("/a").unwrap().0, u64::from(2 * ROUNDS));
        assert_eq!(application.versions().version("/").unwrap().0, u64::from(2 * ROUNDS), "its folder");
        assert!(application.lock().documents.is_empty() && application.lock().proceeding.is_empty());
    }
}
