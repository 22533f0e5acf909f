//! The host's table of one process: two levels, with the frame of every page that is pinned.

use std::collections::VecDeque;

use crate::id::{Frame, Page};

/// Pages of one leaf.
const LEAF: usize = 1024;
/// The most leaves: 256 GiB of memory.
const LEAVES: usize = 1 << 16;
/// The most pages of a process.
pub(crate) const MOST_PAGES: u64 = (LEAF * LEAVES) as u64;

/// Every pinned page of a process.
#[derive(Debug, Default)]
pub struct HostTable {
    directory: Vec<Option<Box<[Option<Frame>; LEAF]>>>,
    pinned: usize,
    /// Pages in the order in which they were pinned.
    order: VecDeque<Page>,
}

impl HostTable {
    /// The frame of a page.
    #[must_use]
    pub fn frame(&self, page: Page) -> Option<Frame> {
        let (leaf, at) = place(page)?;
        (*self.directory.get(leaf)?.as_ref()?)[at]
    }

    /// Notes that a page is pinned. `false` if it lies beyond the table.
    pub fn insert(&mut self, page: Page, frame: Frame) -> bool {
        let Some((leaf, at)) = place(page) else { return false };
        if self.directory.len() <= leaf {
            self.directory.resize_with(leaf + 1, || None);
        }
        let leaf = self.directory[leaf].get_or_insert_with(|| Box::new([None; LEAF]));
        if leaf[at].replace(frame).is_none() {
            self.pinned += 1;
            self.order.push_back(page);
        }
        true
    }

    /// Pages that are pinned.
    #[must_use]
    pub fn pinned(&self) -> usize {
        self.pinned
    }

    /// Takes out pages, the oldest first, until `low` are left; those of which `in_use` is true stay. Each is handed to `unpin`.
    pub fn reclaim(&mut self, low: usize, in_use: impl Fn(Page) -> bool, mut unpin: impl FnMut(Page, Frame)) {
        for _ in 0..self.order.len() {
            if self.pinned <= low {
                return;
            }
            let Some(page) = self.order.pop_front() else { return };
            if in_use(page) {
                self.order.push_back(page);
            } else if let Some(frame) = self.take(page) {
                unpin(page, frame);
            }
        }
    }

    fn take(&mut self, page: Page) -> Option<Frame> {
        let (leaf, at) = place(page)?;
        let frame = self.directory.get_mut(leaf)?.as_mut()?[at].take()?;
        self.pinned -= 1;
        Some(frame)
    }
}

fn place(page: Page) -> Option<(usize, usize)> {
    let leaf = usize::try_from(page.0 / LEAF as u64).ok().filter(|leaf| *leaf < LEAVES)?;
    Some((leaf, (page.0 % LEAF as u64) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_pages_go_first_and_those_in_use_stay() {
        let mut table = HostTable::default();
        for page in [5, 2000, 1, 70_000_000_000] {
            table.insert(Page(page), Frame(page as u32));
        }
        assert_eq!(table.pinned(), 3, "one lies beyond the table");
        assert_eq!(table.frame(Page(2000)), Some(Frame(2000)));
        let mut gone = Vec::new();
        table.reclaim(1, |page| page == Page(5), |page, _| gone.push(page));
        assert_eq!(gone, [Page(2000), Page(1)]);
        assert_eq!((table.pinned(), table.frame(Page(5)), table.frame(Page(1))), (1, Some(Frame(5)), None));
        table.reclaim(0, |_| true, |_, _| panic!("it is in use"));
        assert_eq!(table.pinned(), 1);
    }
}
