//! A TCP connection whose ends are both enabled, in one process with two stacks, over each of the providers.

#![allow(dead_code)]

pub mod far;
pub mod provider;

pub use provider::Provider;

use std::{
    net::TcpStream,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use sidestep_extended::{Completion, CompletionQueue, Kind, Region, Remote, Rights, Socket, Stack};
use sidestep_sys::clock;
use sidestep_testkit::process::PATIENCE_NS;

pub struct Pair {
    pub near: Socket,
    pub far: Socket,
    pub near_queue: CompletionQueue,
    pub far_queue: CompletionQueue,
    pub near_stack: Stack,
    pub far_stack: Stack,
    pub near_stream: TcpStream,
    pub far_stream: TcpStream,
}

/// A thread that makes progress for a stack.
pub struct Serving {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The end of every patience: a busy machine is no failure.
pub fn soon() -> u64 {
    clock::now() + PATIENCE_NS
}

/// So many milliseconds from now.
pub fn now_and(milliseconds: u64) -> u64 {
    clock::now() + milliseconds * 1_000_000
}

/// Enables both ends, the far one in another thread.
pub fn enable(
    provider: &Provider,
    near: (&Stack, &CompletionQueue),
    far: (&Stack, &CompletionQueue),
    near_stream: &TcpStream,
    far_stream: &TcpStream,
) -> (Socket, Socket) {
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            provider.go_to_far();
            far.0.enable(far_stream.as_fd(), far.1, soon())
        });
        let near = near.0.enable(near_stream.as_fd(), near.1, soon()).unwrap();
        (near, other.join().unwrap().unwrap())
    })
}

pub fn outcome_of(completion: &Completion) -> (Kind, u64, Result<usize, i32>) {
    (completion.kind, completion.token, completion.outcome.clone().map_err(|error| error.errno()))
}

/// Takes so many completions, but for those of exports.
pub fn take(queue: &CompletionQueue, count: usize) -> Vec<Completion> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let left = count - taken.len();
        queue.wait(&mut taken, left, Some(soon())).expect("completions");
        taken.retain(|completion| completion.kind != Kind::Export);
    }
    taken
}

impl Pair {
    pub fn new(provider: &Provider) -> Pair {
        let (near, far) = provider.connected();
        Pair::over(provider, near, far)
    }

    pub fn over(provider: &Provider, near_stream: TcpStream, far_stream: TcpStream) -> Pair {
        let (near_stack, far_stack) = (provider.stack(), provider.stack());
        let (near_queue, far_queue) = (near_stack.completion_queue().unwrap(), far_stack.completion_queue().unwrap());
        let (near, far) =
            enable(provider, (&near_stack, &near_queue), (&far_stack, &far_queue), &near_stream, &far_stream);
        Pair { near, far, near_queue, far_queue, near_stack, far_stack, near_stream, far_stream }
    }

    /// A region of the far end, and the same as the near end sees it.
    pub fn shared(&self, len: usize, rights: Rights) -> (Region, Remote) {
        let region = self.far_stack.register(len, rights).unwrap();
        self.far.export(&region, rights, 42).unwrap();
        let _serving = self.serve_far();
        (region, self.near.import(Some(soon())).unwrap())
    }

    pub fn serve_far(&self) -> Serving {
        let (stop, stack) = (Arc::new(AtomicBool::new(false)), self.far_stack.clone());
        let told = stop.clone();
        let thread = thread::spawn(move || stack.node().serve(&told).unwrap());
        Serving { stop, thread: Some(thread) }
    }

    pub fn near_completions(&self, count: usize) -> Vec<Completion> {
        take(&self.near_queue, count)
    }

    /// Takes so many completions of the far end, while the near one sends what did not fit before.
    pub fn far_completions(&self, count: usize) -> Vec<Completion> {
        let (mut taken, deadline) = (Vec::new(), soon());
        while taken.len() < count {
            assert!(clock::now() < deadline, "{} of {count} completions", taken.len());
            self.near_queue.poll(&mut Vec::new(), 0);
            let left = count - taken.len();
            self.far_queue.poll(&mut taken, left);
            taken.retain(|completion| completion.kind != Kind::Export);
        }
        taken
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
