//! Two processes of one card, here in one program: a buffer is exported, imported, sent into and fetched from.
//!
//! `cargo run -p sidestep-vmmc --example send_fetch`

use sidestep_vmmc::process::{Attach, CardOptions, Handle, Process, serve};
use sidestep_vmmc::{Address, Export, PAGE, Result, Rights};

fn main() -> Result<()> {
    let name = format!("example-{}", std::process::id());
    // A program would give `start` the program `sidestep card` (`process::card_command`); here the card is a thread.
    let card = {
        let name = name.clone();
        std::thread::spawn(move || serve(&name, CardOptions::default()))
    };
    let (mut owner, mut other) = (attach(&name)?, attach(&name)?);

    let export = Export { address: Address(0), len: 2 * PAGE as u64, rights: Rights::ALL, notify: true };
    let buffer = owner.export(export)?;
    // The handle goes to the other process by any way: whoever has it may use the buffer.
    let handle = Handle::from_bytes(&buffer.handle().to_bytes()).expect("a handle");
    let remote = other.import(&handle)?;

    other.write(Address(0), b"hello")?;
    other.send(Address(0), 5, &remote, 100, true)?;
    let notice = owner.wait_notice(None)?;
    let mut there = [0; 5];
    owner.read(Address(notice.at), &mut there)?;
    println!("sent {:?}", String::from_utf8_lossy(&there));

    other.fetch(&remote, 100, 5, Address(4096))?;
    let mut back = [0; 5];
    other.read(Address(4096), &mut back)?;
    println!("fetched {:?}", String::from_utf8_lossy(&back));

    owner.deregister(buffer)?;
    let refused = other.fetch(&remote, 100, 5, Address(4096)).expect_err("the buffer is gone");
    println!("then: {refused}");
    let standing = other.standing()?;
    println!("{} pages locked, {} lines missed", standing.pinned, standing.misses);

    drop((owner, other));
    card.join().expect("no panic in the card")?;
    Ok(())
}

fn attach(name: &str) -> Result<Process> {
    let patience = std::time::Instant::now();
    loop {
        match Process::attach(Attach { name, memory: 4 * PAGE, start: None }) {
            // The thread has not got so far.
            Err(_) if patience.elapsed().as_secs() < 5 => std::thread::yield_now(),
            attached => return attached,
        }
    }
}
