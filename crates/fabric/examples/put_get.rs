//! One-sided transfers: a process puts bytes into another's memory and gets them back, while the owner sleeps on a
//! tripwire until the last word was written.
//!
//! Run it without arguments: it starts itself again as the second process.

use std::{env, error::Error, process::Command, sync::atomic::Ordering};

use sidestep_fabric::{Access, Aperture, Cookie, Mode, Node, RdmaQueue, Region, Rights, Tripwire};

/// Where the flag lies: after the payload, so that it becomes visible last.
const FLAG: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1) {
        Some(name) => writer(&name),
        None => owner(),
    }
}

/// Owns the memory, and waits.
fn owner() -> Result<(), Box<dyn Error>> {
    let node = Node::new()?;
    let name = format!("shm:put-get-{}", std::process::id());
    let listener = node.listen(&name)?;
    let mut other = Command::new(env::current_exe()?).arg(&name).spawn()?;

    let region = Region::new(&node, FLAG + 64)?;
    let flag = region.word32(FLAG)?;
    let tripwire = Tripwire::new(&region, FLAG, Access::Write, Mode::Once)?;
    // The cookie says which memory, and what may be done to it; the pages go ahead of it.
    let request = listener.wait(None)?;
    let endpoint = request.accept_with(|endpoint| Ok(endpoint.share(&region, Rights::ALL)?.to_bytes().to_vec()))?;

    tripwire.wait(None, || flag.load(Ordering::Acquire) != 0)?;
    let mut greeting = vec![0; flag.load(Ordering::Acquire) as usize];
    region.read(0, &mut greeting)?;
    println!("the owner finds: {}", String::from_utf8(greeting)?);

    let (how, last_words) = endpoint.wait_closed(None)?;
    println!("the owner hears: {} ({how})", String::from_utf8(last_words)?);
    other.wait()?;
    Ok(())
}

/// Puts, raises the flag, and gets.
fn writer(name: &str) -> Result<(), Box<dyn Error>> {
    let node = Node::new()?;
    let endpoint = node.connect(name, b"", None)?;
    endpoint.set_on_close(b"done")?;
    let target = Aperture::open(&endpoint, &Cookie::from_bytes(&endpoint.private())?, None)?;

    let local = Region::new(&node, 4096)?;
    let greeting = b"greetings from another process";
    local.write(0, greeting)?;
    let queue = RdmaQueue::new(&node, 16);
    queue.write(&local.slice(0, greeting.len())?, &target, 0)?;
    // In order within the queue: who sees the flag sees the bytes.
    queue.immediate(&target, FLAG, greeting.len() as u32)?;

    let got = queue.read(&target, 0, &local.slice(1024, greeting.len())?)?;
    queue.wait(got, None)?;
    let mut back = vec![0; greeting.len()];
    local.read(1024, &mut back)?;
    println!("the writer gets back: {}", String::from_utf8(back)?);
    Ok(())
}
