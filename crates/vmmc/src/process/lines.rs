//! The ways of a card process to other cards, and to itself.

use std::collections::{BTreeMap, HashMap, VecDeque};

use sidestep_fabric::channel::Connecting;
use sidestep_fabric::{Channel, Error as FabricError, EventQueue, Node};

use super::words::Answer;
use super::{CARD, packet_queue};
use crate::error::{Error, Result};
use crate::id::{NodeId, ProcessId};

/// The ways to other cards.
pub(super) struct Lines {
    /// Where others find this card: on this host, and perhaps elsewhere.
    own: Vec<String>,
    node: Node,
    pub(super) channels: BTreeMap<NodeId, Channel>,
    by_name: HashMap<String, NodeId>,
    connecting: Vec<Opening>,
    /// Packets of this card to itself.
    pub(super) looped: VecDeque<Vec<u8>>,
    next: u16,
}

/// A way that is being made.
struct Opening {
    connecting: Connecting,
    name: String,
    /// Who asked for it, and under which number.
    waiting: Vec<(ProcessId, u64)>,
}

/// This card, as it knows itself.
pub(super) const OWN: NodeId = NodeId(0);

impl Lines {
    /// No ways, of the card that listens at an address, and perhaps at another place.
    pub(super) fn new(address: String, place: Option<&str>, node: Node) -> Lines {
        let own = [Some(address), place.map(str::to_owned)].into_iter().flatten().collect();
        let (by_name, connecting, looped) = (HashMap::new(), Vec::new(), VecDeque::new());
        Lines { own, node, channels: BTreeMap::new(), by_name, connecting, looped, next: 1 }
    }

    /// Where most others find this card.
    pub(super) fn own(&self) -> &str {
        self.own.last().map_or("", String::as_str)
    }

    /// Whether a way is being made.
    pub(super) fn is_connecting(&self) -> bool {
        !self.connecting.is_empty()
    }

    /// Whether packets to a node have a way.
    pub(super) fn leads_to(&self, node: NodeId) -> bool {
        node == OWN || self.channels.contains_key(&node)
    }

    /// Gives a way a number, which is not used again: what was sent by it must not go to another card.
    pub(super) fn add(&mut self, channel: Channel) -> Result<NodeId> {
        let node = NodeId(self.next);
        self.next = self.next.checked_add(1).ok_or(Error::Full {
            what: "the list of cards that this one has known",
            limit: usize::from(u16::MAX),
            remedy: "end its processes, so that the card starts anew",
        })?;
        self.channels.insert(node, channel);
        Ok(node)
    }

    pub(super) fn remove(&mut self, node: NodeId) {
        self.channels.remove(&node);
        self.by_name.retain(|_, own| *own != node);
    }

    /// The card of a name; `None` while it is being connected to.
    pub(super) fn find(&mut self, name: &str, process: ProcessId, request: u64) -> Result<Option<NodeId>> {
        if self.own.iter().any(|own| own == name) {
            return Ok(Some(OWN));
        }
        if let Some(node) = self.by_name.get(name) {
            return Ok(Some(*node));
        }
        if let Some(opening) = self.connecting.iter_mut().find(|opening| opening.name == name) {
            opening.waiting.push((process, request));
            return Ok(None);
        }
        let asked = Channel::begin_connect(&self.node, name, packet_queue(), &[CARD]);
        let connecting = asked.map_err(|error| match error {
            FabricError::Scheme { .. } => Error::NoWay { card: name.to_owned(), own: self.own().to_owned() },
            error => error.into(),
        })?;
        self.connecting.push(Opening { connecting, name: name.to_owned(), waiting: vec![(process, request)] });
        Ok(None)
    }

    /// Looks after connections that are being made; what is to be told.
    pub(super) fn connect(&mut self, queue: &EventQueue) -> Vec<(ProcessId, Answer)> {
        let mut answers = Vec::new();
        for mut opening in std::mem::take(&mut self.connecting) {
            let outcome = match opening.connecting.poll() {
                Ok(None) => {
                    self.connecting.push(opening);
                    continue;
                }
                Ok(Some(mut channel)) => match queue.attach_receiver(&mut channel.receiver, 2) {
                    Ok(_) => self.add(channel),
                    Err(error) => Err(error.into()),
                },
                Err(error) => Err(error.into()),
            };
            if let Ok(node) = outcome {
                self.by_name.insert(opening.name, node);
            }
            for (process, request) in opening.waiting {
                answers.push((
                    process,
                    match &outcome {
                        Ok(node) => Answer::Imported { request, node: *node },
                        Err(error) => Answer::Failed { request, why: error.to_string() },
                    },
                ));
            }
        }
        answers
    }

    /// A packet that finds no room is lost, and sent again by the data link.
    pub(super) fn transmit(&mut self, node: NodeId, bytes: Vec<u8>) {
        match (node, self.channels.get_mut(&node)) {
            (OWN, _) => self.looped.push_back(bytes),
            (_, Some(channel)) => drop(channel.sender.try_send_message(&bytes)),
            (_, None) => {}
        }
    }
}
