//! `sidestep names`: a naming service for CORBA objects.

use std::io::Write;

use anyhow::{Context, Result, anyhow};
use sidestep_orb::naming::NameServer;
use sidestep_orb::{Orb, Stub};

use crate::options::Names;

/// Prints the reference of the root context and serves.
pub fn run(options: &Names) -> Result<()> {
    let orb = Orb::builder().tcp(&options.listen).build().with_context(|| options.listen.clone())?;
    let names = NameServer::start(&orb)?;
    println!("{}", names.root().object().ior());
    std::io::stdout().flush()?;
    orb.root_poa().manager().activate().map_err(|exception| anyhow!("{exception}"))?;
    orb.run();
    Ok(())
}
