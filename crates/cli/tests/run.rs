//! `sidestep run`: what becomes of the program's status, its signals, its name; and `sidestep install`.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_status_is_the_programs() {
    for more in [&[][..], &["--verbose"]] {
        assert_eq!(run(more, &["true"]).status.code(), Some(0));
        assert_eq!(run(more, &["sh", "-c", "exit 7"]).status.code(), Some(7));
        assert_eq!(run(more, &["sh", "-c", "kill -TERM $$"]).status.signal(), Some(15));
        assert_eq!(run(more, &["sh", "-c", "kill -KILL $$"]).status.signal(), Some(9));
    }
}

#[test]
fn what_cannot_run_is_told_as_a_shell_does() {
    let output = run(&[], &["no-such-program-at-all"]);
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(text(&output.stderr), "sidestep: no-such-program-at-all: not found\n");
    let file = folder().join("not-executable");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    assert_eq!(run(&[], &[file.to_str().unwrap()]).status.code(), Some(126));
    assert_eq!(run(&[], &["/"]).status.code(), Some(126));
    let output = run(&["--sovia", "window=many"], &["true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("window takes a number"), "{}", text(&output.stderr));
    assert_eq!(run(&["--rule", "deny:colour=red"], &["true"]).status.code(), Some(2));
    assert_eq!(run(&["--promote", "often"], &["true"]).status.code(), Some(2));
    assert_eq!(run(&["--directory", "elsewhere"], &["true"]).status.code(), Some(2));
}

/// A wrong value in the environment is one for `run` as well, and names option, value and what is allowed. A program that gets
/// one past `run` says so once and runs.
#[test]
fn wrong_values_in_the_environment_are_told() {
    for (variable, option, allowed) in [
        ("SIDESTEP_PROMOTE", "--promote", "default, eager, never, random or random:SEED"),
        ("SIDESTEP_PROFILE", "--profile", "latency, throughput, frugal"),
        ("SIDESTEP_RULE", "--rule", "deny:port=5432"),
    ] {
        let output = sidestep().env(variable, "often").args(["run", "--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(&output.stderr);
        assert!(["often", option, allowed].iter().all(|part| said.contains(part)), "{said}");
        // The shell is the process that has the value, and it starts no other.
        let mut command = Command::new("sh");
        let output =
            command.args(["-c", "exit 5"]).env("LD_PRELOAD", library()).env(variable, "often").output().unwrap();
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(5), 1), "{said}");
        assert!(["often", variable, allowed, "stay on TCP"].iter().all(|part| said.contains(part)), "{said}");
    }
    // An empty one is one that is not set.
    let output = sidestep().env("SIDESTEP_PROMOTE", "").args(["run", "--", "true"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn options_reach_the_program_by_its_environment() {
    let words = ["--carrier", "via", "--sovia", "window=8"];
    let output = run(&words, &["sh", "-c", "echo $SIDESTEP_CARRIER $SIDESTEP_SOVIA"]);
    assert_eq!(text(&output.stdout), "via window=8\n");
    let script = "echo $SIDESTEP_PROFILE $SIDESTEP_RULE $SIDESTEP_CARRIER $SIDESTEP_PROMOTE";
    let all = ["--profile", "frugal", "--rule", "deny:port=80", "--rule", "allow:all", "--promote", "random:7"];
    assert_eq!(text(&run(&all, &["sh", "-c", script]).stdout), "frugal deny:port=80,allow:all ring random:7\n");
    assert_eq!(text(&run(&[], &["sh", "-c", script]).stdout), "latency ring default\n");
    let mut command = sidestep();
    command.env("SIDESTEP_PROMOTE", "eager").args(["run", "--", "sh", "-c", script]);
    assert_eq!(text(&command.output().unwrap().stdout), "latency ring eager\n");
}

#[test]
fn arguments_and_names_are_kept() {
    let output = run(&[], &["sh", "-c", "echo $0 \"$@\"", "zero", "--verbose", "--", "a b"]);
    assert_eq!(text(&output.stdout), "zero --verbose -- a b\n");
    let output = run(&[], &["sh", "-c", "tr '\\0' ' ' < /proc/$$/cmdline"]);
    assert!(text(&output.stdout).starts_with("sh -c "), "{output:?}");
}

#[test]
fn other_preloaded_libraries_stay_in_their_order() {
    let mut command = sidestep();
    command.env("LD_PRELOAD", "libm.so.6:libdl.so.2").args(["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
    let output = text(&command.output().unwrap().stdout);
    let libraries: Vec<&str> = output.trim().split(':').collect();
    assert!(libraries[0].ends_with("/libsidestep.so"), "{output}");
    assert_eq!(libraries[1..], ["libm.so.6", "libdl.so.2"]);
}

#[test]
fn the_library_is_loaded() {
    let output = run(&[], &["grep", "-c", "libsidestep.so", "/proc/self/maps"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_static_program_runs_and_is_named() {
    let program = compile("static-program", &["-static"]);
    let output = run(&[], &[program.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    let name = program.file_name().unwrap().to_str().unwrap();
    assert_eq!(text(&output.stderr), format!("sidestep: {name} is statically linked: it runs, over TCP\n"));
    let script = folder().join("script");
    fs::write(&script, format!("#!{}\n", program.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let output = run(&[], &[script.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("script has an interpreter that is statically linked"), "{output:?}");
}

#[test]
fn an_ordinary_program_is_not_talked_about() {
    let program = compile("dynamic-program", &[]);
    let output = run(&[], &[program.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(3), String::new()));
}

#[test]
fn signals_are_handed_on() {
    for more in [&[][..], &["--verbose"]] {
        let script = "trap 'echo usr1' USR1; trap 'echo term; exit 4' TERM; echo ready; while :; do sleep 0.01; done";
        let mut command = sidestep();
        command.arg("run").args(more).args(["--", "sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "ready");
        kill_process(pid, Signal::USR1).unwrap();
        assert_eq!(lines.next().unwrap(), "usr1");
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(lines.next().unwrap(), "term");
        assert_eq!(child.wait().unwrap().code(), Some(4));
    }
}

#[test]
fn help_and_summary() {
    let output = run(&["--verbose"], &["true"]);
    assert!(text(&output.stderr).contains("true ended"), "{output:?}");
    let help = text(&sidestep().args(["run", "--help"]).output().unwrap().stdout);
    let parts =
        ["--profile", "--rule", "--carrier", "--promote", "SIDESTEP_PROMOTE", "deny:port=5432", "-v, --verbose"];
    for part in parts {
        assert!(help.contains(part), "{part} is not in\n{help}");
    }
}

#[test]
fn an_installed_tree_works() {
    let prefix = folder().join("prefix with blank").join("..").join(format!("prefix-{}", std::process::id()));
    fs::create_dir_all(folder().join("prefix with blank")).unwrap();
    // A build tree that has everything, whatever this test was built with.
    let built = folder().join("built");
    fs::create_dir_all(&built).unwrap();
    let program = built.join("sidestep");
    fs::copy(env!("CARGO_BIN_EXE_sidestep"), &program).unwrap();
    fs::copy(library(), built.join("libsidestep.so")).unwrap();
    let install = || Command::new(&program).arg("install").arg("--prefix").arg(&prefix).output().unwrap();
    let output = install();
    assert!(text(&output.stderr).contains("libvipl.so was not built"), "{output:?}");
    assert!(!prefix.exists(), "nothing is half installed");
    fs::write(built.join("libvipl.so"), "a library").unwrap();
    let output = install();
    assert!(output.status.success(), "{output:?}");
    let prefix = prefix.canonicalize().unwrap();
    let files = [
        "bin/sidestep",
        "lib/sidestep/libsidestep.so",
        "lib/libvipl.so.1",
        "lib/libvipl.so",
        "include/vipl.h",
        "lib/pkgconfig/vipl.pc",
        "share/man/man3/vipl.3",
        "share/man/man3/VipPostSend.3",
        "share/man/man3/VipExtMoveVi.3",
        "share/doc/sidestep/examples/pingpong.c",
        "share/doc/sidestep/examples/cq_server.c",
    ];
    for file in files {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    let described = fs::read_to_string(prefix.join("lib/pkgconfig/vipl.pc")).unwrap();
    assert!(described.contains(&format!("prefix={}\n", prefix.display())), "{described}");
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    if Command::new("strip").arg("--version").output().is_ok_and(|output| output.status.success()) {
        for (installed, built) in [("bin/sidestep", &program), ("lib/sidestep/libsidestep.so", &library())] {
            assert!(size(&prefix.join(installed)) < size(built) / 2, "{installed} is stripped");
        }
        assert!(text(&output.stderr).contains("libvipl.so.1 keeps its symbols"), "one that is no library: {output:?}");
    }
    let script = "echo $LD_PRELOAD; exit 6";
    let output = Command::new(prefix.join("bin/sidestep")).args(["run", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert_eq!(text(&output.stdout).trim(), prefix.join("lib/sidestep/libsidestep.so").to_str().unwrap());
    fs::remove_dir_all(prefix).unwrap();
}

/// A drop-in that answers the unit, and what it may not answer; a second one is made as the first.
#[test]
fn a_service_is_put_under_sidestep() {
    let units = folder().join("units");
    fs::create_dir_all(&units).unwrap();
    fs::write(units.join("own.service"), "[Service]\nPrivateIPC=yes\nNoExecPaths=/\nExecStart=/bin/sleep 1\n").unwrap();
    let of_service = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
        let output = command.arg("init-service").args(arguments).arg("--folder").arg(&units).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (text(&output.stdout), text(&output.stderr))
    };
    let (printed, notes) = of_service(&["own"]);
    assert!(printed.contains("\nEnvironment=LD_PRELOAD=/") && printed.contains("\nExecPaths=/"), "{printed}");
    assert!(notes.contains("own.service: PrivateIPC="), "{notes}");
    let file = units.join("own.service.d/sidestep.conf");
    for _ in 0..2 {
        let (said, _) = of_service(&["own.service", "--write"]);
        assert!(
            said.contains("systemctl restart own.service") && fs::read_to_string(&file).unwrap() == printed,
            "{said}"
        );
    }
    let (_, notes) = of_service(&["none-of-this-name"]);
    assert!(notes.contains("there is no none-of-this-name.service"), "{notes}");
    fs::remove_dir_all(units).unwrap();
}

/// What `install` prints in the end is typed as it is, in a folder of its own; its pages are what `man` expects; and the examples
/// in them compile.
#[test]
fn what_install_says_about_libvipl_works() {
    let Some(library) = built_vipl() else { return eprintln!("skipped: libvipl.so is not built") };
    let root = folder().join("vipl with 'quotes'");
    let (built, prefix, work) = (root.join("built"), root.join("prefix"), root.join("work"));
    for folder in [&built, &work] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_sidestep"), built.join("sidestep")).unwrap();
    fs::copy(self::library(), built.join("libsidestep.so")).unwrap();
    fs::copy(&library, built.join("libvipl.so")).unwrap();
    let output = Command::new(built.join("sidestep")).arg("install").arg("--prefix").arg(&prefix).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    assert!(size(&prefix.join("lib/libvipl.so.1")) < size(&library) / 2, "it is stripped");
    let printed = text(&output.stdout);
    let (_, lines) = printed.rsplit_once("\n\n").expect("a paragraph at the end");
    assert_eq!(lines.lines().count(), 3, "{lines}");
    assert!(printed.contains("\nexport PATH='") && printed.contains("\nsidestep run -- PROGRAM\n"), "{printed}");
    let output = Command::new("sh").arg("-ec").arg(lines).current_dir(&work).output().unwrap();
    assert!(output.status.success() && text(&output.stdout).contains("half a round trip"), "{output:?}");
    check_pages(&prefix, &work);
    fs::remove_dir_all(root).unwrap();
}

fn check_pages(prefix: &Path, work: &Path) {
    let mut program = String::from(PRELUDE);
    for page in fs::read_dir(prefix.join("share/man/man3")).unwrap() {
        let page = page.unwrap().path();
        let name = page.file_stem().unwrap().to_str().unwrap().to_string();
        let output = Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8"]).arg(&page).output();
        if let Ok(output) = output {
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{}: {}",
                page.display(),
                text(&output.stderr)
            );
        }
        let source = fs::read_to_string(&page).unwrap();
        if let Some(example) = source.split(".SH EXAMPLE\n.nf\n").nth(1).and_then(|rest| rest.split(".fi").next()) {
            program += &format!("void example_{name}(void) {{\n{}}}\n", example.replace("\\e", "\\"));
        }
    }
    assert!(program.matches("void example_").count() >= 53);
    let source = work.join("examples.c");
    fs::write(&source, program).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c89", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]);
    assert!(compiler.arg(prefix.join("include")).arg(source).status().unwrap().success());
}

/// What the examples in the manual pages take for granted.
const PRELUDE: &str = "#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>
extern VIP_NIC_HANDLE nic;
extern VIP_VI_HANDLE vi;
extern VIP_CQ_HANDLE cq;
extern VIP_CONN_HANDLE connection;
extern VIP_PROTECTION_HANDLE ptag;
extern VIP_MEM_HANDLE handle;
extern VIP_NET_ADDRESS *local, *remote;
extern VIP_DESCRIPTOR *descriptor, *done;
extern char buffer[4096], name[256];
extern void on_error(VIP_PVOID, VIP_ERROR_DESCRIPTOR *);
extern void on_done(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *);
extern void on_cq(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN);
";

fn run(options: &[&str], command: &[&str]) -> Output {
    sidestep().arg("run").args(options).arg("--").args(command).output().unwrap()
}

fn sidestep() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.env_remove("LD_PRELOAD");
    command
}

/// A program that exits with 3.
fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let out = folder().join(name);
    let source = out.with_extension("c");
    fs::write(&source, "int main(void) { return 3; }\n").unwrap();
    let status = Command::new("cc").args(flags).arg("-o").arg(&out).arg(&source).status().expect("a C compiler");
    assert!(status.success());
    out
}

/// A folder of this run.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn library() -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_sidestep")).parent().unwrap();
    let built = ["libsidestep.so", "deps/libsidestep.so"].map(|name| profile.join(name));
    // Cargo keeps two, and does not always renew both.
    let modified = |library: &PathBuf| library.metadata().and_then(|status| status.modified()).ok();
    built.into_iter().filter(|library| library.exists()).max_by_key(modified).expect("libsidestep.so is built")
}

fn built_vipl() -> Option<PathBuf> {
    let profile = Path::new(env!("CARGO_BIN_EXE_sidestep")).parent().unwrap();
    ["deps/libvipl.so", "libvipl.so"].map(|name| profile.join(name)).into_iter().find(|library| library.exists())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
