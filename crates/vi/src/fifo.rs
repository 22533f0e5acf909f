//! Queues that lie where they are used as long as they are short: whoever finds them empty looks nowhere else.

use std::collections::VecDeque;

/// First in, first out; the first entry lies in the queue itself.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Fifo<T> {
    /// `None` only if there are no others.
    first: Option<T>,
    rest: Later<T>,
}

/// First in, first out; an entry that finds it empty lies in the queue itself. No entry is moved while it is here: who takes one
/// soon after it came would wait for its bytes on their way from place to place.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Few<T> {
    /// Older than all others.
    first: Option<T>,
    rest: Later<T>,
}

/// First in, first out; mostly empty. The entries lie elsewhere, and whether there are any is known here.
#[derive(Debug)]
pub(crate) struct Later<T> {
    len: u32,
    entries: Option<Box<Entries<T>>>,
}

#[derive(Debug)]
struct Entries<T>(VecDeque<T>);

impl<T> Default for Fifo<T> {
    fn default() -> Fifo<T> {
        Fifo { first: None, rest: Later::default() }
    }
}

impl<T> Fifo<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        match self.first {
            None => self.first = Some(value),
            Some(_) => self.rest.push(value),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = self.first.take();
        if !self.rest.is_empty() {
            self.first = self.rest.pop_there();
        }
        first
    }

    /// All entries from that one on.
    #[inline]
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &T> {
        self.first.iter().skip(index).chain(self.rest.from(index.saturating_sub(1)))
    }
}

/// Entries for which there is room from the beginning: a program that now and then takes one late allocates nothing for it.
const ROOM: usize = 8;

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few { first: None, rest: Later::with_room() }
    }
}

impl<T> Few<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }

    /// Where the entry lies now.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) -> &T {
        match &mut self.first {
            first @ None if self.rest.is_empty() => first.insert(value),
            _ => self.rest.push_there(value),
        }
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.first.is_some() { self.first.take() } else { self.rest.pop() }
    }
}

impl<T> Default for Later<T> {
    fn default() -> Later<T> {
        Later { len: 0, entries: None }
    }
}

impl<T> Later<T> {
    /// An empty one that allocates nothing for its first few entries.
    pub(crate) fn with_room() -> Later<T> {
        Later { len: 0, entries: Some(Box::new(Entries(VecDeque::with_capacity(ROOM)))) }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.get(0) }
    }

    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        if self.is_empty() { None } else { self.get_mut(0) }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.entries.as_ref()?.0.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.entries.as_mut()?.0.get_mut(index)
    }

    pub(crate) fn push(&mut self, value: T) {
        self.push_there(value);
    }

    /// Where the entry lies now.
    #[inline]
    fn push_there(&mut self, value: T) -> &T {
        let Entries(entries) = &mut **self.entries.get_or_insert_with(|| Box::new(Entries(VecDeque::new())));
        let index = self.len as usize;
        entries.push_back(value);
        self.len += 1;
        &entries[index]
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.is_empty() { None } else { self.pop_there() }
    }

    pub(crate) fn clear(&mut self) {
        *self = Later::default();
    }

    /// All entries from that one on.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &T> {
        self.entries.iter().flat_map(move |entries| entries.0.range(index.min(entries.0.len())..))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flat_map(|entries| &mut entries.0)
    }

    #[inline]
    fn pop_there(&mut self) -> Option<T> {
        self.len -= 1;
        self.entries.as_mut()?.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_queue() {
        let (mut fifo, mut model) = (Fifo::default(), VecDeque::new());
        for step in 0..1000u32 {
            if step % 7 < 4 {
                fifo.push(step);
                model.push_back(step);
            } else {
                assert_eq!(fifo.pop(), model.pop_front());
            }
            assert_eq!((fifo.len(), fifo.is_empty(), fifo.front()), (model.len(), model.is_empty(), model.front()));
            for index in 0..=model.len() {
                assert_eq!(fifo.from(index).next(), model.get(index));
                assert!(fifo.from(index).eq(model.range(index..)), "from {index} of {}", model.len());
            }
        }
    }

    #[test]
    fn so_is_the_one_that_moves_nothing() {
        let (mut few, mut model) = (Few::default(), VecDeque::new());
        for step in 0..1000u32 {
            if step % 7 < 4 && step % 100 < 50 {
                assert_eq!(*few.push(step), step);
                model.push_back(step);
            } else {
                assert_eq!(few.pop(), model.pop_front());
            }
            assert_eq!((few.len(), few.is_empty()), (model.len(), model.is_empty()));
        }
    }

    #[test]
    fn so_is_the_one_that_is_mostly_empty() {
        let (mut later, mut model) = (Later::default(), VecDeque::new());
        for step in 0..1000u32 {
            if step % 7 < 4 {
                later.push(step);
                model.push_back(step);
            } else {
                assert_eq!(later.pop(), model.pop_front());
            }
            if step == 500 {
                later.clear();
                model.clear();
            }
            assert_eq!((later.len(), later.is_empty(), later.front()), (model.len(), model.is_empty(), model.front()));
            assert!(later.iter_mut().eq(&mut model) && later.front_mut() == model.front_mut());
            for index in 0..=model.len() {
                assert_eq!(later.get(index), model.get(index));
                assert_eq!(later.get_mut(index), model.get_mut(index));
                assert!(later.from(index).eq(model.range(index..)));
            }
        }
    }
}
