//! A NIC: where memory is registered and VIs are made.

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use sidestep_fabric::{EventQueue, LinkOptions, Listener, Node, link::Capabilities};
use sidestep_shm::Memory;
use sidestep_sys::{
    lock::{Guard, Lock, Mutex, Threads},
    room::Room,
    slab::Slab,
};

use crate::{
    attributes::{
        MAX_CQ_ENTRIES, MAX_CQS, MAX_DESCRIPTORS, MAX_DISCRIMINATOR, MAX_PTAGS, MAX_REGION_BYTES, MAX_REGIONS,
        MAX_SEGMENTS, MAX_TRANSFER, MAX_VIS, MemAttributes, ViAttributes,
    },
    cq::Cq,
    device::Device,
    error::{Error, Result},
    memory::{Buffer, MemHandle, MemoryTable, Ptag},
    names,
    service::{ErrorHandler, Service},
    trunk::Trunks,
    vi::{Vi, ViCore},
};

/// A process's access to the provider. Clones are the same NIC.
#[derive(Debug, Clone)]
pub struct Nic {
    pub(crate) core: Arc<NicCore>,
}

#[derive(Debug)]
pub(crate) struct NicCore {
    pub(crate) node: Node,
    /// What the link can do that carries its connections.
    pub(crate) link: Capabilities,
    name: String,
    address: Vec<u8>,
    pub(crate) memory: MemoryTable,
    /// Who may call.
    pub(crate) threads: Threads,
    vis: Lock<Slab<Weak<ViCore>>>,
    /// Where the next VIs will be: beside each other, since programs with many use them in turn.
    rooms: Mutex<Vec<Room<ViCore>>>,
    cqs: AtomicUsize,
    pub(crate) listeners: Mutex<HashMap<String, Arc<Listener>>>,
    pub(crate) service: Service,
    /// What carries the connections.
    pub(crate) trunks: Trunks,
    /// Where the ends of connections are reported, by VI.
    pub(crate) endings: EventQueue,
}

/// VIs that are given room together.
const ROW: usize = 32;

/// What a NIC can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NicAttributes {
    /// The name it was opened with.
    pub name: String,
    /// Its address.
    pub address: Vec<u8>,
    /// Longest discriminator.
    pub max_discriminator: usize,
    /// Bytes that can be registered.
    pub max_register_bytes: usize,
    /// Registrations.
    pub max_register_regions: usize,
    /// Bytes of one registration.
    pub max_register_block: usize,
    /// VIs.
    pub max_vis: usize,
    /// Descriptors of one queue.
    pub max_descriptors: usize,
    /// Segments of one descriptor.
    pub max_segments: usize,
    /// Completion queues.
    pub max_cqs: usize,
    /// Entries of one completion queue.
    pub max_cq_entries: usize,
    /// The largest message.
    pub max_transfer: usize,
    /// Protection tags.
    pub max_ptags: usize,
}

impl Nic {
    /// Opens the NIC of this host under one of its names: on shared memory (`nic0`, and what else programs call their first
    /// device), or on iWARP over TCP (`iwarp`), which reaches other hosts too. With `,single` behind the name it belongs to
    /// the thread that opens it: no lock takes an atomic step, there is no service thread, and a call of another thread panics.
    pub fn open(name: &str) -> Result<Nic> {
        let Device { scheme, single } = Device::named(name)?;
        let node = Node::open(&[scheme], &LinkOptions::default())?;
        Self::within(node, scheme, name, if single { Threads::this() } else { Threads::ANY })
    }

    /// A NIC on a given node of the fabric, on its link of this scheme.
    pub fn on(node: Node, scheme: &str, name: &str) -> Result<Nic> {
        Self::within(node, scheme, name, Threads::ANY)
    }

