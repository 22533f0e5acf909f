//! What goes on between the two processes until one of them is killed: the same on both sides.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use sidestep_fabric::{
    Aperture, Channel, ChannelOptions, Cookie, Endpoint, Error, Listener, Node, RdmaQueue, Region, Request, Result,
    Rights,
    channel::private_of,
    queue::{Kind, Receiver, Sender},
};
use sidestep_shm::Memory;
use sidestep_sys::clock;
use sidestep_testkit::process::{PATIENCE, PATIENCE_NS};
use sidestep_testkit::seeded::Seeded;

/// How many kinds of activity there are; a set of them is a number of this many bits.
pub const ACTIVITIES: u64 = 4;
/// The on-close message of every monitor.
pub const LAST_WORDS: &[u8] = b"last words";

/// Everything one side does.
pub struct Traffic {
    node: Node,
    /// Ends the accepting thread.
    pub stop: AtomicBool,
    seeds: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    alive: Vec<&'static str>,
    endings: Vec<Ending>,
    monitor: Option<Arc<Endpoint>>,
}

/// How one thread ended.
#[derive(Debug)]
pub struct Ending {
    /// What it did.
    pub what: &'static str,
    /// Why it stopped.
    pub error: Error,
    /// When.
    pub at: u64,
}

const STREAM: ChannelOptions = ChannelOptions { capacity: 16 * 1024, kind: Kind::Stream };
const SLOTS: ChannelOptions = ChannelOptions { capacity: 8 * 1024, kind: Kind::Slots(128) };
const REGION: usize = 96 * 1024;

