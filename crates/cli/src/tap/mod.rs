//! `sidestep tap`: what goes over carriers, as a capture that Wireshark and tshark read.

mod conversation;
mod pcapng;
mod segment;
pub mod source;

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use sidestep_sys::clock;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::options::Tap;

use conversation::Conversations;
use source::Source;

/// Between two looks that find nothing.
const PAUSE: Duration = Duration::from_millis(1);
/// How long the rest is waited for at the end: longer than a piece waits for what it answers.
const REST: Duration = Duration::from_millis(150);

/// Captures until it is told to end, or nobody reads.
pub fn run(options: &Tap) -> Result<()> {
    let filter = source::filter(&options.filter)?;
    let file = options.write.as_deref().filter(|path| *path != Path::new("-"));
    if file.is_none() && io::stdout().is_terminal() {
        bail!("a capture is not for a terminal: give -w FILE, or a pipe as in `sidestep tap | wireshark -k -i -`");
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let mut source = Source::open(&filter, options.snaplen.into())?;
    // Only now: a tap that does not begin leaves an older capture as it is.
    let mut out = output(file)?;
    let mut conversations = Conversations::new(offset(), options.count);
    write(&mut *out, &pcapng::head(options.snaplen))?;
    eprintln!("sidestep: capturing; it ends with an interrupt");
    let mut reader_left = false;
    while !stop.load(Relaxed) && !reader_left && !conversations.is_full() {
        reader_left = !step(&mut source, &mut conversations, &mut *out)?;
    }
    source.close();
    if !reader_left {
        if !conversations.is_full() {
            thread::sleep(REST);
            while step(&mut source, &mut conversations, &mut *out)? && source.has_more() {}
            conversations.settle(u64::MAX);
        }
        let losses = source.losses();
        let now = clock::now().saturating_add(offset());
        let rest = [conversations.take(), pcapng::statistics(now, conversations.packets, losses.pieces)].concat();
        write(&mut *out, &rest)?;
    }
    let losses = source.losses();
    eprintln!(
        "sidestep: {} packets; {} pieces with {} bytes were lost",
        conversations.packets, losses.pieces, losses.bytes
    );
    Ok(())
}

/// One look at what has come. `false`: nobody reads the capture any more.
fn step(source: &mut Source, conversations: &mut Conversations, out: &mut dyn Write) -> Result<bool> {
    let found = source.drain(|record, bytes, now| conversations.add(record, bytes, now));
    conversations.settle(clock::now());
    let bytes = conversations.take();
    if found == 0 && bytes.is_empty() {
        thread::sleep(PAUSE);
    }
    write(out, &bytes)
}

fn write(out: &mut dyn Write, bytes: &[u8]) -> Result<bool> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write the capture"),
    }
}

/// Where the capture goes: a file, or the standard output.
fn output(file: Option<&Path>) -> Result<Box<dyn Write>> {
    Ok(match file {
        Some(path) => Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?),
        None => Box::new(io::stdout()),
    })
}

/// Nanoseconds between the beginning of 1970 and that of the monotonic clock.
fn offset() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    now.saturating_sub(clock::now())
}
