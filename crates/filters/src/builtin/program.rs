//! Whole programs as filters: an unmodified program whose standard input and output are ports.
//!
//! With `form = "lines"` buffers hold whole lines. With `form = "records"` each buffer is a record; on the pipes a record is its
//! length, 32 bits little-endian, and its bytes. One process of the program is started for each unit of work and copy.

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::error::Failure;
use crate::filter::{Kind, Kinds, Settings, Work, function};
use crate::port::{Inputs, Output};
use crate::setting::Accepts;

pub(super) fn kinds(kinds: Kinds) -> Kinds {
    let make = |settings: &Settings| {
        let program = Program::new(settings)?;
        Ok(function(move |work| program.run(work)))
    };
    let kind = |about| Kind::new(about, make).needs("command", Accepts::Words).setting("form", Accepts::OneOf(FORMS));
    kinds
        .with(
            "program",
            kind("the program `command`: buffers go to its standard input, and come from its standard output")
                .input("in", crate::filter::ANY)
                .output("out", crate::filter::ANY),
        )
        .with(
            "program-source",
            kind("the program `command`, whose standard output gives buffers").output("out", crate::filter::ANY),
        )
        .with(
            "program-sink",
            kind("the program `command`, whose standard input takes buffers").input("in", crate::filter::ANY),
        )
}

/// What buffers of a program are.
const FORMS: &[&str] = &["lines", "records"];

struct Program {
    command: Vec<String>,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Lines,
    Records,
}

impl Program {
    fn new(settings: &Settings) -> Result<Program, Failure> {
        let words: Vec<String> = settings.need("command")?.split('\n').map(str::to_owned).collect();
        let form = match settings.text("form") {
            None | Some("lines") => Form::Lines,
            Some("records") => Form::Records,
            Some(other) => {
                return Err(Failure::new(format_args!("form must be \"lines\" or \"records\", not {other:?}")));
            }
        };
        Ok(Program { command: words, form })
    }

    fn run(&self, work: &mut Work<'_>) -> Result<(), Failure> {
        let (program, arguments) = self.command.split_first().ok_or_else(|| Failure::new("`command` is empty"))?;
        let has_input = !work.inputs.0.is_empty();
        let output = work.outputs.0.first_mut();
        let mut command = Command::new(program);
        command.args(arguments).stdin(if has_input { Stdio::piped() } else { Stdio::null() });
        command.stdout(if output.is_some() { Stdio::piped() } else { Stdio::inherit() });
        let child = command.spawn().map_err(|error| Failure::new(format_args!("{program}: {error}")))?;
        let mut child = Reaped(child);
        let (to, from) = (child.0.stdin.take(), child.0.stdout.take());
        let id = child.0.id();
        let (ending, finished) = (work.ending, AtomicBool::new(false));
        // Both directions at once: a program may answer before it has read everything, or never read it.
        let (fed, taken) = std::thread::scope(|scope| {
            // A program that neither reads, writes nor ends hears of the end of the epoch by its own.
            let finished = &finished;
            scope.spawn(move || {
                if ending.wait(finished) {
                    kill(id);
                }
            });
            let inputs = &mut *work.inputs;
            let feeding = scope.spawn(move || {
                let fed = to.map_or(Ok(()), |to| feed(inputs, to, self.form));
                if fed.is_err() {
                    kill(id);
                }
                fed
            });
            let taken = match (from, output) {
                (Some(from), Some(output)) if self.form == Form::Lines => give_lines(from, output),
                (Some(from), Some(output)) => give_records(from, output),
                _ => Ok(()),
            };
            if taken.is_err() {
                kill(id);
            }
            let fed = feeding.join().unwrap_or_else(|_| Err(Failure::new("it panicked")));
            await_end(id);
            ending.finish(finished);
            (fed, taken)
        });
        // The end of another copy is the reason, if both failed.
        taken.and(fed)?;
        let status = child.0.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::new(format_args!("{program} ended with {status}"))),
        }
    }
}

/// A child that does not outlive its unit of work.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for the end of a child, and leaves its number to it: others may still [`kill`] it.
fn await_end(id: u32) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    if let Some(pid) = rustix::process::Pid::from_raw(id as i32) {
        while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
    }
}

/// Ends a child that this thread does not own; it is waited for later, so the number is its own.
fn kill(id: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(id as i32) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

fn feed(inputs: &mut Inputs, mut to: impl Write, form: Form) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    while let Some(mut buffer) = inputs.take()? {
        buffer.read_into(&mut bytes)?;
        let written = match form {
            Form::Lines => to.write_all(&bytes),
            Form::Records => to.write_all(&(bytes.len() as u32).to_le_bytes()).and_then(|()| to.write_all(&bytes)),
        };
        match written {
            Ok(()) => {}
            // It wants no more, which is its right.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Cuts what is read at the ends of lines, and gives as many whole ones at a time as fit.
pub(super) fn give_lines(mut from: impl Read, output: &mut Output) -> Result<(), Failure> {
    let mut bytes = vec![0; output.capacity()];
    let mut len = 0;
    loop {
        let count = match from.read(&mut bytes[len..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        len += count;
        let whole = match bytes[..len].iter().rposition(|byte| *byte == b'\n') {
            // The last line need not have an end.
            _ if count == 0 => len,
            Some(at) => at + 1,
            None if len == bytes.len() => {
                return Err(Failure::new(format_args!("a line is longer than a buffer of {len} bytes")));
            }
            None => 0,
        };
        if whole > 0 {
            output.put(&bytes[..whole])?;
            bytes.copy_within(whole..len, 0);
            len -= whole;
        }
        if count == 0 {
            return Ok(());
        }
    }
}

fn give_records(mut from: impl Read, output: &mut Output) -> Result<(), Failure> {
    let mut bytes = vec![0; output.capacity()];
    loop {
        let mut prefix = [0; 4];
        let mut got = 0;
        while got < 4 {
            match from.read(&mut prefix[got..]) {
                Ok(0) if got == 0 => return Ok(()),
                Ok(0) => return Err(Failure::new("the program ended within the length of a record")),
                Ok(count) => got += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let len = u32::from_le_bytes(prefix) as usize;
        let record = bytes.get_mut(..len).ok_or_else(|| {
            Failure::new(format_args!("a record of {len} bytes does not fit into a buffer of the stream"))
        })?;
        from.read_exact(record).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Failure::new("the program ended within a record"),
            _ => error.into(),
        })?;
        output.put(record)?;
    }
}
