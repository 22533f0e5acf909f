//! The memory of a simulated host. What a card copies goes by frames, so that one which is used after it was unpinned shows.

use std::collections::HashMap;

use crate::card::Job;
use crate::driver::{PinFault, Pinning};
use crate::id::{Address, Frame, PAGE, Page, ProcessId, pieces};

/// Memory of processes, and which of it is pinned where.
#[derive(Debug, Default)]
pub(super) struct Host {
    limit: usize,
    sizes: HashMap<ProcessId, u64>,
    pages: HashMap<(ProcessId, Page), Box<[u8; PAGE]>>,
    frames: HashMap<Frame, (ProcessId, Page)>,
    free: Vec<Frame>,
    next: u32,
}

impl Host {
    pub(super) fn new(limit: usize) -> Host {
        Host { limit, ..Host::default() }
    }

    pub(super) fn attach(&mut self, process: ProcessId, pages: u64) {
        self.sizes.insert(process, pages);
    }

    pub(super) fn detach(&mut self, process: ProcessId) {
        assert!(self.frames.values().all(|(own, _)| *own != process), "pages of {process:?} are still pinned");
        self.sizes.remove(&process);
        self.pages.retain(|(own, _), _| *own != process);
    }

    pub(super) fn write(&mut self, process: ProcessId, address: Address, bytes: &[u8]) {
        let mut rest = bytes;
        for (page, offset, len) in pieces(address, bytes.len()) {
            let (piece, left) = rest.split_at(len);
            self.page(process, page)[offset..offset + len].copy_from_slice(piece);
            rest = left;
        }
    }

    pub(super) fn read(&mut self, process: ProcessId, address: Address, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        for (page, offset, len) in pieces(address, len) {
            bytes.extend(&self.page(process, page)[offset..offset + len]);
        }
        bytes
    }

    /// What the card does. It panics if the frame is not pinned: a card would have written into memory of somebody else.
    pub(super) fn copy(&mut self, frame: Frame, offset: usize, job: Job) -> Option<Vec<u8>> {
        let (process, page) = *self.frames.get(&frame).expect("the card uses a frame that is not pinned");
        let memory = self.page(process, page);
        match job {
            Job::Read(len) => Some(memory[offset..offset + len].to_vec()),
            Job::Write(bytes) => {
                memory[offset..offset + bytes.len()].copy_from_slice(&bytes);
                None
            }
        }
    }

    fn page(&mut self, process: ProcessId, page: Page) -> &mut [u8; PAGE] {
        self.pages.entry((process, page)).or_insert_with(|| Box::new([0; PAGE]))
    }
}

impl Pinning for Host {
    fn pin(&mut self, process: ProcessId, first: Page, count: usize) -> Vec<Result<Frame, PinFault>> {
        let size = self.sizes.get(&process).copied().unwrap_or(0);
        let mut pin = |page: Page| {
            if page.0 >= size {
                return Err(PinFault::Unmapped);
            }
            if self.frames.len() >= self.limit {
                return Err(PinFault::Limit);
            }
            let frame = self.free.pop().unwrap_or_else(|| {
                self.next += 1;
                Frame(self.next)
            });
            self.frames.insert(frame, (process, page));
            Ok(frame)
        };
        (0..count as u64).map(|at| pin(Page(first.0 + at))).collect()
    }

    fn unpin(&mut self, process: ProcessId, page: Page, frame: Frame) {
        assert_eq!(self.frames.remove(&frame), Some((process, page)), "a frame of another page is unpinned");
        self.free.push(frame);
    }
}
