//! `sidestep rpcinfo`: which programs there are, and whether one answers.

use anyhow::Result;
use sidestep_rpc::rpcbind::Binder;
use sidestep_rpc::{Client, Procedure};

use crate::options::Rpcinfo;

/// Lists, or calls procedure 0.
pub fn run(options: &Rpcinfo) -> Result<()> {
    let (Some(address), Some(program), Some(version)) = (&options.address, options.program, options.version) else {
        return list(options.address.as_deref());
    };
    let null = Procedure { program, version, procedure: 0 };
    Client::connect(address)?.call(null, |_| Ok(()), |_| Ok(()))?;
    println!("program {program} version {version} at {address} answers");
    Ok(())
}

fn list(address: Option<&str>) -> Result<()> {
    let binder = address.map_or_else(Binder::local, Binder::connect)?;
    println!("{:>10} {:>7}  {:8} {:24} owner", "program", "version", "network", "address");
    for entry in binder.list()? {
        println!(
            "{:>10} {:>7}  {:8} {:24} {}",
            entry.program, entry.version, entry.network, entry.address, entry.owner
        );
    }
    Ok(())
}
