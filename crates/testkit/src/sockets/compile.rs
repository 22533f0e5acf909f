//! Building the test programs that are written in C.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// Compiles one source file into `folder`, with further arguments (libraries, mostly) after it. Fails the test with what
/// the compiler said.
pub fn compile(source: &Path, folder: &Path, more: &[&str]) -> PathBuf {
    fs::create_dir_all(folder).expect("a folder for programs");
    let plus = source.extension().is_some_and(|extension| extension == "cc");
    let stem = source.file_stem().expect("a file").to_string_lossy();
    // Several tests may build it at the same time: each program appears under its name when it is complete.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = format!("{stem}.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let (done, made) = (folder.join(&*stem), folder.join(own));
    let out = Command::new(if plus { "c++" } else { "cc" })
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-D_FORTIFY_SOURCE=2", "-pthread", "-o"])
        .arg(&made)
        .arg(source)
        .args(more)
        .output()
        .expect("a C compiler");
    assert!(out.status.success(), "{} does not compile:\n{}", source.display(), String::from_utf8_lossy(&out.stderr));
    fs::rename(&made, &done).expect("a name for the program");
    done
}
