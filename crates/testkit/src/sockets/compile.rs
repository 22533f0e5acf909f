//! Building the test programs that are written in C.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// Compiles one source file into `folder`, with further arguments (libraries, mostly) after it, which are always the same
/// for one folder. Fails the test with what the compiler said. A program that is newer than all its sources is left as it is.
pub fn compile(source: &Path, folder: &Path, more: &[&str]) -> PathBuf {
    fs::create_dir_all(folder).expect("a folder for programs");
    let plus = source.extension().is_some_and(|extension| extension == "cc");
    let stem = source.file_stem().expect("a file").to_string_lossy();
    let (done, parts) = (folder.join(&*stem), folder.join(format!("{stem}.d")));
    if is_newest(&done, &parts, more) {
        return done;
    }
    // Several tests may build it at the same time: each program appears under its name when it is complete.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = format!("{stem}.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let (made, made_parts) = (folder.join(&own), folder.join(own + ".d"));
    let out = Command::new(if plus { "c++" } else { "cc" })
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-D_FORTIFY_SOURCE=2", "-pthread", "-MMD", "-MF"])
        .arg(&made_parts)
        .arg("-o")
        .arg(&made)
        .arg(source)
        .args(more)
        .output()
        .expect("a C compiler");
    assert!(out.status.success(), "{} does not compile:\n{}", source.display(), String::from_utf8_lossy(&out.stderr));
    fs::rename(&made_parts, &parts).expect("a name for the list of sources");
    fs::rename(&made, &done).expect("a name for the program");
    done
}

/// Whether a program is newer than every source in the list that the compiler made, and than what was linked to it.
fn is_newest(program: &Path, parts: &Path, more: &[&str]) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    let (Some(built), Ok(parts)) = (modified(program), fs::read_to_string(parts)) else { return false };
    let sources = parts.split_whitespace().filter(|word| *word != "\\" && !word.ends_with(':'));
    let linked = more.iter().copied().filter(|argument| argument.starts_with('/'));
    let mut sources = sources.chain(linked).map(Path::new).peekable();
    sources.peek().is_some() && sources.all(|source| modified(source).is_some_and(|changed| changed < built))
}
