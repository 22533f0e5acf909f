//! `sidestep install`: what was built, into the folders of a prefix.

mod calls;
mod errors;
mod manual;

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{completions, init_service, stat::table::bytes};

/// Options of `sidestep install`.
#[derive(Debug, Args)]
pub struct Install {
    /// The folder that gets bin, lib, include and share
    #[arg(long, value_name = "FOLDER", default_value = "/usr/local", env = "SIDESTEP_PREFIX")]
    pub prefix: PathBuf,

    /// Put everything below this folder, as for a package; what is installed names the prefix alone
    #[arg(long, value_name = "FOLDER")]
    pub stage: Option<PathBuf>,
}

/// Copies everything, and prints where to, and how a program is compiled with what was installed.
pub fn run(options: &Install) -> Result<()> {
    let program = env::current_exe().context("cannot tell where this program is")?;
    let built = program.parent().context("this program is in no folder")?;
    // Before anything is copied: a prefix is complete or untouched.
    let libraries = ["libsidestep.so", "libvipl.so"].map(|name| built.join(name));
    if let Some(missing) = libraries.iter().find(|library| !library.is_file()) {
        bail!("{} was not built: run `./sidestep install` in the source tree, which builds it", missing.display());
    }
    let [preload, vipl] = libraries;
    let prefix = match &options.stage {
        Some(stage) => stage.join(options.prefix.strip_prefix("/").unwrap_or(&options.prefix)),
        None => options.prefix.clone(),
    };
    fs::create_dir_all(&prefix).with_context(|| format!("cannot make {}", prefix.display()))?;
    let prefix = prefix.canonicalize().with_context(|| format!("no such folder: {}", prefix.display()))?;
    let named = if options.stage.is_some() { &options.prefix } else { &prefix };
    let described = PKG_CONFIG.replace("@PREFIX@", &named.display().to_string());
    copy_stripped(&program, &prefix.join("bin/sidestep"))?;
    copy_stripped(&preload, &prefix.join("lib/sidestep/libsidestep.so"))?;
    copy_stripped(&vipl, &prefix.join("lib").join(SONAME))?;
    link(SONAME, &prefix.join("lib/libvipl.so"))?;
    write(HEADER, &prefix.join("include/vipl.h"))?;
    write(&described, &prefix.join("lib/pkgconfig/vipl.pc"))?;
    write(calls::HEADER, &prefix.join("include/sidestep.h"))?;
    let described = EXTENDED_PKG_CONFIG.replace("@PREFIX@", &named.display().to_string());
    write(&described, &prefix.join("lib/pkgconfig/sidestep.pc"))?;
    write(MANUAL, &prefix.join("share/man/man3/vipl.3"))?;
    for (name, text) in manual::pages().into_iter().chain(calls::pages()) {
        write(&text, &prefix.join("share/man/man3").join(name))?;
    }
    for (name, text) in completions::pages()? {
        write(&text, &prefix.join("share/man/man1").join(name))?;
    }
    for (name, text) in completions::scripts() {
        write(&text, &prefix.join(name))?;
    }
    let service = init_service::example(&named.join("lib/sidestep/libsidestep.so"));
    write(&service, &prefix.join(EXAMPLES_FOLDER).join("systemd/sidestep.conf"))?;
    for (name, text) in EXAMPLES {
        write(text, &prefix.join(EXAMPLES_FOLDER).join(name))?;
    }
    println!("\n{}", instructions(&prefix));
    Ok(())
}

/// Lines for a shell: they find the program, compile an example of VIA, and run it.
fn instructions(prefix: &Path) -> String {
    let quoted = |folder: &str| {
        let path = prefix.join(folder).display().to_string();
        let plain = path.chars().all(|c| c.is_alphanumeric() || "/._-+".contains(c));
        if plain { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
    };
    let bin = prefix.join("bin");
    let is_found = env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder == bin));
    let find = if is_found { String::new() } else { format!("export PATH={}:$PATH\n", quoted("bin")) };
    let (source, include, lib) = (quoted(&format!("{EXAMPLES_FOLDER}/pingpong.c")), quoted("include"), quoted("lib"));
    format!(
        "# Programs, unchanged: both ends with it.\n{find}sidestep run -- PROGRAM\n\n# Programs in C for VIA.\n\
         cc {source} -I {include} -L {lib} -lvipl -Wl,-rpath,{lib} -o pingpong\n\
         ./pingpong server point & ./pingpong client point"
    )
}

/// Without symbols and line tables, which are most of it, if there is a program that takes them out; what dynamic linking needs
/// stays. What was built keeps them, for whoever looks for an error.
fn copy_stripped(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().with_context(|| format!("cannot write {}", to.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let stripped = to.with_extension("stripped");
    let mut strip = Command::new("strip");
    strip.arg("--strip-unneeded").arg("-o").arg(&stripped).arg(from).stdout(Stdio::null()).stderr(Stdio::null());
    let copied = match strip.status() {
        Ok(status) if status.success() => copy(&stripped, to),
        _ => {
            let size = fs::metadata(from).map_or(0, |status| status.len());
            eprintln!("sidestep: {} keeps its symbols ({}): `strip` is not here, or failed", to.display(), bytes(size));
            copy(from, to)
        }
    };
    let _ = fs::remove_file(stripped);
    copied
}

/// A name for a file of the same folder.
fn link(file: &str, to: &Path) -> Result<()> {
    let what = || format!("cannot make the link {}", to.display());
    let new = to.with_extension("so.new");
    let _ = fs::remove_file(&new);
    symlink(file, &new).with_context(what)?;
    fs::rename(&new, to).with_context(what)?;
    println!("{}", to.display());
    Ok(())
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

/// The name that programs are bound to; `crates/vipl/build.rs` writes it into the library.
const SONAME: &str = "libvipl.so.1";
const EXAMPLES_FOLDER: &str = "share/doc/sidestep/examples";
const EXAMPLES: [(&str, &str); 3] = [
    ("pingpong.c", include_str!("../../vipl/examples/pingpong.c")),
    ("cq_server.c", include_str!("../../vipl/examples/cq_server.c")),
    ("prices.c", include_str!("../../preload/examples/prices.c")),
];
const HEADER: &str = include_str!("../../vipl/include/vipl.h");
const MANUAL: &str = include_str!("../../vipl/man/vipl.3");
const EXTENDED_PKG_CONFIG: &str = include_str!("../../preload/sidestep.pc.in");
const PKG_CONFIG: &str = include_str!("../../vipl/vipl.pc.in");
