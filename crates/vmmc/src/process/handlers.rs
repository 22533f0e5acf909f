//! What a process does about notifications: a function for each buffer that was exported with one.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use super::user::{Buffer, Notice, Process};
use crate::driver::Export;
use crate::error::Result;
use crate::id::BufferId;

type Handler = Box<dyn FnMut(&mut Process, Notice) + Send>;

/// The functions, and what they have not been told yet.
#[derive(Default)]
pub(super) struct Handlers {
    /// `None` while it runs.
    by_buffer: HashMap<BufferId, Option<Handler>>,
    waiting: VecDeque<Notice>,
    is_running: bool,
}

impl Process {
    /// Exports a range, and calls the function for every send into it that asks for notification and has ended well, in their order.
    ///
    /// The function runs in the thread that uses this process, in the next call that hears the card: [`wait`](Self::wait), [`send`](Self::send),
    /// [`fetch`](Self::fetch), [`wait_notice`](Self::wait_notice), [`handle_notices`](Self::handle_notices) and
    /// [`deregister`](Self::deregister). It may use the process: also to send and to wait. While it runs no other function is called.
    pub fn export_with(
        &mut self,
        export: Export,
        handler: impl FnMut(&mut Process, Notice) + Send + 'static,
    ) -> Result<Buffer> {
        // Nobody has the handle before this returns, so that no notification can be sooner than its function.
        let buffer = self.export(Export { notify: true, ..export })?;
        self.handlers.by_buffer.insert(buffer.id(), Some(Box::new(handler)));
        Ok(buffer)
    }

    /// Waits until a function was called that a buffer was exported with, and says how often any was. Called by such a function, it is 0.
    pub fn handle_notices(&mut self, deadline: Option<u64>) -> Result<usize> {
        let mut called = self.run_handlers();
        while called == 0 && !self.handlers.is_running {
            self.hear(deadline)?;
            called = self.run_handlers();
        }
        Ok(called)
    }

    /// Calls functions for what has been heard.
    pub(super) fn run_handlers(&mut self) -> usize {
        if self.handlers.is_running {
            return 0;
        }
        let mut called = 0;
        while let Some(notice) = self.handlers.waiting.pop_front() {
            let own = self.handlers.by_buffer.get_mut(&notice.buffer);
            let Some(mut handler) = own.and_then(Option::take) else { continue };
            self.handlers.is_running = true;
            handler(self, notice);
            self.handlers.is_running = false;
            called += 1;
            // Unless it has ended the export.
            if let Some(own) = self.handlers.by_buffer.get_mut(&notice.buffer) {
                *own = Some(handler);
            }
        }
        called
    }
}

impl Handlers {
    /// Keeps a notification for its function; gives it back if there is none.
    pub(super) fn take(&mut self, notice: Notice) -> Option<Notice> {
        match self.by_buffer.contains_key(&notice.buffer) {
            true => {
                self.waiting.push_back(notice);
                None
            }
            false => Some(notice),
        }
    }

    pub(super) fn forget(&mut self, buffer: BufferId) {
        self.by_buffer.remove(&buffer);
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffers: Vec<&BufferId> = self.by_buffer.keys().collect();
        out.debug_struct("Handlers").field("buffers", &buffers).field("waiting", &self.waiting).finish_non_exhaustive()
    }
}
