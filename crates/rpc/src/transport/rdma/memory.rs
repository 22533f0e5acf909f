//! The memory of calls over RDMA: what the server reads of a call, and what it writes of the reply.

use crate::rdma::{CREDITS, KEPT};

/// The frame of a call that is sent.
pub(super) enum Frame<'a> {
    /// Nobody needs it any more.
    Given(&'a mut Vec<u8>),
    /// It may be sent again.
    Kept(&'a [u8]),
}

impl Frame<'_> {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Frame::Given(frame) => frame,
            Frame::Kept(frame) => frame,
        }
    }

    /// The bytes as memory of their own: of the frame itself, which is empty then, or a copy.
    pub fn take(&mut self, memory: &mut Memory) -> Vec<u8> {
        let mut next = memory.frames.pop().unwrap_or_default();
        next.clear();
        match self {
            Frame::Given(frame) => std::mem::replace(frame, next),
            Frame::Kept(frame) => {
                next.extend_from_slice(frame);
                next
            }
        }
    }
}

/// Memory that calls have used and that the next ones get. Each use has its own: what is offered to the server is as long from
/// call to call, and nothing of it has to be cleared again. A server that says it has written what it has not makes the client
/// see bytes of an earlier reply, which the same server has sent.
#[derive(Default)]
pub(super) struct Memory {
    frames: Vec<Vec<u8>>,
    replies: Vec<Vec<u8>>,
    bulk: Vec<Vec<u8>>,
}

impl Memory {
    /// Memory for a reply that does not fit inline.
    pub fn for_reply(&mut self, length: usize) -> Vec<u8> {
        of_length(self.replies.pop(), length)
    }

    /// Memory for bulk data that travel apart from their reply.
    pub fn for_bulk(&mut self, length: usize) -> Vec<u8> {
        of_length(self.bulk.pop(), length)
    }

    /// A call has ended: keeps the memory of its frame, reply and bulk data, but no large memory for ever.
    pub fn keep(&mut self, used: [Option<Vec<u8>>; 3]) {
        for (kept, memory) in [&mut self.frames, &mut self.replies, &mut self.bulk].into_iter().zip(used) {
            kept.extend(memory.filter(|memory| memory.capacity() <= KEPT));
            kept.truncate(CREDITS);
        }
    }
}

fn of_length(spare: Option<Vec<u8>>, length: usize) -> Vec<u8> {
    match spare {
        Some(mut memory) if memory.capacity() >= length => {
            memory.resize(length, 0);
            memory
        }
        // The system may have cleared it already.
        _ => vec![0; length],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_offered_is_offered_again_as_it_is() {
        let mut memory = Memory::default();
        let offered = [memory.for_reply(60_000), memory.for_bulk(9000)].map(|mut offered| {
            offered.fill(7);
            offered
        });
        let [reply, bulk] = offered;
        // Frames come and go meanwhile, given and kept.
        let mut given = vec![1; 300];
        let frames = [Frame::Given(&mut given), Frame::Kept(&[2; 400])].map(|mut frame| frame.take(&mut memory));
        assert_eq!((given.len(), frames.each_ref().map(Vec::len)), (0, [300, 400]));
        let [first, second] = frames;
        memory.keep([Some(first), Some(reply), Some(bulk)]);
        memory.keep([Some(second), None, None]);
        // Whoever clears it again finds zeros here.
        assert_eq!(memory.for_reply(60_000), vec![7; 60_000]);
        assert_eq!(memory.for_bulk(9000), vec![7; 9000]);
        let again = Frame::Kept(&[3; 200]).take(&mut memory);
        assert!(again == [3; 200] && again.capacity() >= 300, "it is memory of a frame");
        // A longer chunk is memory of its own, and large memory is not kept.
        assert_eq!(memory.for_reply(70_000), vec![0; 70_000]);
        memory.keep([None, Some(vec![7; KEPT + 1]), None]);
        assert_eq!(memory.for_reply(10), vec![0; 10]);
    }
}
