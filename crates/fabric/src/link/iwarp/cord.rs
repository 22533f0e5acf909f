//! Holds all streams of a link, for tests that cut them.

use std::{
    collections::BTreeMap,
    sync::{Arc, RwLock},
};

use super::session::Session;
use crate::link::PeerNumber;

/// All streams of a link.
#[derive(Debug)]
pub struct Cord {
    pub(super) sessions: Arc<RwLock<BTreeMap<PeerNumber, Arc<Session>>>>,
}

impl Cord {
    /// Ends every stream as the kernel does when a process dies.
    pub fn cut(&self) {
        self.sessions.read().expect("no panic in session table").values().for_each(|session| session.cut());
    }
}