impl Traffic {
    pub fn new(node: &Node, seed: u64) -> Arc<Traffic> {
        Arc::new(Traffic {
            node: node.clone(),
            stop: AtomicBool::new(false),
            seeds: AtomicU64::new(seed),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// The connecting side: begins a set of activities.
    pub fn begin(self: &Arc<Self>, name: &str, activities: u64) {
        for activity in (0..ACTIVITIES).filter(|bit| activities & 1 << bit != 0) {
            let name = name.to_string();
            self.spawn("connect", move |traffic| traffic.act(activity, &name));
        }
    }

    fn act(self: &Arc<Self>, activity: u64, name: &str) -> Result<()> {
        match activity {
            0 => self.flow(Channel::connect(&self.node, name, STREAM, b"stream", None)?),
            1 => self.flow(Channel::connect(&self.node, name, SLOTS, b"slots", None)?),
            2 => {
                let endpoint = self.node.connect(name, b"regions", None)?;
                match self.transfer(&endpoint) {
                    // An earlier request of the queue knows why.
                    Err(Error::Flushed(_)) => return Err(endpoint.wait_closed(None)?.0),
                    outcome => outcome?,
                }
            }
            _ => self.come_and_go(name)?,
        }
        Ok(())
    }

    /// The listening side: serves whoever connects, whatever for.
    pub fn accept(self: &Arc<Self>, listener: Listener) -> JoinHandle<()> {
        let traffic = self.clone();
        thread::spawn(move || {
            let mut guests: Vec<Endpoint> = Vec::new();
            while !traffic.stop.load(Ordering::Acquire) {
                match listener.wait(Some(clock::now() + 20_000_000)) {
                    Ok(request) => guests.extend(traffic.serve(request).unwrap_or_default()),
                    Err(Error::TimedOut(_)) => {}
                    Err(error) => panic!("a listener failed: {error}"),
                }
                guests.retain(|guest| guest.closed().is_none());
            }
        })
    }

    /// The monitor that the other side has connected, once it is ready.
    pub fn monitor(&self) -> Option<Arc<Endpoint>> {
        loop {
            let state = self.state.lock().unwrap();
            let wait = self.changed.wait_timeout_while(state, PATIENCE, |state| state.monitor.is_none());
            let monitor = wait.unwrap().0.monitor.take()?;
            match monitor.wait_message(Some(clock::now() + PATIENCE_NS)) {
                Ok(message) => {
                    assert_eq!(message, b"ready");
                    return Some(monitor);
                }
                // That of a process that was killed before.
                Err(Error::Closed(_)) => {}
                Err(error) => panic!("a monitor: {error}"),
            }
        }
    }

    /// Waits until every thread has ended; otherwise, which have not.
    pub fn wait_all(&self, deadline: u64) -> std::result::Result<Vec<Ending>, Vec<&'static str>> {
        let limit = Duration::from_nanos(deadline.saturating_sub(clock::now()));
        let state = self.state.lock().unwrap();
        let (mut state, _) = self.changed.wait_timeout_while(state, limit, |state| !state.alive.is_empty()).unwrap();
        state.monitor = None;
        if state.alive.is_empty() { Ok(std::mem::take(&mut state.endings)) } else { Err(state.alive.clone()) }
    }

    /// Answers one request. An error is that of a peer that is gone already.
    fn serve(self: &Arc<Self>, request: Request) -> Result<Option<Endpoint>> {
        match (request.private(), private_of(&request)) {
            (b"monitor", _) => {
                let endpoint = request.accept(b"")?;
                endpoint.set_on_close(LAST_WORDS)?;
                endpoint.post(b"ready")?;
                self.state.lock().unwrap().monitor = Some(Arc::new(endpoint));
                self.changed.notify_all();
                Ok(None)
            }
            (b"regions", _) => {
                let pages = Region::new(&self.node, REGION)?;
                let staged = Region::over(&self.node, Memory::heap(REGION)?)?;
                let endpoint = request.accept_with(|endpoint| {
                    let cookies = [endpoint.share(&pages, Rights::ALL)?, endpoint.share(&staged, Rights::ALL)?];
                    Ok(cookies.iter().flat_map(Cookie::to_bytes).collect())
                })?;
                endpoint.own((pages, staged));
                Ok(Some(endpoint))
            }
            (_, kind) => {
                let options = if kind == b"slots" { SLOTS } else { STREAM };
                let stays = kind != b"guest";
                let channel = Channel::accept(request, options, b"", None)?;
                if stays {
                    self.flow(channel);
                    return Ok(None);
                }
                Ok(Some(channel.endpoint))
            }
        }
    }

    /// Both directions at once, each end of each waiting whenever it has to.
    fn flow(self: &Arc<Self>, channel: Channel) {
        let Channel { mut sender, mut receiver, endpoint } = channel;
        let kept = Arc::new(endpoint);
        let slots = sender.try_send(&[]).is_err();
        let endpoint = kept.clone();
        self.spawn("send", move |traffic| {
            let outcome = send_all(&mut sender, slots, &mut traffic.random());
            drop((sender, endpoint));
            outcome
        });
        self.spawn("receive", move |traffic| {
            let outcome = receive_all(&mut receiver, slots, &mut traffic.random());
            drop((receiver, kept));
            outcome
        });
    }

    /// Puts and gets, to pages that are mapped and to memory that is not.
    fn transfer(&self, endpoint: &Endpoint) -> Result<()> {
        let cookies = endpoint.private();
        let (pages, staged) = cookies.split_at(Cookie::WIRE_LEN);
        let targets = [
            Aperture::open(endpoint, &Cookie::from_bytes(pages)?, None)?,
            Aperture::open(endpoint, &Cookie::from_bytes(staged)?, None)?,
        ];
        assert_eq!(targets.each_ref().map(Aperture::is_mapped), [true, false]);
        let local = Region::new(&self.node, 2 * REGION)?;
        let queue = RdmaQueue::new(&self.node, 16);
        let mut random = self.random();
        loop {
            for target in &targets {
                let len = random.below(REGION as u64 - 64) as usize + 1;
                let bytes: Vec<u8> = (0..len).map(|at| (at as u64 ^ random.below(1 << 8)) as u8).collect();
                local.write(0, &bytes)?;
                queue.write(&local.slice(0, len)?, target, 64)?;
                queue.fetch_add(target, 0, 1, &local.slice(2 * REGION - 64, 8)?)?;
                let last = queue.read(target, 64, &local.slice(REGION, len)?)?;
                queue.wait(last, None)?;
                let mut back = vec![0; len];
                local.read(REGION, &mut back)?;
                assert!(back == bytes, "what came back is not what was put");
            }
        }
    }

    /// Opens and closes endpoints, channels and apertures without end.
    fn come_and_go(&self, name: &str) -> Result<()> {
        loop {
            let mut channel = Channel::connect(&self.node, name, STREAM, b"guest", None)?;
            channel.sender.try_send(b"hello")?;
            drop(channel);
            let endpoint = self.node.connect(name, b"regions", None)?;
            let aperture =
                Aperture::open(&endpoint, &Cookie::from_bytes(&endpoint.private()[..Cookie::WIRE_LEN])?, None)?;
            aperture.write(0, &[7; 100])?;
        }
    }

    fn spawn(self: &Arc<Self>, what: &'static str, act: impl FnOnce(&Arc<Traffic>) -> Result<()> + Send + 'static) {
        let traffic = self.clone();
        self.state.lock().unwrap().alive.push(what);
        thread::spawn(move || {
            let ending = act(&traffic).err().map(|error| Ending { what, error, at: clock::now() });
            let mut state = traffic.state.lock().unwrap();
            state.endings.extend(ending);
            let at = state.alive.iter().position(|alive| *alive == what).unwrap();
            state.alive.swap_remove(at);
            traffic.changed.notify_all();
        });
    }

    fn random(&self) -> Seeded {
        Seeded::new(self.seeds.fetch_add(1, Ordering::Relaxed))
    }
}

fn send_all(sender: &mut Sender, slots: bool, random: &mut Seeded) -> Result<()> {
    let mut position = 0;
    loop {
        let most = if slots { 112 } else { 20_000 };
        let len = random.below(most) as usize + 1;
        let bytes: Vec<u8> = (position..position + len as u64).map(byte_at).collect();
        if slots {
            sender.send_message(&bytes, None)?
        } else {
            sender.send(&bytes, None)?
        }
        position += len as u64;
        if random.chance(100) {
            thread::sleep(Duration::from_micros(random.below(500)));
        }
    }
}

fn receive_all(receiver: &mut Receiver, slots: bool, random: &mut Seeded) -> Result<()> {
    let mut position = 0;
    let mut buffer = vec![0; 10_000];
    loop {
        let len = match slots {
            true => receiver.receive_message(&mut buffer, None)?,
            false => receiver.receive(&mut buffer, None)?,
        };
        let good = buffer[..len].iter().zip(position..).all(|(byte, at)| *byte == byte_at(at));
        assert!(good, "not what was sent at {position}");
        position += len as u64;
        if random.chance(100) {
            thread::sleep(Duration::from_micros(random.below(500)));
        }
    }
}

fn byte_at(position: u64) -> u8 {
    (position ^ position >> 7 ^ position >> 13) as u8
}
