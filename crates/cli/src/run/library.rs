//! Where the preload library is: beside this program in a build tree, or in its place in an installed one.

use std::{
    cmp::Reverse,
    env,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The library's file.
pub const NAME: &str = "libsidestep.so";

/// Its path.
pub fn find() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("cannot tell where this program is: {error}"))?;
    let folder = program.parent().unwrap_or(&program);
    let places = [folder.join(NAME), folder.join("deps").join(NAME), folder.join("../lib/sidestep").join(NAME)];
    let found = newest(&places);
    let found = found.ok_or_else(|| {
        format!(
            "{NAME} is neither beside {} nor in ../lib/sidestep: in the source tree, build it with `cargo build --release \
             --package sidestep-preload` and copy it there, or install everything with `./sidestep install`",
            program.display()
        )
    })?;
    // The dynamic linker takes a blank or a colon for the end of a name.
    let path = found.canonicalize().map_err(|error| format!("{}: {error}", found.display()))?;
    match path.to_str().is_none_or(|path| path.contains([' ', ':'])) {
        true => Err(format!("{}: a path with a blank or a colon cannot be preloaded", path.display())),
        false => Ok(path),
    }
}

/// The newest of the files that are there, the first of equals: cargo keeps two in a build tree, and does not always renew the
/// first; when it does, the two are one file by two names.
fn newest(places: &[PathBuf]) -> Option<&PathBuf> {
    places.iter().filter(|place| place.is_file()).min_by_key(|place| Reverse(modified(place)))
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|status| status.modified()).ok()
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        time::Duration,
    };

    use super::*;

    #[test]
    fn of_one_file_by_two_names_the_first_is_found() {
        let folder = env::temp_dir().join(format!("sidestep-library-{}", std::process::id()));
        fs::create_dir_all(folder.join("deps")).expect("a folder");
        let places = [folder.join(NAME), folder.join("deps").join(NAME), folder.join("none").join(NAME)];
        assert_eq!(newest(&places), None);
        let built = File::create(&places[1]).expect("a file");
        assert_eq!(newest(&places), Some(&places[1]));
        fs::hard_link(&places[1], &places[0]).expect("a second name");
        assert_eq!(newest(&places), Some(&places[0]));
        fs::remove_file(&places[0]).expect("a name");
        let old = File::create(&places[0]).expect("a file");
        let now = SystemTime::now();
        old.set_modified(now - Duration::from_secs(60)).expect("a time");
        built.set_modified(now).expect("a time");
        assert_eq!(newest(&places), Some(&places[1]), "only this one was renewed");
        fs::remove_dir_all(folder).expect("it is removed");
    }
}
