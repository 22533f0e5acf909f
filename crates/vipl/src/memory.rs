//! Registered memory and protection tags.

use std::{
    ffi::{c_int, c_ulong, c_void},
    ptr::NonNull,
};

use sidestep_vi::{Code, Error, MemHandle, Memory, Result};

use crate::{
    handles::{NICS, ptag, ptag_handle},
    pointer::{answer, read, some, write},
    types::{Handle, MemAttributes, Return},
};

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipCreatePtag(nic: Handle, out: *mut Handle) -> Return {
    answer(|| {
        let (entry, out) = (NICS.find(nic)?, some(out)?);
        write(out, ptag_handle(entry.nic.create_ptag()?));
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipDestroyPtag(nic: Handle, tag: Handle) -> Return {
    answer(|| {
        NICS.find(nic)?.nic.destroy_ptag(ptag(tag)?)?;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipRegisterMem(
    nic: Handle,
    address: *mut c_void,
    length: c_ulong,
    attributes: *const MemAttributes,
    out: *mut u32,
) -> Return {
    answer(|| {
        let (entry, out, base) = (NICS.find(nic)?, some(out)?, some(address.cast::<u8>())?);
        let attributes = attributes_of(attributes)?;
        let length = length as usize;
        let most = entry.nic.attributes().max_register_block;
        let end = (base.as_ptr() as usize).checked_add(length);
        if length == 0 || length > most || end.is_none() {
            return Err(Error::Invalid("a length"));
        }
        // Unaligned words are never made of it: only bytes are copied in and out.
        // SAFETY: C3.
        let memory = unsafe { Memory::from_raw(base, length) };
        write(out, entry.nic.register(memory, &attributes)?.0);
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipDeregisterMem(nic: Handle, address: *mut c_void, handle: u32) -> Return {
    answer(|| {
        let entry = NICS.find(nic)?;
        if entry.buffers.lock().is_ok_and(|buffers| buffers.contains_key(&handle)) {
            return Err(Error::Invalid("deregistering what VipExtFreeMem frees"));
        }
        entry.nic.deregister(address as u64, MemHandle(handle))?;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipSetMemAttributes(
    nic: Handle,
    address: *mut c_void,
    handle: u32,
    attributes: *const MemAttributes,
) -> Return {
    answer(|| {
        let attributes = attributes_of(attributes)?;
        NICS.find(nic)?.nic.set_memory(address as u64, MemHandle(handle), &attributes)?;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipQueryMem(
    nic: Handle,
    address: *mut c_void,
    handle: u32,
    attributes: *mut MemAttributes,
) -> Return {
    answer(|| {
        let out = some(attributes)?;
        let own = NICS.find(nic)?.nic.query_memory(address as u64, MemHandle(handle))?;
        let (rdma_write, rdma_read) = (c_int::from(own.rdma_write), c_int::from(own.rdma_read));
        write(out, MemAttributes { ptag: ptag_handle(own.ptag), rdma_write, rdma_read });
        Ok(Code::Success)
    })
}

/// Extension: memory of the library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtAllocMem(
    nic: Handle,
    length: c_ulong,
    attributes: *const MemAttributes,
    address: *mut *mut c_void,
    out: *mut u32,
) -> Return {
    answer(|| {
        let (entry, address, out) = (NICS.find(nic)?, some(address)?, some(out)?);
        let buffer = entry.nic.allocate(length as usize, &attributes_of(attributes)?)?;
        let base: NonNull<u8> = buffer.base();
        let handle = buffer.handle().0;
        entry.buffers.lock().expect("no panic with buffers").insert(handle, buffer);
        write(address, base.as_ptr().cast());
        write(out, handle);
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipExtFreeMem(nic: Handle, address: *mut c_void, handle: u32) -> Return {
    answer(|| {
        let entry = NICS.find(nic)?;
        let mut buffers = entry.buffers.lock().expect("no panic with buffers");
        let known = buffers.get(&handle).filter(|buffer| buffer.address() == address as u64);
        known.ok_or(Error::Invalid("memory that was not allocated here"))?;
        entry.nic.deregister(address as u64, MemHandle(handle))?;
        buffers.remove(&handle);
        Ok(Code::Success)
    })
}

fn attributes_of(attributes: *const MemAttributes) -> Result<sidestep_vi::MemAttributes> {
    let asked = read(attributes)?;
    Ok(sidestep_vi::MemAttributes {
        ptag: ptag(asked.ptag)?,
        rdma_write: asked.rdma_write != 0,
        rdma_read: asked.rdma_read != 0,
    })
}
