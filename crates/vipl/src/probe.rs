//! The functions of the library as C calls them, for measurements: two VIs of one process, connected.

use std::{
    ffi::{CStr, c_void},
    ptr, thread,
};

use sidestep_vi::{Code, Error, Result};

use crate::{
    connect::{VipConnectAccept, VipConnectRequest, VipConnectWait},
    memory::{VipCreatePtag, VipRegisterMem},
    nic::{VipCloseNic, VipOpenNic},
    post::{VipPostRecv, VipPostSend, VipRecvDone, VipSendDone},
    types::{Descriptor, Handle, MemAttributes, NetAddress, Return, ViAttributes},
    vi::VipCreateVi,
};

/// Two VIs, and descriptors to use them with.
pub struct Probe {
    sides: [Side; 2],
    /// Registered; freed after the NICs are closed.
    _room: Box<Room>,
}

#[derive(Clone, Copy)]
struct Side {
    nic: usize,
    vi: usize,
    memory: u32,
    descriptors: usize,
    data: usize,
}

#[repr(C, align(64))]
struct Room {
    descriptors: [[[u8; 64]; Probe::BATCH]; 2],
    data: [[u8; 64]; 2],
}

#[repr(C)]
struct Address {
    head: [u16; 2],
    host: [u8; 4],
    discriminator: [u8; 64],
}

impl Probe {
    /// Descriptors a side.
    pub const BATCH: usize = 64;

    /// Connects two VIs at a point that nobody else uses.
    pub fn new(point: &str) -> Result<Probe> {
        Self::on(c"nic0", point)
    }

    /// The same without thread safety: the NIC of the first side belongs to the thread that calls this.
    pub fn single(point: &str) -> Result<Probe> {
        Self::on(c"nic0,single", point)
    }

    fn on(device: &CStr, point: &str) -> Result<Probe> {
        let mut room = Box::new(Room { descriptors: [[[0; 64]; Probe::BATCH]; 2], data: [[0; 64]; 2] });
        let sides = [Side::new(&mut room, 0, device)?, Side::new(&mut room, 1, c"nic0")?];
        let probe = Probe { sides, _room: room };
        let address = Address::of(point);
        let accept = thread::spawn({
            let (address, side) = (address.clone(), sides[1]);
            move || side.accept(&address)
        });
        let asked = sides[0].request(&address);
        accept.join().map_err(|_| Error::TimedOut)??;
        asked?;
        Ok(probe)
    }

    /// `VipRecvDone` (0) and `VipSendDone` (1) of the first side: whether there was one.
    #[inline]
    pub fn done(&self, send: bool) -> bool {
        let mut out = ptr::null_mut();
        let vi = ptr::without_provenance_mut(self.sides[0].vi);
        let call = if send { VipSendDone } else { VipRecvDone };
        // SAFETY: C1: `out` is ours.
        let code = unsafe { call(vi, &mut out) };
        code == Code::Success as Return
    }

    /// `VipPostRecv` of the first side, with descriptor `index`.
    #[inline]
    pub fn post_receive(&self, index: usize) -> bool {
        self.sides[0].post(index, 4, true)
    }

    /// `VipPostSend` of either side, with descriptor `index`.
    #[inline]
    pub fn post_send(&self, side: usize, index: usize) -> bool {
        self.sides[side % 2].post(index, 4, false)
    }

    /// Takes what is done at the second side.
    pub fn settle(&self) {
        let (mut out, vi) = (ptr::null_mut(), ptr::without_provenance_mut(self.sides[1].vi));
        // SAFETY: C1: `out` is ours.
        while unsafe { VipSendDone(vi, &mut out) } == Code::Success as Return {}
        // SAFETY: as above.
        while unsafe { VipRecvDone(vi, &mut out) } == Code::Success as Return {}
    }

    /// `VipPostRecv` of the second side, with descriptor `index`.
    pub fn post_receive_there(&self, index: usize) -> bool {
        self.sides[1].post(index, 4, true)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        for side in self.sides {
            // SAFETY: C1: a handle of ours.
            unsafe { VipCloseNic(ptr::without_provenance_mut(side.nic)) };
        }
    }
}

