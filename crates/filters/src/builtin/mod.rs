//! The kinds of filters that `sidestep pipe` has: whole programs, files, and the applications of the documents.

mod compute;
mod files;
mod image;
mod program;
mod volume;

use crate::filter::{ANY, Kind, Kinds, function};

/// All of them.
pub fn kinds() -> Kinds {
    let kinds = Kinds::new()
        .with("pass", Kind::new("hands buffers on", |_| Ok(function(pass))).input("in", ANY).output("out", ANY))
        .with("null", Kind::new("takes buffers and forgets them", |_| Ok(function(null))).input("in", ANY));
    let families = [compute::kinds, files::kinds, image::kinds, volume::kinds, program::kinds];
    families.into_iter().fold(kinds, |kinds, add| add(kinds))
}

fn pass(work: &mut crate::Work<'_>) -> Result<(), crate::Failure> {
    while let Some(mut buffer) = work.inputs.take()? {
        let len = buffer.len();
        let mut out = work.outputs.reserve()?;
        out.copy_from(&mut buffer)?;
        out.commit(len)?;
    }
    Ok(())
}

fn null(work: &mut crate::Work<'_>) -> Result<(), crate::Failure> {
    while work.inputs.take()?.is_some() {}
    Ok(())
}
