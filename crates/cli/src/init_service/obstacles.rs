//! What a service has that keeps the library out of it, or its connections on TCP, and that no line of a drop-in may answer.

use std::{
    ffi::CString,
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::Path,
};

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use sidestep_sockets::config::{Users, options::DIRECTORY, users::HOST};

use super::unit::Unit;
use crate::{census::owner, run::program::Program};

/// What a unit meets on this machine.
#[derive(Debug)]
pub struct Host<'a> {
    /// The library that it is to load.
    pub library: &'a Path,
    /// What the file of the administrator says of users.
    pub users: Result<Option<Users>, String>,
}

/// Everything that is in the way, in sentences about the service.
pub fn all(unit: &Unit, host: &Host<'_>) -> Vec<String> {
    let account = Account::of(unit);
    let mut found: Vec<String> = [program(unit), of_users(&account, &host.users)].into_iter().flatten().collect();
    found.extend(apart(unit));
    found.extend(hidden(unit, host.library, &account));
    found
}

/// As whom a service runs.
#[derive(Debug, PartialEq, Eq)]
enum Account {
    /// As this user, with these groups.
    Known { user: u32, groups: Vec<u32> },
    /// As one that systemd makes for it, or that is not on this machine.
    Unknown,
}

impl Account {
    fn of(unit: &Unit) -> Account {
        let name = unit.last("User").filter(|name| !name.is_empty());
        if unit.is_on("DynamicUser") {
            return Account::Unknown;
        }
        let Some(name) = name else { return Account::Known { user: 0, groups: vec![0] } };
        let user = match name.parse() {
            Ok(number) => User::from_uid(Uid::from_raw(number)),
            Err(_) => User::from_name(name),
        };
        let Ok(Some(user)) = user else { return Account::Unknown };
        let own = unit.last("Group").filter(|name| !name.is_empty()).and_then(|name| match name.parse() {
            Ok(number) => Some(Gid::from_raw(number)),
            Err(_) => Some(Group::from_name(name).ok()??.gid),
        });
        let known = CString::new(user.name).ok().and_then(|name| getgrouplist(&name, user.gid).ok());
        let groups = known.unwrap_or_default().into_iter().chain([own.unwrap_or(user.gid)]).map(Gid::as_raw);
        Account::Known { user: user.uid.as_raw(), groups: groups.collect() }
    }

    /// Whether it may use a file or a folder in this way, by its mode: 4 to read, 1 to go through.
    fn may(&self, status: &Metadata, way: u32) -> bool {
        let shift = match self {
            Account::Known { user: 0, .. } => return true,
            Account::Known { user, .. } if *user == status.uid() => 6,
            Account::Known { groups, .. } if groups.contains(&status.gid()) => 3,
            Account::Known { .. } | Account::Unknown => 0,
        };
        status.mode() >> shift & way == way
    }
}

/// A program that no library gets into.
fn program(unit: &Unit) -> Option<String> {
    let first = unit.words("ExecStart").into_iter().next()?;
    let path = first.trim_start_matches(['@', '-', ':', '+', '!', '|']);
    let why = Program::find(path.as_ref()).ok()?.loading().why_not()?;
    Some(format!("{path} {why}: its connections stay on TCP"))
}

/// What the host allows between users.
fn of_users(account: &Account, host: &Result<Option<Users>, String>) -> Option<String> {
    let named = |users: &[u32]| matches!(account, Account::Known { user, .. } if users.contains(user));
    let why = match host {
        Ok(None | Some(Users::Any)) => return None,
        Ok(Some(Users::Listed(users))) if named(users) => return None,
        Ok(Some(Users::Listed(_))) => "does not name its user".to_owned(),
        Ok(Some(Users::Same)) => "keeps users apart".to_owned(),
        Err(why) => format!("cannot be understood ({why})"),
    };
    let whose = match account {
        Account::Known { user, .. } => format!("programs of user {}", owner::shown(*user)),
        Account::Unknown => "programs of its own user".to_owned(),
    };
    Some(format!("{HOST} {why}: it is accelerated with {whose} alone"))
}

/// What keeps it apart from other programs.
fn apart(unit: &Unit) -> Vec<String> {
    let mut found = Vec::new();
    let is_given = |key: &str| unit.last(key).is_some_and(|value| !value.is_empty());
    if unit.is_on("PrivateUsers") || unit.last("PrivateUsers") == Some("self") {
        found.push(
            "PrivateUsers= hides other users from it: it is accelerated with programs of its own user alone".into(),
        );
    }
    if unit.is_on("PrivateNetwork") || is_given("NetworkNamespacePath") {
        found.push(
            "PrivateNetwork= or NetworkNamespacePath= gives it a network of its own: only programs within it are accelerated"
                .into(),
        );
    }
    if unit.is_on("PrivateIPC") || is_given("IPCNamespacePath") {
        found.push(
            "PrivateIPC= or IPCNamespacePath= keeps it apart from other programs of its own user, which stay on TCP with it"
                .into(),
        );
    }
    found
}

