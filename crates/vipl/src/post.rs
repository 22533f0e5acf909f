//! Posting descriptors that lie in the caller's memory, and taking them back.

use std::{
    ffi::{c_ulong, c_void},
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering, fence},
};

use sidestep_vi::{
    Code, Completion, Descriptor, Error, FlowControl, MAX_SEGMENTS, MemHandle, Operation, Queue, Remote, Result,
    Segment, Segments, Status,
};

use crate::{
    handles::{VIS, as_handle, with_vi},
    nic::Context,
    pointer::{answer, code_of, deadline, some, write},
    types::{self, ControlSegment, DataSegment, Handle, NotifyHandler, Return},
};

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipPostSend(vi: Handle, descriptor: *mut types::Descriptor, handle: u32) -> Return {
    answer(|| {
        let descriptor = parse(some(descriptor)?, handle, false);
        with_vi(vi, |entry| code_of(entry.vi.post_send(&descriptor)))
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipPostRecv(vi: Handle, descriptor: *mut types::Descriptor, handle: u32) -> Return {
    answer(|| {
        let descriptor = parse(some(descriptor)?, handle, true);
        with_vi(vi, |entry| code_of(entry.vi.post_receive(&descriptor)))
    })
}

/// Extension: a send with flow control of its own.
#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtPostSend(
    vi: Handle,
    descriptor: *mut types::Descriptor,
    handle: u32,
    flow: c_ulong,
    timeout: c_ulong,
) -> Return {
    answer(|| {
        let descriptor = parse(some(descriptor)?, handle, false);
        let entry = VIS.find(vi)?;
        entry.vi.post_send_with(&descriptor, flow_of(flow)?, deadline(timeout))?;
        Ok(Code::Success)
    })
}

pub(crate) fn flow_of(flow: c_ulong) -> Result<FlowControl> {
    match flow {
        0 => Ok(FlowControl::Compliant),
        1 => Ok(FlowControl::NonBlocking),
        2 => Ok(FlowControl::Blocking),
        3 => Ok(FlowControl::Asynchronous),
        _ => Err(Error::Invalid("a kind of flow control")),
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipSendDone(vi: Handle, out: *mut *mut types::Descriptor) -> Return {
    answer(|| {
        let out = some(out)?;
        with_vi(vi, |entry| taken(entry.vi.poll_send(), out))
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipRecvDone(vi: Handle, out: *mut *mut types::Descriptor) -> Return {
    answer(|| {
        let out = some(out)?;
        with_vi(vi, |entry| taken(entry.vi.poll_receive(), out))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipSendWait(vi: Handle, timeout: c_ulong, out: *mut *mut types::Descriptor) -> Return {
    answer(|| {
        let (entry, out) = (VIS.find(vi)?, some(out)?);
        Ok(taken(Some(entry.vi.wait_send(deadline(timeout))?), out))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipRecvWait(vi: Handle, timeout: c_ulong, out: *mut *mut types::Descriptor) -> Return {
    answer(|| {
        let (entry, out) = (VIS.find(vi)?, some(out)?);
        Ok(taken(Some(entry.vi.wait_receive(deadline(timeout))?), out))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipSendNotify(vi: Handle, context: *mut c_void, handler: Option<NotifyHandler>) -> Return {
    notify(vi, Queue::Send, context, handler)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipRecvNotify(vi: Handle, context: *mut c_void, handler: Option<NotifyHandler>) -> Return {
    notify(vi, Queue::Receive, context, handler)
}

fn notify(vi: Handle, queue: Queue, context: *mut c_void, handler: Option<NotifyHandler>) -> Return {
    answer(|| {
        let entry = VIS.find(vi)?;
        let handler = handler.ok_or(Error::Invalid("no handler"))?;
        let (context, nic, own) = (Context::new(context), entry.nic.handle, entry.handle);
        let call = move |_, completion: Completion| {
            let descriptor = std::ptr::with_exposed_provenance_mut(completion.token as usize);
            // SAFETY: C4.
            unsafe { handler(context.pointer(), as_handle(nic), as_handle(own), descriptor) };
        };
        entry.vi.notify(queue, Box::new(call))?;
        Ok(Code::Success)
    })
}

/// Hands a completed descriptor out.
#[inline]
fn taken(completion: Option<Completion>, out: NonNull<*mut types::Descriptor>) -> Code {
    let Some(completion) = completion else { return Code::NotDone };
    write(out, std::ptr::with_exposed_provenance_mut(completion.token as usize));
    if completion.status.is_error() { Code::DescriptorError } else { Code::Success }
}

/// Writes the outcome into a descriptor, the status last: programs look at it without calling.
pub(crate) fn completed(completion: &Completion) {
    let control: *mut ControlSegment = std::ptr::with_exposed_provenance_mut(completion.token as usize);
    // SAFETY: C2.
    let mut held = unsafe { control.read_unaligned() };
    held.length = completion.len;
    if let Some(immediate) = completion.immediate {
        held.immediate = immediate;
    }
    if completion.status.operation() == Status::OP_RECEIVE {
        held.reserved = u32::from(completion.continues);
    }
    // SAFETY: C2. The status is still that of posting.
    unsafe { control.write_unaligned(held) };
    // SAFETY: C2: the field lies within the descriptor.
    let status = unsafe { std::ptr::addr_of_mut!((*control).status) };
    if status.is_aligned() {
        // SAFETY: C2, and it is aligned. Pairs with whatever the program reads it with.
        unsafe { AtomicU32::from_ptr(status) }.store(completion.status.0, Ordering::Release);
    } else {
        fence(Ordering::Release);
        // SAFETY: C2.
        unsafe { status.write_unaligned(completion.status.0) };
    }
}

const OPERATION: u16 = 3;
const IMMEDIATE: u16 = 4;
const FENCE: u16 = 8;
const RESERVED: u16 = 0xfff0;
const ALIGNMENT: usize = 64;

/// Reads a descriptor, clears its status, and notes what is wrong with it.
#[inline]
fn parse(pointer: NonNull<types::Descriptor>, handle: u32, receive: bool) -> Descriptor {
    let pointer = pointer.as_ptr();
    let token = pointer.expose_provenance();
    let control: *mut ControlSegment = pointer.cast();
    // SAFETY: C2.
    let held = unsafe { control.read_unaligned() };
    // SAFETY: C2: the field lies within the descriptor.
    let status = unsafe { std::ptr::addr_of_mut!((*control).status) };
    // SAFETY: C2.
    unsafe { status.write_unaligned(0) };
    let count = held.segments as usize;
    let place = Segment {
        address: token as u64,
        handle: MemHandle(handle),
        len: (size_of::<ControlSegment>() + count.min(MAX_SEGMENTS + 1) * size_of::<DataSegment>()) as u32,
    };
    let immediate = (held.control & IMMEDIATE != 0 && !receive).then_some(held.immediate);
    let mut descriptor = Descriptor {
        token: token as u64,
        immediate,
        fence: held.control & FENCE != 0,
        place: Some(place),
        ..Descriptor::default()
    };
    let operation = held.control & OPERATION;
    let remote = matches!(operation, 1 | 2);
    let misaligned = token % ALIGNMENT != 0;
    if held.control & RESERVED != 0
        || operation == OPERATION
        || misaligned
        || count > MAX_SEGMENTS + usize::from(remote)
        || remote && (count == 0 || receive)
    {
        descriptor.fault = Some(Status::FORMAT_ERROR);
        return descriptor;
    }
    // SAFETY: C2: the segments follow the control segment.
    let first: *const DataSegment = unsafe { control.add(1) }.cast();
    let segment = |at: usize| {
        // SAFETY: C2: the descriptor has as many segments as it counts.
        let place = unsafe { first.add(at) };
        // SAFETY: as above.
        let held = unsafe { place.read_unaligned() };
        Segment { address: held.address, handle: MemHandle(held.handle), len: held.length }
    };
    let local = match count - usize::from(remote) {
        1 => Segments::from(&[segment(usize::from(remote))][..]),
        0 => Segments::default(),
        _ => Segments::from(&(usize::from(remote)..count).map(segment).collect::<Vec<_>>()[..]),
    };
    // Zero is what programs leave that do not care; a receive may still have the length of its last message.
    let total: u64 = local.iter().map(|segment| u64::from(segment.len)).sum();
    if !receive && held.length != 0 && u64::from(held.length) != total {
        descriptor.fault = Some(Status::LENGTH_ERROR);
    }
    descriptor.segments = local;
    if remote {
        let Segment { address, handle, .. } = segment(0);
        let remote = Remote { address, handle };
        descriptor.operation = if operation == 1 { Operation::RdmaWrite(remote) } else { Operation::RdmaRead(remote) };
    }
    descriptor
}