    fn within(node: Node, scheme: &str, name: &str, threads: Threads) -> Result<Nic> {
        let link = node.capabilities(scheme)?;
        let endings = EventQueue::new(&node);
        let core = NicCore {
            node,
            link,
            name: name.to_string(),
            address: names::own_address(),
            memory: MemoryTable::new(),
            threads,
            vis: Lock::within(threads, Slab::new(MAX_VIS)),
            rooms: Mutex::default(),
            cqs: AtomicUsize::new(0),
            listeners: Mutex::default(),
            service: Service::default(),
            trunks: Trunks::new(threads),
            endings,
        };
        Ok(Nic { core: Arc::new(core) })
    }

    /// The node of the fabric underneath.
    pub fn node(&self) -> &Node {
        &self.core.node
    }

    /// Whether its peers may be on other hosts, and their memory is not mapped.
    pub fn is_distant(&self) -> bool {
        self.core.link.distant
    }

    /// The scheme of the link that carries its connections.
    pub fn scheme(&self) -> &'static str {
        self.core.link.scheme
    }

    /// Whether peers wait for polls here, and their memory is not mapped.
    pub fn is_served(&self) -> bool {
        self.core.link.served
    }

    /// What it can do.
    pub fn attributes(&self) -> NicAttributes {
        NicAttributes {
            name: self.core.name.clone(),
            address: self.core.address.clone(),
            max_discriminator: MAX_DISCRIMINATOR,
            max_register_bytes: MAX_REGION_BYTES,
            max_register_regions: MAX_REGIONS,
            max_register_block: MAX_REGION_BYTES,
            max_vis: MAX_VIS,
            max_descriptors: MAX_DESCRIPTORS,
            max_segments: MAX_SEGMENTS,
            max_cqs: MAX_CQS,
            max_cq_entries: MAX_CQ_ENTRIES,
            max_transfer: MAX_TRANSFER,
            max_ptags: MAX_PTAGS,
        }
    }

    /// Its own address.
    pub fn address(&self) -> &[u8] {
        &self.core.address
    }

    /// Makes a protection tag.
    pub fn create_ptag(&self) -> Result<Ptag> {
        self.core.memory.create_ptag()
    }

    /// Gives a protection tag back that nothing uses.
    pub fn destroy_ptag(&self, ptag: Ptag) -> Result<()> {
        self.core.memory.destroy_ptag(ptag)
    }

    /// Allocates memory and registers it. Peers place large messages straight into it: a peer to which a receive in it
    /// was announced can write all of it until it is deregistered.
    pub fn allocate(&self, len: usize, attributes: &MemAttributes) -> Result<Buffer> {
        if len == 0 || len > MAX_REGION_BYTES {
            return Err(Error::Invalid("an allocation of this length"));
        }
        self.core.memory.allocate(&self.core.node, len, attributes)
    }

    /// Registers memory of the caller; the `unsafe` step is making the `Memory`. Bookkeeping only.
    pub fn register(&self, memory: Memory, attributes: &MemAttributes) -> Result<MemHandle> {
        self.core.memory.register(&self.core.node, memory, attributes)
    }

    /// Ends a registration that begins at `address`.
    pub fn deregister(&self, address: u64, handle: MemHandle) -> Result<()> {
        let withdrawn = self.core.memory.deregister(address, handle)?;
        // The program may free it afterwards.
        self.core.trunks.withdraw(withdrawn);
        Ok(())
    }

    /// Attributes of registered memory.
    pub fn query_memory(&self, address: u64, handle: MemHandle) -> Result<MemAttributes> {
        self.core.memory.query(address, handle)
    }

    /// Changes the attributes of registered memory.
    pub fn set_memory(&self, address: u64, handle: MemHandle, attributes: &MemAttributes) -> Result<()> {
        let withdrawn = self.core.memory.set(address, handle, attributes)?;
        self.core.trunks.withdraw(withdrawn);
        Ok(())
    }

    /// Whether a registration, usable with this tag, covers these bytes.
    pub fn covers(&self, address: u64, len: usize, handle: MemHandle, ptag: Ptag) -> bool {
        let found = self.core.memory.find(handle);
        found.is_some_and(|entry| entry.ptag() == ptag && entry.contains(address, len as u64))
    }

    /// Makes a VI, with a completion queue for either queue if wanted.
    pub fn create_vi(&self, attributes: &ViAttributes, send_cq: Option<&Cq>, receive_cq: Option<&Cq>) -> Result<Vi> {
        attributes.check()?;
        self.core.memory.use_ptag(attributes.ptag, true)?;
        let (room, mut made) = (self.core.room(), None);
        self.core.vis().insert_with(|id| {
            let core = room.fill(ViCore::new(&self.core, id, attributes, [send_cq, receive_cq]));
            let own = Arc::downgrade(&core);
            core.set_own(own.clone());
            made = Some(core);
            own
        });
        match made {
            Some(core) => Ok(Vi::first(core)),
            None => {
                self.core.memory.use_ptag(attributes.ptag, false)?;
                Err(Error::Limit { what: "VIs", limit: MAX_VIS })
            }
        }
    }

    /// A VI by its number.
    pub fn vi(&self, id: u32) -> Option<Vi> {
        self.core.vi(id)
    }

    /// Makes a completion queue.
    pub fn create_cq(&self, entries: usize) -> Result<Cq> {
        let cq = Cq::new(&self.core, entries)?;
        self.core.cqs.fetch_add(1, Ordering::AcqRel);
        Ok(cq)
    }

    /// Hears of asynchronous errors, from the service thread.
    pub fn set_error_handler(&self, handler: Option<ErrorHandler>) -> Result<()> {
        if handler.is_some() {
            self.core.start_service()?;
        }
        self.core.service.set_handler(handler);
        Ok(())
    }

    /// Whether it belongs to one thread.
    pub fn is_single(&self) -> bool {
        self.core.threads != Threads::ANY
    }

    /// Starts the service thread: progress for programs that do not call, callbacks, errors.
    pub fn serve(&self) -> Result<()> {
        self.core.start_service()
    }

    /// Whether nothing of it is left.
    pub fn is_unused(&self) -> bool {
        self.core.memory.is_empty() && self.core.memory.no_ptags() && self.core.vis().is_empty()
    }
}

