//! `sidestep demo`: the same small client and server over kernel TCP and over Sidestep, side by side. Nothing needs to be
//! installed: both programs are this one.

use anyhow::Result;

use crate::bench::sockets::showing;

/// Runs it.
pub fn run() -> Result<()> {
    println!("A client and a server, the same two programs each time; one pair plain, one under `sidestep run`.");
    println!();
    println!("  {:<44} {:>14} {:>14} {:>9}", "", "kernel TCP", "Sidestep", "ratio");
    for line in showing::lines() {
        let shown = line.measure()?;
        println!("  {:<44} {:>14} {:>14} {:>8}x", line.what, shown.tcp, shown.sidestep, shown.ratio);
    }
    println!();
    println!(
        "Try it with programs of yours: sidestep run -- PROGRAM, for both ends. sidestep stat shows what they do."
    );
    Ok(())
}
