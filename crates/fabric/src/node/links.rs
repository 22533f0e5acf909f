//! The links of a node: found by the scheme of a name, or by the index that the id of a peer carries.

use std::{iter, sync::Arc};

use sidestep_shm::doorbell::Sleeper;
use sidestep_sys::clock;

use super::sleeping::FULL_LINK_NS;
use crate::{
    error::{Error, Result},
    link::{AnyLink, Capabilities, Link, Target},
    peer::{Peer, PeerId},
    protocol::MAX_NAME,
};

/// The links of a node, at least one.
#[derive(Debug)]
pub(crate) struct Links {
    /// Most nodes have no other, so it lies in place.
    first: Attached,
    others: Vec<Attached>,
    /// Whether some link maps memory.
    pub(crate) maps: bool,
    /// Whether peers of some link wait for polls.
    pub(crate) served: bool,
}

/// A link of a node, and what it can do.
#[derive(Debug)]
pub(crate) struct Attached {
    link: AnyLink,
    pub(crate) index: LinkIndex,
    pub(crate) capabilities: Capabilities,
}

/// Which link of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct LinkIndex(u8);

impl LinkIndex {
    pub(crate) fn number(self) -> u8 {
        self.0
    }
}

/// What a poll looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// What memory tells, and on links where it tells nothing the peer that was heard last.
    Memory,
    /// That, and everything on the links whose peers wait for polls.
    Served,
    /// Everything.
    Kernel,
}

/// A node has few links: there are few kinds.
const MAX_LINKS: usize = 8;

impl Links {
    pub(crate) fn new(links: Vec<AnyLink>) -> Result<Links> {
        if links.is_empty() || links.len() > MAX_LINKS {
            return Err(Error::Size { what: "the number of links", must: "1 to 8", value: links.len() });
        }
        let mut all: Vec<Attached> = Vec::with_capacity(links.len());
        for link in links {
            let (capabilities, index) = (link.as_link().capabilities(), LinkIndex(all.len() as u8));
            if all.iter().any(|other| other.capabilities.scheme == capabilities.scheme) {
                let must = "the scheme of one link of a node, not of two";
                return Err(Error::Name { name: capabilities.scheme.to_string(), must });
            }
            all.push(Attached { link, index, capabilities });
        }
        let maps = all.iter().any(|attached| attached.as_link().maps().is_some());
        let served = all.iter().any(|attached| attached.capabilities.served);
        let others = all.split_off(1);
        let first = all.pop().expect("there is one, as checked above");
        Ok(Links { first, others, maps, served })
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Attached> {
        iter::once(&self.first).chain(&self.others)
    }

    /// The link of an index. One that came from another node means the first link.
    #[inline]
    pub(crate) fn at(&self, index: LinkIndex) -> &Attached {
        match usize::from(index.0) {
            0 => &self.first,
            index => self.others.get(index - 1).unwrap_or(&self.first),
        }
    }

    /// A peer.
    #[inline]
    pub(crate) fn peer(&self, id: PeerId) -> Peer<'_> {
        Peer::new(self.at(id.link()), id.number())
    }

    /// The link of a scheme.
    pub(crate) fn of_scheme(&self, scheme: &str) -> Result<&Attached> {
        self.iter().find(|attached| attached.capabilities.scheme == scheme).ok_or_else(|| {
            let known: Vec<_> = self.iter().map(|attached| attached.capabilities.scheme).collect();
            Error::Scheme { scheme: scheme.into(), known: known.join(", ").into() }
        })
    }

    /// The link that a name is of, and the part of the name behind the scheme.
    pub(crate) fn named<'n>(&self, name: &'n str) -> Result<(&Attached, &'n str)> {
        let bad = || Error::Name {
            name: name.to_string(),
            must: "SCHEME:NAME, with the scheme of a link and 1 to 64 bytes of name, as in shm:echo",
        };
        let (scheme, local) = name.split_once(':').ok_or_else(bad)?;
        let attached = self.of_scheme(scheme)?;
        if local.is_empty() || local.len() > MAX_NAME || local.contains('\0') {
            return Err(bad());
        }
        Ok((attached, local))
    }

    /// Collects what has arrived on all links, each into the target that `target` makes for it.
    #[inline]
    pub(crate) fn poll<T: Target>(&self, look: Look, target: impl Fn(LinkIndex) -> T) -> bool {
        let mut any = false;
        for attached in self.iter() {
            let kernel = look == Look::Kernel || (look == Look::Served && attached.capabilities.served);
            any |= attached.as_link().poll(&target(attached.index), kernel);
        }
        any
    }

    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.iter().any(|attached| attached.as_link().has_news())
    }

    /// When to poll again at the latest: while a link waits for room underneath, of which it is not told.
    pub(crate) fn wait_deadline(&self) -> Option<u64> {
        let is_full = self.iter().any(|attached| attached.as_link().is_full());
        is_full.then(|| clock::now() + FULL_LINK_NS)
    }

    pub(crate) fn shares_core(&self, core: u32) -> bool {
        self.iter().any(|attached| attached.as_link().shares_core(core))
    }

    pub(crate) fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        self.iter().try_for_each(|attached| attached.as_link().watch(sleeper))
    }

    pub(crate) fn set_sleeping(&self, sleeping: bool) {
        self.iter().for_each(|attached| attached.as_link().set_sleeping(sleeping));
    }

    /// Does at once what the links put off for a moment.
    #[inline]
    pub(crate) fn push(&self) {
        self.iter().for_each(|attached| attached.as_link().push());
    }

    /// See [`Link::attend`]. `true` if it holds for some link from now on.
    pub(crate) fn attend(&self) -> bool {
        self.iter().fold(false, |any, attached| attached.as_link().attend() | any)
    }

    /// The links whose peers wait for polls.
    pub(crate) fn served(&self) -> impl Iterator<Item = &dyn Link> {
        self.iter().filter(|attached| attached.capabilities.served).map(Attached::as_link)
    }
}

impl Attached {
    #[inline]
    pub(crate) fn as_link(&self) -> &dyn Link {
        self.link.as_link()
    }
}
