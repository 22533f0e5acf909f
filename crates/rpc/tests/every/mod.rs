//! A service of every type, from `crates/idl/tests/every_type.x`.

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

#[rustfmt::skip]
pub mod generated;

use std::sync::atomic::{AtomicI32, Ordering};

use generated::*;
use sidestep_rpc::{Call, Refusal, Server, ServerBuilder};

/// Echoes, counts, and misbehaves where it is asked to.
#[derive(Default)]
pub struct Echo {
    count: AtomicI32,
}

/// What `ECHO_STRING` does besides echoing.
pub const PANIC: &str = "panic";
pub const FORBIDDEN: &str = "forbidden";

impl EveryV1Service for Echo {
    fn every_null(&self, _: &Call<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn echo_all(&self, _: &Call<'_>, argument: Everything) -> Result<Everything, Refusal> {
        Ok(argument)
    }

    fn echo_outcome(&self, _: &Call<'_>, argument: Outcome) -> Result<Outcome, Refusal> {
        Ok(argument)
    }

    fn echo_answer(&self, _: &Call<'_>, argument: Answer) -> Result<Answer, Refusal> {
        Ok(argument)
    }

    fn echo_flag(&self, _: &Call<'_>, argument: Flag) -> Result<Flag, Refusal> {
        Ok(argument)
    }

    fn echo_string(&self, _: &Call<'_>, argument: &str) -> Result<String, Refusal> {
        match argument {
            PANIC => panic!("as the test wants it"),
            FORBIDDEN => Err(Refusal::Auth(sidestep_rpc::AuthError::TooWeak)),
            _ => Ok(argument.to_owned()),
        }
    }

    fn echo_list(&self, _: &Call<'_>, argument: List) -> Result<List, Refusal> {
        Ok(argument)
    }

    fn echo_tree(&self, _: &Call<'_>, argument: Tree) -> Result<Tree, Refusal> {
        Ok(argument)
    }

    fn count(&self, _: &Call<'_>) -> Result<i32, Refusal> {
        Ok(self.count.load(Ordering::SeqCst))
    }

    /// Negative numbers are batched: their callers expect no reply.
    fn add(&self, _: &Call<'_>, argument: i32) -> Result<(), Refusal> {
        self.count.fetch_add(argument.abs(), Ordering::SeqCst);
        if argument < 0 { Err(Refusal::NoReply) } else { Ok(()) }
    }

    fn echo_seal(&self, _: &Call<'_>, argument: Seal) -> Result<Seal, Refusal> {
        Ok(argument)
    }

    fn echo_numbers(&self, _: &Call<'_>, argument: Numbers) -> Result<Numbers, Refusal> {
        Ok(argument)
    }
}

impl EveryV2Service for Echo {
    fn sum(&self, _: &Call<'_>, argument1: i32, argument2: i32) -> Result<i32, Refusal> {
        argument1.checked_add(argument2).ok_or(Refusal::SystemError)
    }
}

pub fn builder() -> ServerBuilder {
    Server::builder().service(EveryV1Server(Echo::default())).service(EveryV2Server(Echo::default()))
}

/// A server on a TCP port of its own, and the address to call.
pub fn tcp_server() -> (Server, String) {
    let server = builder().tcp("127.0.0.1:0").unwrap().start().unwrap();
    let address = format!("tcp:{}", server.addresses().next().unwrap());
    (server, address)
}

pub fn everything() -> Everything {
    let one = Scalars {
        c: -7,
        uc: 200,
        s: i16::MIN,
        us: u16::MAX,
        i: i32::MIN,
        ui: u32::MAX,
        l: -1,
        h: i64::MIN,
        uh: u64::MAX,
        f: 1.5,
        d: -2.25,
        b: true,
        colour: Color::Blue,
    };
    Everything {
        maybe: Some(Scalars { b: false, colour: Color::Red, ..one.clone() }),
        one,
        fixed: *b"digest",
        bytes: vec![1, 2, 3, 4, 5],
        name: "sixteen letters!".into(),
        free: "free text, as long as it likes to be".into(),
        row: [1, -2, 3],
        some: vec![10, 20, 30, 40, 50],
        colours: vec![Color::Green, Color::Red],
        names: vec!["".into(), "two".into(), "three".into()],
        chain: list(&[1, 2, 3]),
        r#type: 42,
    }
}

pub fn list(values: &[i32]) -> List {
    values.iter().rev().fold(None, |next, value| Some(Box::new(Node { value: *value, next })))
}

pub fn tree() -> Tree {
    let leaf = |label: &str| Tree { label: label.into(), branches: Vec::new() };
    Tree { label: "root".into(), branches: vec![leaf("a"), Tree { label: "b".into(), branches: vec![leaf("c")] }] }
}
