//! A queue whose first entry lies in the queue itself: one that is mostly one long needs no memory elsewhere.

use std::collections::VecDeque;

/// First in, first out.
#[derive(Debug)]
pub(crate) struct Fifo<T> {
    /// `None` only if `rest` is empty.
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Fifo<T> {
        Fifo { first: None, rest: VecDeque::new() }
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
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index == 0 { self.first.as_ref() } else { self.rest.get(index - 1) }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        match self.first {
            None => self.first = Some(value),
            Some(_) => self.rest.push_back(value),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let next = if self.rest.is_empty() { None } else { self.rest.pop_front() };
        std::mem::replace(&mut self.first, next)
    }

    /// All entries from that one on.
    #[inline]
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &T> {
        let first = self.first.iter().skip(index);
        first.chain(self.rest.range(index.saturating_sub(1).min(self.rest.len())..))
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
                assert_eq!(fifo.get(index), model.get(index));
                assert!(fifo.from(index).eq(model.range(index..)), "from {index} of {}", model.len());
            }
        }
    }
}
