//! Completion queues.

use std::ffi::{c_int, c_ulong, c_void};

use sidestep_vi::{Code, Error, Queue, Vi};

use crate::{
    handles::{CQS, CqEntry, NICS, as_handle},
    nic::Context,
    pointer::{answer, deadline, some, write, write_if},
    types::{CqNotifyHandler, Handle, Return},
};

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCreateCQ(nic: Handle, entries: c_ulong, out: *mut Handle) -> Return {
    answer(|| {
        let (entry, out) = (NICS.find(nic)?, some(out)?);
        let cq = entry.nic.create_cq(entries as usize)?;
        let handle = CQS.insert_with(|handle| {
            cq.set_tag(handle as u64);
            CqEntry { cq, nic: entry.clone() }
        })?;
        write(out, as_handle(handle));
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipDestroyCQ(cq: Handle) -> Return {
    answer(|| {
        if CQS.find(cq)?.cq.is_in_use() {
            return Err(Error::InUse("the completion queue"));
        }
        CQS.remove(cq)?;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipResizeCQ(cq: Handle, entries: c_ulong) -> Return {
    answer(|| {
        CQS.find(cq)?.cq.resize(entries as usize)?;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCQDone(cq: Handle, vi: *mut Handle, receive: *mut c_int) -> Return {
    answer(|| {
        let (entry, out) = (CQS.find(cq)?, some(vi)?);
        let Some((vi, queue)) = entry.cq.poll() else { return Ok(Code::NotDone) };
        write(out, as_handle(vi.tag() as usize));
        write_if(receive, c_int::from(queue == Queue::Receive));
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCQWait(cq: Handle, timeout: c_ulong, vi: *mut Handle, receive: *mut c_int) -> Return {
    answer(|| {
        let (entry, out) = (CQS.find(cq)?, some(vi)?);
        let (vi, queue) = entry.cq.wait(deadline(timeout))?;
        write(out, as_handle(vi.tag() as usize));
        write_if(receive, c_int::from(queue == Queue::Receive));
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCQNotify(cq: Handle, context: *mut c_void, handler: Option<CqNotifyHandler>) -> Return {
    answer(|| {
        let entry = CQS.find(cq)?;
        let handler = handler.ok_or(Error::Invalid("no handler"))?;
        let (context, nic) = (Context::new(context), entry.nic.handle);
        let call = move |vi: Vi, queue| {
            let (own, receive) = (as_handle(vi.tag() as usize), c_int::from(queue == Queue::Receive));
            drop(vi);
            // SAFETY: C4.
            unsafe { handler(context.pointer(), as_handle(nic), own, receive) };
        };
        entry.cq.notify(Box::new(call))?;
        Ok(Code::Success)
    })
}
