//! The types of `vipl.h`.

use std::ffi::{c_char, c_int, c_ulong, c_ushort, c_void};

/// A handle of any kind but memory.
pub type Handle = *mut c_void;
/// `VIP_RETURN`.
pub type Return = u32;

/// `VIP_NET_ADDRESS`; the bytes of host and discriminator follow.
#[repr(C)]
pub struct NetAddress {
    pub host_len: u16,
    pub discriminator_len: u16,
    pub bytes: [u8; 1],
}

/// `VIP_CONTROL_SEGMENT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ControlSegment {
    pub next: u64,
    pub next_handle: u32,
    pub segments: u16,
    pub control: u16,
    pub reserved: u32,
    pub immediate: u32,
    pub length: u32,
    pub status: u32,
}

/// `VIP_DATA_SEGMENT`, and `VIP_ADDRESS_SEGMENT` with the length reserved.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DataSegment {
    pub address: u64,
    pub handle: u32,
    pub length: u32,
}

/// `VIP_DESCRIPTOR`, whose segments may go on in memory.
#[repr(C)]
pub struct Descriptor {
    pub control: ControlSegment,
    pub segments: [DataSegment; 2],
}

const _: () = assert!(size_of::<ControlSegment>() == 32 && size_of::<DataSegment>() == 16);
const _: () = assert!(size_of::<Descriptor>() == 64 && std::mem::offset_of!(Descriptor, segments) == 32);
const _: () = assert!(std::mem::offset_of!(ControlSegment, status) == 28);
const _: () = assert!(std::mem::offset_of!(NetAddress, bytes) == 4);

/// `VIP_NIC_ATTRIBUTES`.
#[repr(C)]
pub struct NicAttributes {
    pub name: [c_char; 64],
    pub hardware_version: c_ulong,
    pub provider_version: c_ulong,
    pub address_len: u16,
    pub address: *const u8,
    pub thread_safe: c_int,
    pub max_discriminator: u16,
    pub max_register_bytes: c_ulong,
    pub max_register_regions: c_ulong,
    pub max_register_block: c_ulong,
    pub max_vi: c_ulong,
    pub max_descriptors: c_ulong,
    pub max_segments: c_ulong,
    pub max_cq: c_ulong,
    pub max_cq_entries: c_ulong,
    pub max_transfer: c_ulong,
    pub native_mtu: c_ulong,
    pub max_ptags: c_ulong,
    pub reliability: c_ushort,
    pub rdma_read: c_ushort,
}

// As in the published header: old programs have no more room than this.
const _: () = assert!(size_of::<NicAttributes>() == 200);
const _: () = assert!(std::mem::offset_of!(NicAttributes, hardware_version) == 64);
const _: () = assert!(std::mem::offset_of!(NicAttributes, address_len) == 80);
const _: () = assert!(std::mem::offset_of!(NicAttributes, address) == 88);
const _: () = assert!(std::mem::offset_of!(NicAttributes, thread_safe) == 96);
const _: () = assert!(std::mem::offset_of!(NicAttributes, max_discriminator) == 100);
const _: () = assert!(std::mem::offset_of!(NicAttributes, max_register_bytes) == 104);
const _: () = assert!(std::mem::offset_of!(NicAttributes, max_ptags) == 184);
const _: () = assert!(std::mem::offset_of!(NicAttributes, reliability) == 192);
const _: () = assert!(std::mem::offset_of!(NicAttributes, rdma_read) == 194);

/// `VIP_VI_ATTRIBUTES`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ViAttributes {
    pub reliability: c_ushort,
    pub max_transfer: c_ulong,
    pub qos: *mut c_void,
    pub ptag: Handle,
    pub rdma_write: c_int,
    pub rdma_read: c_int,
}

/// `VIP_MEM_ATTRIBUTES`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemAttributes {
    pub ptag: Handle,
    pub rdma_write: c_int,
    pub rdma_read: c_int,
}

/// `VIP_ERROR_DESCRIPTOR`.
#[repr(C)]
pub struct ErrorDescriptor {
    pub nic: Handle,
    pub vi: Handle,
    pub cq: Handle,
    pub descriptor: *mut Descriptor,
    pub op_code: c_ulong,
    pub resource: u32,
    pub error: u32,
}

/// `VIP_AUTODISCOVERY_LIST`.
#[repr(C)]
pub struct AutodiscoveryList {
    pub hops: c_ulong,
    pub addresses: *mut *mut NetAddress,
    pub count: c_ulong,
}

/// `VIP_NOTIFY_HANDLER`.
pub type NotifyHandler = unsafe extern "C" fn(*mut c_void, Handle, Handle, *mut Descriptor);
/// `VIP_CQ_NOTIFY_HANDLER`.
pub type CqNotifyHandler = unsafe extern "C" fn(*mut c_void, Handle, Handle, c_int);
/// `VIP_ERROR_HANDLER`.
pub type ErrorHandler = unsafe extern "C" fn(*mut c_void, *mut ErrorDescriptor);
