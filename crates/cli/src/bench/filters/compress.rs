//! A folder compressed and summed file by file: by a pipeline of filters, by a loop of the shell, and by `xargs -P`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use sidestep_filters::{Graph, Group, Place, Schedule, Settings, builtin};

use crate::pipe;

/// The ways that are compared.
pub const WAYS: [&str; 3] = ["pipe", "shell", "xargs"];

/// A folder with files that look like text, which goes away in the end.
pub struct Folder {
    path: PathBuf,
    bytes: u64,
}

/// What the files are made of.
const WORDS: [&str; 12] =
    ["filter", "stream", "buffer", "copy", "demand", "producer", "consumer", "and", "of", "the", "unit", "work"];
/// A file in so many has the size of a small one times [`LARGE`].
const RARE: usize = 10;
const LARGE: usize = 16;

impl Folder {
    /// Makes a folder of so many files, of which a few are large.
    pub fn new(files: usize, size: usize) -> Result<Folder> {
        let path = std::env::temp_dir().join(format!("sidestep-compress-{}", std::process::id()));
        let mut folder = Folder { path, bytes: 0 };
        fs::create_dir_all(folder.path.join("from"))?;
        let mut random = 7u64;
        for file in 0..files {
            let len = if file % RARE == 0 { size * LARGE } else { size };
            let mut text = String::with_capacity(len + 16);
            while text.len() < len {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(WORDS[(random >> 33) as usize % WORDS.len()]);
                text.push_str(if (random >> 20).is_multiple_of(9) { "\n" } else { " " });
            }
            folder.bytes += text.len() as u64;
            fs::write(folder.path.join("from").join(format!("{file:05}.txt")), text)?;
        }
        Ok(folder)
    }

    /// Bytes a second of what one way compresses, with so many at once.
    pub fn rate(&self, way: &str, copies: usize) -> Result<f64> {
        let into = self.path.join(way);
        let _ = fs::remove_dir_all(&into);
        fs::create_dir_all(&into)?;
        let began = Instant::now();
        match way {
            "pipe" => self.by_filters(&into, copies)?,
            "shell" => self.by_shell(
                &into,
                "find . -type f | sort | while read -r file; do cksum \"$file\"; gzip -6 -c \"$file\" > \"$INTO/$file.gz\"; done",
            )?,
            "xargs" => self.by_shell(
                &into,
                &format!(
                    "find . -type f -print0 | xargs -0 -P {copies} -n 8 \
                     sh -c 'for file; do cksum \"$file\"; gzip -6 -c \"$file\" > \"$INTO/$file.gz\"; done' sh | sort -k 3"
                ),
            )?,
            _ => bail!("no such way: {way}"),
        }
        let seconds = began.elapsed().as_secs_f64();
        let (made, wanted) = (fs::read_dir(&into)?.count(), fs::read_dir(self.path.join("from"))?.count());
        ensure!(made == wanted, "{way} made {made} files of {wanted}");
        Ok(self.bytes as f64 / seconds)
    }

    fn by_filters(&self, into: &Path, copies: usize) -> Result<()> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("the path is not text");
        let (from, into, list) = (text(&self.path.join("from"))?, text(into)?, text(&self.path.join("list"))?);
        let graph = Graph::new("compress")
            .filter("files", "files", 1, Place::Thread)
            .set("path", &from)
            .filter("compress", "compress", copies, Place::Process)
            .set("path", &from)
            .set("into", &into)
            .filter("list", "write", 1, Place::Thread)
            .set("path", list)
            .stream("files.out", "compress.in", 4096)
            .dealt(Schedule::Demand)
            .queued(2)
            .stream("compress.out", "list.in", 8192)
            .in_order();
        // With everything that a run costs: processes that start, and connections.
        let mut group = Group::start(graph, &builtin::kinds(), pipe::launcher()?)?;
        for outcome in group.run([Settings::default()])? {
            outcome.result?;
        }
        Ok(())
    }

    fn by_shell(&self, into: &Path, script: &str) -> Result<()> {
        let list = fs::File::create(self.path.join("list"))?;
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(self.path.join("from")).env("INTO", into);
        let status = command.stdin(Stdio::null()).stdout(list).status().context("sh")?;
        ensure!(status.success(), "the shell ended with {status}");
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
