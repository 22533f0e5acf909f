//! A connection over a VI: a frame is a message, filled and read in registered memory.

use std::sync::Arc;

use sidestep_vi::{Buffer, Completion, Descriptor, FlowControl, MemAttributes, Nic, Ptag, Vi, ViAttributes};

use crate::error::{Error, Result};
use crate::frame::{HEADER, Header};

/// A VI with its memory: first the slots to receive into, then those to send from.
#[derive(Debug)]
pub(crate) struct Line {
    pub vi: Vi,
    nic: Nic,
    memory: Buffer,
    receives: Slots,
    sends: Slots,
}

/// So many slots of so many bytes.
#[derive(Debug, Clone, Copy)]
struct Slots {
    count: usize,
    size: usize,
}

#[derive(Debug)]
pub(crate) struct ViTx {
    line: Arc<Line>,
    next: usize,
    busy: Vec<bool>,
    begun: u64,
    peer: String,
}

#[derive(Debug)]
pub(crate) struct ViRx {
    line: Arc<Line>,
    current: Option<(usize, Header)>,
    begun: u64,
    capacity: usize,
    peer: String,
}

/// A word of what was begun.
const WORD: usize = 8;
/// Receives beyond those that words can need.
const SPARE: usize = 8;

impl Line {
    /// The end that produces buffers of `capacity` bytes, of which `queue` may wait.
    pub fn producing(nic: &Nic, ptag: Ptag, capacity: usize, queue: usize) -> Result<Line> {
        // The consumer knows of half of them at least, and `queue` words may come before this side looks.
        let words = Slots { count: 2 * queue + SPARE, size: WORD };
        Line::new(nic, ptag, words, Slots { count: queue.min(4), size: HEADER + capacity })
    }

    /// The end that consumes them.
    pub fn consuming(nic: &Nic, ptag: Ptag, capacity: usize, queue: usize) -> Result<Line> {
        let words = Slots { count: 4, size: WORD };
        Line::new(nic, ptag, Slots { count: queue + 1, size: HEADER + capacity }, words)
    }

    fn new(nic: &Nic, ptag: Ptag, receives: Slots, sends: Slots) -> Result<Line> {
        let len = receives.count * receives.size + sends.count * sends.size;
        let memory = nic.allocate(len, &MemAttributes::new(ptag))?;
        let vi = nic.create_vi(&ViAttributes::new(ptag), None, None)?;
        // So the peer tells of its receives from the beginning.
        vi.set_flow_control(FlowControl::NonBlocking);
        let line = Line { vi, nic: nic.clone(), memory, receives, sends };
        (0..receives.count).try_for_each(|slot| line.post(slot))?;
        Ok(line)
    }

    fn post(&self, slot: usize) -> Result<()> {
        let segment = self.memory.segment(slot * self.receives.size, self.receives.size);
        Ok(self.vi.post_receive(&Descriptor::new(slot as u64, &[segment]))?)
    }

    fn send_slot(&self, slot: usize) -> usize {
        self.receives.count * self.receives.size + slot * self.sends.size
    }

    /// Ends the connection; whoever waits for it is told.
    pub fn close(&self) {
        // It may be over already.
        let _ = self.vi.disconnect();
        self.nic.node().wake();
    }

    pub fn has_news(&self) -> bool {
        self.vi.has_arrivals() || !self.vi.is_connected()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.vi.retire();
        // The peer could write it until now, so it is never used for another connection.
        let _ = self.nic.deregister(self.memory.address(), self.memory.handle());
    }
}

impl ViTx {
    pub fn new(line: Line, peer: String) -> ViTx {
        let busy = vec![false; line.sends.count];
        ViTx { line: Arc::new(line), next: 0, busy, begun: 0, peer }
    }

    pub fn line(&self) -> &Arc<Line> {
        &self.line
    }

    pub fn has_space(&mut self) -> Result<bool> {
        while self.busy[self.next]
            && let Some(sent) = self.line.vi.poll_send()
        {
            self.was_sent(&sent)?;
        }
        Ok(!self.busy[self.next])
    }

