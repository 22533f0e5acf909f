//! A server with one object, and a client that calls it: `echo server`, and then `echo client IOR:...`.

mod client;
#[path = "generated.rs"]
mod echo;
mod server;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["server"] => server::run(),
        ["client", reference] => client::run(reference),
        _ => Err("usage: echo server | echo client REFERENCE".into()),
    }
}
