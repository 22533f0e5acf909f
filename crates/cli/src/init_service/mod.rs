//! `sidestep init-service`: the drop-in by which systemd starts a service under Sidestep.

mod drop_in;
mod obstacles;
mod unit;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use sidestep_sockets::config::Users;

use crate::run::library;

use obstacles::Host;
use unit::Unit;

/// Options of `sidestep init-service`.
#[derive(Debug, Args)]
pub struct InitService {
    /// The service: `redis` finds redis.service, or redis-server.service
    #[arg(value_name = "SERVICE")]
    pub service: String,

    /// Write it, instead of printing it
    #[arg(long)]
    pub write: bool,

    /// Where the services of this machine are configured
    #[arg(long, value_name = "FOLDER", default_value = "/etc/systemd/system")]
    pub folder: PathBuf,
}

/// Prints or writes the drop-in, and says what else the service needs.
pub fn run(options: &InitService) -> Result<()> {
    let name = options.service.trim_end_matches(".service");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:\\".contains(c);
    ensure!(!name.is_empty() && name.chars().all(plain), "{} is no name of a service", options.service);
    let library = library::find().map_err(anyhow::Error::msg)?;
    let unit = Unit::find(name, &folders(&options.folder)).unwrap_or_else(|| {
        eprintln!("sidestep: there is no {name}.service on this machine; this is for one without restrictions");
        Unit::new(&format!("{name}.service"), &[])
    });
    let text = drop_in::text(&unit, &library);
    let host = Host { library: &library, users: Users::told_by_host() };
    for obstacle in obstacles::all(&unit, &host) {
        eprintln!("sidestep: {}: {obstacle}", unit.name);
    }
    if !options.write {
        print!("{text}");
        return Ok(());
    }
    let folder = options.folder.join(format!("{}.d", unit.name));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join(drop_in::FILE);
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    println!("{}\nsystemctl daemon-reload && systemctl restart {}", file.display(), unit.name);
    Ok(())
}

/// A drop-in for a service without restrictions, as an example.
pub fn example(library: &Path) -> String {
    drop_in::text(&Unit::new("example.service", &[]), library)
}

/// Where units are, the most important first.
fn folders(own: &Path) -> Vec<PathBuf> {
    let system =
        ["/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
    [own].into_iter().chain(system.iter().map(Path::new)).map(Path::to_owned).collect()
}
