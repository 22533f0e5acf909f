//! The second process of a measurement: attaches to paths and takes part in runs, as it is told.

use std::io::stdin;
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::control::{Answer, Control, Order};
use super::exercise::Exercise;
use super::path::{Offer, Work};
use super::{Suite, hosts, place};
use crate::options::BenchWorker;

/// Serves the process that started this one until it ends.
pub fn serve(options: &BenchWorker) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("prctl failed")?;
    // The parent may have ended before the line above, and would then not be noticed.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(options.parent) {
        return Ok(());
    }
    let socket = stdin().as_fd().try_clone_to_owned().context("no control socket")?;
    let mut control = Control::new(socket);
    let outcome = take_orders(options, &mut control);
    if let Err(error) = &outcome {
        // The parent reports it. If it is gone, nobody wants to know.
        let _ = control.send(&Answer::Failed(format!("{error:#}")), &[]);
        std::process::exit(1);
    }
    Ok(())
}

fn take_orders(options: &BenchWorker, control: &mut Control) -> Result<()> {
    if let Some(holder) = options.host {
        hosts::enter(holder)?;
    }
    place::pin(&options.cores)?;
    let suite = Suite::named(&options.suite)?;
    let mut ends: Vec<Box<dyn Exercise>> = Vec::new();
    while let Some((order, descriptors)) = control.receive()? {
        let answer = match order {
            Order::Open { path, wait, note } => {
                let offer = Offer { wait, note, descriptors, peer: control.peer() };
                ends.push(attach(suite, &path, offer).with_context(|| format!("path {path}"))?);
                Answer::Opened
            }
            Order::Run { end, run } => {
                let end = ends.get_mut(end).context("no such end")?;
                Answer::Done(end.follow(&run)?)
            }
        };
        control.send(&answer, &[])?;
    }
    Ok(())
}

fn attach(suite: &Suite, name: &str, offer: Offer) -> Result<Box<dyn Exercise>> {
    let path = suite.paths.iter().find(|path| path.name == name).context("no such path")?;
    match path.work {
        Work::Pair { attach, .. } => attach(offer),
        Work::Solo { .. } => anyhow::bail!("not a path between two processes"),
    }
}
