//! The nodes of the fabric that a broker has, and its NIC: each made when it is first needed.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sidestep_fabric::Node;
use sidestep_fabric::link::LinkOptions;

use super::{Card, io_error};

/// Kept apart, since a node that has peers on other hosts keeps a thread that polls for them, which the others would meet.
#[derive(Default)]
pub(crate) struct Links(Mutex<Made>);

#[derive(Default)]
struct Made {
    near: Option<Node>,
    far: Option<Node>,
    card: Option<Card>,
}

/// What names of channels on this host begin with, and those of channels between hosts.
const NEAR: &str = "shm";
const FAR: &str = "iwarp";

/// Whether channels of this name may lead to other hosts.
pub(crate) fn is_far(name: &str) -> bool {
    scheme(name) == FAR
}

fn scheme(name: &str) -> &str {
    name.split_once(':').map_or("", |(scheme, _)| scheme)
}

impl Links {
    /// The node that channels of this name belong to.
    pub(crate) fn node(&self, name: &str) -> io::Result<Node> {
        match scheme(name) {
            NEAR => self.made().near(),
            FAR => self.made().far(),
            _ => {
                let why = format!("{name:?} does not begin with {NEAR}: or {FAR}:");
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
        }
    }

    /// The NIC, which is on the node of this host.
    pub(crate) fn card(&self) -> io::Result<Card> {
        let mut made = self.made();
        if made.card.is_none() {
            made.card = Some(Card::new(&made.near()?)?);
        }
        made.card.clone().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Gives all of them up: they go with their last connection, and peers learn that nobody is there.
    pub(crate) fn close(&self) {
        let made = std::mem::take(&mut *self.made());
        drop(made);
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Made {
    fn near(&mut self) -> io::Result<Node> {
        open(&mut self.near, NEAR)
    }

    fn far(&mut self) -> io::Result<Node> {
        open(&mut self.far, FAR)
    }
}

fn open(node: &mut Option<Node>, scheme: &str) -> io::Result<Node> {
    match node {
        Some(node) => Ok(node.clone()),
        None => Ok(node.insert(Node::open(&[scheme], &LinkOptions::default()).map_err(io_error)?).clone()),
    }
}
