//! Extensions, off until a program asks for them, and names that other providers have for the same things.

use std::{
    ffi::{c_int, c_ulong, c_void},
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
unsafe extern "C" fn VipExtSetPlacing(vi: Handle, placing: c_int) -> Return {
    answer(|| {
        VIS.find(vi)?.vi.set_placing(placing != 0);
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

/// The name that other providers have for the user word. A wrong handle changes nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn VipSetUserData(vi: Handle, data: *mut c_void) {
    answer(|| {
        VIS.find(vi)?.vi.set_user_word(data.expose_provenance() as u64);
        Ok(Code::Success)
    });
}

/// A wrong handle has none.
#[unsafe(no_mangle)]
unsafe extern "C" fn VipGetUserData(vi: Handle) -> *mut c_void {
    let mut data = std::ptr::null_mut();
    answer(|| {
        data = std::ptr::with_exposed_provenance_mut(VIS.find(vi)?.vi.user_word() as usize);
        Ok(Code::Success)
    });
    data
}

/// Goes on with sends that wait for a receive of the other side, and tells whether some still do. The library goes on with them
/// by itself too, so there is no interrupt to enable.
#[unsafe(no_mangle)]
unsafe extern "C" fn VipPostDeferredSends(vi: Handle, _interrupt: c_int, deferred: *mut c_int) -> Return {
    answer(|| {
        let (entry, deferred) = (VIS.find(vi)?, some(deferred)?);
        entry.vi.progress();
        write(deferred, c_int::from(entry.vi.has_deferred()));
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
