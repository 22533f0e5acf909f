//! NICs.

use std::{
    collections::HashMap,
    ffi::{c_char, c_int, c_void},
    sync::{Arc, Mutex},
};

use sidestep_vi::{Code, Nic};

use crate::{
    handles::{self, CONNECTIONS, CQS, NICS, NicEntry, VIS, as_handle},
    pointer::{answer, some, string, write},
    types::{Descriptor, ErrorDescriptor, ErrorHandler, Handle, NicAttributes, Return},
};

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipOpenNic(device: *const c_char, out: *mut Handle) -> Return {
    answer(|| {
        let out = some(out)?;
        let nic = Nic::open(&string(device)?)?;
        let address = nic.address().into();
        let handle = NICS.insert_with(|handle| NicEntry {
            nic,
            handle,
            address,
            names: Mutex::default(),
            buffers: Mutex::new(HashMap::new()),
            discovery: Mutex::default(),
        })?;
        write(out, as_handle(handle));
        Ok(Code::Success)
    })
}

/// Everything that was made with the NIC goes with it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipCloseNic(nic: Handle) -> Return {
    answer(|| {
        let entry = NICS.remove(nic)?;
        let _ = entry.nic.set_error_handler(None);
        CONNECTIONS.remove_all(|connection| connection.nic == entry.handle, |_| {});
        VIS.remove_all(|vi| vi.nic.handle == entry.handle, |vi| vi.vi.retire());
        CQS.remove_all(|cq| cq.nic.handle == entry.handle, |_| {});
        handles::forget_recent();
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipQueryNic(nic: Handle, out: *mut NicAttributes) -> Return {
    answer(|| {
        let (entry, out) = (NICS.find(nic)?, some(out)?);
        let own = entry.nic.attributes();
        let mut name = [0; 64];
        for (place, byte) in name.iter_mut().zip(own.name.bytes().take(63)) {
            *place = byte as c_char;
        }
        write(
            out,
            NicAttributes {
                name,
                hardware_version: 1,
                provider_version: 1,
                address_len: entry.address.len() as u16,
                address: entry.address.as_ptr(),
                thread_safe: c_int::from(!entry.nic.is_single()),
                max_discriminator: own.max_discriminator as u16,
                max_register_bytes: own.max_register_bytes as _,
                max_register_regions: own.max_register_regions as _,
                max_register_block: own.max_register_block as _,
                max_vi: own.max_vis as _,
                max_descriptors: own.max_descriptors as _,
                max_segments: own.max_segments as _,
                max_cq: own.max_cqs as _,
                max_cq_entries: own.max_cq_entries as _,
                max_transfer: own.max_transfer as _,
                native_mtu: own.max_transfer as _,
                max_ptags: own.max_ptags as _,
                reliability: 1 | 2 | 4,
                rdma_read: 2 | 4,
            },
        );
        Ok(Code::Success)
    })
}

/// A context that C gave for its handler (C4).
#[derive(Clone, Copy)]
pub(crate) struct Context(*mut c_void);

// SAFETY: C4.
unsafe impl Send for Context {}
// SAFETY: C4.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(pointer: *mut c_void) -> Context {
        Context(pointer)
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.0
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipErrorCallback(nic: Handle, context: *mut c_void, handler: Option<ErrorHandler>) -> Return {
    answer(|| {
        let entry = NICS.find(nic)?;
        let Some(handler) = handler else {
            entry.nic.set_error_handler(None)?;
            return Ok(Code::Success);
        };
        let (context, own, weak) = (Context::new(context), entry.handle, Arc::downgrade(&entry));
        let call = move |event: &sidestep_vi::ErrorEvent| {
            let Some(entry) = weak.upgrade() else { return };
            let vi = event.vi.and_then(|id| entry.nic.vi(id)).map_or(0, |vi| vi.tag() as usize);
            let mut error = ErrorDescriptor {
                nic: as_handle(own),
                vi: as_handle(vi),
                cq: as_handle(event.cq.unwrap_or(0) as usize),
                descriptor: std::ptr::with_exposed_provenance_mut::<Descriptor>(event.token as usize),
                op_code: event.operation.0.into(),
                resource: event.resource as u32,
                error: event.code as u32,
            };
            // SAFETY: C4.
            unsafe { handler(context.pointer(), &mut error) };
        };
        entry.nic.set_error_handler(Some(Arc::new(call)))?;
        Ok(Code::Success)
    })
}
