//! A program as a child: signals are handed on to it, and this process ends as it did.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitCode, ExitStatus},
    thread,
    time::Instant,
};

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use signal_hook::{
    consts::signal,
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::emulate_default_handler,
};

use sidestep_sockets::{config::WATCHER, registry::Registry};

use super::summary;

/// Runs it to its end, and says what became of its connections.
pub fn run(mut command: Command, name: &str, directory: &str) -> io::Result<ExitCode> {
    let begin = Instant::now();
    // Before there is a child, so that none is lost; it waits until there is one.
    let signals = SignalsInfo::<WithOrigin>::new(HANDED_ON)?;
    // Opened before the program begins, and looked at when it has ended: a registry lives as long as someone has it.
    let made = Registry::open(directory);
    let registry = made.ok().and_then(|_made| Registry::look(directory));
    // What the program leaves there is not used again while this process lives.
    command.env(WATCHER, std::process::id().to_string());
    let child = command.spawn()?;
    let process = child.id();
    let status = wait(child, signals)?;
    eprintln!("sidestep: {name} ended after {:.3} s: {status}", begin.elapsed().as_secs_f64());
    eprintln!("sidestep: {}", summary::of(process, registry.as_ref(), directory));
    Ok(end_like(status))
}

fn wait(mut child: Child, mut signals: SignalsInfo<WithOrigin>) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(&child);
    let handle = signals.handle();
    let forwarder = thread::spawn(move || {
        for origin in signals.forever() {
            // What the terminal sends, it sends to the child as well.
            if origin.process.is_some()
                && let Some(signal) = Signal::from_named_raw(origin.signal)
            {
                let _ = kill_process(pid, signal);
            }
        }
    });
    // The number is the child's until `wait` returns; the forwarder may at worst be late by one signal.
    let status = child.wait();
    handle.close();
    let _ = forwarder.join();
    status
}

/// The child's exit code, or its death.
fn end_like(status: ExitStatus) -> ExitCode {
    if let Some(number) = status.signal() {
        // The child's core is the one that is wanted.
        let _ = setrlimit(Resource::Core, rustix::process::Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
        let _ = emulate_default_handler(number);
        return ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX));
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Signals that ask a program for something. Others are the job control's, or cannot be caught.
const HANDED_ON: [i32; 9] = [
    signal::SIGHUP,
    signal::SIGINT,
    signal::SIGQUIT,
    signal::SIGTERM,
    signal::SIGUSR1,
    signal::SIGUSR2,
    signal::SIGALRM,
    signal::SIGCONT,
    signal::SIGWINCH,
];
