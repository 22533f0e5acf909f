//! A table that other processes read without its owner: they have the right to read it and nothing else, so their pages are
//! mapped read-only. The owner publishes a few versions and then only sleeps; what it revokes, nobody reads on.
//!
//! Run it without arguments: it starts itself again as the reader.

use std::{env, error::Error, process::Command, sync::atomic::Ordering};

use sidestep_fabric::{Aperture, Cookie, Node, RdmaQueue, Region, Rights};

/// The version lies before the rows, and is odd while they are being written.
const ROWS: usize = 64;
const LEN: usize = ROWS + 4096;

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1) {
        Some(name) => reader(&name),
        None => owner(),
    }
}

/// Owns the table.
fn owner() -> Result<(), Box<dyn Error>> {
    let node = Node::new()?;
    let name = format!("shm:read-only-table-{}", std::process::id());
    let listener = node.listen(&name)?;
    let mut table = Region::new(&node, LEN)?;
    let version = table.word64(0)?;
    for round in 1..=3_u64 {
        version.store(2 * round - 1, Ordering::Release);
        table.write(ROWS, format!("the rows of version {round}").as_bytes())?;
        version.store(2 * round, Ordering::Release);
    }

    let mut other = Command::new(env::current_exe()?).arg(&name).spawn()?;
    // The pages go ahead of the cookie: from here on the reader needs nothing of this process.
    let request = listener.wait(None)?;
    let endpoint = request.accept_with(|endpoint| Ok(endpoint.share(&table, Rights::READ)?.to_bytes().to_vec()))?;
    let said = endpoint.wait_message(None)?;
    println!("the owner hears: {}", String::from_utf8(said)?);

    table.revoke()?;
    table.write(ROWS, b"nobody reads this any more")?;
    endpoint.post(b"revoked")?;
    other.wait()?;
    Ok(())
}

/// Reads it.
fn reader(name: &str) -> Result<(), Box<dyn Error>> {
    let node = Node::new()?;
    let endpoint = node.connect(name, b"", None)?;
    let table = Aperture::open(&endpoint, &Cookie::from_bytes(&endpoint.private())?, None)?;
    println!("the reader reads without the owner: {}", table.reads_directly());
    println!("the reader may not write: {}", table.write(ROWS, b"x").unwrap_err());

    let (queue, local) = (RdmaQueue::new(&node, 16), Region::new(&node, LEN)?);
    let (before, after) = (local.word64(0)?, local.word64(8)?);
    loop {
        // Reads of one queue are in order.
        queue.read(&table, 0, &local.slice(0, 8)?)?;
        queue.read(&table, ROWS, &local.slice(ROWS, 21)?)?;
        let last = queue.read(&table, 0, &local.slice(8, 8)?)?;
        queue.wait(last, None)?;
        if before.load(Ordering::Acquire) == after.load(Ordering::Acquire) && before.load(Ordering::Acquire) % 2 == 0 {
            break;
        }
    }
    let mut rows = [0; 21];
    local.read(ROWS, &mut rows)?;
    endpoint.post(&rows)?;
    endpoint.wait_message(None)?;
    let refused = queue.read(&table, 0, &local.slice(0, 8)?).unwrap_err();
    println!("the reader is told: {refused}");
    Ok(())
}
