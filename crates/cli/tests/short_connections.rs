//! Connections that end after one exchange stay on TCP: under `sidestep run` they make the system calls that they make plain,
//! and no more.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

/// The plain calls of a family, and those by which the engine may make them.
const SAME: [(&str, &[&str]); 3] =
    [("epoll_wait", &["epoll_pwait", "epoll_pwait2"]), ("recvfrom", &["recvmsg"]), ("writev", &["sendto", "sendmsg"])];

#[test]
fn short_connections_make_no_more_system_calls_than_plain_ones() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("short-connections-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/short_connections.c");
    let compiled = Command::new("cc").arg("-o").arg(&program).arg(source).status().expect("a C compiler");
    assert!(compiled.success());
    let program = program.to_str().unwrap();
    let plain = calls(&folder, &[program]);
    let under = calls(&folder, &[env!("CARGO_BIN_EXE_sidestep"), "run", "--", program]);
    let _ = fs::remove_dir_all(&folder);
    let (Some(plain), Some(under)) = (plain, under) else {
        println!("skipped: system calls are not counted, since strace is not here or may not trace");
        return;
    };
    assert!(plain.len() > 5, "{plain:?}");
    assert_eq!(plain, under);
}

/// The system calls of a program between its two marks (`getppid`), by name. `None`: they cannot be traced.
fn calls(folder: &Path, command: &[&str]) -> Option<BTreeMap<String, u64>> {
    let output = folder.join("trace");
    let mut strace = Command::new("strace");
    let traced = strace.args(["-f", "-qq", "-o"]).arg(&output).args(command).env_remove("LD_PRELOAD");
    if !traced.status().ok()?.success() {
        // Nothing was written if tracing is forbidden; else the program has failed.
        assert_eq!(fs::metadata(&output).map_or(0, |file| file.len()), 0, "{command:?} failed");
        return None;
    }
    let text = fs::read_to_string(output).ok()?;
    // Each line: which thread, which call.
    let names = text.lines().filter_map(|line| line.split_once(' ')?.1.trim().split_once('(')).map(|(name, _)| name);
    let between = names.skip_while(|name| *name != "getppid").skip(1).take_while(|name| *name != "getppid");
    let mut calls = BTreeMap::new();
    for name in between {
        let same = SAME.iter().find(|(_, others)| others.contains(&name)).map_or(name, |(plain, _)| plain);
        *calls.entry(same.to_string()).or_insert(0) += 1;
    }
    Some(calls)
}
