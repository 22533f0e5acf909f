//! Units as they come, and what is said of them.

use std::{os::unix::fs::PermissionsExt, path::PathBuf};

use super::*;

fn unit(settings: &str) -> Unit {
    Unit::new("x.service", &[format!("[Service]\n{settings}")])
}

/// What is said of a unit with these settings, where the library is here.
fn said(settings: &str, library: &str) -> Vec<String> {
    all(&unit(settings), &Host { library: Path::new(library), users: Ok(None) })
}

const INSTALLED: &str = "/usr/local/lib/sidestep/libsidestep.so";

#[test]
fn an_ordinary_service_has_nothing_in_its_way() {
    let settings = "User=daemon\nPrivateTmp=yes\nProtectHome=yes\nProtectSystem=strict\nPrivateDevices=yes\n\
                    NoNewPrivileges=yes\nExecStart=/bin/sh -c true\nPrivateUsers=identity\nPrivateIPC=no\n\
                    InaccessiblePaths=-/opt\nReadOnlyPaths=/\nReadWritePaths=/dev/shm\n";
    for settings in ["", "User=root\n", "DynamicUser=yes\n", settings] {
        assert_eq!(said(settings, INSTALLED), [""; 0], "{settings}");
    }
}

#[test]
fn what_keeps_it_apart_is_said() {
    for (settings, library, part) in [
        ("PrivateUsers=yes", INSTALLED, "its own user alone"),
        ("PrivateUsers=no\nPrivateUsers=self", INSTALLED, "PrivateUsers="),
        ("PrivateNetwork=on", INSTALLED, "a network of its own"),
        ("NetworkNamespacePath=/run/netns/a", INSTALLED, "a network of its own"),
        ("PrivateIPC=yes", INSTALLED, "PrivateIPC="),
        ("RootDirectory=/srv/root", INSTALLED, "RootDirectory="),
        ("ProtectHome=yes", "/home/me/lib/libsidestep.so", "ProtectHome= hides /home/me"),
        ("ProtectHome=tmpfs", "/run/user/7/lib/libsidestep.so", "ProtectHome= hides /run/user/7"),
        ("PrivateTmp=yes", "/tmp/lib/libsidestep.so", "PrivateTmp= hides"),
        ("DynamicUser=yes", "/var/tmp/lib/libsidestep.so", "PrivateTmp= hides"),
        ("InaccessiblePaths=/opt -/usr/local", INSTALLED, "InaccessiblePaths= hides /usr/local/lib"),
        ("TemporaryFileSystem=/usr/local\nBindReadOnlyPaths=/usr", INSTALLED, "TemporaryFileSystem= hides /usr/local"),
        ("TemporaryFileSystem=/dev/shm:ro", INSTALLED, "TemporaryFileSystem= hides /dev/shm/sidestep"),
        ("PrivateTmp=yes\nEnvironment=SIDESTEP_DIR=/tmp/meet", INSTALLED, "PrivateTmp= hides /tmp/meet"),
        ("ReadOnlyPaths=/dev\nReadWritePaths=/", INSTALLED, "ReadWritePaths=/dev/shm/sidestep"),
        ("", "/src/target/release/libsidestep.so", "is changed by the next build"),
        ("", "/src/target/release/deps/libsidestep.so", "is changed by the next build"),
    ] {
        let said = said(settings, library);
        assert!(said.len() == 1 && said[0].contains(part), "{settings}: {said:?}");
    }
    // A folder of almost the same name is another one, and what may be read is not hidden.
    for settings in [
        "InaccessiblePaths=/usr/loc",
        "ProtectHome=read-only",
        "TemporaryFileSystem=/usr\nBindReadOnlyPaths=/usr/local/lib",
        "TemporaryFileSystem=/dev/shm\nBindPaths=/dev/shm/sidestep:/dev/shm/sidestep:rbind",
    ] {
        assert_eq!(said(settings, INSTALLED), [""; 0], "{settings}");
    }
}

#[test]
fn what_the_host_says_of_users_is_said() {
    let said = |settings: &str, users| of_users(&Account::of(&unit(settings)), &users).unwrap_or_default();
    let listed = || Ok(Some(Users::Listed(vec![0])));
    assert_eq!(said("", listed()), "");
    assert_eq!(said("User=65533", Ok(Some(Users::Any))), "");
    assert!(
        said("", Ok(Some(Users::Same))).contains("keeps users apart: it is accelerated with programs of user root")
    );
    assert!(said("DynamicUser=yes", listed()).contains("does not name its user"));
    assert!(said("", Err("no user is called x".to_owned())).contains("no user is called x"));
}

#[test]
fn a_library_that_its_user_may_not_use_is_said() {
    let folder = std::env::temp_dir().join(format!("sidestep-reach-{}", std::process::id()));
    let library: PathBuf = folder.join("in/libsidestep.so");
    fs::create_dir_all(folder.join("in")).expect("a folder");
    fs::write(&library, "").expect("a file");
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    let (own, group) = fs::metadata(&library).map(|status| (status.uid(), status.gid())).expect("a file");
    let [stranger, of_group, maker] = [(own + 1, group + 1), (own + 1, group), (own, group + 1)]
        .map(|(user, group)| Account::Known { user, groups: vec![group] });
    for (path, mode, closed_to_stranger, closed_to_group) in [
        (&folder, 0o755, false, false),
        (&folder, 0o700, true, true),
        (&folder, 0o710, true, false),
        (&folder, 0o701, false, true),
        (&library, 0o700, true, true),
        (&library, 0o704, false, true),
    ] {
        set(path, mode);
        let is_closed = |account: &Account| closed(&library, account) == Some(path.as_path());
        let shown = format!("{} {mode:o}", path.display());
        assert_eq!([&stranger, &Account::Unknown].map(is_closed), [closed_to_stranger; 2], "{shown}");
        assert_eq!((is_closed(&of_group), is_closed(&maker)), (closed_to_group, false), "{shown}");
        set(path, 0o755);
    }
    set(&folder, 0o700);
    let said = hidden(&unit(""), &library, &stranger);
    assert!(said[0].contains("because of the mode of") && said[0].contains("sidestep install"), "{said:?}");
    fs::remove_dir_all(folder).expect("it is removed");
}
