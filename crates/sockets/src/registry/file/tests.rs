use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::PathBuf,
};

use super::*;

/// A folder of this test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("sidestep-file-{}-{name}", kernel::process()));
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    /// The directory of a registry, which is not there yet.
    fn directory(&self) -> String {
        self.0.join("registry").to_str().unwrap().to_string()
    }

    fn file(&self) -> PathBuf {
        self.0.join("registry").join(file_name(me()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn mode(path: impl AsRef<std::path::Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Two that were opened one after the other are one registry.
fn is_one(first: &Registry, second: &Registry) -> bool {
    let word = |registry: &Registry| registry.records.words.word(LEN / 8 - 1);
    word(first).store(77, std::sync::atomic::Ordering::Relaxed);
    let is_one = word(second).load(std::sync::atomic::Ordering::Relaxed) == 77;
    word(first).store(0, std::sync::atomic::Ordering::Relaxed);
    is_one
}

#[test]
fn all_processes_of_a_user_have_one() {
    let folder = Folder::new("one");
    let directory = folder.directory();
    assert!(Registry::look(&directory).is_none(), "looking makes nothing");
    let first = Registry::open(&directory).unwrap();
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o7777, 0o1777);
    assert_eq!(fs::metadata(folder.file()).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(is_one(&first, &Registry::open(&directory).unwrap()));
    assert_eq!(Registry::look_at_all(&directory).len(), 1);
    drop(first);
    assert!(Registry::look(&directory).is_none(), "it went with the last process");
    Registry::open(&directory).unwrap();
}

#[test]
fn all_at_once_agree_on_one() {
    let folder = Folder::new("race");
    let directory = &folder.directory();
    for _ in 0..20 {
        let open = || Registry::open(directory).unwrap();
        let opened: Vec<Registry> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(opened.iter().all(|other| is_one(&opened[0], other)));
    }
}

#[test]
fn what_happens_to_the_file_harms_nobody() {
    let folder = Folder::new("file");
    let (directory, file) = (folder.directory(), folder.file());
    let first = Registry::open(&directory).unwrap();
    let touch = || first.sweep();
    // Cut short: what was mapped stays, and the next one makes another.
    fs::write(&file, b"").unwrap();
    touch();
    assert!(!is_one(&first, &Registry::open(&directory).unwrap()));
    // Rubbish of the right size.
    fs::write(&file, [0x5a; HINT_LEN]).unwrap();
    touch();
    Registry::open(&directory).unwrap();
    // The right words, and a segment that is none of ours, or none at all.
    for segment in [0, 1, u32::MAX] {
        fs::write(&file, Hint { segment: SegmentId(segment), nonce: 1 }.to_bytes()).unwrap();
        Registry::open(&directory).unwrap();
    }
    // Another segment of this user, of the right size, that is not the one meant.
    let (other, memory) = segment::create(LEN).unwrap();
    fs::write(&file, Hint { segment: other, nonce: 1 }.to_bytes()).unwrap();
    Registry::open(&directory).unwrap();
    assert_eq!(memory.word64(0).unwrap().load(std::sync::atomic::Ordering::Relaxed), 0, "it was not touched");
    // Gone, and the directory with it.
    fs::remove_dir_all(&directory).unwrap();
    touch();
    Registry::open(&directory).unwrap();
}

#[test]
fn what_is_not_the_file_is_left_alone() {
    let folder = Folder::new("other-file");
    let (directory, file) = (folder.directory(), folder.file());
    let precious = folder.0.join("precious");
    fs::write(&precious, b"").unwrap();
    mode(&precious, 0o600);
    fs::create_dir(&directory).unwrap();
    let refused = |what: &str| {
        assert!(Registry::open(&directory).is_err(), "{what}");
        assert!(Registry::look(&directory).is_none(), "{what}");
        assert_eq!(fs::read(&precious).unwrap(), b"", "{what}");
        fs::remove_file(&file).or_else(|_| fs::remove_dir(&file)).unwrap();
    };
    symlink(&precious, &file).unwrap();
    refused("a link");
    fs::hard_link(&precious, &file).unwrap();
    refused("another name of a file");
    fs::create_dir(&file).unwrap();
    refused("a folder");
    rustix::fs::mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
    refused("a pipe");
    fs::write(&file, [0; HINT_LEN + 1]).unwrap();
    mode(&file, 0o600);
    refused("a file of another size");
    fs::write(&file, b"").unwrap();
    mode(&file, 0o622);
    refused("a file that others can write");
    if me() == 0 {
        fs::write(&file, b"").unwrap();
        mode(&file, 0o600);
        for other in [1000, user::overflow()] {
            chown(&file, Some(other), None).unwrap();
            assert!(Registry::open(&directory).is_err(), "a file of user {other}");
        }
        refused("a file of another user");
    } else {
        eprintln!("left out: only root can give files to others");
    }
    Registry::open(&directory).unwrap();
}

#[test]
fn only_proper_directories_are_used() {
    let folder = Folder::new("directory");
    let (directory, elsewhere) = (folder.directory(), folder.0.join("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &directory).unwrap();
    for path in [directory.clone(), format!("{directory}/"), format!("{directory}//")] {
        assert!(Registry::open(&path).is_err(), "a link");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing was made at the other end of the link");
    fs::remove_file(&directory).unwrap();
    fs::write(&directory, b"a file").unwrap();
    assert!(Registry::open(&directory).is_err(), "a file");
    fs::remove_file(&directory).unwrap();
    fs::create_dir(&directory).unwrap();
    for wrong in [0o777, 0o775, 0o722] {
        mode(&directory, wrong);
        assert!(Registry::open(&directory).is_err(), "others could replace the file: {wrong:o}");
    }
    for right in [0o700, 0o755, 0o1777] {
        mode(&directory, right);
        Registry::open(&directory).unwrap();
    }
    if me() == 0 {
        for other in [1000, user::overflow()] {
            chown(&directory, Some(other), None).unwrap();
            mode(&directory, 0o755);
            assert!(Registry::open(&directory).is_err(), "a private one of user {other}");
            mode(&directory, 0o1777);
            Registry::open(&directory).unwrap();
        }
    }
    assert!(Registry::open(&folder.0.join("none/registry").to_string_lossy()).is_err(), "no place for it");
    assert!(Registry::open("/proc/sidestep").is_err(), "a file system that makes none");
}

#[test]
fn a_lock_that_is_never_given_back_holds_nobody_up() {
    let folder = Folder::new("locked");
    let directory = folder.directory();
    drop(Registry::open(&directory).unwrap());
    let file = fs::File::open(folder.file()).unwrap();
    rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
    assert!(Registry::open(&directory).is_err(), "only another file would do");
    rustix::fs::flock(&file, FlockOperation::Unlock).unwrap();
    let _first = Registry::open(&directory).unwrap();
    rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
    Registry::open(&directory).expect("one that is there needs no lock");
}
