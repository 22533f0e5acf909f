//! Work of a known size: what a filter computes, without what it would find.

use std::time::{Duration, Instant};

use crate::error::Failure;
use crate::filter::{ANY, Kind, Kinds, Settings, function};
use crate::setting::{ANY_WHOLE, Accepts, NOT_NEGATIVE};

pub(super) fn kinds(kinds: Kinds) -> Kinds {
    kinds
        .with(
            "generate",
            Kind::new("gives `bytes` bytes, or those of the unit, in buffers as large as the stream has them", |settings| {
                let bytes: u64 = settings.number("bytes", 1 << 20)?;
                Ok(function(move |work| {
                    let bytes = work.unit.settings.number("bytes", bytes)?;
                    let (copy, copies) = (work.copy.0 as u64, work.copy.1 as u64);
                    // Copies share the bytes.
                    let mut left = bytes / copies + u64::from(copy < bytes % copies);
                    let mut count = 0u64;
                    while left > 0 {
                        let mut buffer = work.outputs.reserve()?;
                        let len = left.min(buffer.capacity() as u64) as usize;
                        buffer.fill_words(0, len, |at| (count << 32 | at as u64).to_le_bytes())?;
                        buffer.commit(len)?;
                        left -= len as u64;
                        count += 1;
                    }
                    Ok(())
                }))
            })
            .output("out", ANY)
            .setting("bytes", ANY_WHOLE)
            .unit_setting("bytes", ANY_WHOLE),
        )
        .with(
            "compute",
            Kind::new(
                "computes `ns_per_byte` over each buffer and hands it on; copy 0 is `slower` times slower, each with `chance`",
                |settings| {
                    let load = Load::new(settings)?;
                    Ok(function(move |work| {
                        let mut random = 0x9e37_79b9_7f4a_7c15 ^ work.unit.number;
                        while let Some(mut buffer) = work.inputs.take()? {
                            load.spend(buffer.len(), work.copy.0, &mut random);
                            let len = buffer.len();
                            let mut out = work.outputs.reserve()?;
                            out.copy_from(&mut buffer)?;
                            out.commit(len)?;
                        }
                        Ok(())
                    }))
                },
            )
            .input("in", ANY)
            .output("out", ANY)
            .loaded(),
        )
}

impl Kind {
    /// Adds the settings of a [`Load`].
    pub(super) fn loaded(self) -> Kind {
        let share = Accepts::Number(0.0..=1.0);
        self.setting("ns_per_byte", NOT_NEGATIVE).setting("slower", NOT_NEGATIVE).setting("chance", share)
    }
}

/// How much a copy computes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    ns_per_byte: f64,
    slower: f64,
    /// How often, of a thousand buffers, any copy is slow; without it copy 0 always is.
    chance: Option<u64>,
}

impl Load {
    pub fn new(settings: &Settings) -> Result<Load, Failure> {
        let chance = match settings.text("chance") {
            Some(_) => Some((settings.number("chance", 0.0f64)? * 1000.0) as u64),
            None => None,
        };
        Ok(Load { ns_per_byte: settings.number("ns_per_byte", 0.0)?, slower: settings.number("slower", 1.0)?, chance })
    }

    /// Takes the time that `bytes` take.
    pub fn spend(&self, bytes: usize, copy: usize, random: &mut u64) {
        if self.ns_per_byte == 0.0 {
            return;
        }
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let is_slow = self.chance.map_or(copy == 0, |chance| (*random >> 33) % 1000 < chance);
        let factor = if is_slow { self.slower } else { 1.0 };
        let time = Duration::from_nanos((bytes as f64 * self.ns_per_byte * factor) as u64);
        let began = Instant::now();
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    }
}
