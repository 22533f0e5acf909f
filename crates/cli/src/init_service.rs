//! `sidestep init-service`: the drop-in by which systemd starts a service under Sidestep.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::run::library;

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
    let found = find(name, &folders(&options.folder));
    let (unit, text) = match &found {
        Some((unit, text)) => (unit.clone(), text.as_str()),
        None => (format!("{name}.service"), ""),
    };
    let drop_in = drop_in(text, &library);
    if found.is_none() {
        eprintln!("sidestep: there is no {name}.service on this machine; this is for one without restrictions");
    }
    for note in notes(text) {
        eprintln!("sidestep: {unit}: {note}");
    }
    if !options.write {
        print!("{drop_in}");
        return Ok(());
    }
    let folder = options.folder.join(format!("{unit}.d"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join(FILE);
    fs::write(&file, drop_in).with_context(|| format!("cannot write {}", file.display()))?;
    println!("{}\nsystemctl daemon-reload && systemctl restart {unit}", file.display());
    Ok(())
}

/// A drop-in for a service without restrictions, as an example.
pub fn example(library: &Path) -> String {
    drop_in("", library)
}

/// What has to be added to a unit with this text.
fn drop_in(unit: &str, library: &Path) -> String {
    let library = library.display();
    let mut lines = vec![
        "# Made by `sidestep init-service`. Without this file the service runs as before.".to_owned(),
        "[Service]".to_owned(),
        format!("Environment=LD_PRELOAD={library}"),
        "# Options are variables, as in docs/operating.md:".to_owned(),
        "#Environment=SIDESTEP_PROFILE=latency".to_owned(),
    ];
    if has(unit, "RestrictAddressFamilies") {
        lines.push("# The two ends of a connection meet over UNIX sockets, and ask the kernel about it.".into());
        lines.push("RestrictAddressFamilies=AF_UNIX AF_NETLINK".into());
    }
    if has(unit, "SystemCallFilter") {
        lines.push("# A call that is not allowed fails, instead of ending the service.".into());
        lines.push("SystemCallErrorNumber=EPERM".into());
    }
    if has(unit, "NoExecPaths") {
        lines.push(format!("ExecPaths={library}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// What a unit has that keeps its connections on TCP.
fn notes(unit: &str) -> Vec<&'static str> {
    let is = |key: &str| values(unit, key).any(|value| matches!(value, "true" | "yes" | "1" | "on"));
    let mut notes = Vec::new();
    if values(unit, "User").last().is_some_and(|user| user != "root") {
        notes.push("it has a user of its own; only programs of the same user are accelerated with it");
    }
    if is("DynamicUser") {
        notes.push("DynamicUser= gives it a user that no other program has: nothing is accelerated");
    }
    if is("PrivateUsers") {
        notes.push("PrivateUsers= hides its user from others: set PrivateUsers=no if `sidestep why` says so");
    }
    if is("PrivateNetwork") {
        notes.push("PrivateNetwork= gives it a network of its own: only programs within it are accelerated");
    }
    notes
}

fn has(unit: &str, key: &str) -> bool {
    values(unit, key).next().is_some()
}

/// The values of a setting, in order.
fn values<'a>(unit: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    unit.lines().filter_map(move |line| Some(line.trim().strip_prefix(key)?.trim_start().strip_prefix('=')?.trim()))
}

/// Where units are, the most important first.
fn folders(own: &Path) -> Vec<PathBuf> {
    let system =
        ["/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
    [own].into_iter().chain(system.iter().map(Path::new)).map(Path::to_owned).collect()
}

/// The unit of a name, and its text.
fn find(name: &str, folders: &[PathBuf]) -> Option<(String, String)> {
    for unit in [format!("{name}.service"), format!("{name}-server.service"), format!("{name}d.service")] {
        let text = |folder: &PathBuf| Some((folder.join(&unit), fs::read_to_string(folder.join(&unit)).ok()?));
        if let Some((file, text)) = folders.iter().find_map(text) {
            // Some are known by a second name, which is a link to the first.
            let first = file.canonicalize().ok().and_then(|file| Some(file.file_name()?.to_str()?.to_owned()));
            return Some((first.filter(|name| name.ends_with(".service")).unwrap_or(unit), text));
        }
    }
    None
}

const FILE: &str = "sidestep.conf";

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: &str = "[Service]\nUser=redis\nPrivateUsers = true\nNoExecPaths=/\nSystemCallFilter=@system-service\n\
                        RestrictAddressFamilies=AF_INET\n#DynamicUser=yes\n";

    #[test]
    fn restrictions_of_a_unit_are_answered() {
        let plain = drop_in("[Service]\n", Path::new("/usr/lib/sidestep/libsidestep.so"));
        assert!(plain.contains("\nEnvironment=LD_PRELOAD=/usr/lib/sidestep/libsidestep.so\n"), "{plain}");
        assert!(!plain.contains("Restrict") && !plain.contains("SystemCall"), "{plain}");
        let strict = drop_in(UNIT, Path::new("/lib/x.so"));
        for line in ["RestrictAddressFamilies=AF_UNIX AF_NETLINK", "SystemCallErrorNumber=EPERM", "ExecPaths=/lib/x.so"]
        {
            assert!(strict.lines().any(|own| own == line), "{line} in\n{strict}");
        }
        assert_eq!(notes(UNIT).len(), 2, "{:?}", notes(UNIT));
        assert!(notes("[Service]\nUser=root\n").is_empty());
    }

    #[test]
    fn units_are_found_under_their_usual_names() {
        let folder = std::env::temp_dir().join(format!("sidestep-units-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("redis-server.service"), UNIT).expect("a unit");
        let folders = [folder.clone()];
        assert_eq!(find("redis", &folders).map(|(unit, _)| unit), Some("redis-server.service".into()));
        std::os::unix::fs::symlink("redis-server.service", folder.join("cache.service")).expect("a link");
        assert_eq!(find("cache", &folders).map(|(unit, _)| unit), Some("redis-server.service".into()));
        assert!(find("nothing", &folders).is_none());
        fs::remove_dir_all(folder).expect("it is removed");
    }
}
