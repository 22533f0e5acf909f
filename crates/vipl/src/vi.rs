//! VIs.

use std::{ffi::c_int, sync::Arc};

use sidestep_vi::{Code, Error, FlowControl, Reliability, Result, ViState};

use crate::{
    handles::{self, CQS, NICS, NicEntry, VIS, ViEntry, as_handle, ptag, ptag_handle, with_vi},
    pointer::{answer, read, some, write, write_if},
    post,
    types::{Handle, Return, ViAttributes},
};

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn VipCreateVi(
    nic: Handle,
    attributes: *const ViAttributes,
    send_cq: Handle,
    receive_cq: Handle,
    out: *mut Handle,
) -> Return {
    answer(|| {
        let (entry, out) = (NICS.find(nic)?, some(out)?);
        let (attributes, flow) = attributes_of(&entry, attributes)?;
        let cq = |handle: Handle| -> Result<_> {
            if handle.is_null() {
                return Ok(None);
            }
            let cq = CQS.find(handle)?;
            let same = cq.nic.handle == entry.handle;
            if same { Ok(Some(cq)) } else { Err(Error::Invalid("a completion queue of another NIC")) }
        };
        let (send, receive) = (cq(send_cq)?, cq(receive_cq)?);
        let (send, receive) = (send.as_ref().map(|cq| &cq.cq), receive.as_ref().map(|cq| &cq.cq));
        let vi = entry.nic.create_vi(&attributes, send, receive)?;
        vi.set_sink(post::completed);
        vi.set_flow_control(flow);
        let handle = VIS.insert_with(|handle| {
            vi.set_tag(handle as u64);
            ViEntry { vi, nic: entry.clone(), handle }
        })?;
        write(out, as_handle(handle));
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipDestroyVi(vi: Handle) -> Return {
    answer(|| {
        {
            let entry = VIS.find(vi)?;
            let state = entry.vi.state();
            if matches!(state, ViState::Connected | ViState::ConnectPending) {
                return Err(Error::State { is: state });
            }
            if entry.vi.queues_empty() != (true, true) {
                return Err(Error::InUse("the VI"));
            }
        }
        handles::forget_recent();
        // Another thread may remember the entry for a while.
        VIS.remove(vi)?.vi.retire();
        Ok(Code::Success)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipQueryVi(
    vi: Handle,
    state: *mut u32,
    attributes: *mut ViAttributes,
    sends_empty: *mut c_int,
    receives_empty: *mut c_int,
) -> Return {
    answer(|| {
        with_vi(vi, |entry| {
            write_if(state, entry.vi.state() as u32);
            let own = entry.vi.attributes();
            write_if(
                attributes,
                ViAttributes {
                    reliability: own.reliability as u16,
                    max_transfer: own.max_transfer as _,
                    qos: std::ptr::null_mut(),
                    ptag: ptag_handle(own.ptag),
                    rdma_write: c_int::from(own.rdma_write),
                    rdma_read: c_int::from(own.rdma_read),
                },
            );
            let (sends, receives) = entry.vi.queues_empty();
            write_if(sends_empty, c_int::from(sends));
            write_if(receives_empty, c_int::from(receives));
            Code::Success
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipSetViAttributes(vi: Handle, attributes: *const ViAttributes) -> Return {
    answer(|| {
        let entry = VIS.find(vi)?;
        let (attributes, flow) = attributes_of(&entry.nic, attributes)?;
        entry.vi.set_attributes(&attributes)?;
        entry.vi.set_flow_control(flow);
        Ok(Code::Success)
    })
}

/// Beside the level (`VIP_SERVICE_DFC`): sends that find no receive wait for one.
const DEFERRED: u16 = 1 << 15;

/// The attributes that C asks for. A largest transfer of zero is the largest there is.
fn attributes_of(
    nic: &Arc<NicEntry>,
    attributes: *const ViAttributes,
) -> Result<(sidestep_vi::ViAttributes, FlowControl)> {
    let asked = read(attributes)?;
    let flow = match asked.reliability & DEFERRED {
        0 => FlowControl::Compliant,
        _ => FlowControl::Asynchronous,
    };
    if !asked.qos.is_null() {
        return Err(Error::Qos);
    }
    let most = nic.nic.attributes().max_transfer;
    let attributes = sidestep_vi::ViAttributes {
        reliability: Reliability::from_bits(asked.reliability & !DEFERRED)?,
        max_transfer: if asked.max_transfer == 0 { most } else { asked.max_transfer as usize },
        ptag: ptag(asked.ptag)?,
        rdma_write: asked.rdma_write != 0,
        rdma_read: asked.rdma_read != 0,
    };
    Ok((attributes, flow))
}
