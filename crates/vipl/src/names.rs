//! Names, and what the system knows of itself.

use std::{
    ffi::{c_char, c_ulong, c_void},
    path::PathBuf,
};

use sidestep_vi::{Code, Error, NameService, NetAddress, Result};

use crate::{
    handles::{NICS, NicEntry},
    pointer::{address, answer, some, string, write, write_address},
    types::{self, AutodiscoveryList, Handle, Return},
};

/// The answer to an autodiscovery, which C may look at until the NIC is closed: the address of this host.
pub(crate) struct Discovery {
    /// A `VIP_NET_ADDRESS`: two lengths and up to 28 bytes.
    address: Box<[u16; 16]>,
    list: Box<[*mut types::NetAddress; 1]>,
}

// SAFETY: both boxes belong to it, and are only read after they were made.
unsafe impl Send for Discovery {}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipNSInit(nic: Handle, info: *mut c_void) -> Return {
    answer(|| {
        let entry = NICS.find(nic)?;
        let file = if info.is_null() { None } else { Some(PathBuf::from(string(info.cast())?)) };
        let service = NameService::new(file.as_deref())?;
        *entry.names.lock().expect("no panic with names") = Some(service);
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipNSShutdown(nic: Handle) -> Return {
    answer(|| {
        let entry = NICS.find(nic)?;
        service(&entry)?;
        *entry.names.lock().expect("no panic with names") = None;
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipNSGetHostByName(
    nic: Handle,
    name: *const c_char,
    out: *mut types::NetAddress,
    index: c_ulong,
) -> Return {
    answer(|| {
        let (entry, name) = (NICS.find(nic)?, string(name)?);
        some(out)?;
        let host = service(&entry)?.address_of(&name, index as usize)?;
        write_address(out, &NetAddress::new(&host, &[]));
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipNSGetHostByAddr(
    nic: Handle,
    of: *const types::NetAddress,
    name: *mut c_char,
    length: *mut c_ulong,
) -> Return {
    answer(|| {
        let (entry, name, length) = (NICS.find(nic)?, some(name)?, some(length)?);
        let found = service(&entry)?.name_of(&address(of)?.host)?;
        // SAFETY: C1.
        let room = unsafe { length.as_ptr().read_unaligned() } as usize;
        write(length, (found.len() + 1) as c_ulong);
        if room <= found.len() {
            return Err(Error::Limit { what: "bytes of a name", limit: room });
        }
        for (at, byte) in found.bytes().chain([0]).enumerate() {
            // SAFETY: C1: there is as much room as the caller says.
            let place = unsafe { name.as_ptr().add(at) };
            // SAFETY: as above.
            unsafe { place.write(byte as c_char) };
        }
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipQuerySystemManagementInfo(nic: Handle, info: c_ulong, out: *mut c_void) -> Return {
    answer(|| {
        let (entry, out) = (NICS.find(nic)?, some(out.cast::<AutodiscoveryList>())?);
        if info != 1 {
            return Err(Error::Invalid("a kind of information"));
        }
        let mut discovery = entry.discovery.lock().expect("no panic with names");
        let known = discovery.get_or_insert_with(|| Discovery::new(&entry.address));
        write(out, AutodiscoveryList { hops: 0, addresses: known.list.as_mut_ptr(), count: 1 });
        Ok(Code::Success)
    })
}

impl Discovery {
    fn new(host: &[u8]) -> Discovery {
        let mut address = Box::new([0u16; 16]);
        let pointer: *mut types::NetAddress = address.as_mut_ptr().cast();
        // The box has room for two lengths and 28 bytes, which is more than any host address has.
        write_address(pointer, &NetAddress::new(host, &[]));
        let list = Box::new([address.as_mut_ptr().cast()]);
        Discovery { address, list }
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        // Whoever kept the list sees an empty address rather than an old one.
        self.address.fill(0);
    }
}

fn service(entry: &NicEntry) -> Result<NameService> {
    let names = entry.names.lock().expect("no panic with names");
    names.clone().ok_or_else(|| Error::NameService("anything before VipNSInit".into()))
}
