//! Programs in C and C++ against the header and the library, as an installed pair would be used.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// Every return code, and every status bit, is seen by the C suite at least once.
const ALL_CODES: u32 = 0xffff;
const ALL_STATUS: u32 = 0x1ff | 0x7_0000 | 0x8_0000;

#[test]
fn the_suite_sees_every_code_and_every_status_bit() {
    let local = one(&build("tests/c/local.c"), &["local"]);
    let (server, client) = two(&build("tests/c/pair.c"), &[]);
    let seen = [local, server, client].map(|text| masks(&text));
    let (codes, status) = seen.into_iter().fold((0, 0), |all, seen| (all.0 | seen.0, all.1 | seen.1));
    assert_eq!(codes, ALL_CODES, "codes {codes:x}");
    assert_eq!(status & ALL_STATUS, ALL_STATUS, "status {status:x}");
}

#[test]
fn a_killed_peer_is_noticed_without_a_call() {
    let program = build("tests/c/killed.c");
    let word = word();
    let mut server = start(&program, &["server", &word]);
    let client = start(&program, &["client", &word]).wait_with_output().unwrap();
    text_of(client, "client");
    assert!(!server.wait().unwrap().success(), "it was killed");
}

#[test]
fn a_broken_nic_is_reported() {
    one(&build("tests/c/broken.c"), &["alone"]);
}

/// The NIC called `iwarp`, at addresses of the form `HOST:PORT`.
#[test]
fn the_same_calls_work_over_iwarp() {
    on_device("iwarp");
}

/// NICs that belong to one thread.
#[test]
fn the_same_calls_work_without_thread_safety() {
    on_device("nic0,single");
    on_device("iwarp,single");
}

fn on_device(device: &str) {
    let program = build("tests/c/device.c");
    // An address of this host that follows from the process: nobody else waits there.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let socket = format!("127.{}.{middle}.{low}:4791", high | 0x80);
    let server = start(&program, &["server", &socket, device]);
    let client = start(&program, &["client", &socket, device]).wait_with_output().unwrap();
    assert_eq!(text_of(client, "client"), "client done\n");
    assert_eq!(text_of(server.wait_with_output().unwrap(), "server"), "server done\n");
}

#[test]
fn examples_run() {
    let (_, client) = two(&build("examples/pingpong.c"), &["1000", "40"]);
    assert!(client.contains("half a round trip"), "{client}");
    let (_, client) = two(&build("examples/cq_server.c"), &["20", "2000"]);
    assert!(client.contains("requests a second"), "{client}");
}

/// As `docs/via.md` says: a folder with library, header, manual page and description, and nothing of the source tree.
#[test]
fn an_installed_library_is_enough() {
    let prefix = folder().join("c").join(format!("prefix-{}", word()));
    install(&prefix);
    let out = prefix.join("pingpong");
    let described = Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .args(["--cflags", "--libs", "vipl"])
        .output()
        .expect("pkg-config runs");
    let flags = text_of(described, "pkg-config");
    let status = Command::new("cc")
        .current_dir(&prefix)
        .args(["-O1", "-o"])
        .arg(&out)
        .arg(manifest().join("examples/pingpong.c"))
        .args(flags.split_whitespace())
        .arg(format!("-Wl,-rpath,{}", prefix.join("lib").display()))
        .status()
        .expect("a C compiler");
    assert!(status.success(), "cc pingpong.c {flags}");
    let (_, client) = two(&out, &["200", "4"]);
    assert!(client.contains("half a round trip"), "{client}");
    assert!(fs::read_to_string(prefix.join("share/man/man3/vipl.3")).unwrap().starts_with(".TH VIPL 3"));
    fs::remove_dir_all(&prefix).unwrap();
}

/// What belongs to the library, put where it belongs.
fn install(prefix: &Path) {
    for folder in ["lib/pkgconfig", "include", "share/man/man3"] {
        fs::create_dir_all(prefix.join(folder)).unwrap();
    }
    fs::copy(library(), prefix.join("lib/libvipl.so.1")).unwrap();
    std::os::unix::fs::symlink("libvipl.so.1", prefix.join("lib/libvipl.so")).unwrap();
    fs::copy(manifest().join("include/vipl.h"), prefix.join("include/vipl.h")).unwrap();
    fs::copy(manifest().join("man/vipl.3"), prefix.join("share/man/man3/vipl.3")).unwrap();
    let described = fs::read_to_string(manifest().join("vipl.pc.in")).unwrap();
    let described = described.replace("@PREFIX@", prefix.to_str().unwrap());
    fs::write(prefix.join("lib/pkgconfig/vipl.pc"), described).unwrap();
}

