//! Files: found, compressed and summed by as many copies as there are, written.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flate2::{Crc, write::GzEncoder};

use crate::error::Failure;
use crate::filter::{Filter, Kind, Kinds, Unit, Work, function};
use crate::setting::Accepts;

pub(super) fn kinds(kinds: Kinds) -> Kinds {
    kinds
        .with(
            "files",
            Kind::new("gives the paths of all files under `path`, sorted", |settings| {
                let path = PathBuf::from(settings.need("path")?);
                Ok(function(move |work| {
                    let mut found = Vec::new();
                    find(&path, &mut found)?;
                    found.sort();
                    let own = found.iter().enumerate().filter(|(at, _)| at % work.copy.1 == work.copy.0);
                    for (_, file) in own {
                        work.outputs.port("out")?.put(file.as_os_str().as_bytes())?;
                    }
                    Ok(())
                }))
            })
            .output("out", "paths")
            .needs("path", Accepts::Text),
        )
        .with(
            "compress",
            Kind::new(
                "writes each file as gzip into the folder `into`, and gives a line with its checksum",
                |settings| {
                    let (from, into) = (settings.need("path")?.to_owned(), PathBuf::from(settings.need("into")?));
                    let level = settings.number("level", 6)?;
                    let mut path = Vec::new();
                    Ok(function(move |work| {
                        while let Some(mut buffer) = work.inputs.take()? {
                            buffer.read_into(&mut path)?;
                            // A name need not be text; what is printed of it is.
                            let (file, name) = (Path::new(OsStr::from_bytes(&path)), String::from_utf8_lossy(&path));
                            let (sum, bytes) = compress(file, Path::new(&from), &into, level)
                                .map_err(|error| Failure::new(format_args!("{name}: {error}")))?;
                            work.outputs.port("out")?.put(format!("{sum:08x} {bytes} {name}\n").as_bytes())?;
                        }
                        Ok(())
                    }))
                },
            )
            .input("in", "paths")
            .output("out", "lines")
            .needs("path", Accepts::Text)
            .needs("into", Accepts::Text)
            .setting("level", Accepts::Whole(0..=9)),
        )
        .with(
            "lines",
            Kind::new("gives the lines of the file `path`, as many whole ones in a buffer as fit", |settings| {
                let path = settings.need("path")?.to_owned();
                Ok(function(move |work| {
                    let file = File::open(&path).map_err(|error| Failure::new(format_args!("{path}: {error}")))?;
                    super::program::give_lines(file, work.outputs.port("out")?)
                }))
            })
            .output("out", "lines")
            .needs("path", Accepts::Text),
        )
        .with(
            "write",
            Kind::new("writes what it gets to the file `path`, or prints it", |settings| {
                Ok(Writer { path: settings.text("path").map(str::to_owned) })
            })
            .input("in", crate::filter::ANY)
            .setting("path", Accepts::Text),
        )
}

fn find(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let told = |error: std::io::Error| Failure::new(format_args!("{}: {error}", path.display()));
    for entry in fs::read_dir(path).map_err(told)? {
        let entry = entry.map_err(told)?;
        let kind = entry.file_type().map_err(told)?;
        if kind.is_dir() {
            find(&entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The checksum and the length of a file, which is written compressed to the same place under another folder.
fn compress(name: &Path, from: &Path, into: &Path, level: u32) -> std::io::Result<(u32, u64)> {
    let mut target = into.join(name.strip_prefix(from).unwrap_or(name)).into_os_string();
    target.push(".gz");
    let target = PathBuf::from(target);
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut source = File::open(name)?;
    let mut packed = GzEncoder::new(File::create(target)?, flate2::Compression::new(level.min(9)));
    let (mut sum, mut bytes, mut piece) = (Crc::new(), 0, vec![0; 64 << 10]);
    loop {
        let count = source.read(&mut piece)?;
        if count == 0 {
            break;
        }
        sum.update(&piece[..count]);
        bytes += count as u64;
        packed.write_all(&piece[..count])?;
    }
    packed.finish()?;
    Ok((sum.sum(), bytes))
}

struct Writer {
    path: Option<String>,
}

impl Filter for Writer {
    fn init(&mut self, unit: &Unit) -> Result<(), Failure> {
        // The first unit begins the file, also if it is repeated.
        if let Some(path) = self.path.as_ref().filter(|_| unit.number == 0) {
            File::create(path)?;
        }
        Ok(())
    }

    fn process(&mut self, work: &mut Work<'_>) -> Result<(), Failure> {
        let mut out: Box<dyn Write> = match &self.path {
            Some(path) if work.copy.1 > 1 => {
                return Err(Failure::new(format_args!("{path} is written by one copy, and there are {}", work.copy.1)));
            }
            Some(path) => Box::new(File::options().append(true).create(true).open(path)?),
            None => Box::new(std::io::stdout()),
        };
        let mut bytes = Vec::new();
        while let Some(mut buffer) = work.inputs.take()? {
            buffer.read_into(&mut bytes)?;
            out.write_all(&bytes)?;
        }
        Ok(out.flush()?)
    }
}
