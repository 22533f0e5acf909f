//! A server publishes prices in memory that its client reads by itself. Between the bytes that it sends and receives as ever, the
//! client looks at them while the server does something else.
//!
//! Run it without arguments: it starts itself again as the client.

use std::{
    env,
    error::Error,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    process::Command,
    sync::atomic::Ordering,
};

use sidestep_extended::{Rights, Stack};
use sidestep_sys::clock;

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1) {
        Some(address) => client(&address),
        None => server(),
    }
}

fn server() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut child = Command::new(env::current_exe()?).arg(listener.local_addr()?.to_string()).spawn()?;
    let mut connection = listener.accept()?.0;

    let stack = Stack::new()?;
    let completions = stack.completion_queue()?;
    let socket = stack.enable(connection.as_fd(), &completions, in_seconds(10))?;
    let prices = stack.register(4096, Rights::READ)?;
    prices.word64(0)?.store(100, Ordering::Release);
    socket.export(&prices, Rights::READ, 1)?;

    // A byte says that the price has changed; the price itself is never sent.
    prices.word64(0)?.store(120, Ordering::Release);
    connection.write_all(b"!")?;
    connection.read_exact(&mut [0])?;
    drop(socket);
    child.wait()?;
    Ok(())
}

fn client(address: &str) -> Result<(), Box<dyn Error>> {
    let mut connection = TcpStream::connect(address)?;
    let stack = Stack::new()?;
    let completions = stack.completion_queue()?;
    let socket = stack.enable(connection.as_fd(), &completions, in_seconds(10))?;
    let prices = socket.import(Some(in_seconds(10)))?;
    println!("the client reads without the server: {}", prices.reads_directly());
    println!("the client may not write: {}", socket.put(&prices, 0, b"0").unwrap_err());

    connection.read_exact(&mut [0])?;
    let mut price = [0; 8];
    socket.get(&prices, 0, &mut price)?;
    println!("the price is {}", u64::from_le_bytes(price));
    connection.write_all(b".")?;
    Ok(())
}

fn in_seconds(seconds: u64) -> u64 {
    clock::now() + seconds * 1_000_000_000
}