impl Side {
    fn new(room: &mut Room, index: usize, device: &CStr) -> Result<Side> {
        let (mut nic, mut ptag, mut vi, mut memory) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0);
        let base: *mut Room = room;
        // SAFETY: C1: everything passed is ours and lives.
        check(unsafe { VipOpenNic(device.as_ptr(), &mut nic) })?;
        // SAFETY: as above.
        check(unsafe { VipCreatePtag(nic, &mut ptag) })?;
        let access = MemAttributes { ptag, rdma_write: 0, rdma_read: 0 };
        // SAFETY: as above; C3: the room is freed after the NIC is closed.
        check(unsafe { VipRegisterMem(nic, base.cast(), size_of::<Room>() as _, &access, &mut memory) })?;
        let attributes =
            ViAttributes { reliability: 2, max_transfer: 0, qos: ptr::null_mut(), ptag, rdma_write: 0, rdma_read: 0 };
        // SAFETY: as above.
        check(unsafe { VipCreateVi(nic, &attributes, ptr::null_mut(), ptr::null_mut(), &mut vi) })?;
        Ok(Side {
            nic: nic as usize,
            vi: vi as usize,
            memory,
            descriptors: ptr::from_mut(&mut room.descriptors[index]).expose_provenance(),
            data: ptr::from_mut(&mut room.data[index]).expose_provenance(),
        })
    }

    fn accept(self, address: &Address) -> Result<()> {
        let (nic, null) = (ptr::without_provenance_mut(self.nic), ptr::null_mut::<c_void>());
        let mut connection: Handle = null;
        // SAFETY: C1: everything passed is ours and lives.
        check(unsafe { VipConnectWait(nic, address.net(), 10_000, null.cast(), null.cast(), &mut connection) })?;
        // SAFETY: as above.
        check(unsafe { VipConnectAccept(connection, ptr::without_provenance_mut(self.vi)) })
    }

    fn request(self, address: &Address) -> Result<()> {
        let vi = ptr::without_provenance_mut(self.vi);
        // SAFETY: C1: everything passed is ours and lives.
        check(unsafe { VipConnectRequest(vi, address.net(), address.net(), 10_000, ptr::null_mut()) })
    }

    #[inline]
    fn post(&self, index: usize, len: u32, receive: bool) -> bool {
        let base: *mut Descriptor = ptr::with_exposed_provenance_mut(self.descriptors);
        // SAFETY: C2: the descriptor is one of the room's.
        let descriptor = unsafe { base.add(index % Probe::BATCH) };
        // SAFETY: as above; it is not posted.
        let place = unsafe { &mut *descriptor };
        (place.control.segments, place.control.control) = (1, 0);
        place.segments[0].address = self.data as u64;
        (place.segments[0].handle, place.segments[0].length) = (self.memory, len);
        let vi = ptr::without_provenance_mut(self.vi);
        let call = if receive { VipPostRecv } else { VipPostSend };
        // SAFETY: C2: it stays valid until it is taken.
        let code = unsafe { call(vi, descriptor, self.memory) };
        code == Code::Success as Return
    }
}

impl Address {
    fn of(point: &str) -> Address {
        let mut discriminator = [0; 64];
        let len = point.len().min(64);
        discriminator[..len].copy_from_slice(&point.as_bytes()[..len]);
        Address { head: [4, len as u16], host: [127, 0, 0, 1], discriminator }
    }

    fn net(&self) -> *const NetAddress {
        ptr::from_ref(self).cast()
    }
}

impl Clone for Address {
    fn clone(&self) -> Address {
        Address { head: self.head, host: self.host, discriminator: self.discriminator }
    }
}

fn check(code: Return) -> Result<()> {
    if code == Code::Success as Return { Ok(()) } else { Err(Error::Invalid("what the probe passed")) }
}
