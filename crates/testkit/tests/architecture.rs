//! The rules of the workspace that a compiler does not check: who may depend on whom, how long a
//! file may be, how much two places may share, where unsafe code may live, and that no file names a path of one machine.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Who may depend on whom, by folder name. `ANY` allows every crate of the workspace.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("sys", &[]),
    ("shm", &["sys"]),
    ("wire", &[]),
    ("iwarp", &["wire"]),
    ("fabric", &["sys", "shm", "wire", "iwarp"]),
    // `shm` for memory of the caller.
    ("vi", &["fabric", "shm", "sys", "wire"]),
    ("vipl", &["vi", "sys"]),
    ("stream", &["fabric", "vi", "shm", "sys", "wire"]),
    // `shm` for the waiting policy and mapped files.
    ("sockets", &["stream", "fabric", "shm", "sys", "wire"]),
    // `sockets` for what the kernel says of a connection, `shm` for memory of the program.
    ("extended", &["fabric", "sockets", "shm", "sys", "wire"]),
    ("cache", &["extended", "sys"]),
    ("balance", &["extended", "sys"]),
    // `sys` for the lock of a table.
    // `vmmc` for a NIC on a card, which is asked for by an option.
    ("preload", &["sockets", "extended", "vmmc", "sys"]),
    ("idl", &[]),
    // `iwarp` for RPC over RDMA, whose peers are not of the fabric.
    ("rpc", &["fabric", "vi", "iwarp", "wire", "sys"]),
    ("orb", &["fabric", "vi", "wire", "sys"]),
    // `shm` for the waiting policy.
    ("filters", &["fabric", "vi", "shm", "sys"]),
    // `shm` for the memory of processes, which the card pins and copies.
    ("vmmc", &["fabric", "shm", "sys", "wire"]),
    ("cli", &[ANY]),
    // `shm` because a hostile peer scribbles over mapped memory below the fabric.
    ("testkit", &["sys", "shm", "wire", "iwarp", "fabric", "vi", "stream", "sockets"]),
];

const ANY: &str = "*";

/// Which folder of `crates/sockets/src` may use which. The first three know nothing of streams, and nobody uses `calls`. The six
/// between them use one another: a stream is what all of them are about, and its switches are what wakes and moves it.
const FOLDERS: &[(&str, &[&str])] = &[
    ("kernel", &[]),
    ("config", &["kernel"]),
    ("registry", &["config", "kernel"]),
    ("descriptors", &["readiness", "streams"]),
    ("streams", &["config", "descriptors", "kernel", "processes", "promotion", "readiness", "registry", "tap"]),
    ("readiness", &["config", "descriptors", "kernel", "processes", "promotion", "registry", "streams"]),
    ("promotion", &["config", "descriptors", "kernel", "processes", "readiness", "registry", "streams", "tap"]),
    ("processes", &["descriptors", "kernel", "promotion", "readiness", "streams"]),
    ("tap", &["kernel", "promotion", "streams"]),
    ("calls", &["config", "descriptors", "kernel", "processes", "promotion", "readiness", "registry", "streams"]),
];

/// Where `unsafe` may be allowed, besides the whole of `crates/shm` and `crates/sys`: files or folders, from the root.
// A global allocator that counts can only be had by an unsafe trait.
const UNSAFE_EXCEPTIONS: &[&str] = &[
    "crates/testkit/src/allocator.rs",
    // A tunnel takes an ioctl.
    "crates/testkit/src/hosts/tun.rs",
    "crates/vipl/src/",
    // The kernel's calling convention.
    "crates/sockets/src/kernel/",
    // Registering memory that the program has given to a call.
    "crates/stream/src/carrier/via/cache.rs",
    // C pointers and C names.
    "crates/preload/src/",
    // They fork, as a program does.
    "crates/sockets/tests/family.rs",
    "crates/extended/tests/successors.rs",
];

const LIB_LINES: usize = 150;
const FILE_LINES: usize = 700;

