//! Baseline: two pipes, one for each direction.

use anyhow::{Context, Result};
use rustix::pipe::{PipeFlags, pipe_with};

use super::descriptor::{self, Descriptors};
use super::exercise::Exercise;
use super::path::{Opening, Path, Work};

/// The path.
pub const PATH: Path = Path {
    name: "pipe",
    about: "baseline: a pipe in each direction, blocking; pipe-spin: non-blocking in a loop",
    work: Work::Pair { open, attach: descriptor::attach },
    parts: &descriptor::parts("pipe", "pipe-spin"),
};

fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let (reader, their_writer) = pipe_with(PipeFlags::CLOEXEC).context("no pipe")?;
    let (their_reader, writer) = pipe_with(PipeFlags::CLOEXEC).context("no pipe")?;
    let here = Descriptors { reader, writer };
    let there = Descriptors { reader: their_reader, writer: their_writer };
    descriptor::open(opening, here, there)
}
