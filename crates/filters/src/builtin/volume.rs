//! Isosurfaces: a volume in chunks, of which each copy finds the cells that a surface goes through; a small result follows a
//! large input.

use crate::error::Failure;
use crate::filter::{Kind, Kinds, function};
use crate::setting::{ANY_WHOLE, Accepts};

pub(super) fn kinds(kinds: Kinds) -> Kinds {
    kinds
        .with(
            "volume",
            Kind::new("gives a volume of `bytes` bytes, one value each, in chunks", |settings| {
                let bytes: usize = settings.number("bytes", 64 << 20)?;
                Ok(function(move |work| {
                    let output = work.outputs.port("out")?;
                    let chunk = output.capacity();
                    for number in (work.copy.0..bytes.div_ceil(chunk)).step_by(work.copy.1) {
                        let len = chunk.min(bytes - number * chunk);
                        let mut buffer = output.reserve()?;
                        // A field that rises and falls, so that every surface has cells.
                        buffer.fill(0, len, |at, piece| {
                            piece.iter_mut().enumerate().for_each(|(i, value)| {
                                let place = number * chunk + at + i;
                                *value = (place % 251).abs_diff(place / 251 % 241) as u8;
                            });
                        })?;
                        buffer.commit(len)?;
                    }
                    Ok(())
                }))
            })
            .output("out", "values")
            .setting("bytes", ANY_WHOLE),
        )
        .with(
            "isosurface",
            Kind::new("gives the places where values cross `value`, as 32-bit numbers", |settings| {
                let value: u8 = settings.number("value", 100)?;
                let (mut bytes, mut places) = (Vec::new(), Vec::new());
                Ok(function(move |work| {
                    while let Some(mut buffer) = work.inputs.take()? {
                        buffer.read_into(&mut bytes)?;
                        places.clear();
                        let pairs = bytes.windows(2).enumerate();
                        let crossing = pairs.filter(|(_, pair)| (pair[0] < value) != (pair[1] < value));
                        crossing.for_each(|(at, _)| places.extend_from_slice(&(at as u32).to_le_bytes()));
                        let output = work.outputs.port("out")?;
                        let most = output.capacity() / 4 * 4;
                        if most == 0 {
                            return Err(Failure::new("a buffer holds no place"));
                        }
                        places.chunks(most).try_for_each(|part| output.put(part))?;
                    }
                    Ok(())
                }))
            })
            .input("in", "values")
            .output("out", "places")
            .setting("value", Accepts::Whole(0..=255)),
        )
}
