//! Ten thousand connections to one server in the long form (`./test full`), five hundred otherwise.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn connections() -> usize {
    if std::env::var_os("SIDESTEP_FULL").is_some_and(|value| value != "0") { 10_000 } else { 500 }
}

/// The example's store.
const PROGRAM: u32 = 0x2000_0099;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_crowd_of_connections_is_served() {
    let most = getrlimit(Resource::Nofile).maximum;
    let wanted = connections() as u64 + 100;
    if most.is_some_and(|most| most < wanted) {
        eprintln!("left out: a process here may have {most:?} descriptors, and {wanted} are needed");
        return;
    }
    // The server inherits it.
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: most }).unwrap();
    let folder = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples");
    let mut command = Command::new(folder.join("key_value"));
    let mut server = Running(command.args(["serve", "tcp:127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split_whitespace().nth(2).expect("an address");

    let words = [0x8000_0028, 9, 0, 2, PROGRAM, 1, 0, 0, 0, 0, 0];
    let call: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    let mut connections: Vec<TcpStream> = (0..connections()).map(|_| TcpStream::connect(address).unwrap()).collect();
    for _ in 0..2 {
        connections.iter_mut().for_each(|connection| connection.write_all(&call).unwrap());
        connections.iter_mut().for_each(|connection| connection.read_exact(&mut [0; 28]).unwrap());
    }
}
