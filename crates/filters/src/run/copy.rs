//! The thread of one copy: it works on one unit after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use sidestep_sys::clock;

use super::ending::Ending;
use super::message::Report;
use crate::counters::Counters;
use crate::error::{Cause, Failure};
use crate::filter::{Filter, Kind, Settings, Unit, Work};
use crate::graph::CopyId;
use crate::port::{Inputs, Outputs, delay};

/// A copy that is about to start.
pub(super) struct Copy {
    pub id: CopyId,
    pub copies: usize,
    pub epoch: u64,
    pub kind: Kind,
    pub settings: Settings,
    pub inputs: Inputs,
    pub outputs: Outputs,
    pub counters: Arc<Counters>,
    pub ending: Arc<Ending>,
}

impl Copy {
    /// Works until there are no more units, or one fails.
    pub fn run(mut self, units: &Receiver<Unit>, report: &dyn Fn(Report)) {
        let (epoch, copy) = (self.epoch, self.id);
        let mut filter: Option<Box<dyn Filter>> = None;
        for unit in units {
            report(Report::Began { epoch, copy, unit: unit.number });
            let began = clock::now();
            self.counters.works(began);
            delay::begin(began);
            let outcome = catch_unwind(AssertUnwindSafe(|| self.work(&mut filter, &unit)));
            let now = clock::now();
            self.counters.worked(now - began, delay::end(now));
            let failure = match outcome {
                Ok(Ok(())) => {
                    report(Report::Finished { epoch, copy, unit: unit.number });
                    continue;
                }
                Ok(Err(failure)) => failure,
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                    Failure::new(format_args!("it panicked: {}", text.unwrap_or("without a word")))
                }
            };
            // First the word, so that it is known before the neighbours see the end of their connections.
            let (what, cause) = (failure.to_string(), failure.cause());
            report(Report::Failed { epoch, copy, unit: unit.number, what, cause });
            return;
        }
    }

    fn work(&mut self, filter: &mut Option<Box<dyn Filter>>, unit: &Unit) -> Result<(), Failure> {
        let filter = match filter {
            Some(filter) => filter,
            None => filter.insert((self.kind.make)(&self.settings)?),
        };
        self.inputs.begin(unit.number);
        filter.init(unit)?;
        let copy = (self.id.copy, self.copies);
        let Copy { inputs, outputs, ending, .. } = self;
        filter.process(&mut Work { unit, copy, inputs, outputs, ending })?;
        self.outputs.finish(unit.number)?;
        self.inputs.finish()?;
        filter.finalize(unit)
    }
}

/// Whether a failure is only what another one led to.
pub(super) fn follows_another(cause: Cause) -> bool {
    cause != Cause::Own
}
