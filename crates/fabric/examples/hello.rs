//! Two processes that find each other by name: `hello serve` in one, `hello` in the other.

use sidestep_fabric::{Channel, ChannelOptions, Node};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new()?;
    let mut buffer = [0; 64];
    if std::env::args().nth(1).as_deref() == Some("serve") {
        let request = node.listen("shm:hello")?.wait(None)?;
        let mut channel = Channel::accept(request, ChannelOptions::default(), b"", None)?;
        let count = channel.receiver.receive(&mut buffer, None)?;
        channel.sender.send(&buffer[..count], None)?;
    } else {
        let mut channel = Channel::connect(&node, "shm:hello", ChannelOptions::default(), b"", None)?;
        channel.sender.send(b"hello", None)?;
        let count = channel.receiver.receive(&mut buffer, None)?;
        println!("{}", String::from_utf8_lossy(&buffer[..count]));
    }
    Ok(())
}
