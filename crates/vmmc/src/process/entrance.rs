//! Where processes and other cards come in. A process comes by two ways: a channel for its words, and a lifeline over which it sends
//! its memory. Both carry the same sign, a random number, and either may be here first.

use sidestep_fabric::channel::Accepting;
use sidestep_fabric::queue::QueueSpec;
use sidestep_fabric::{Channel, EventQueue, Listener, Node};
use sidestep_shm::Memory;
use sidestep_shm::passing::{Accepted, Lifeline, Received, Rendezvous};
use sidestep_sys::user;

use super::{CARD, PROCESS, address, memory_address, packet_queue, word_queue};
use crate::error::Result;
use crate::id::PAGE;
use crate::vmh::table::MOST_PAGES;

/// What tells that a channel and a memory are of one process.
type Sign = [u8; 16];

pub(super) struct Entrance {
    /// Where processes and cards of this host come in, and perhaps where cards alone do.
    listeners: Vec<Listener>,
    rendezvous: Rendezvous,
    accepting: Vec<(Accepting, Vec<u8>)>,
    /// Processes whose memory has not come yet.
    coming: Vec<(Channel, Sign)>,
    /// Lifelines over which nothing has come yet.
    silent: Vec<Lifeline>,
    /// Memories whose process has not come yet.
    brought: Vec<(Lifeline, Sign, Memory)>,
}

/// Who has come in.
pub(super) enum Guest {
    Card(Channel),
    Process(Channel, Memory),
}

impl Entrance {
    pub(super) fn new(node: &Node, name: &str, place: Option<&str>, queue: &EventQueue) -> Result<Entrance> {
        // The name first: of two cards that are started at once, one ends here.
        let mut listeners = vec![node.listen(&address(name))?];
        if let Some(place) = place {
            listeners.push(node.listen(place)?);
        }
        let rendezvous = Rendezvous::listen(&memory_address(name))?;
        for listener in &listeners {
            listener.attach(queue, 0);
        }
        let (accepting, coming) = (Vec::new(), Vec::new());
        Ok(Entrance { listeners, rendezvous, accepting, coming, silent: Vec::new(), brought: Vec::new() })
    }

    /// Whether somebody is about to come in.
    pub(super) fn is_busy(&self) -> bool {
        !self.accepting.is_empty() || !self.coming.is_empty()
    }

    /// Who has come in since the last time.
    pub(super) fn admit(&mut self, queue: &EventQueue) -> Vec<Guest> {
        let mut guests = self.take_channels(queue);
        self.take_memories();
        for at in (0..self.coming.len()).rev() {
            let sign = self.coming[at].1;
            if let Some(own) = self.brought.iter().position(|(_, brought, _)| *brought == sign) {
                let (channel, _) = self.coming.swap_remove(at);
                guests.push(Guest::Process(channel, self.brought.swap_remove(own).2));
            }
        }
        self.coming.retain_mut(|(channel, _)| !channel.receiver.is_over());
        guests
    }

    fn take_channels(&mut self, queue: &EventQueue) -> Vec<Guest> {
        for (at, listener) in self.listeners.iter().enumerate() {
            while let Some(request) = listener.poll() {
                // The first bytes are the queue's own.
                let said = request.private().get(QueueSpec::WIRE_LEN..).unwrap_or_default().to_vec();
                let is_card = said.first() == Some(&CARD);
                // Processes are of this host: their memory could not come from elsewhere.
                if at > 0 && !is_card {
                    continue;
                }
                let options = if is_card { packet_queue() } else { word_queue() };
                if let Ok(accepting) = Channel::begin_accept(request, options, &[]) {
                    self.accepting.push((accepting, said));
                }
            }
        }
        let mut cards = Vec::new();
        for (mut accepting, said) in std::mem::take(&mut self.accepting) {
            let mut channel = match accepting.poll() {
                Ok(Some(channel)) => channel,
                Ok(None) => {
                    self.accepting.push((accepting, said));
                    continue;
                }
                Err(_) => continue,
            };
            if queue.attach_receiver(&mut channel.receiver, 2).is_err() {
                continue;
            }
            match said.split_first() {
                Some((&CARD, _)) => cards.push(Guest::Card(channel)),
                Some((&PROCESS, sign)) => self.coming.extend(sign.try_into().ok().map(|sign| (channel, sign))),
                _ => {}
            }
        }
        cards
    }

    /// Lifelines are let in, and carry descriptors, only while a process is coming.
    fn take_memories(&mut self) {
        if !self.is_busy() {
            // Whoever brought something for nobody is gone, or has failed.
            self.brought.clear();
            return;
        }
        // A failure is one of resources, of which whoever comes learns by waiting in vain; the processes that are here go on.
        while let Ok(accepted) = self.rendezvous.accept(|peer| user::is_own(peer.uid)) {
            match accepted {
                Accepted::Peer(line) => self.silent.push(line),
                Accepted::Refused => {}
                Accepted::Nobody => break,
            }
        }
        for line in std::mem::take(&mut self.silent) {
            let (mut bytes, mut descriptors) = ([0; 64], Vec::new());
            match line.receive(&mut bytes, &mut descriptors) {
                // One that has connected and said nothing yet is waited for.
                Ok(Received::Empty) => self.silent.push(line),
                Ok(Received::Message(24)) => {
                    let (sign, len) = bytes[..24].split_first_chunk().expect("24 bytes");
                    let len = u64::from_le_bytes(len.try_into().expect("eight bytes"));
                    let is_whole = len % PAGE as u64 == 0 && len / PAGE as u64 <= MOST_PAGES;
                    if let Some(descriptor) = descriptors.pop()
                        && is_whole
                        && let Ok(memory) = Memory::attach(descriptor, len as usize)
                    {
                        self.brought.push((line, *sign, memory));
                    }
                }
                _ => {}
            }
        }
    }
}