impl Drop for NicCore {
    /// Registrations go with the NIC, and their memory may be freed then.
    fn drop(&mut self) {
        self.trunks.withdraw_attached();
    }
}

impl NicCore {
    fn vis(&self) -> Guard<'_, Slab<Weak<ViCore>>> {
        self.vis.lock()
    }

    /// Room for a VI. A program with few VIs has room for few.
    fn room(&self) -> Room<ViCore> {
        let made = self.vis().len();
        let mut rooms = self.rooms.lock().expect("no panic with rooms");
        if rooms.is_empty() {
            rooms.extend(Room::row((made / 2).clamp(1, ROW)));
        }
        rooms.pop().expect("made above")
    }

    #[inline]
    pub(crate) fn vi(&self, id: u32) -> Option<Vi> {
        let core = self.vis().get(id)?.upgrade()?;
        Vi::another(core)
    }

    pub(crate) fn all_vis(&self) -> Vec<Vi> {
        let cores: Vec<_> = self.vis().iter().filter_map(Weak::upgrade).collect();
        cores.into_iter().filter_map(Vi::another).collect()
    }

    /// Lets the process see to other things, and to connections that have ended.
    #[cold]
    #[inline(never)]
    pub(crate) fn breathe(&self) {
        self.see_endings();
    }

    /// Ends VIs whose peers have closed or died.
    pub(crate) fn see_endings(&self) {
        let mut any = false;
        while let Some(event) = self.endings.poll() {
            any = true;
            // Not by a handle: the program's last one takes a VI out of use at once.
            let vi = self.vis().get(event.token as u32).and_then(Weak::upgrade);
            if let Some(vi) = vi {
                vi.see_end();
            }
        }
        if any {
            self.trunks.prune();
        }
        self.trunks.forget_departed(&self.node);
    }

    pub(crate) fn forget(&self, id: u32) {
        self.vis().remove(id);
    }

    /// The address as it is compared.
    pub(crate) fn address(&self) -> &[u8] {
        &self.address
    }
}
