//! One thread serves many connections through one completion queue: `cq_server server CONNECTIONS`, then
//! `cq_server client CONNECTIONS [REQUESTS]` in another terminal.

use sidestep_vi::{Cq, Descriptor, MemAttributes, NetAddress, Nic, Result, Vi, ViAttributes, clock};

const SIZE: usize = 64;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, other: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(other);
    let (connections, requests) = (number(1, 10), number(2, 100_000));
    let point = std::env::var("VIA_POINT").unwrap_or("cq_server".into());
    let address = NetAddress::new(&[127, 0, 0, 1], point.as_bytes());

    let nic = Nic::open("nic0")?;
    let ptag = nic.create_ptag()?;
    let buffer = nic.allocate(2 * connections * SIZE, &MemAttributes::new(ptag))?;
    let room = |number: usize| Descriptor::new(number as u64, &[buffer.segment(2 * number * SIZE, SIZE)]);
    let answer = |number: usize| Descriptor::new(number as u64, &[buffer.segment((2 * number + 1) * SIZE, SIZE)]);
    let cq = nic.create_cq(2 * connections)?;
    let make = |cq: Option<&Cq>| nic.create_vi(&ViAttributes::new(ptag), None, cq);

    if arguments.first().is_some_and(|role| role == "server") {
        let vis: Vec<Vi> = (0..connections).map(|_| make(Some(&cq))).collect::<Result<_>>()?;
        for (number, vi) in vis.iter().enumerate() {
            vi.post_receive(&room(number))?;
            nic.connect_wait(&address, None)?.accept(vi)?;
        }
        let mut open = connections;
        while open > 0 {
            let (vi, _) = cq.wait(None)?;
            let Some(request) = vi.poll_receive() else { continue };
            if request.status.is_error() {
                open -= 1; // This client has gone.
                continue;
            }
            let number = request.token as usize;
            vi.post_receive(&room(number))?;
            vi.post_send(&answer(number))?;
            vi.poll_send();
        }
        return Ok(());
    }
    let vis: Vec<Vi> = (0..connections).map(|_| make(None)).collect::<Result<_>>()?;
    for (number, vi) in vis.iter().enumerate() {
        vi.post_receive(&room(number))?;
        vi.connect(&NetAddress::default(), &address, Some(clock::now() + 10_000_000_000))?;
        vi.post_send(&answer(number))?;
    }
    let begin = clock::now();
    let mut answered = 0;
    while answered < requests {
        for (number, vi) in vis.iter().enumerate() {
            if vi.poll_receive().is_some() {
                answered += 1;
                vi.poll_send();
                vi.post_receive(&room(number))?;
                vi.post_send(&answer(number))?;
            }
        }
    }
    let seconds = (clock::now() - begin) as f64 / 1e9;
    println!("{connections} connections: {:.0} requests a second", answered as f64 / seconds);
    Ok(())
}
