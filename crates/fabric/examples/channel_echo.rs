//! A channel: a stream of bytes in each direction between two processes, which find each other by name.
//!
//! Run it without arguments: it serves one client, which is itself, started again.

use std::{env, error::Error, process::Command, time::Instant};

use sidestep_fabric::{Channel, ChannelOptions, Error as FabricError, Node};

const ROUNDS: u32 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1) {
        Some(name) => client(&name),
        None => server(),
    }
}

/// Sends back whatever comes, until the other side closes.
fn server() -> Result<(), Box<dyn Error>> {
    let node = Node::new()?;
    let name = format!("shm:echo-{}", std::process::id());
    let listener = node.listen(&name)?;
    let mut other = Command::new(env::current_exe()?).arg(&name).spawn()?;

    let mut channel = Channel::accept(listener.wait(None)?, ChannelOptions::default(), b"welcome", None)?;
    let mut buffer = [0; 4096];
    let mut count = 0;
    let end = loop {
        // Looks for a while and then sleeps; the client's death ends it too.
        match channel.receiver.receive(&mut buffer, None) {
            Ok(len) => {
                count += len;
                channel.sender.send(&buffer[..len], None)?;
            }
            Err(FabricError::Closed(reason)) => break reason,
            Err(error) => return Err(error.into()),
        }
    };
    println!("the server echoed {count} bytes: {end}");
    other.wait()?;
    Ok(())
}

fn client(name: &str) -> Result<(), Box<dyn Error>> {
    let node = Node::new()?;
    let mut channel = Channel::connect(&node, name, ChannelOptions::default(), b"", None)?;
    println!("the client is told: {}", String::from_utf8(channel.private())?);
    let message = [7; 64];
    let mut answer = [0; 64];
    let start = Instant::now();
    for _ in 0..ROUNDS {
        channel.sender.send(&message, None)?;
        channel.receiver.receive_exact(&mut answer, None)?;
    }
    let each = start.elapsed() / ROUNDS;
    println!("the client has {ROUNDS} answers of 64 bytes, each after {each:?}");
    assert_eq!(answer, message);
    Ok(())
}
