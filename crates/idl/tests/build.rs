//! Definitions in a build script: where files are found, and what cargo is told.

use std::fs;
use std::path::PathBuf;

use sidestep_idl::{Build, CompileError};

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sidestep-idl-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("shared")).expect("a folder");
        fs::create_dir_all(path.join("out")).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    fn build(&self) -> Build {
        Build::new().folder(self.0.join("out")).include(self.0.join("shared"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn cargo_is_told_of_every_file() {
    let folder = Folder::new("every");
    let main = folder
        .write("main.idl", b"#include <types.idl>\n#include \"beside.idl\"\n#pragma odd\nstruct S { T t; U u; };\n");
    let beside = folder.write("beside.idl", b"#include <types.idl>\n#if WIDE\ntypedef long long U;\n#endif\n");
    // The comment is in ISO 8859-1.
    let types =
        folder.write("shared/types.idl", b"#ifndef T_IDL\n#define T_IDL\n/// Gr\xfcn\ntypedef long T;\n#endif\n");
    let built = folder.build().define("WIDE", "1").run(&main).expect("valid");
    assert_eq!(built.read, [main.clone(), types.clone(), beside.clone()]);
    let told = [&main, &types, &beside].map(|path| format!("cargo::rerun-if-changed={}", path.display()));
    assert_eq!(built.directives()[..3], told);
    assert!(
        built.directives()[3].starts_with("cargo::warning=")
            && built.directives()[3].ends_with("#pragma odd is ignored")
    );
    let code = fs::read_to_string(&built.code).expect("code");
    assert_eq!(built.code, folder.0.join("out/main.rs"));
    assert!(code.contains("/// Gr\u{fc}n") && code.contains("pub type U = i64;"), "{code}");
}

#[test]
fn both_languages_are_compiled() {
    let folder = Folder::new("both");
    let built = folder.build().run(folder.write("kv.x", b"const LIMIT = 3;\n")).expect("valid");
    assert!(fs::read_to_string(&built.code).expect("code").contains("pub const LIMIT: u32 = 3;"));
    let other = folder.build().run(folder.write("kv.y", b""));
    assert!(matches!(&other, Err(CompileError::Language(path)) if path.ends_with("kv.y")));
    let wrong = folder.build().run(folder.write("wrong.idl", b"struct S {};\n")).expect_err("an error");
    assert!(wrong.to_string().contains("wrong.idl:1:8: error: the structure \"S\" has no members"), "{wrong}");
    let missing = folder.build().run(folder.0.join("missing.idl"));
    assert!(matches!(missing, Err(CompileError::File(..))));
}
