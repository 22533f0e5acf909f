//! Armed bits against a set of words; pending sources against a row of numbers.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};
use sidestep_shm::{
    Memory,
    pending::{Mark, Pending},
    watch::{WATCHED_WORD, Watch, watch_len},
};

use super::cases;

/// Not a whole number of lines of bits.
const WATCHED: usize = 1100;

#[derive(Debug, Clone)]
enum OnWatch {
    Arm(usize),
    Disarm(usize),
    Fire(usize, usize),
    FireWord(usize),
}

fn on_watch() -> impl Strategy<Value = OnWatch> {
    use OnWatch::*;
    prop_oneof![
        8 => (0..WATCHED).prop_map(Arm),
        2 => (0..WATCHED).prop_map(Disarm),
        2 => (0..WATCHED, 0..WATCHED).prop_map(|(offset, len)| Fire(offset, len.min(WATCHED - offset))),
        2 => (0..WATCHED).prop_map(FireWord),
    ]
}

fn watch() -> Watch {
    // In the middle, between words that must stay as they are.
    let memory = Memory::heap(watch_len(WATCHED) + 16).unwrap();
    Watch::new(&memory, 8, WATCHED).unwrap()
}

fn fired(watch: &Watch, offset: usize, len: usize) -> BTreeSet<usize> {
    let mut words = BTreeSet::new();
    watch.fire(offset, len, |offset| assert!(words.insert(offset / WATCHED_WORD), "fired twice"));
    words
}

#[test]
fn a_range_fires_its_words_at_every_alignment() {
    let watch = watch();
    for index in 0..WATCHED.div_ceil(WATCHED_WORD) {
        watch.word(index * WATCHED_WORD).unwrap().arm();
    }
    for len in (0..12).chain([63, 64, 255, 256, 257, 511, 512, 513, 800]) {
        for offset in 0..WATCHED - len {
            let touched = if len == 0 { 0..0 } else { offset / WATCHED_WORD..(offset + len - 1) / WATCHED_WORD + 1 };
            let fired = fired(&watch, offset, len);
            fired.iter().for_each(|word| watch.word(word * WATCHED_WORD).unwrap().arm());
            assert_eq!(fired, touched.collect(), "{offset}..+{len}");
        }
    }
    assert!(watch.word(watch_len(WATCHED) * 8 * WATCHED_WORD).is_none());
    watch.fire(WATCHED * 2, 100, |_| panic!("fired outside"));
}

#[derive(Debug, Clone)]
enum OnPending {
    Post(usize),
    Take,
    Remove(usize),
}

fn on_pending() -> impl Strategy<Value = OnPending> {
    use OnPending::*;
    prop_oneof![6 => (0..8_usize).prop_map(Post), 4 => Just(Take), 1 => (0..8_usize).prop_map(Remove)]
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn armed_bits_are_a_set(operations in vec(on_watch(), 1..100)) {
        let watch = watch();
        let mut armed = BTreeSet::new();
        for operation in operations {
            match operation {
                OnWatch::Arm(offset) => {
                    watch.word(offset).unwrap().arm();
                    armed.insert(offset / WATCHED_WORD);
                }
                OnWatch::Disarm(offset) => {
                    prop_assert_eq!(watch.word(offset).unwrap().disarm(), armed.remove(&(offset / WATCHED_WORD)));
                }
                OnWatch::FireWord(offset) => {
                    prop_assert_eq!(watch.word(offset).unwrap().fire(), armed.remove(&(offset / WATCHED_WORD)));
                }
                OnWatch::Fire(offset, len) => {
                    let touched = |word: &usize| {
                        len > 0 && (offset / WATCHED_WORD..=(offset + len - 1) / WATCHED_WORD).contains(word)
                    };
                    let expected: BTreeSet<usize> = armed.iter().copied().filter(touched).collect();
                    prop_assert_eq!(fired(&watch, offset, len), expected);
                    armed.retain(|word| !touched(word));
                }
            }
        }
        prop_assert_eq!(fired(&watch, 0, WATCHED), armed);
    }

    #[test]
    fn pending_sources_are_an_ordered_set(operations in vec(on_pending(), 1..100)) {
        let pending = Pending::new();
        let marks: Vec<_> = (0..8).map(|source| Mark::new(source as u64)).collect();
        let (mut queued, mut removed) = (Vec::new(), BTreeSet::new());
        for operation in operations {
            match operation {
                OnPending::Post(source) => {
                    let news = !removed.contains(&source) && !queued.contains(&source);
                    prop_assert_eq!(pending.post(&marks[source]), news);
                    if news {
                        queued.push(source);
                    }
                }
                OnPending::Take => {
                    let expected = if queued.is_empty() { None } else { Some(queued.remove(0) as u64) };
                    prop_assert_eq!(pending.take(), expected);
                }
                OnPending::Remove(source) => {
                    pending.remove(&marks[source]);
                    queued.retain(|other| *other != source);
                    removed.insert(source);
                }
            }
            prop_assert_eq!(pending.len(), queued.len());
        }
    }
}
