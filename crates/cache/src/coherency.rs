//! When a document may be read, and when it may be changed: many readers, one writer, by two queues (table 10.1 of the thesis).
//!
//! A pure state machine, one for each document. Inputs are what a reader or the writer asks and tells; outputs are who may proceed.
//! No reader proceeds once an update waits, so that updates are not put off for ever.
//!
//! | asked or told | read queue | update queue | then |
//! |---|---|---|---|
//! | 1 read | empty | empty | the reader proceeds, and is queued for reading |
//! | 2 read | some | empty | the same |
//! | 3 read | empty | some | it is queued behind the update, which is being done |
//! | 4 read | some | some | it is queued behind the update, which waits |
//! | 5 read done | empty | some | an error |
//! | 6 read done | some | empty | the reader leaves |
//! | 7 read done | some | some | the reader leaves; if it was the last one, the update proceeds |
//! | 8 update | empty | empty | it is queued and proceeds |
//! | 9 update | empty | some | an error: there is one writer |
//! | 10 update | some | empty | it is queued, and waits for the readers |
//! | 11 update | some | some | an error |
//! | 12 update done | empty | empty | an error |
//! | 13 update done | empty | some | the update leaves; all that wait behind it become readers, and proceed |
//! | 14 update done | some | some | an error: it has not proceeded |
//!
//! The table of the thesis leaves out two states that cannot be, either: *read done* with both queues empty, and *update done* with
//! readers and no update. Both are errors here.

use std::collections::VecDeque;

/// Who asks: a reader or the writer, as the program numbers its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What a document's machine is asked or told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A reader wants the document.
    Read(RequestId),
    /// A reader is through with it.
    ReadDone(RequestId),
    /// The writer wants to change it.
    Update(RequestId),
    /// The writer has changed it.
    UpdateDone,
}

/// Who may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// This reader may read now.
    ReadProceeds(RequestId),
    /// The update may be done now.
    UpdateProceeds(RequestId),
}

/// What cannot be: the caller has lost count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// Rows 5, and the state that the table leaves out.
    #[error("request {} is no reader of this document", .0.0)]
    NotReading(RequestId),
    /// Rows 9 and 11.
    #[error("an update of this document is queued already; there is one writer")]
    SecondUpdate,
    /// Rows 12 and 14.
    #[error("no update of this document is being done")]
    NotUpdating,
}

/// The two queues of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Who reads.
    readers: VecDeque<RequestId>,
    /// The update that waits or is done, and the readers behind it.
    update: Option<RequestId>,
    waiting: VecDeque<RequestId>,
}

impl Document {
    /// Takes one step; who may go on because of it. An error changes nothing.
    pub fn step(&mut self, input: Input) -> Result<Vec<Output>, Misuse> {
        match input {
            Input::Read(reader) => Ok(self.read(reader)),
            Input::ReadDone(reader) => self.read_done(reader),
            Input::Update(update) => self.begin_update(update),
            Input::UpdateDone => self.update_done(),
        }
    }

    /// Whether an update is being done: it is the first of its queue, and nobody reads.
    pub fn is_updating(&self) -> bool {
        self.update.is_some() && self.readers.is_empty()
    }

    /// Whether nobody reads, changes or waits.
    pub fn is_idle(&self) -> bool {
        self.update.is_none() && self.readers.is_empty()
    }

    fn read(&mut self, reader: RequestId) -> Vec<Output> {
        if self.update.is_some() {
            self.waiting.push_back(reader);
            return Vec::new();
        }
        self.readers.push_back(reader);
        vec![Output::ReadProceeds(reader)]
    }

    fn read_done(&mut self, reader: RequestId) -> Result<Vec<Output>, Misuse> {
        let at = self.readers.iter().position(|known| *known == reader).ok_or(Misuse::NotReading(reader))?;
        self.readers.remove(at);
        let proceeds = self.update.filter(|_| self.readers.is_empty());
        Ok(proceeds.map(Output::UpdateProceeds).into_iter().collect())
    }

    fn begin_update(&mut self, update: RequestId) -> Result<Vec<Output>, Misuse> {
        if self.update.is_some() {
            return Err(Misuse::SecondUpdate);
        }
        self.update = Some(update);
        let proceeds = self.readers.is_empty().then_some(Output::UpdateProceeds(update));
        Ok(proceeds.into_iter().collect())
    }

    fn update_done(&mut self) -> Result<Vec<Output>, Misuse> {
        if !self.is_updating() {
            return Err(Misuse::NotUpdating);
        }
        self.update = None;
        self.readers = std::mem::take(&mut self.waiting);
        Ok(self.readers.iter().copied().map(Output::ReadProceeds).collect())
    }
}

#[cfg(test)]
mod tests;
