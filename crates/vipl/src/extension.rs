//! Extensions: off until a program asks for them.

use std::{
    ffi::{c_int, c_ulong},
    os::fd::AsRawFd,
};

use sidestep_vi::{Code, Error, Queue};

use crate::{
    handles::{CQS, VIS},
    pointer::{answer, some, write},
    post::flow_of,
    types::{Handle, Return},
};

#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtSetFlow(vi: Handle, flow: c_ulong) -> Return {
    answer(|| {
        VIS.find(vi)?.vi.set_flow_control(flow_of(flow)?);
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtSetSplit(vi: Handle, split: c_int) -> Return {
    answer(|| {
        VIS.find(vi)?.vi.set_splitting(split != 0);
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtSetUserWord(vi: Handle, word: u64) -> Return {
    answer(|| {
        VIS.find(vi)?.vi.set_user_word(word);
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtGetUserWord(vi: Handle, out: *mut u64) -> Return {
    answer(|| {
        let out = some(out)?;
        write(out, VIS.find(vi)?.vi.user_word());
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtCQDescriptor(cq: Handle, out: *mut c_int) -> Return {
    answer(|| {
        let (entry, out) = (CQS.find(cq)?, some(out)?);
        write(out, entry.cq.descriptor()?.as_raw_fd());
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtMoveVi(vi: Handle, receive: c_int, cq: Handle) -> Return {
    answer(|| {
        let entry = VIS.find(vi)?;
        let cq = if cq.is_null() { None } else { Some(CQS.find(cq)?) };
        if cq.as_ref().is_some_and(|cq| cq.nic.handle != entry.nic.handle) {
            return Err(Error::Invalid("a completion queue of another NIC"));
        }
        let queue = if receive != 0 { Queue::Receive } else { Queue::Send };
        entry.vi.move_to(queue, cq.as_ref().map(|cq| &cq.cq));
        Ok(Code::Success)
    })
}
