//! Null calls over every transport, and beside them the round trip of a channel of the fabric with as many bytes. Both
//! ends are in this process; the rounds of all take turns.

use std::error::Error;
use std::time::Instant;

use sidestep_fabric::{Channel, ChannelOptions, Node};
use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{Call, Client, Procedure, Refusal, Server, Service};

const ROUNDS: usize = 21;
const CALLS: u32 = 2000;
const NULL: Procedure = Procedure { program: 0x2000_0001, version: 1, procedure: 0 };

struct Nothing;

impl Service for Nothing {
    fn program(&self) -> u32 {
        NULL.program
    }

    fn version(&self) -> u32 {
        NULL.version
    }

    fn call(&self, _: &Call<'_>, _: &mut Reader<'_>, _: &mut Writer<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let id = std::process::id();
    let path = std::env::temp_dir().join(format!("sidestep-null-{id}.sock"));
    let name = format!("shm:rpc-null-{id}");
    let server = Server::builder().service(Nothing).tcp("127.0.0.1:0")?.udp("127.0.0.1:0")?.unix(&path)?.fabric(&name);
    let server = server.start()?;
    let sockets: Vec<_> = server.addresses().collect();
    let addresses =
        [name, format!("unix:{}", path.display()), format!("tcp:{}", sockets[0]), format!("udp:{}", sockets[1])];
    let clients = addresses.iter().map(|address| Client::connect(address)).collect::<Result<Vec<_>, _>>()?;

    let echo = format!("shm:rpc-echo-{id}");
    let listener = Node::new()?.listen(&echo)?;
    std::thread::spawn(move || -> Result<(), sidestep_fabric::Error> {
        let mut channel = Channel::accept(listener.wait(None)?, ChannelOptions::default(), b"", None)?;
        let mut call = [0; 44];
        loop {
            channel.receiver.receive_exact(&mut call, None)?;
            channel.sender.send(&call[..28], None)?;
        }
    });
    let mut channel = Channel::connect(&Node::new()?, &echo, ChannelOptions::default(), b"", None)?;

    let mut times = vec![Vec::new(); clients.len() + 1];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            channel.sender.send(&[0; 44], None)?;
            channel.receiver.receive_exact(&mut [0; 28], None)?;
        }
        times[0].push(start.elapsed() / CALLS);
        for (client, times) in clients.iter().zip(&mut times[1..]) {
            let start = Instant::now();
            for _ in 0..CALLS {
                client.call(NULL, |_| Ok(()), |_| Ok(()))?;
            }
            times.push(start.elapsed() / CALLS);
        }
    }
    let medians = times.iter_mut().map(|times| {
        times.sort();
        times[times.len() / 2]
    });
    let names = ["channel, 44 and 28 bytes", "fabric", "unix", "tcp", "udp"];
    let medians: Vec<_> = medians.collect();
    for (name, median) in names.iter().zip(&medians) {
        println!("{name:26} {median:>12.2?}  {:5.2} x a channel", median.as_secs_f64() / medians[0].as_secs_f64());
    }
    Ok(())
}
