//! How the processes of a shared memory learn of each other's buffers: the first listens, the others come and tell.

use sidestep_fabric::queue::Kind;
use sidestep_fabric::{Channel, ChannelOptions, Error as FabricError, Node};
use sidestep_sys::clock;

use super::MOST_PROCESSES;
use crate::error::{Error, Result};
use crate::process::Handle;

/// The pages of a process, and its lists.
type Handles = [Handle; 2];

/// Gives the own handles to all, and returns theirs.
pub(super) fn meet(name: &str, rank: usize, count: usize, own: Handles) -> Result<Vec<Handles>> {
    let (node, address) = (Node::new()?, format!("shm:vmmc-svm-{name}"));
    let deadline = Some(clock::now() + PATIENCE_NS);
    if rank == 0 {
        let listener = node.listen(&address)?;
        let mut all = vec![None; count];
        all[0] = Some(own);
        let mut channels = Vec::new();
        while all.iter().any(Option::is_none) {
            let mut channel = Channel::accept(listener.wait(deadline)?, queue(), &[], deadline)?;
            let (rank, handles) = hear(&mut channel, deadline)?;
            match all.get_mut(rank) {
                Some(place @ None) => *place = Some(handles),
                _ => return Err(Error::Protocol("a rank that another process has, or none")),
            }
            channels.push(channel);
        }
        let all: Vec<Handles> = all.into_iter().flatten().collect();
        for channel in &mut channels {
            for (rank, handles) in all.iter().enumerate() {
                tell(channel, rank, handles, deadline)?;
            }
            // It goes when it has heard all.
            while !channel.receiver.is_over() {
                let mut buffer = [0; SLOT];
                match channel.receiver.receive_message(&mut buffer, deadline) {
                    Err(FabricError::Closed(_)) => break,
                    other => drop(other?),
                }
            }
        }
        return Ok(all);
    }
    let mut channel = loop {
        match Channel::connect(&node, &address, queue(), &[], deadline) {
            Ok(channel) => break channel,
            Err(error) if deadline.is_some_and(|deadline| clock::now() > deadline) => return Err(error.into()),
            // The first is not there yet.
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    };
    tell(&mut channel, rank, &own, deadline)?;
    (0..count).map(|_| hear(&mut channel, deadline).map(|(_, handles)| handles)).collect()
}

fn tell(channel: &mut Channel, rank: usize, handles: &Handles, deadline: Option<u64>) -> Result<()> {
    let [pages, lists] = handles.each_ref().map(Handle::to_bytes);
    let mut message = vec![rank as u8, pages.len() as u8];
    message.extend(pages);
    message.extend(lists);
    Ok(channel.sender.send_message(&message, deadline)?)
}

fn hear(channel: &mut Channel, deadline: Option<u64>) -> Result<(usize, Handles)> {
    let mut buffer = [0; SLOT];
    let len = channel.receiver.receive_message(&mut buffer, deadline)?;
    parse(&buffer[..len]).ok_or(Error::Protocol("handles that are none"))
}

fn parse(message: &[u8]) -> Option<(usize, Handles)> {
    let ([rank, len], rest) = message.split_first_chunk()?;
    let (pages, lists) = rest.split_at_checked(usize::from(*len))?;
    Some((usize::from(*rank), [Handle::from_bytes(pages)?, Handle::from_bytes(lists)?]))
}

fn queue() -> ChannelOptions {
    ChannelOptions { capacity: 4 * MOST_PROCESSES * SLOT, kind: Kind::Slots(SLOT as u32) }
}

/// Bytes of a message: two handles, whose names are short.
const SLOT: usize = 512;
/// How long processes may take to come.
const PATIENCE_NS: u64 = 60_000_000_000;
