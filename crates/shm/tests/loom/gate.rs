//! The gate's rule: when taking memory back has ended, nobody copies into it.

use sidestep_shm::{
    Memory,
    gate::{Entrant, GATE_LEN, Turnstile},
};

use crate::{model, race};

/// Where the first length lies, which the kernel reads when a copy begins.
const LENGTH: usize = 0x18;

/// The owner uses the byte again as soon as it has taken it back: no copy may be beside that, and none may follow.
#[test]
fn nothing_is_copied_once_memory_is_taken_back() {
    model(|first| {
        let memory = Memory::heap(GATE_LEN + 8).unwrap();
        let byte = memory.span(GATE_LEN, 1).unwrap();
        let mut entrant = Entrant::new(&memory, 0).unwrap();
        let owner = Turnstile::new(&memory, 0).unwrap();
        let length = memory.word64(LENGTH).unwrap();
        let copied = byte.clone();
        let copy = move || {
            entrant.enter(7, 0, [(100, 1), (0, 0)], || {
                if length.load(loom::sync::atomic::Ordering::Relaxed) > 0 {
                    copied.copy_in(0, &[1]).unwrap();
                }
            })
        };
        let take_back = move || {
            owner.withdraw(1, |thread| {
                assert_eq!(thread, 7);
                loom::thread::yield_now();
                true
            });
            byte.copy_in(0, &[2]).unwrap();
            byte
        };
        let (_, byte) = race(first, copy, take_back);
        let mut now = [0];
        byte.copy_out(0, &mut now).unwrap();
        assert_eq!(now, [2], "copied after it was taken back");
    });
}
