//! Connections.

use std::{
    ffi::{c_int, c_ulong},
    sync::Mutex,
};

use sidestep_vi::{Code, Error, RemoteAttributes, Result};

use crate::{
    handles::{CONNECTIONS, ConnectionEntry, NICS, VIS, ViEntry, as_handle},
    pointer::{address, answer, deadline, some, write, write_address, write_if},
    types::{Handle, NetAddress, Return, ViAttributes},
};

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipConnectWait(
    nic: Handle,
    local: *const NetAddress,
    timeout: c_ulong,
    remote: *mut NetAddress,
    attributes: *mut ViAttributes,
    out: *mut Handle,
) -> Return {
    answer(|| {
        let (entry, out) = (NICS.find(nic)?, some(out)?);
        let request = entry.nic.connect_wait(&address(local)?, deadline(timeout))?;
        write_address(remote, request.remote());
        write_if(attributes, attributes_of(request.attributes()));
        let request = Mutex::new(Some(request));
        let handle = CONNECTIONS.insert_with(|_| ConnectionEntry { request, nic: entry.handle })?;
        write(out, as_handle(handle));
        Ok(Code::Success)
    })
}

/// If the two VIs do not agree, the connection handle stays.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipConnectAccept(connection: Handle, vi: Handle) -> Return {
    answer(|| {
        let (entry, vi) = (CONNECTIONS.find(connection)?, VIS.find(vi)?);
        if vi.nic.handle != entry.nic {
            return Err(Error::Invalid("a VI of another NIC"));
        }
        let mut request = entry.request.lock().unwrap_or_else(|poison| poison.into_inner());
        request.as_mut().ok_or(Error::Invalid("a connection handle"))?.accept(&vi.vi)?;
        *request = None;
        drop(request);
        CONNECTIONS.remove(connection)?;
        serve(&vi)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectReject(connection: Handle) -> Return {
    answer(|| {
        let entry = CONNECTIONS.remove(connection)?;
        let request = entry.request.lock().unwrap_or_else(|poison| poison.into_inner()).take();
        request.ok_or(Error::Invalid("a connection handle"))?.reject()?;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipConnectRequest(
    vi: Handle,
    local: *const NetAddress,
    remote: *const NetAddress,
    timeout: c_ulong,
    attributes: *mut ViAttributes,
) -> Return {
    answer(|| {
        let entry = VIS.find(vi)?;
        let theirs = entry.vi.connect(&address(local)?, &address(remote)?, deadline(timeout))?;
        write_if(attributes, attributes_of(theirs));
        serve(&entry)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipDisconnect(vi: Handle) -> Return {
    answer(|| {
        VIS.find(vi)?.vi.disconnect()?;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectPeerRequest(
    vi: Handle,
    local: *const NetAddress,
    remote: *const NetAddress,
    timeout: c_ulong,
) -> Return {
    answer(|| {
        let entry = VIS.find(vi)?;
        entry.vi.connect_peer(&address(local)?, &address(remote)?, deadline(timeout))?;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectPeerDone(vi: Handle, attributes: *mut ViAttributes) -> Return {
    answer(|| {
        let entry = VIS.find(vi)?;
        let Some(theirs) = entry.vi.poll_peer()? else { return Ok(Code::NotDone) };
        write_if(attributes, attributes_of(theirs));
        serve(&entry)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectPeerWait(vi: Handle, attributes: *mut ViAttributes) -> Return {
    answer(|| {
        let entry = VIS.find(vi)?;
        write_if(attributes, attributes_of(entry.vi.wait_peer()?));
        serve(&entry)
    })
}

/// From the first connection on, the program may look at memory without calling.
fn serve(entry: &ViEntry) -> Result<Code> {
    if !entry.nic.nic.is_single() {
        entry.nic.nic.serve()?;
    }
    Ok(Code::Success)
}

fn attributes_of(theirs: RemoteAttributes) -> ViAttributes {
    ViAttributes {
        reliability: theirs.reliability as u16,
        max_transfer: theirs.max_transfer as _,
        qos: std::ptr::null_mut(),
        ptag: std::ptr::null_mut(),
        rdma_write: c_int::from(theirs.rdma_write),
        rdma_read: c_int::from(theirs.rdma_read),
    }
}
