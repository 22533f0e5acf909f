//! Starting the card process, and being it.

use std::env::split_paths;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

use super::{CardOptions, serve, serve_at};
use crate::error::{Error, Result};

/// The command that starts the card of a name, and at an address of the fabric if other hosts are to find it:
/// `sidestep card NAME [ADDRESS]`. The program is this one if it is `sidestep`; or that beside it, or in `../bin`, or in `PATH`.
pub fn card_command(name: &str, place: Option<&str>) -> Result<Command> {
    let own = std::env::current_exe().unwrap_or_default();
    let found = find(&own, &std::env::var_os("PATH").unwrap_or_default());
    let beside = || own.parent().map_or_else(String::new, |folder| folder.display().to_string());
    let mut command = Command::new(found.ok_or_else(|| Error::NoProgram { beside: beside() })?);
    command.arg("card").arg(name).args(place);
    Ok(command)
}

/// The program that is a card, for a program that lies at `own` and is to search these folders.
fn find(own: &Path, searched: &OsStr) -> Option<PathBuf> {
    if own.file_name().is_some_and(|file| file == PROGRAM) {
        return Some(own.to_owned());
    }
    let beside = own.parent()?;
    // A test or an example of a build tree lies in a folder beside the program.
    let near = [beside.to_owned(), beside.join(".."), beside.join("../bin")];
    let programs = near.into_iter().chain(split_paths(searched)).map(|folder| folder.join(PROGRAM));
    programs.into_iter().find(|program| program.is_file())
}

/// Is the card of a name until its last process has gone: the whole of a program that [`Attach::start`](super::Attach::start)
/// starts. What goes wrong is said at the standard error. Gives the exit status, which is 75 for a card whose name is taken.
#[must_use]
pub fn be_card(name: &str, place: Option<&str>, options: CardOptions) -> u8 {
    let served = place.map_or_else(|| serve(name, options), |place| serve_at(name, place, options));
    match served {
        Ok(_) => 0,
        Err(error) => {
            eprintln!("sidestep card {name}: {error}");
            if error.is_name_taken() { NAME_TAKEN } else { 1 }
        }
    }
}

/// A card process that this process has started.
#[derive(Debug)]
pub(super) struct Started {
    child: Child,
    program: String,
    /// What it writes to its standard error: a file, so that it never waits for a reader.
    said: File,
}

impl Started {
    /// Starts it, in a process group of its own: it may have other users when this process is interrupted.
    pub(super) fn new(command: &mut Command) -> Result<Started> {
        let program = command.get_program().to_string_lossy().into_owned();
        let start = |command: &mut Command| -> io::Result<(Child, File)> {
            let said = File::from(memfd_create("sidestep-start", MemfdFlags::CLOEXEC)?);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?).process_group(0);
            Ok((command.spawn()?, said))
        };
        match start(command) {
            Ok((child, said)) => Ok(Started { child, program, said }),
            Err(source) => Err(Error::Start { program, source }),
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs. One that found its name taken, or that has ended as a card does, has not failed.
    pub(super) fn is_up(&mut self) -> Result<bool> {
        let Ok(Some(status)) = self.child.try_wait() else { return Ok(true) };
        if status.success() || status.code() == Some(NAME_TAKEN.into()) {
            return Ok(false);
        }
        let mut said = String::new();
        // What cannot be read was not said.
        let _ = self.said.rewind().and_then(|()| (&self.said).take(MOST_SAID).read_to_string(&mut said));
        Err(Error::CardFailed { program: self.program.clone(), status, said: said.trim().to_owned() })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // A card that has ended already is not left behind as a zombie; one that goes on is for others.
        let _ = self.child.try_wait();
    }
}

const PROGRAM: &str = "sidestep";
/// EX_TEMPFAIL of sysexits.h: trying again may help.
const NAME_TAKEN: u8 = 75;
/// Bytes of what a card has said that are repeated.
const MOST_SAID: u64 = 2000;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_program_is_found_where_it_is_installed_or_built() {
        let root = std::env::temp_dir().join(format!("sidestep-start-{}", std::process::id()));
        let make = |folder: &str| {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join(PROGRAM), "").unwrap();
        };
        make("prefix/bin");
        make("tree/debug");
        fs::create_dir_all(root.join("home")).unwrap();
        fs::create_dir_all(root.join("prefix/libexec")).unwrap();
        fs::create_dir_all(root.join("tree/debug/deps")).unwrap();
        let found =
            |own: &str, path: &Path| find(&root.join(own), path.as_os_str()).and_then(|at| at.canonicalize().ok());
        let (installed, built) = (root.join("prefix/bin/sidestep"), root.join("tree/debug/sidestep"));
        let (installed, built) = (installed.canonicalize().unwrap(), built.canonicalize().unwrap());
        let nowhere = root.join("nowhere");
        assert_eq!(found("prefix/bin/sidestep", &nowhere).as_ref(), Some(&installed));
        assert_eq!(found("prefix/bin/other", &nowhere).as_ref(), Some(&installed));
        assert_eq!(found("prefix/libexec/other", &nowhere).as_ref(), Some(&installed));
        assert_eq!(found("tree/debug/deps/test-1", &root.join("prefix/bin")).as_ref(), Some(&built));
        assert_eq!(found("home/program", &root.join("prefix/bin")).as_ref(), Some(&installed));
        assert_eq!(found("home/program", &nowhere), None);
        fs::remove_dir_all(root).unwrap();
    }
}
