//! The process under attack: an echo server for whoever connects.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use sidestep_fabric::{
    Aperture, Channel, ChannelOptions, Cookie, Error, Node, RdmaQueue, Region, Request, Result,
    channel::private_of,
    queue::{Kind, QueueSpec},
};
use sidestep_sys::clock;
use sidestep_testkit::process::{Census, Role, resident_kb};

/// Serves until told to end. On `census` it says how many descriptors, mappings and serving threads it has.
pub fn play(role: Role) {
    let name = role.arguments[0].clone();
    let node = Node::new().unwrap();
    let listener = node.listen(&format!("shm:{name}")).unwrap();
    let serving = Arc::new(AtomicU64::new(0));
    let count = serving.clone();
    thread::spawn(move || {
        loop {
            match listener.wait(Some(clock::now() + 1_000_000_000)) {
                Ok(request) => {
                    let (node, count) = (node.clone(), count.clone());
                    thread::spawn(move || serve(&node, request, &count));
                }
                Err(Error::TimedOut(_)) => {}
                Err(error) => panic!("the listener failed: {error}"),
            }
        }
    });
    role.control.say("here");
    while let Some(word) = role.control.hear_any_time() {
        if word == "end" {
            return;
        }
        let census = Census::take(&name);
        let numbers = [census.descriptors as u64, census.mappings as u64, serving.load(Ordering::Acquire)];
        role.control.say(&format!("{} {} {} {}", numbers[0], numbers[1], numbers[2], resident_kb()));
    }
}

fn serve(node: &Node, request: Request, serving: &AtomicU64) {
    // Honest clients are not counted.
    let is_honest = private_of(&request).is_empty() && kind_of(&request) == Some(Kind::Slots(128));
    serving.fetch_add(u64::from(!is_honest), Ordering::AcqRel);
    // Whatever ends it, it ends this connection only.
    let _ = echo(node, request);
    serving.fetch_sub(u64::from(!is_honest), Ordering::AcqRel);
}

fn kind_of(request: &Request) -> Option<Kind> {
    Some(QueueSpec::from_bytes(request.private().get(..QueueSpec::WIRE_LEN)?).ok()?.kind)
}

fn echo(node: &Node, request: Request) -> Result<()> {
    let kind = kind_of(&request).unwrap_or_default();
    let cookie = Cookie::from_bytes(private_of(&request)).ok();
    let options = ChannelOptions { capacity: 8192, kind };
    let mut channel = Channel::accept(request, options, b"", Some(clock::now() + 1_000_000_000))?;
    let transfers = cookie.map(|cookie| Transfers::new(node, &channel, &cookie)).transpose()?;
    let mut buffer = [0; 4096];
    loop {
        match kind {
            Kind::Stream => {
                let len = channel.receiver.receive(&mut buffer, None)?;
                channel.sender.send(&buffer[..len], None)?;
            }
            Kind::Slots(_) => {
                let len = channel.receiver.receive_message(&mut buffer, None)?;
                channel.sender.send_message(&buffer[..len], None)?;
            }
        }
        if let Some(transfers) = &transfers {
            transfers.exchange()?;
        }
    }
}

/// Transfers with a region of the peer, whatever it does to it meanwhile.
struct Transfers {
    local: Region,
    target: Aperture,
    queue: RdmaQueue,
}

impl Transfers {
    fn new(node: &Node, channel: &Channel, cookie: &Cookie) -> Result<Transfers> {
        let target = Aperture::open(&channel.endpoint, cookie, Some(clock::now() + 1_000_000_000))?;
        Ok(Transfers { local: Region::new(node, 4096)?, target, queue: RdmaQueue::new(node, 4) })
    }

    fn exchange(&self) -> Result<()> {
        let deadline = Some(clock::now() + 1_000_000_000);
        self.queue.write(&self.local.slice(0, 512)?, &self.target, 128)?;
        let last = self.queue.read(&self.target, 128, &self.local.slice(1024, 512)?)?;
        self.queue.wait(last, deadline)?;
        self.target.store32(0, 1)
    }
}