    pub fn wait_space(&mut self) -> Result<()> {
        while !self.has_space()? {
            let sent = self.line.vi.wait_send(None).map_err(|error| self.failed(error))?;
            self.was_sent(&sent)?;
        }
        Ok(())
    }

    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        Ok(self.line.memory.write(self.line.send_slot(self.next) + HEADER + at, bytes)?)
    }

    pub fn commit(&mut self, header: Header) -> Result<()> {
        self.wait_space()?;
        let at = self.line.send_slot(self.next);
        self.line.memory.write(at, &header.emit())?;
        let descriptor = Descriptor::new(self.next as u64, &[self.line.memory.segment(at, header.frame_len())]);
        let posted = self.line.vi.post_send_with(&descriptor, FlowControl::Blocking, None);
        posted.map_err(|error| self.failed(error))?;
        self.busy[self.next] = true;
        self.next = (self.next + 1) % self.busy.len();
        Ok(())
    }

    pub fn begun(&mut self) -> Result<u64> {
        while let Some(received) = self.line.vi.poll_receive() {
            self.take_word(&received)?;
        }
        if !self.line.vi.is_connected() {
            return Err(Error::Gone(self.peer.clone()));
        }
        Ok(self.begun)
    }

    fn take_word(&mut self, received: &Completion) -> Result<()> {
        let slot = checked(received, &self.line, &self.peer)?;
        let mut word = [0; WORD];
        self.line.memory.read(slot * WORD, &mut word)?;
        self.begun = u64::from_le_bytes(word);
        self.line.post(slot)
    }

    fn was_sent(&mut self, sent: &Completion) -> Result<()> {
        if sent.status.is_error() {
            return Err(Error::Gone(self.peer.clone()));
        }
        if let Some(busy) = self.busy.get_mut(sent.token as usize) {
            *busy = false;
        }
        Ok(())
    }

    fn failed(&self, error: sidestep_vi::Error) -> Error {
        failed(&self.line, &self.peer, error)
    }
}

impl ViRx {
    pub fn new(line: Line, capacity: usize, peer: String) -> ViRx {
        ViRx { line: Arc::new(line), current: None, begun: 0, capacity, peer }
    }

    pub fn line(&self) -> &Arc<Line> {
        &self.line
    }

    pub fn peek(&mut self) -> Result<Option<Header>> {
        if self.current.is_none()
            && let Some(received) = self.line.vi.poll_receive()
        {
            self.take(&received)?;
        }
        if self.current.is_none() && !self.line.vi.is_connected() {
            return Err(Error::Gone(self.peer.clone()));
        }
        Ok(self.current.map(|(_, header)| header))
    }

    pub fn wait(&mut self) -> Result<()> {
        let received = self.line.vi.wait_receive(None).map_err(|error| failed(&self.line, &self.peer, error))?;
        self.take(&received)
    }

    fn take(&mut self, received: &Completion) -> Result<()> {
        let slot = checked(received, &self.line, &self.peer)?;
        let mut bytes = [0; HEADER];
        self.line.memory.read(slot * self.line.receives.size, &mut bytes)?;
        let header = Header::parse(bytes, self.capacity).and_then(|header| {
            let fits = header.frame_len() <= received.len as usize;
            if fits { Ok(header) } else { Err("a frame longer than its message") }
        });
        let header = header.map_err(|what| Error::Broken { peer: self.peer.clone(), what })?;
        self.current = Some((slot, header));
        Ok(())
    }

    pub fn read(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        let Some((slot, _)) = self.current else { return Err(Error::Cancelled) };
        Ok(self.line.memory.read(slot * self.line.receives.size + HEADER + at, bytes)?)
    }

    pub fn consume(&mut self) {
        if let Some((slot, _)) = self.current.take() {
            // A connection that is over takes no receive, which the next look finds.
            let _ = self.line.post(slot);
        }
    }

    pub fn acknowledge(&mut self) -> Result<()> {
        self.begun += 1;
        let word = self.begun.to_le_bytes();
        let sent = self.line.vi.send_inline(&word, 0, 0);
        if sent.map_err(|error| failed(&self.line, &self.peer, error))? {
            return Ok(());
        }
        while self.line.vi.poll_send().is_some() {}
        let slot = self.begun as usize % self.line.sends.count;
        let at = self.line.send_slot(slot);
        self.line.memory.write(at, &word)?;
        let descriptor = Descriptor::new(slot as u64, &[self.line.memory.segment(at, WORD)]);
        let posted = self.line.vi.post_send_with(&descriptor, FlowControl::Blocking, None);
        posted.map_err(|error| failed(&self.line, &self.peer, error))
    }

    pub fn has_current(&self) -> bool {
        self.current.is_some()
    }
}

/// The slot of a receive that has completed well.
fn checked(received: &Completion, line: &Line, peer: &str) -> Result<usize> {
    let slot = received.token as usize;
    if received.status.is_error() || slot >= line.receives.count {
        return Err(Error::Gone(peer.to_owned()));
    }
    Ok(slot)
}

fn failed(line: &Line, peer: &str, error: sidestep_vi::Error) -> Error {
    if line.vi.is_connected() { Error::Vi(error) } else { Error::Gone(peer.to_owned()) }
}