#[test]
fn cplusplus_takes_the_header() {
    let out = Command::new(build("tests/c/plus.cc")).output().unwrap();
    assert!(out.status.success(), "{out:?}");
}

/// Old and new compilers, as strict as they are, have nothing to say about the header.
#[test]
fn every_standard_takes_the_header() {
    let folder = folder().join("c");
    fs::create_dir_all(&folder).unwrap();
    for (compiler, extension, standards) in
        [("cc", "c", &["c89", "gnu89", "c99", "c11", "c17"][..]), ("c++", "cc", &["c++98", "c++11", "c++17"])]
    {
        let source = folder.join(format!("header-{}.{extension}", word()));
        fs::write(&source, "#include <vipl.h>\nint main(void) { return sizeof(VIP_DESCRIPTOR) != 64; }\n").unwrap();
        for standard in standards {
            let status = Command::new(compiler)
                .args(["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
                .arg(format!("-std={standard}"))
                .arg("-I")
                .arg(manifest().join("include"))
                .arg(&source)
                .status()
                .expect("a compiler");
            assert!(status.success(), "{compiler} -std={standard}");
        }
    }
}

#[test]
fn programs_are_bound_to_a_version() {
    let out = Command::new("readelf").arg("-d").arg(library()).output().expect("readelf runs");
    let dynamic = String::from_utf8(out.stdout).unwrap();
    assert!(dynamic.contains("Library soname: [libvipl.so.1]"), "{dynamic}");
}

#[test]
fn no_other_symbol_is_exported() {
    let out = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output().expect("nm runs");
    let symbols = String::from_utf8(out.stdout).unwrap();
    let header = fs::read_to_string(manifest().join("include/vipl.h")).unwrap();
    let mut count = 0;
    for name in symbols.lines().filter_map(|line| line.split_whitespace().nth(2)) {
        assert!(name.starts_with("Vip"), "{name} is exported");
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
        count += 1;
    }
    let kinds = ["VIP_RETURN Vip", "VIP_PVOID Vip", "void Vip"];
    let declared = header.lines().filter(|line| kinds.iter().any(|kind| line.starts_with(kind))).count();
    assert_eq!(count, declared, "declared and exported");
}

fn masks(text: &str) -> (u32, u32) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["codes", codes, "status", status] = words[..] else { panic!("{text}") };
    (u32::from_str_radix(codes, 16).unwrap(), u32::from_str_radix(status, 16).unwrap())
}

/// Runs a program as server and as client, and returns what they printed.
fn two(program: &Path, arguments: &[&str]) -> (String, String) {
    let word = word();
    let with = |role| [&[role, word.as_str()][..], arguments].concat();
    let server = start(program, &with("server"));
    let client = start(program, &with("client")).wait_with_output().unwrap();
    let server = server.wait_with_output().unwrap();
    (text_of(server, "server"), text_of(client, "client"))
}

fn one(program: &Path, arguments: &[&str]) -> String {
    let word = word();
    text_of(start(program, &[arguments, &[&word]].concat()).wait_with_output().unwrap(), "alone")
}

fn start(program: &Path, arguments: &[&str]) -> Child {
    Command::new(program).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn text_of(output: Output, who: &str) -> String {
    assert!(output.status.success(), "{who}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A word that no other run uses.
fn word() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn build(source: &str) -> PathBuf {
    let source = manifest().join(source);
    let name = format!("{}-{}", source.file_stem().unwrap().to_str().unwrap(), word());
    let out = folder().join("c").join(name);
    fs::create_dir_all(out.parent().unwrap()).unwrap();
    let plus = source.extension().is_some_and(|extension| extension == "cc");
    let compiler = if plus { "c++" } else { "cc" };
    let library = bound();
    let status = Command::new(compiler)
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&out)
        .arg(&source)
        .arg("-I")
        .arg(manifest().join("include"))
        .arg("-L")
        .arg(&library)
        .arg("-lvipl")
        // The kind of path that counts before LD_LIBRARY_PATH, in which the test runner may name an older build.
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", library.display()))
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{compiler} {}", source.display());
    out
}

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo puts the profile's artefacts: two above the test.
fn folder() -> PathBuf {
    env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// A folder with the library under the name that programs are linked with, and under the one that they are bound to.
fn bound() -> PathBuf {
    let bound = folder().join("c").join(format!("lib-{}", word()));
    fs::create_dir_all(&bound).unwrap();
    for name in ["libvipl.so", "libvipl.so.1"] {
        std::os::unix::fs::symlink(library(), bound.join(name)).unwrap();
    }
    bound
}

/// The shared library: cargo puts the one of this build beside the test.
fn library() -> PathBuf {
    let beside = folder().join("deps/libvipl.so");
    if beside.exists() { beside } else { folder().join("libvipl.so") }
}
