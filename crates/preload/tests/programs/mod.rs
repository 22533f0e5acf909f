//! Small C programs, compiled once, run plain and with the library before them.

#![allow(dead_code)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
};

/// Compiles `tests/c/NAME.c`.
pub fn compile(name: &str) -> PathBuf {
    compile_with(&source("tests/c", name), &[])
}

/// The same, for a program that calls the library by its own names (`sidestep.h`).
pub fn compile_linked(name: &str) -> PathBuf {
    link(&source("tests/c", name))
}

/// The same, for a program in `examples`.
pub fn compile_example(name: &str) -> PathBuf {
    link(&source("examples", name))
}

fn source(folder: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name).with_extension("c")
}

fn link(source: &Path) -> PathBuf {
    let library = library();
    // Before LD_LIBRARY_PATH, in which cargo may have an older one.
    let folder = library.parent().expect("a folder").display();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let [include, folder, search] =
        [format!("-I{}", include.display()), format!("-L{folder}"), format!("-Wl,--disable-new-dtags,-rpath,{folder}")];
    compile_with(source, &[&include, &folder, "-lsidestep", &search])
}

fn compile_with(source: &Path, linked: &[&str]) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = source.file_stem().expect("a name").display();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let out = profile().join("preload").join(format!("{name}-{}-{number}", std::process::id()));
    fs::create_dir_all(out.parent().expect("a folder")).expect("a folder");
    let output = Command::new("cc")
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread", "-o"])
        .arg(&out)
        .arg(source)
        .args(linked)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}:\n{}", source.display(), String::from_utf8_lossy(&output.stderr));
    out
}

/// Runs a program alone, or with the library and this way of promoting; one that hangs is killed.
pub fn run(program: &Path, promote: Option<&str>) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "300"]).arg(program).env_remove("LD_PRELOAD");
    if let Some(promote) = promote {
        command.env("LD_PRELOAD", library()).env("SIDESTEP_PROMOTE", promote);
    }
    command.output().expect("timeout runs")
}

/// The library of this build: cargo puts it beside the test.
pub fn library() -> PathBuf {
    let beside = profile().join("deps/libsidestep.so");
    let library = if beside.exists() { beside } else { profile().join("libsidestep.so") };
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// Where cargo puts the profile's artefacts.
fn profile() -> PathBuf {
    env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").to_owned()
}
