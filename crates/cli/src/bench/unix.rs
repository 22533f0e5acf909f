//! Baseline: a pair of UNIX stream sockets.

use std::os::unix::net::UnixStream;

use anyhow::{Context, Result};

use super::descriptor::{self, Descriptors};
use super::exercise::Exercise;
use super::path::{Opening, Path, Work};

/// The path.
pub const PATH: Path = Path {
    name: "unix",
    about: "baseline: UNIX stream sockets, blocking; unix-spin: non-blocking in a loop",
    work: Work::Pair { open, attach: descriptor::attach },
    parts: &descriptor::parts("unix", "unix-spin"),
};

fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let (here, there) = UnixStream::pair().context("no UNIX socket pair")?;
    descriptor::open(opening, Descriptors::both_ways(here)?, Descriptors::both_ways(there)?)
}
