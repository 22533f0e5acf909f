//! `sidestep install`: what was built, into the folders of a prefix.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;

/// Options of `sidestep install`.
#[derive(Debug, Args)]
pub struct Install {
    /// The folder that gets bin, lib, include and share
    #[arg(long, value_name = "FOLDER", default_value = "/usr/local", env = "SIDESTEP_PREFIX")]
    pub prefix: PathBuf,
}

/// Copies everything, and prints where to.
pub fn run(options: &Install) -> Result<()> {
    let program = env::current_exe().context("cannot tell where this program is")?;
    let built = program.parent().context("this program is in no folder")?;
    // Before anything is copied: a prefix is complete or untouched.
    let libraries = ["libsidestep.so", "libvipl.so"].map(|name| built.join(name));
    if let Some(missing) = libraries.iter().find(|library| !library.is_file()) {
        bail!("{} was not built: run `./sidestep install` in the source tree, which builds it", missing.display());
    }
    let [preload, vipl] = libraries;
    fs::create_dir_all(&options.prefix).with_context(|| format!("cannot make {}", options.prefix.display()))?;
    let prefix =
        options.prefix.canonicalize().with_context(|| format!("no such folder: {}", options.prefix.display()))?;
    let described = PKG_CONFIG.replace("@PREFIX@", &prefix.display().to_string());
    copy(&program, &prefix.join("bin/sidestep"))?;
    copy(&preload, &prefix.join("lib/sidestep/libsidestep.so"))?;
    copy(&vipl, &prefix.join("lib/libvipl.so"))?;
    write(HEADER, &prefix.join("include/vipl.h"))?;
    write(&described, &prefix.join("lib/pkgconfig/vipl.pc"))?;
    write(MANUAL, &prefix.join("share/man/man3/vipl.3"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    put(&bytes, to, 0o755)
}

fn write(text: &str, to: &Path) -> Result<()> {
    put(text.as_bytes(), to, 0o644)
}

/// Beside the old file and then in its place: a program that runs from it goes on with the old one.
fn put(bytes: &[u8], to: &Path, mode: u32) -> Result<()> {
    let what = || format!("cannot write {}", to.display());
    let folder = to.parent().with_context(what)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut name = to.file_name().with_context(what)?.to_owned();
    name.push(".new");
    let new = to.with_file_name(name);
    fs::write(&new, bytes).with_context(what)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(mode)).with_context(what)?;
    fs::rename(&new, to).with_context(what)?;
    println!("{}", to.display());
    Ok(())
}

const HEADER: &str = include_str!("../../vipl/include/vipl.h");
const MANUAL: &str = include_str!("../../vipl/man/vipl.3");
const PKG_CONFIG: &str = include_str!("../../vipl/vipl.pc.in");
