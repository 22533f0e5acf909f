//! What a build script needs: files, and formatted code.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::omg;
use crate::source::Diagnostics;

/// Files on disk: beside the file that includes them, then in the folders of the search path.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// Where else to look.
    pub search: Vec<PathBuf>,
}

impl omg::Files for Disk {
    fn read(&self, name: &str, from: &str) -> Option<(String, String)> {
        let beside = Path::new(from).parent().map(Path::to_path_buf);
        let folders = beside.into_iter().chain(self.search.iter().cloned());
        folders.map(|folder| folder.join(name)).find_map(|path| {
            let text = std::fs::read_to_string(&path).ok()?;
            Some((path.display().to_string(), text))
        })
    }
}

/// Why a file could not be compiled.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompileError {
    /// A file could not be read or written.
    File(PathBuf, std::io::Error),
    /// The file has errors.
    Source(Diagnostics),
    /// `OUT_DIR` is not set, so this is not a build script.
    NoOutput,
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::File(path, error) => write!(f, "{}: {error}", path.display()),
            CompileError::Source(diagnostics) => diagnostics.fmt(f),
            CompileError::NoOutput => f.write_str("OUT_DIR is not set: compile is for build scripts"),
        }
    }
}

impl std::error::Error for CompileError {}

/// Compiles `path` within a build script: `echo.idl` becomes `echo.rs` in `OUT_DIR`.
///
/// ```text
/// fn main() {
///     sidestep_idl::compile("echo.idl").unwrap_or_else(|error| panic!("{error}"));
/// }
/// ```
///
/// The crate then has `mod echo { include!(concat!(env!("OUT_DIR"), "/echo.rs")); }`.
pub fn compile(path: impl AsRef<Path>) -> Result<PathBuf, CompileError> {
    let path = path.as_ref();
    println!("cargo::rerun-if-changed={}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| CompileError::File(path.to_owned(), error))?;
    let name = path.display().to_string();
    let output = omg::compile(&name, &text, &Disk::default()).map_err(CompileError::Source)?;
    for warning in output.warnings.iter() {
        println!("cargo::warning={warning}");
    }
    let folder = std::env::var_os("OUT_DIR").ok_or(CompileError::NoOutput)?;
    let target = Path::new(&folder).join(path.file_stem().unwrap_or_default()).with_extension("rs");
    std::fs::write(&target, formatted(output.code)).map_err(|error| CompileError::File(target.clone(), error))?;
    Ok(target)
}

/// The code with its lines broken by rustfmt, or as it is if there is no rustfmt.
#[must_use]
pub fn formatted(code: String) -> String {
    let run = || {
        let mut child = Command::new("rustfmt")
            .args(["--edition", "2024"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut input = child.stdin.take()?;
        let text = code.clone();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = child.wait_with_output().ok()?;
        writer.join().ok()?.ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
    };
    run().unwrap_or(code)
}
