//! What a build script needs: files, and formatted code.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::source::{Diagnostics, text};
use crate::{omg, rpc};

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
            let bytes = std::fs::read(&path).ok()?;
            Some((path.display().to_string(), text(&bytes)))
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
    /// The name of the file ends neither with `.idl` nor with `.x`.
    Language(PathBuf),
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::File(path, error) => write!(f, "{}: {error}", path.display()),
            CompileError::Source(diagnostics) => diagnostics.fmt(f),
            CompileError::NoOutput => f.write_str("OUT_DIR is not set: compile is for build scripts"),
            CompileError::Language(path) => {
                write!(f, "{}: the name of a definition ends with .idl (CORBA) or .x (ONC RPC)", path.display())
            }
        }
    }
}

impl std::error::Error for CompileError {}

/// Compiles `path` within a build script: `echo.idl` becomes `echo.rs` in `OUT_DIR`, and so does `echo.x`.
///
/// ```text
/// fn main() {
///     sidestep_idl::compile("echo.idl").unwrap_or_else(|error| panic!("{error}"));
/// }
/// ```
///
/// The crate then has `mod echo { include!(concat!(env!("OUT_DIR"), "/echo.rs")); }`. [`Build`] has options.
pub fn compile(path: impl AsRef<Path>) -> Result<PathBuf, CompileError> {
    Build::new().compile(path)
}

/// Compiles definitions, with options.
///
/// ```text
/// fn main() {
///     let build = sidestep_idl::Build::new().include("idl").define("VERSION", "2");
///     build.compile("idl/echo.idl").unwrap_or_else(|error| panic!("{error}"));
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Build {
    disk: Disk,
    macros: Vec<String>,
    folder: Option<PathBuf>,
}

/// What [`Build::run`] has made.
#[derive(Debug)]
pub struct Built {
    /// The file of Rust.
    pub code: PathBuf,
    /// The definition, and every file that it includes.
    pub read: Vec<PathBuf>,
    /// What was ignored.
    pub warnings: Diagnostics,
}

impl Build {
    /// No other folders, no macros, and code in `OUT_DIR`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for included files in this folder, too, behind the folder of the file that includes them.
    #[must_use]
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.disk.search.push(folder.into());
        self
    }

    /// Defines a macro of OMG IDL.
    #[must_use]
    pub fn define(mut self, name: &str, text: &str) -> Self {
        self.macros.push(format!("{name}={text}"));
        self
    }

    /// Writes the code to this folder instead of `OUT_DIR`.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Compiles a file, and tells cargo which files were read and what was ignored.
    pub fn compile(&self, path: impl AsRef<Path>) -> Result<PathBuf, CompileError> {
        let path = path.as_ref();
        // Also if what follows fails.
        println!("cargo::rerun-if-changed={}", path.display());
        let built = self.run(path)?;
        built.directives().iter().for_each(|directive| println!("{directive}"));
        Ok(built.code)
    }

    /// Compiles a file.
    pub fn run(&self, path: impl AsRef<Path>) -> Result<Built, CompileError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| CompileError::File(path.to_owned(), error))?;
        let name = path.display().to_string();
        let files = Recorder { disk: &self.disk, read: RefCell::new(vec![path.to_owned()]) };
        let (code, warnings) = match path.extension().and_then(|extension| extension.to_str()) {
            Some("idl") => omg::compile_with(&name, &text(&bytes), &files, &self.macros)
                .map(|output| (output.code, output.warnings)),
            Some("x") => rpc::compile(&name, &text(&bytes)).map(|output| (output.code, output.warnings)),
            _ => return Err(CompileError::Language(path.to_owned())),
        }
        .map_err(CompileError::Source)?;
        let folder = self.folder.clone().or_else(|| std::env::var_os("OUT_DIR").map(PathBuf::from));
        let folder = folder.ok_or(CompileError::NoOutput)?;
        let target = folder.join(path.file_stem().unwrap_or_default()).with_extension("rs");
        std::fs::write(&target, formatted(code)).map_err(|error| CompileError::File(target.clone(), error))?;
        Ok(Built { code: target, read: files.read.into_inner(), warnings })
    }
}

impl Built {
    /// What a build script prints for cargo.
    #[must_use]
    pub fn directives(&self) -> Vec<String> {
        let read = self.read.iter().map(|path| format!("cargo::rerun-if-changed={}", path.display()));
        read.chain(self.warnings.iter().map(|warning| format!("cargo::warning={warning}"))).collect()
    }
}

/// Remembers which files were read.
struct Recorder<'a> {
    disk: &'a Disk,
    read: RefCell<Vec<PathBuf>>,
}

impl omg::Files for Recorder<'_> {
    fn read(&self, name: &str, from: &str) -> Option<(String, String)> {
        let found = self.disk.read(name, from)?;
        let path = PathBuf::from(&found.0);
        let mut read = self.read.borrow_mut();
        if !read.contains(&path) {
            read.push(path);
        }
        Some(found)
    }
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
