//! A message goes and comes back: `pingpong server`, then `pingpong client [COUNT [BYTES]]` in another terminal.

use sidestep_vi::{Descriptor, MemAttributes, NetAddress, Nic, Reliability, Result, Vi, ViAttributes, clock};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, other: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(other);
    let (count, size) = (number(1, 10_000), number(2, 4));
    let point = std::env::var("VIA_POINT").unwrap_or("pingpong".into());
    let address = NetAddress::new(&[127, 0, 0, 1], point.as_bytes());

    let nic = Nic::open("nic0")?;
    let ptag = nic.create_ptag()?;
    let attributes = ViAttributes { reliability: Reliability::Delivery, ..ViAttributes::new(ptag) };
    let vi = nic.create_vi(&attributes, None, None)?;
    let buffer = nic.allocate(5 * size.max(1 << 20), &MemAttributes::new(ptag))?;
    let place = |slot: u64| buffer.segment(slot as usize * size, size);

    // Four receives are posted before anyone can send.
    for slot in 0..4 {
        vi.post_receive(&Descriptor::new(slot, &[place(slot)]))?;
    }
    if arguments.first().is_some_and(|role| role == "server") {
        nic.connect_wait(&address, None)?.accept(&vi)?;
        loop {
            let received = next_receive(&vi);
            if received.status.is_error() {
                return Ok(()); // The client has gone.
            }
            let len = received.len as usize;
            vi.post_send(&Descriptor::new(9, &[buffer.segment(received.token as usize * size, len)]))?;
            next_send(&vi);
            vi.post_receive(&Descriptor::new(received.token, &[place(received.token)]))?;
        }
    }
    vi.connect(&NetAddress::default(), &address, Some(clock::now() + 5_000_000_000))?;
    let begin = clock::now();
    for _ in 0..count {
        vi.post_send(&Descriptor::new(9, &[place(4)]))?;
        let received = next_receive(&vi);
        assert!(!received.status.is_error());
        next_send(&vi);
        vi.post_receive(&Descriptor::new(received.token, &[place(received.token)]))?;
    }
    println!("{size} bytes: half a round trip takes {} ns", (clock::now() - begin) / (2 * count as u64));
    vi.disconnect()
}

fn next_receive(vi: &Vi) -> sidestep_vi::Completion {
    loop {
        if let Some(completion) = vi.poll_receive() {
            return completion;
        }
    }
}

fn next_send(vi: &Vi) -> sidestep_vi::Completion {
    loop {
        if let Some(completion) = vi.poll_send() {
            return completion;
        }
    }
}
