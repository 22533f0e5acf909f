//! A process at the far end of a connection.

use std::{net::TcpStream, os::fd::AsFd};

use sidestep_extended::{CompletionQueue, Options, Socket, Stack};
use sidestep_testkit::process::{Child, Role};

use super::{
    provider::{self, Provider},
    soon,
};

/// One end in this process.
pub struct End {
    pub stream: TcpStream,
    pub stack: Stack,
    pub queue: CompletionQueue,
    pub socket: Socket,
}

impl End {
    pub fn enable(stream: TcpStream, stack: Stack) -> End {
        let queue = stack.completion_queue().unwrap();
        let socket = stack.enable(stream.as_fd(), &queue, soon()).unwrap();
        End { stream, stack, queue, socket }
    }
}

/// Starts a child in a role at the far end, with a connection to it.
pub fn start(provider: &Provider, role: &str, arguments: &[&str]) -> (Child, TcpStream) {
    let listener = provider.listen();
    let (address, holder) = (listener.local_addr().unwrap().to_string(), provider.far_holder());
    let child = Child::start(role, &[&[address.as_str(), &holder], arguments].concat());
    (child, listener.accept().unwrap().0)
}

/// In the child: the connection to the parent, and what a stack is made with.
pub fn connect(role: &Role) -> (TcpStream, Options) {
    let options = provider::enter(&role.arguments[1]);
    (TcpStream::connect(&role.arguments[0]).unwrap(), options)
}

/// In the child: that connection, enabled.
pub fn enabled(role: &Role) -> End {
    let (stream, options) = connect(role);
    End::enable(stream, Stack::with(options).unwrap())
}
