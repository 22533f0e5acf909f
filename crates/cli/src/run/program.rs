//! What a program is: whether the dynamic linker will load a library into it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::Access,
    process::{getegid, geteuid},
};

/// A program that was found.
#[derive(Debug)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
}

/// Whether the library gets into a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// Yes, as far as can be told.
    Works,
    /// No; whatever it starts may still be different.
    Fails(&'static str),
    /// No, and the attempt would disturb it.
    Refuses,
}

impl Loading {
    /// The sentence for the user.
    pub fn why_not(self) -> Option<&'static str> {
        match self {
            Loading::Works => None,
            Loading::Fails(why) => Some(why),
            Loading::Refuses => Some("is not for this machine's glibc (32 bits, musl or another processor)"),
        }
    }
}

impl Program {
    /// Finds a program as a shell does.
    pub fn find(name: &OsStr) -> io::Result<Program> {
        if name.as_bytes().contains(&b'/') {
            return executable(PathBuf::from(name));
        }
        let folders = env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
        let mut outcome = Err(io::Error::from(io::ErrorKind::NotFound));
        for folder in env::split_paths(&folders) {
            // An empty entry is the present folder.
            let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
            match executable(folder.join(name)) {
                Ok(program) => return Ok(program),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => outcome = Err(error),
                Err(_) => {}
            }
        }
        outcome
    }

    /// Whether the library gets into it. What cannot be read is taken for an ordinary program.
    pub fn loading(&self) -> Loading {
        let Ok(file) = File::open(&self.path) else { return Loading::Works };
        if is_privileged(&self.path, &file) {
            return Loading::Fails("is set-user-ID, set-group-ID or has capabilities");
        }
        let mut head = [0; 256];
        let Ok(len) = file.read_at(&mut head, 0) else { return Loading::Works };
        match interpreter(&head[..len]) {
            // One level only: an interpreter of an interpreter is rare, and nothing is lost but a sentence.
            Some(interpreter) => match File::open(&interpreter).ok().map(|file| of_elf(&file)) {
                Some(Loading::Fails(_)) => Loading::Fails("has an interpreter that is statically linked"),
                Some(loading) => loading,
                None => Loading::Works,
            },
            None => of_elf(&file),
        }
    }
}

fn executable(path: PathBuf) -> io::Result<Program> {
    let status = path.metadata()?;
    rustix::fs::access(&path, Access::EXEC_OK)?;
    match status.is_file() {
        true => Ok(Program { path }),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a file")),
    }
}

/// Whether the dynamic linker will not trust its environment.
fn is_privileged(path: &Path, file: &File) -> bool {
    let Ok(status) = file.metadata() else { return false };
    let other_user = status.mode() & 0o4000 != 0 && status.uid() != geteuid().as_raw();
    let other_group = status.mode() & 0o2010 == 0o2010 && status.gid() != getegid().as_raw();
    let mut none = [0; 0];
    let capable = !geteuid().is_root()
        && rustix::fs::getxattr(path, "security.capability", &mut none[..]).is_ok_and(|len| len > 0);
    other_user || other_group || capable
}

/// The interpreter of a script.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let first = PathBuf::from(OsString::from_vec(words.next()?.to_vec()));
    if first.file_name() == Some(OsStr::new("env")) {
        let named = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
        return Program::find(OsStr::from_bytes(named)).ok().map(|program| program.path);
    }
    Some(first)
}

/// What an ELF file asks for.
fn of_elf(file: &File) -> Loading {
    match try_elf(file) {
        Ok(Some(loading)) => loading,
        // Not an ELF file, or one that the kernel will refuse.
        Ok(None) | Err(_) => Loading::Works,
    }
}

fn try_elf(file: &File) -> io::Result<Option<Loading>> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0)?;
    if &head[..4] != b"\x7fELF" {
        return Ok(None);
    }
    let own = own_kind()?;
    if head[4..6] != own[4..6] || head[18..20] != own[18..20] {
        return Ok(Some(Loading::Refuses));
    }
    let word = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    let offset = u64::from_ne_bytes(head[32..40].try_into().expect("eight bytes"));
    let (size, count) = (u64::from(word(54)), u64::from(word(56)));
    for index in 0..count {
        let mut entry = [0; 56];
        file.read_exact_at(&mut entry, offset.saturating_add(index * size))?;
        let long = |at: usize| u64::from_ne_bytes(entry[at..at + 8].try_into().expect("eight bytes"));
        if u32::from_ne_bytes(entry[..4].try_into().expect("four bytes")) == PT_INTERP {
            let mut linker = vec![0; usize::try_from(long(32)).unwrap_or(0).min(4096)];
            file.read_exact_at(&mut linker, long(8))?;
            let musl = linker.windows(7).any(|part| part == b"ld-musl");
            return Ok(Some(if musl { Loading::Refuses } else { Loading::Works }));
        }
    }
    Ok(Some(Loading::Fails("is statically linked")))
}

/// The head of this very program, to compare with.
fn own_kind() -> io::Result<[u8; 20]> {
    let mut head = [0; 20];
    File::open("/proc/self/exe")?.read_exact(&mut head)?;
    Ok(head)
}

const PT_INTERP: u32 = 3;
