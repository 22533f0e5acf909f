//! The load of `sidestep bench peers` over iceoryx2: publish and subscribe in both directions, both ends looking, every payload
//! copied in and out. Starts its other end itself: sidestep-peer-iceoryx2 MILLISECONDS

use std::{env, error::Error, process::Command, time::Instant};

use iceoryx2::port::{publisher::Publisher, subscriber::Subscriber};
use iceoryx2::prelude::*;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A request for `count` messages of `size` bytes, each to be answered or only the last.
struct Order {
    count: u64,
    size: u64,
    answered: u64,
}

struct End {
    out: Publisher<ipc::Service, [u8], ()>,
    into: Subscriber<ipc::Service, [u8], ()>,
    buffer: Vec<u8>,
}

const LARGEST: usize = 1 << 20;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().collect();
    match &arguments[..] {
        [_, serve, name] if serve == "serve" => serve_all(End::open(name, ["there", "back"])?),
        _ => {
            let millis: u64 = arguments.get(1).map_or(Ok(100), |word| word.parse())?;
            let name = format!("sidestep-peer-{}", std::process::id());
            let end = End::open(&name, ["back", "there"])?;
            let mut server = Command::new(env::current_exe()?).args(["serve", &name]).spawn()?;
            let asked = ask(end, millis);
            server.wait()?;
            asked
        }
    }
}

impl End {
    /// `ways` are what it receives from and what it sends to.
    fn open(name: &str, ways: [&str; 2]) -> Outcome<End> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let [into, out] = ways;
        let service = |way: &str| -> Outcome<_> {
            let name = format!("{name}/{way}");
            let builder = node.service_builder(&name.as_str().try_into()?).publish_subscribe::<[u8]>();
            // Nothing is thrown away: a sender waits for room.
            Ok(builder.enable_safe_overflow(false).subscriber_max_buffer_size(64).open_or_create()?)
        };
        let into = service(into)?.subscriber_builder().buffer_size(64).create()?;
        let out = service(out)?.publisher_builder().initial_max_slice_len(LARGEST).create()?;
        Ok(End { out, into, buffer: vec![7; LARGEST] })
    }

    fn send(&mut self, size: usize) -> Outcome<()> {
        let sample = self.out.loan_slice_uninit(size)?;
        // Until there is somebody to take it, and room.
        sample.write_from_slice(&self.buffer[..size]).send()?;
        Ok(())
    }

    fn receive(&mut self) -> Outcome<usize> {
        loop {
            if let Some(sample) = self.into.receive()? {
                let size = sample.payload().len();
                self.buffer[..size].copy_from_slice(sample.payload());
                return Ok(size);
            }
            std::hint::spin_loop();
        }
    }
}

fn serve_all(mut end: End) -> Outcome<()> {
    // The client begins once it is seen.
    end.send(8)?;
    loop {
        end.receive()?;
        let word = |at: usize| u64::from_le_bytes(end.buffer[at..at + 8].try_into().expect("eight bytes"));
        let order = Order { count: word(0), size: word(8), answered: word(16) };
        if order.count == 0 {
            return Ok(());
        }
        for _ in 0..order.count {
            end.receive()?;
            if order.answered != 0 {
                end.send(order.size as usize)?;
            }
        }
        if order.answered == 0 {
            end.send(8)?;
        }
    }
}

fn turn(end: &mut End, order: &Order) -> Outcome<f64> {
    let begin = Instant::now();
    end.buffer[..8].copy_from_slice(&order.count.to_le_bytes());
    end.buffer[8..16].copy_from_slice(&order.size.to_le_bytes());
    end.buffer[16..24].copy_from_slice(&order.answered.to_le_bytes());
    end.send(24)?;
    for _ in 0..order.count {
        end.send(order.size as usize)?;
        if order.answered != 0 {
            end.receive()?;
        }
    }
    if order.answered == 0 {
        end.receive()?;
    }
    Ok(begin.elapsed().as_nanos() as f64)
}

/// Nanoseconds of one message, of so many that they take about `wanted` nanoseconds.
fn per_message(end: &mut End, size: u64, answered: u64, wanted: f64) -> Outcome<f64> {
    let mut order = Order { count: 4, size, answered };
    let mut time = turn(end, &order)?;
    while time < wanted / 4.0 {
        order.count *= 2;
        time = turn(end, &order)?;
    }
    order.count = (order.count as f64 * wanted / time) as u64 + 1;
    Ok(turn(end, &order)? / order.count as f64)
}

fn ask(mut end: End, millis: u64) -> Outcome<()> {
    end.receive()?;
    let wanted = millis as f64 * 1e6;
    println!("latency_ns {:.1}", per_message(&mut end, 64, 1, wanted)? / 2.0);
    println!("rate {:.0}", 1e9 / per_message(&mut end, 64, 0, wanted)?);
    println!("bandwidth_64k {:.0}", 65536e9 / per_message(&mut end, 65536, 0, wanted)?);
    println!("bandwidth_1m {:.0}", 1048576e9 / per_message(&mut end, 1 << 20, 0, wanted)?);
    end.buffer[..24].fill(0);
    end.send(24)
}
