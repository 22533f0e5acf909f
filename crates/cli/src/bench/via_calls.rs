//! What single calls of the VIA library cost, in time and in cycles: the functions as C calls them, on one core.
//!
//! With thread safety, and without: on a NIC that belongs to one thread (`-single`). What is saved are atomic steps:
//! `via-lock` is one uncontended lock and unlock. A `Done` that finds nothing takes none in either case.

use std::hint::black_box;
use std::sync::Mutex;

use anyhow::{Result, anyhow, ensure};
use sidestep_sys::cpu;
use sidestep_vi::{
    Buffer, Descriptor, FlowControl, MemAttributes, MemHandle, Memory, NetAddress, Nic, Vi, ViAttributes, Way,
};
use vipl::probe::Probe;

use super::clock;
use super::path::{Bench, Operation, Path, Solo, Wait, Work};
use super::record::Metric;
use super::shared;
use super::via::{check, part, point};

/// A call as a path of one line.
macro_rules! call {
    ($(#[$about:meta])* $name:ident, $row:literal, $text:literal, $make:expr) => {
        $(#[$about])*
        pub const $name: Path = Path {
            name: $row,
            about: $text,
            work: Work::Solo { make: || Ok(Box::new($make)) },
            parts: &[part(Bench::Cost, $row, Operation::Stream, Wait::Spin, &[4])],
        };
    };
}

call!(/// `VipRecvDone` that finds nothing.
    RECV_NONE, "via-recvdone-none", "VipRecvDone that finds nothing", Done(probe()?, false));
call!(/// `VipSendDone` that finds nothing.
    SEND_NONE, "via-senddone-none", "VipSendDone that finds nothing", Done(probe()?, true));
call!(/// One reading of the clock, to compare with.
    CLOCK, "clock", "one clock_gettime", Clock);
call!(/// One lock and unlock that nobody else wants.
    LOCK, "via-lock", "one lock and unlock: what thread safety is made of", Lock(Mutex::new(0)));
call!(/// `VipPostRecv`.
    POST_RECV, "via-postrecv", "VipPostRecv", Batch(probe()?, Call::PostRecv));
call!(/// `VipPostSend` of four bytes.
    POST_SEND, "via-postsend", "VipPostSend of four bytes", Batch(probe()?, Call::PostSend));
call!(/// `VipRecvDone` that finds a message.
    RECV_DONE, "via-recvdone", "VipRecvDone that finds a message", Batch(probe()?, Call::RecvDone));
call!(/// `VipSendDone` that finds a send.
    SEND_DONE, "via-senddone", "VipSendDone that finds a send", Batch(probe()?, Call::SendDone));

call!(/// `VipPostRecv` without thread safety.
    POST_RECV_SINGLE, "via-postrecv-single", "VipPostRecv, NIC of one thread", Batch(single()?, Call::PostRecv));
call!(/// `VipPostSend` without thread safety.
    POST_SEND_SINGLE, "via-postsend-single", "VipPostSend of four bytes, NIC of one thread",
    Batch(single()?, Call::PostSend));
call!(/// `VipRecvDone` without thread safety.
    RECV_DONE_SINGLE, "via-recvdone-single", "VipRecvDone that finds a message, NIC of one thread",
    Batch(single()?, Call::RecvDone));
call!(/// `VipSendDone` without thread safety.
    SEND_DONE_SINGLE, "via-senddone-single", "VipSendDone that finds a send, NIC of one thread",
    Batch(single()?, Call::SendDone));
call!(/// `VipRecvDone` that finds nothing, without thread safety.
    RECV_NONE_SINGLE, "via-recvdone-none-single", "VipRecvDone that finds nothing, NIC of one thread",
    Done(single()?, false));

/// What sending takes of the sender, by size: by PIO.
pub const TRANSMIT_PIO: Path = Path {
    name: "via-send-pio",
    about: "transmit overhead: post and done of a send by size, in the ring",
    work: Work::Solo { make: || Ok(Box::new(Transmit::new(Way::Pio)?)) },
    parts: &[part(Bench::Cost, "via-send-pio", Operation::Stream, Wait::Spin, TRANSMIT_SIZES)],
};

/// And by RDMA.
pub const TRANSMIT_RDMA: Path = Path {
    name: "via-send-rdma",
    about: "transmit overhead: post and done of a send by size, into the receive buffer",
    work: Work::Solo { make: || Ok(Box::new(Transmit::new(Way::Rdma)?)) },
    parts: &[part(Bench::Cost, "via-send-rdma", Operation::Stream, Wait::Spin, TRANSMIT_SIZES)],
};

/// What an RDMA write takes whose target calls nothing: into memory that the library allocated.
pub const WRITE: Path = Path {
    name: "via-write",
    about: "RDMA write, post and done, by size, into memory of the library; the target calls nothing",
    work: Work::Solo { make: || Ok(Box::new(Write::new(false)?)) },
    parts: &[part(Bench::Cost, "via-write", Operation::Stream, Wait::Spin, WRITE_SIZES)],
};

/// And into memory of the program.
pub const WRITE_MALLOC: Path = Path {
    name: "via-write-malloc",
    about: "RDMA write, post and done, by size, into memory of the program; the target calls nothing",
    work: Work::Solo { make: || Ok(Box::new(Write::new(true)?)) },
    parts: &[part(Bench::Cost, "via-write-malloc", Operation::Stream, Wait::Spin, WRITE_SIZES)],
};

const WRITE_SIZES: &[usize] = &[8, 64, 4096, 65536];

const TRANSMIT_SIZES: &[usize] = &[0, 4, 40, 400, 1024, 4096, 16384, 65536];

fn probe() -> Result<Probe> {
    Probe::new(&shared::fabric_name()).map_err(|error| anyhow!("cannot connect two VIs of this process: {error}"))
}

fn single() -> Result<Probe> {
    Probe::single(&shared::fabric_name()).map_err(|error| anyhow!("cannot connect two VIs of this thread: {error}"))
}

/// Times a number of calls, and reports one.
fn timed(count: usize, mut call: impl FnMut() -> Result<()>) -> Result<Vec<(Metric, f64)>> {
    let mut spent = Spent::default();
    spent.time(|| (0..count).try_for_each(|_| call()))?;
    Ok(spent.per(count))
}

/// Time and cycles of the calls themselves, without what goes on between them.
#[derive(Default)]
struct Spent {
    time: u64,
    cycles: u64,
}

impl Spent {
    fn time(&mut self, body: impl FnOnce() -> Result<()>) -> Result<()> {
        let (began, ticks) = (clock::now(), cpu::ticks());
        let outcome = body();
        self.cycles += cpu::ticks().wrapping_sub(ticks);
        self.time += clock::now() - began;
        outcome
    }

    fn per(&self, count: usize) -> Vec<(Metric, f64)> {
        let each = |sum: u64| sum as f64 / count.max(1) as f64;
        vec![(Metric::Cost, each(self.time)), (Metric::Cycles, each(self.cycles))]
    }
}

struct Clock;

impl Solo for Clock {
    fn measure(&mut self, _: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        timed(count, || {
            black_box(clock::now());
            Ok(())
        })
    }
}

struct Lock(Mutex<u64>);

impl Solo for Lock {
    fn measure(&mut self, _: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        timed(count, || {
            *self.0.lock().map_err(|_| anyhow!("a panic"))? += 1;
            Ok(())
        })
    }
}

/// A `Done` that finds nothing.
struct Done(Probe, bool);

impl Solo for Done {
    fn measure(&mut self, _: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        timed(count, || {
            ensure!(!black_box(self.0.done(self.1)), "something has completed");
            Ok(())
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    PostRecv,
    PostSend,
    RecvDone,
    SendDone,
}

/// Calls after which something that was sent must have come.
const TRIES: usize = 10_000_000;

/// Batches of messages both ways, of which one kind of call is timed.
struct Batch(Probe, Call);

impl Solo for Batch {
    fn measure(&mut self, _: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        const HALF: usize = Probe::BATCH / 2;
        let Batch(probe, which) = self;
        let mut spent = Spent::default();
        let batches = count.div_ceil(HALF);
        for _ in 0..batches {
            let mut run = |call: Call, body: &mut dyn FnMut(usize) -> bool| {
                let mut all = || -> Result<()> {
                    ensure!((0..HALF).all(&mut *body), "a call failed");
                    Ok(())
                };
                if call == *which { spent.time(all) } else { all() }
            };
            run(Call::PostRecv, &mut |index| probe.post_receive(index))?;
            ensure!((0..HALF).all(|index| probe.post_receive_there(index)), "a receive was refused");
            run(Call::PostSend, &mut |index| probe.post_send(0, HALF + index))?;
            // Now and then the service thread is at it, and there is nothing to be had for a moment.
            let soon = |send: bool| (0..TRIES).any(|_| probe.done(send));
            run(Call::SendDone, &mut |_| soon(true))?;
            ensure!((0..HALF).all(|index| probe.post_send(1, HALF + index)), "a send was refused");
            run(Call::RecvDone, &mut |_| soon(false))?;
            probe.settle();
        }
        Ok(spent.per(batches * HALF))
    }
}

/// Connects two VIs of this process.
fn connect((from, nic, to): (&Vi, &Nic, &Vi)) -> Result<()> {
    let at = point(&shared::fabric_name());
    std::thread::scope(|scope| -> Result<()> {
        let accept = scope.spawn(|| nic.connect_wait(&at, clock::in_seconds(10))?.accept(to));
        from.connect(&NetAddress::default(), &at, clock::in_seconds(10))?;
        Ok(accept.join().map_err(|_| anyhow!("a panic while accepting"))??)
    })
}

/// Two VIs of one process; only the sender is timed.
struct Transmit {
    from: Vi,
    to: Vi,
    source: Buffer,
    target: Buffer,
    _nics: [Nic; 2],
}

impl Transmit {
    fn new(way: Way) -> Result<Transmit> {
        let nics = [Nic::open("nic0")?, Nic::open("nic0")?];
        let tags = [nics[0].create_ptag()?, nics[1].create_ptag()?];
        let from = nics[0].create_vi(&ViAttributes::new(tags[0]), None, None)?;
        let to = nics[1].create_vi(&ViAttributes::new(tags[1]), None, None)?;
        from.set_flow_control(FlowControl::Asynchronous);
        from.set_way(way);
        connect((&from, &nics[1], &to))?;
        let source = nics[0].allocate(LARGEST, &MemAttributes::new(tags[0]))?;
        let target = nics[1].allocate(LARGEST, &MemAttributes::new(tags[1]))?;
        Ok(Transmit { from, to, source, target, _nics: nics })
    }
}

const LARGEST: usize = 64 << 10;

/// Two VIs of one process, of which one writes memory of the other.
struct Write {
    from: Vi,
    source: Buffer,
    target: (u64, MemHandle),
    kept: Kept,
}

/// The target's side, and what must live as long.
type Kept = (Vi, Memory, Option<Buffer>, [Nic; 2]);

impl Write {
    fn new(malloc: bool) -> Result<Write> {
        let nics = [Nic::open("nic0")?, Nic::open("nic0")?];
        let tags = [nics[0].create_ptag()?, nics[1].create_ptag()?];
        let attributes = |tag| ViAttributes { rdma_write: true, rdma_read: true, ..ViAttributes::new(tag) };
        let from = nics[0].create_vi(&attributes(tags[0]), None, None)?;
        let to = nics[1].create_vi(&attributes(tags[1]), None, None)?;
        connect((&from, &nics[1], &to))?;
        let source = nics[0].allocate(LARGEST, &MemAttributes::new(tags[0]))?;
        let rights = MemAttributes { rdma_write: true, rdma_read: true, ..MemAttributes::new(tags[1]) };
        let memory = Memory::heap(LARGEST)?;
        let (target, buffer) = if malloc {
            ((memory.base().as_ptr() as u64, nics[1].register(memory.clone(), &rights)?), None)
        } else {
            let buffer = nics[1].allocate(LARGEST, &rights)?;
            ((buffer.address(), buffer.handle()), Some(buffer))
        };
        let write = Write { from, source, target, kept: (to, memory, buffer, nics) };
        // The first ones make the memory known, which takes both sides.
        for _ in 0..100 {
            write.write(8, |(to, .., nics)| {
                to.progress();
                for nic in nics {
                    nic.node().progress_kernel();
                }
            })?;
        }
        Ok(write)
    }

    fn write(&self, size: usize, meanwhile: impl Fn(&Kept)) -> Result<()> {
        let descriptor = Descriptor::new(0, &[self.source.segment(0, size)]).write_to(self.target.0, self.target.1);
        self.from.post_send(&descriptor)?;
        loop {
            if let Some(sent) = self.from.poll_send() {
                return check(&sent);
            }
            meanwhile(&self.kept);
        }
    }
}

impl Solo for Write {
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        let mut spent = Spent::default();
        spent.time(|| (0..count).try_for_each(|_| self.write(size, |_| {})))?;
        Ok(spent.per(count))
    }
}

impl Solo for Transmit {
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        let mut spent = Spent::default();
        for _ in 0..count {
            self.to.post_receive(&Descriptor::new(0, &[self.target.segment(0, LARGEST)]))?;
            // The sender hears of the receive, and this process of what else there is, before the clock runs.
            for _ in 0..2 {
                self.from.progress();
                self.to.progress();
            }
            let descriptor = Descriptor::new(0, &[self.source.segment(0, size)]);
            let mut sent = None;
            spent.time(|| {
                self.from.post_send(&descriptor)?;
                sent = self.from.poll_send();
                Ok(())
            })?;
            while sent.is_none() {
                self.to.progress();
                sent = self.from.poll_send();
            }
            sent.iter().try_for_each(check)?;
            loop {
                if let Some(received) = self.to.poll_receive() {
                    check(&received)?;
                    break;
                }
            }
        }
        Ok(spent.per(count))
    }
}
