//! The visualization server and the virtual microscope: an image in blocks is clipped, subsampled and viewed.
//!
//! A buffer is one block: eight bytes with its number, then its pixels. The blocks of a query (a unit of work) are all of them
//! (`complete`), the few that come into view (`partial`), or four (`zoom`).

use super::compute::Load;
use crate::filter::{Kind, Kinds, function};
use crate::setting::{ANY_WHOLE, Accepts};

pub(super) fn kinds(kinds: Kinds) -> Kinds {
    kinds
        .with(
            "image",
            Kind::new("gives the blocks of an image of `bytes` bytes that a query asks for", |settings| {
                let bytes: usize = settings.number("bytes", 16 << 20)?;
                Ok(function(move |work| {
                    let output = work.outputs.port("out")?;
                    let pixels = (output.capacity() - NUMBER).max(1);
                    let blocks = bytes.div_ceil(pixels);
                    let wanted = match work.unit.settings.text("query") {
                        Some("partial") => work.unit.settings.number("blocks", 1)?,
                        Some("zoom") => 4,
                        _ => blocks,
                    };
                    let own = (work.copy.0..wanted.min(blocks)).step_by(work.copy.1);
                    for block in own {
                        let mut buffer = output.reserve()?;
                        buffer.copy_in(0, &(block as u64).to_le_bytes())?;
                        let len = pixels.min(bytes - block * pixels);
                        buffer.fill(NUMBER, len, |at, piece| {
                            piece.iter_mut().enumerate().for_each(|(i, pixel)| *pixel = (block + at + i) as u8);
                        })?;
                        buffer.commit(NUMBER + len)?;
                    }
                    Ok(())
                }))
            })
            .output("out", "blocks")
            .setting("bytes", ANY_WHOLE)
            .unit_setting("query", Accepts::OneOf(&["complete", "partial", "zoom"]))
            .unit_setting("blocks", ANY_WHOLE),
        )
        .with(
            "clip",
            Kind::new("keeps the share `keep` of each block, and computes `ns_per_byte`", |settings| {
                let (keep, load): (f64, _) = (settings.number("keep", 1.0)?, Load::new(settings)?);
                shrink(load, move |len| (len as f64 * keep.clamp(0.0, 1.0)) as usize, 1)
            })
            .input("in", "blocks")
            .output("out", "blocks")
            .setting("keep", Accepts::Number(0.0..=1.0))
            .loaded(),
        )
        .with(
            "subsample",
            Kind::new("keeps one pixel of `factor`, and computes `ns_per_byte`", |settings| {
                let (factor, load): (usize, _) = (settings.number("factor", 1)?, Load::new(settings)?);
                let factor = factor.max(1);
                shrink(load, move |len| len.div_ceil(factor), factor)
            })
            .input("in", "blocks")
            .output("out", "blocks")
            .setting("factor", Accepts::Whole(1..=u64::MAX))
            .loaded(),
        )
        .with(
            "view",
            Kind::new("puts the blocks together, and computes `ns_per_byte`", |settings| {
                let load = Load::new(settings)?;
                Ok(function(move |work| {
                    let mut random = work.unit.number;
                    while let Some(mut buffer) = work.inputs.take()? {
                        load.spend(buffer.len(), work.copy.0, &mut random);
                        let sum = buffer.fold_words(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(word)))?;
                        std::hint::black_box(sum);
                    }
                    Ok(())
                }))
            })
            .input("in", "blocks")
            .loaded(),
        )
}

/// Hands blocks on with every `step`th pixel, as many as `keep` says.
fn shrink(
    load: Load,
    keep: impl Fn(usize) -> usize + Send + 'static,
    step: usize,
) -> Result<impl crate::filter::Filter, crate::error::Failure> {
    let mut bytes = Vec::new();
    Ok(function(move |work| {
        let mut random = work.unit.number;
        while let Some(mut buffer) = work.inputs.take()? {
            load.spend(buffer.len(), work.copy.0, &mut random);
            let len = NUMBER.min(buffer.len()) + keep(buffer.len().saturating_sub(NUMBER));
            let mut out = work.outputs.reserve()?;
            if step == 1 && len == buffer.len() {
                out.copy_from(&mut buffer)?;
            } else {
                buffer.read_into(&mut bytes)?;
                let (number, pixels) = bytes.split_at(NUMBER.min(bytes.len()));
                out.copy_in(0, number)?;
                let mut kept = pixels.iter().step_by(step);
                out.fill(number.len(), len - number.len(), |_, piece| {
                    piece.iter_mut().zip(&mut kept).for_each(|(place, pixel)| *place = *pixel);
                })?;
            }
            out.commit(len)?;
        }
        Ok(())
    }))
}

/// The number before the pixels of a block.
const NUMBER: usize = 8;
