//! What operations that wait need where memory of the other end is not mapped.

use sidestep_fabric::{self as fabric, RdmaQueue};

use crate::{error::Result, region::Remote, stack::Stack};

/// For operations that wait, where memory of the other end is not mapped.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) queue: RdmaQueue,
    pub(crate) buffer: fabric::Region,
}

/// Bytes that such operations move at once.
pub(crate) const BUFFER: usize = 64 << 10;

pub(crate) fn check_range(remote: &Remote, offset: usize, len: usize) -> Result<()> {
    let inside = offset.checked_add(len).is_some_and(|end| end <= remote.len());
    let refusal = fabric::Refusal::Range { offset: offset as u64, len: len as u64 };
    if inside { Ok(()) } else { Err(fabric::Error::Cookie(refusal).into()) }
}

impl Direct {
    pub(crate) fn new(stack: &Stack) -> Result<Direct> {
        let buffer = fabric::Region::new(stack.node(), BUFFER)?;
        Ok(Direct { queue: RdmaQueue::new(stack.node(), 4), buffer })
    }
}