#[test]
fn dependencies_follow_the_table() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let from = folder_of(package["name"].as_str().expect("a name"));
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(name, _)| *name == from) else {
            wrong.push(format!("{from}: not in the table of crates"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = dependency["name"].as_str().expect("a name");
            if !name.starts_with("sidestep-") {
                continue;
            }
            let to = folder_of(name);
            let for_tests = dependency["kind"].as_str() == Some("dev");
            let permitted = match to {
                "testkit" => for_tests,
                _ => allowed.contains(&ANY) || allowed.contains(&to),
            };
            if !permitted {
                wrong.push(format!("{from} -> {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "edges that may not exist: {wrong:#?}");
}

#[test]
fn folders_of_sockets_follow_the_table() {
    const SOURCE: &str = "crates/sockets/src/";
    let mut found: Vec<(String, String, String)> = Vec::new();
    for (name, text) in rust_files() {
        let Some((from, file)) = name.strip_prefix(SOURCE).and_then(|rest| rest.split_once('/')) else { continue };
        if file.ends_with("tests.rs") {
            continue;
        }
        found.extend(modules_used(&text).into_iter().filter(|to| to != from).map(|to| (from.into(), to, name.clone())));
    }
    let allowed = |from: &str, to: &str| FOLDERS.iter().any(|(name, tos)| *name == from && tos.contains(&to));
    let wrong: Vec<_> = found.iter().filter(|(from, to, _)| !allowed(from, to)).collect();
    assert!(wrong.is_empty(), "arrows that may not exist: {wrong:#?}");
    let used = |from: &str, to: &str| found.iter().any(|arrow| arrow.0 == from && arrow.1 == to);
    for (from, tos) in FOLDERS {
        let idle: Vec<_> = tos.iter().filter(|to| !used(from, to)).collect();
        assert!(idle.is_empty(), "arrows that nobody needs any more: {from} -> {idle:?}");
    }
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("readable");
    let rows: String = FOLDERS.iter().map(|(from, tos)| format!("| `{from}` | {} |\n", tos.join(", "))).collect();
    assert!(document.contains(&rows), "ARCHITECTURE.md shows another table than:\n{rows}");
}

/// The functions from `send` to the copy are few, and where the document says.
#[test]
fn the_life_of_a_write_is_short_and_true() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("readable");
    let life = document.split("## The life of one 64-byte write").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = life.expect("the section").lines().filter(|line| line.starts_with("| `"));
    let named: Vec<(&str, &str)> = rows
        .map(|row| {
            let mut quoted = row.split('`').skip(1).step_by(2);
            (quoted.next().expect("a function"), quoted.next().expect("a file"))
        })
        .collect();
    assert!((1..=8).contains(&named.len()), "{} functions", named.len());
    for (function, file) in named {
        let text = fs::read_to_string(root().join("crates").join(file)).expect(file);
        assert!(text.contains(&format!("fn {function}(")), "{file} has no {function}");
    }
}

/// The modules at the root of its crate that a file names, in `use` lines and in paths, but for its tests.
fn modules_used(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let mut names = Vec::new();
    for (at, mark) in code.match_indices("crate::") {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let rest = &code[at + mark.len()..];
        if !rest.starts_with('{') {
            names.push(word(rest));
            continue;
        }
        let mut depth = 0;
        for (at, letter) in rest.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if depth == 1 && matches!(letter, '{' | ',') {
                names.push(word(rest[at + 1..].trim_start()));
            }
        }
    }
    names.retain(|name| name.starts_with(|first: char| first.is_ascii_lowercase()));
    names
}

fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for package in metadata()["packages"].as_array().expect("packages") {
        let manifest = package["manifest_path"].as_str().expect("a path");
        let text = fs::read_to_string(manifest).expect("readable");
        let lints = text.lines().skip_while(|line| line.trim() != "[lints]").nth(1);
        assert_eq!(lints.map(str::trim), Some("workspace = true"), "[lints] of {manifest}");
    }
}

#[test]
fn files_are_short_or_say_why_not() {
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        let lines = text.lines().count();
        if name.ends_with("src/lib.rs") && lines > LIB_LINES && !is_generated(&text) {
            wrong.push(format!("{name}: {lines} lines, a lib.rs has at most {LIB_LINES}"));
        }
        if lines > FILE_LINES && !is_generated(&text) && !module_doc(&text).contains("long because") {
            wrong.push(format!("{name}: {lines} lines, and no \"long because\" in its module doc"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What differs between carriers is asked of their capabilities; only what connects one, and what `stat` is told, names its kind.
#[test]
fn nobody_asks_which_kind_a_carrier_is() {
    const CONNECT: &[&str] = &["crates/sockets/src/promotion/engine", "crates/sockets/src/config"];
    const TELL: &str = "crates/sockets/src/registry/mod.rs";
    let kinds = ["Ring", "Via", "Loopback"];
    let modules = ["ring", "via", "loopback"].map(|kind| format!("carrier::{kind}"));
    let variants = ["AnyOutbound", "AnyInbound", "AnyWatch"].map(|any| kinds.map(|kind| format!("{any}::{kind}")));
    let names = kinds.map(|kind| format!("Kind::{kind}"));
    let mut wrong = Vec::new();
    for (name, text) in rust_files().into_iter().filter(|(name, _)| name.starts_with("crates/sockets/src/")) {
        let connects = CONNECT.iter().any(|place| name.starts_with(place));
        let modules = modules.iter().filter(|_| !connects);
        let names = names.iter().filter(|_| name != TELL);
        let asks = modules.chain(variants.as_flattened()).chain(names).find(|word| text.contains(word.as_str()));
        wrong.extend(asks.map(|word| format!("{name}: {word}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unsafe_code_lives_where_it_may() {
    // Built from parts, so that this file does not find itself.
    let permits = ["allow", "expect", "warn"].map(|level| format!("{level}(unsafe{}", "_code"));
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        let excepted = UNSAFE_EXCEPTIONS.iter().any(|place| name.starts_with(place));
        if name.starts_with("crates/shm/") || name.starts_with("crates/sys/") || excepted {
            continue;
        }
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        if code.clone().any(|line| permits.iter().any(|permit| line.contains(permit))) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "files that permit unsafe code and may not: {wrong:#?}");
}

/// A link is a scheme to everything above the fabric, and a property of a peer: only the fabric, its tests and this crate name
/// the types.
#[test]
fn nothing_above_the_fabric_names_a_link() {
    const TYPES: [&str; 6] = ["AnyLink", "ShmLink", "IwarpLink", "TracedLink", "link::shm", "link::iwarp"];
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        let below = ["crates/fabric/", "crates/testkit/"].iter().any(|folder| name.starts_with(folder));
        if below || !(name.contains("/src/") || name.contains("/examples/")) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if TYPES.iter().any(|link| line.contains(link)) {
                wrong.push(format!("{name}:{}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "types of links are named in: {wrong:#?}");
}

/// Bytes become values by the two cursors of `wire`. A word with a name (`b"..."`) and what the kernel has in its own order are
/// not meant.
#[test]
fn codecs_use_the_cursors() {
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        let meant =
            ["fabric", "vi", "sockets", "stream"].iter().any(|own| name.starts_with(&format!("crates/{own}/src/")));
        let code = text.split("#[cfg(test)]\nmod tests {").next().filter(|_| meant).unwrap_or_default();
        for (number, line) in lines_of_code(code) {
            let orders = |step: &str| ["le", "be"].iter().any(|order| line.contains(&format!("{step}_{order}_bytes(")));
            let reads = orders("from") && !line.contains("_bytes(*b\"");
            let writes = orders("to") && line.contains("copy_from_slice(");
            wrong.extend((reads || writes).then(|| format!("{name}:{number}")));
        }
    }
    assert!(wrong.is_empty(), "bytes are put in order by hand in: {wrong:#?}");
}

/// What every link must do is little; the rest has a default, or is of links that map.
#[test]
fn a_link_has_few_required_methods() {
    let text = fs::read_to_string(root().join("crates/fabric/src/link/mod.rs")).expect("readable");
    let body = text.split("\npub trait Link").nth(1).and_then(|rest| rest.split("\n}\n").next()).expect("the trait");
    let required = body.split("\n    fn ").skip(1).filter(|method| {
        let head = method.find([';', '{']).map(|at| method.as_bytes()[at]);
        head == Some(b';')
    });
    let count = required.count();
    assert!((1..=12).contains(&count), "{count} required methods");
}

/// What stands in two places is mended in one of them. Counted are lines of code of the product, without imports and tests.
#[test]
fn no_two_places_share_many_lines() {
    const MOST: usize = 15;
    let (mut places, mut wrong) = (HashMap::new(), Vec::new());
    for (name, text) in rust_files() {
        let product = name.contains("/src/") && !name.contains("/tests") && !name.starts_with("crates/testkit/");
        if !product || is_generated(&text) {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = lines_of_code(code);
        for run in lines.windows(MOST + 1) {
            let (place, text) = (format!("{name}:{}", run[0].0), run.iter().map(|(_, line)| *line).collect::<Vec<_>>());
            if let Some(other) = places.insert(text.join("\n"), place.clone()) {
                wrong.push(format!("{other} and {place}"));
            }
        }
    }
    assert!(wrong.is_empty(), "these share more than {MOST} lines: {wrong:#?}");
}

/// The lines that say something, with their numbers: no comments, imports or lone brackets.
fn lines_of_code(text: &str) -> Vec<(usize, &str)> {
    let (mut lines, mut imports) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate().map(|(number, line)| (number + 1, line.trim())) {
        imports |= line.starts_with("use ") || line.contains(" use ") && line.starts_with("pub");
        if !imports && !line.starts_with("//") && line.chars().any(char::is_alphanumeric) {
            lines.push((number, line));
        }
        imports &= !line.ends_with(';');
    }
    lines
}

#[test]
fn exceptions_exist() {
    for place in UNSAFE_EXCEPTIONS {
        assert!(root().join(place).exists(), "{place} is listed as an exception and is not there");
    }
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    // Built from parts, so that this file does not find itself.
    let patterns = ["work", "root"].map(|folder| format!("/{folder}/"));
    let mut wrong = Vec::new();
    for path in files_under(&root()) {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if patterns.iter().any(|pattern| line.contains(pattern)) {
                wrong.push(format!("{}:{}", shown(&path), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "machine paths in: {wrong:#?}");
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn folder_of(package: &str) -> &str {
    package.strip_prefix("sidestep-").unwrap_or(package)
}

/// Code that a compiler of interface definitions has made. Nobody reads it, and a test makes it anew.
fn is_generated(text: &str) -> bool {
    ["// Made by `sidestep idl`", "// Generated from "].iter().any(|head| text.starts_with(head))
}

fn module_doc(text: &str) -> String {
    text.lines().take_while(|line| line.starts_with("//!")).collect()
}

/// Every Rust file of the crates and the fuzz targets, with its name from the root.
fn rust_files() -> Vec<(String, String)> {
    ["crates", "fuzz"]
        .into_iter()
        .flat_map(|folder| files_under(&root().join(folder)))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some((shown(&path), fs::read_to_string(&path).ok()?)))
        .collect()
}

/// Every file below a folder, without what version control and the compiler keep for themselves.
fn files_under(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.expect("a readable folder");
        let name = entry.file_name();
        let kind = entry.file_type().expect("a file type");
        let generated = ["target", ".git", "corpus", "artifacts"].iter().any(|own| name == *own);
        if generated {
            continue;
        }
        if kind.is_dir() {
            files.extend(files_under(&entry.path()));
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/testkit").to_owned()
}
