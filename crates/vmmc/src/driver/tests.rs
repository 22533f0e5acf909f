use super::*;
use crate::card::Path;

/// Frames are handed out and taken back; so many pages can be pinned.
#[derive(Debug, Default)]
struct Model {
    limit: usize,
    pages: u64,
    pinned: HashMap<(ProcessId, Page), Frame>,
    next: u32,
}

impl Pinning for Model {
    fn pin(&mut self, process: ProcessId, first: Page, count: usize) -> Vec<Result<Frame, PinFault>> {
        let mut pin = |page: Page| {
            if page.0 >= self.pages {
                return Err(PinFault::Unmapped);
            }
            if self.pinned.len() >= self.limit {
                return Err(PinFault::Limit);
            }
            self.next += 1;
            assert!(self.pinned.insert((process, page), Frame(self.next)).is_none(), "pinned twice");
            Ok(Frame(self.next))
        };
        (0..count as u64).map(|at| pin(Page(first.0 + at))).collect()
    }

    fn unpin(&mut self, process: ProcessId, page: Page, frame: Frame) {
        assert_eq!(self.pinned.remove(&(process, page)), Some(frame));
    }
}

const ONE: ProcessId = ProcessId(1);

fn driver(limit: usize, pages: u64, marks: Marks) -> Driver<Model> {
    let model = Model { limit, pages, ..Model::default() };
    let mut driver = Driver::new(model, 4, marks, 10).unwrap();
    driver.attach(ONE, pages * PAGE as u64);
    driver
}

fn miss(driver: &mut Driver<Model>, slot: u32, line: u64) -> Vec<Entry> {
    let tag = Tag { process: ONE, line };
    match driver.resolve(Miss::Vmh { slot: Slot(slot), tag, path: Path::Send }) {
        Fill::Vmh { entries, .. } => entries,
        fill => panic!("{fill:?}"),
    }
}

#[test]
fn pages_are_pinned_by_lines_and_given_back_between_the_marks() {
    let mut driver = driver(100, 40, Marks { high: 16, low: 8 });
    for line in 0..4 {
        let entries = miss(&mut driver, line as u32 % 2, line);
        assert!(entries.iter().all(|entry| matches!(entry, Entry::Frame(_))));
    }
    assert_eq!(driver.pinned(), 16);
    // The fifth line is too much: the two in the cache stay, and the oldest others go.
    miss(&mut driver, 0, 4);
    assert_eq!((driver.pinned(), driver.unpinned()), (8, 12));
    for line in [3, 4] {
        assert!(driver.pinning.pinned.contains_key(&(ONE, Page(line * 4))), "line {line} is in the cache");
    }
    // A line that was pinned before is found without the kernel.
    let before = driver.pinning.next;
    miss(&mut driver, 0, 3);
    assert_eq!(driver.pinning.next, before);
    driver.release(ONE);
    assert!(driver.pinning.pinned.is_empty());
}

#[test]
fn pages_that_are_not_there_are_marked_one_by_one() {
    let mut driver = driver(100, 6, Marks::default());
    let entries = miss(&mut driver, 0, 1);
    assert!(matches!(entries[..], [Entry::Frame(_), Entry::Frame(_), Entry::Unmapped, Entry::Unmapped]));
    driver.release(ONE);
    assert_eq!(miss(&mut driver, 0, 1), [Entry::Unmapped; 4]);
}

#[test]
fn a_limit_is_met_by_giving_back_what_nobody_uses() {
    let mut driver = driver(8, 100, Marks::default());
    miss(&mut driver, 0, 0);
    miss(&mut driver, 0, 1);
    let third = miss(&mut driver, 0, 2);
    assert!(third.iter().all(|entry| matches!(entry, Entry::Frame(_))), "line 0 was given back: {third:?}");
    miss(&mut driver, 1, 5);
    // Both slots are in use: no page can be pinned, and that is said.
    assert_eq!(miss(&mut driver, 2, 6), [Entry::Unpinned; 4]);
    assert_eq!(driver.failures(), 4);
}

#[test]
fn exports_lie_within_the_memory() {
    let mut driver = driver(8, 2, Marks::default());
    let export = |address, len| Export { address: Address(address), len, rights: Rights::ALL, notify: false };
    assert!(matches!(driver.register(ONE, export(1, 8192), Key(1)), Err(Error::Range { .. })));
    assert!(matches!(driver.register(ONE, export(u64::MAX, 2), Key(1)), Err(Error::Range { .. })));
    assert!(matches!(driver.register(ProcessId(7), export(0, 1), Key(1)), Err(Error::NoProcess(_))));
    let (first, _) = driver.register(ONE, export(0, 8192), Key(1)).unwrap();
    let (second, _) = driver.register(ONE, export(0, 8192), Key(2)).unwrap();
    assert_ne!(first, second);
    driver.deregister(first).unwrap();
    assert!(matches!(driver.deregister(first), Err(Error::NoBuffer(_))));
    assert_eq!(
        driver.resolve(Miss::Cbh { slot: Slot(0), cbh: first }),
        Fill::Cbh { slot: Slot(0), cbh: first, descriptor: None }
    );
    let marks = Marks { high: 4, low: 4 };
    assert!(driver.set_marks(marks).unwrap_err().to_string().contains("low below high"));
}