/// What hides from it the library, or the folder in which programs meet.
fn hidden(unit: &Unit, library: &Path, account: &Account) -> Vec<String> {
    let directory = unit.variable(DIRECTORY.variable).unwrap_or_else(|| DIRECTORY.default.to_owned());
    let directory = Path::new(&directory);
    let install = "so it runs without: `sidestep install` puts a copy where it can be read";
    let mut found = Vec::new();
    for key in ["RootDirectory", "RootImage"] {
        if unit.last(key).is_some_and(|value| !value.is_empty() && value != "/") {
            found.push(format!(
                "{key}= gives it files of its own: {} and {} have to be among them (BindPaths=)",
                library.display(),
                directory.display()
            ));
        }
    }
    let hiders = hiders(unit);
    let hider = |path: &Path| {
        let around = hiders.iter().filter(|(_, folder)| path.starts_with(folder));
        let (key, folder) = around.max_by_key(|(_, folder)| folder.len())?;
        (bound(unit, path) < Some(folder.len())).then_some(key)
    };
    if let Some(key) = hider(library) {
        found.push(format!("{key}= hides {} from it, {install}", library.display()));
    } else if let Some(folder) = closed(library, account) {
        let what = if folder == library { "that file".to_owned() } else { folder.display().to_string() };
        found.push(format!("its user may not use {} because of the mode of {what}, {install}", library.display()));
    }
    if let Some(key) = hider(directory) {
        found.push(format!("{key}= hides {} from it, where programs meet: it stays on TCP", directory.display()));
    } else if is_read_only(unit, directory) {
        let shown = directory.display();
        found.push(format!("ReadOnlyPaths= closes {shown}, where programs meet: add ReadWritePaths={shown}"));
    }
    let of_build = ["deps", "debug", "release"].map(Path::new);
    if library.parent().is_some_and(|folder| of_build.iter().any(|name| folder.ends_with(name))) {
        found.push(format!(
            "{} is changed by the next build: `sidestep install` puts a copy where none does",
            library.display()
        ));
    }
    found
}

/// The settings that hide folders, and the folders.
fn hiders(unit: &Unit) -> Vec<(&'static str, String)> {
    let mut hiders = Vec::new();
    if unit.is_on("ProtectHome") || unit.last("ProtectHome") == Some("tmpfs") {
        hiders.extend(["/home", "/root", "/run/user"].map(|folder| ("ProtectHome", folder.to_owned())));
    }
    let is_temporary = unit.is_on("PrivateTmp") || unit.last("PrivateTmp") == Some("disconnected");
    if is_temporary || unit.is_on("DynamicUser") {
        hiders.extend(["/tmp", "/var/tmp"].map(|folder| ("PrivateTmp", folder.to_owned())));
    }
    for key in ["InaccessiblePaths", "TemporaryFileSystem"] {
        // With a sign before them, and options behind them.
        let folders = unit.words(key).into_iter().map(|word| plain(&word));
        hiders.extend(folders.map(|folder| (key, folder)));
    }
    hiders
}

/// The length of the innermost folder around a path, or of the path itself, that is put there from outside.
fn bound(unit: &Unit, path: &Path) -> Option<usize> {
    let words = ["BindPaths", "BindReadOnlyPaths"].into_iter().flat_map(|key| unit.words(key));
    // A place, or a source and a place.
    let places = words.map(|word| {
        let parts: Vec<&str> = word.trim_start_matches('-').split(':').collect();
        parts.get(1).or(parts.first()).map_or_else(String::new, |place| (*place).to_owned())
    });
    places.filter(|place| !place.is_empty() && path.starts_with(place)).map(|place| place.len()).max()
}

fn plain(word: &str) -> String {
    word.trim_start_matches(['-', '+']).split(':').next().unwrap_or_default().to_owned()
}

/// Whether it may not write there: of the folders around it the innermost counts.
fn is_read_only(unit: &Unit, directory: &Path) -> bool {
    let innermost = |key: &str| {
        let around =
            unit.words(key).into_iter().map(|word| plain(&word)).filter(|folder| directory.starts_with(folder));
        around.map(|folder| folder.len()).max()
    };
    innermost("ReadOnlyPaths") > innermost("ReadWritePaths")
}

/// The first folder on the way to a file, or the file, that the account may not use.
fn closed<'a>(file: &'a Path, account: &Account) -> Option<&'a Path> {
    let mut way: Vec<&Path> = file.ancestors().collect();
    way.reverse();
    let needed = |path: &Path| if path == file { 4 } else { 1 };
    way.into_iter().find(|path| fs::metadata(path).is_ok_and(|status| !account.may(&status, needed(path))))
}

#[cfg(test)]
mod tests;
