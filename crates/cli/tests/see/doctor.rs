//! `sidestep doctor`: what it finds where something is wrong, or scarce.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use super::stage::{SIDESTEP, Stage, static_program};

#[test]
fn what_is_wrong_is_found() {
    let stage = Stage::new("doctor");
    let fixed = static_program();
    let said = stage.said(&["doctor", "sh"]);
    assert!(said.contains("sh loads the library") && said.contains("programs can be accelerated"), "{said}");
    let output = stage.sidestep(&["doctor", fixed.to_str().expect("a path of letters")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let mut command = Command::new(SIDESTEP);
    let output = command.arg("doctor").env("SIDESTEP_DIR", "/proc/nowhere").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && said.contains("broken   directory"), "{said}");
    // A file of another version, whose segment is not there.
    let left = stage.0.join(format!("{}-1-1", rustix::process::geteuid().as_raw()));
    let words = [u64::from_le_bytes(*b"SIDESTEP"), 1 << 32 | 0x7fff_fff0, 1, 0];
    fs::write(&left, words.map(u64::to_le_bytes).concat()).expect("writable");
    assert!(stage.said(&["doctor"]).contains("limited  leftovers"));
    assert!(stage.said(&["doctor", "--fix"]).contains("removed ") && !left.exists());
}

/// What `doctor` says after these lines of a shell, and its status.
fn after(stage: &Stage, lines: &str) -> (Option<i32>, String) {
    let mut command = Command::new("sh");
    let script = format!("{lines} && exec \"$0\" doctor");
    let Output { status, stdout, stderr } =
        command.args(["-c", &script, SIDESTEP]).env("SIDESTEP_DIR", &stage.0).output().expect("it runs");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// Limits that a shell can set, in order of the table of `doctor`.
#[test]
fn limits_are_told() {
    let stage = Stage::new("limits");
    let cases = [
        ("ulimit -n 20", 1, "broken   descriptors        soft limit 20, hard limit 20"),
        ("ulimit -n 500", 0, "limited  descriptors        soft limit 500, hard limit 500"),
        ("ulimit -f 100", 1, "broken   size limits        address space unlimited, files 50.0 KiB"),
        ("ulimit -f 100", 1, "broken   shared memory "),
        ("ulimit -f 1000000", 0, "limited  size limits        address space unlimited, files 488.3 MiB"),
        ("ulimit -v 4000000", 0, "limited  size limits        address space 3.8 GiB, files unlimited"),
        ("export SIDESTEP_CARRIER=pigeon", 1, "broken   environment "),
        ("export SIDESTEP_USERS=same", 0, "limited  users              --users same keeps programs of this user apart"),
    ];
    for (lines, status, part) in cases {
        let (found, said) = after(&stage, lines);
        assert!(found == Some(status) && said.contains(part), "{lines}: {found:?}\n{said}");
        assert!(said.contains(if status == 0 { "programs can be" } else { "programs cannot be" }), "{said}");
    }
    // The first that it may use is not always number 0.
    let allowed = fs::read_to_string("/proc/self/status").expect("a status");
    let list = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list").trim();
    let first = list.split([',', '-']).next().expect("a processor");
    let (_, said) = after(&stage, &format!("taskset -p -c {first} $$ >/dev/null"));
    assert!(said.contains("limited  processors         1 may be used"), "{said}");
}

/// What the administrator wrote of users, as root sees it in a mount namespace with another `/etc`.
#[test]
fn the_word_of_the_host_on_users_is_told() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("left out: only root can mount another /etc");
    }
    let stage = Stage::new("word");
    let etc = stage.0.join("etc");
    fs::create_dir_all(etc.join("sidestep")).expect("a folder");
    for file in ["passwd", "ld.so.cache"] {
        fs::copy(Path::new("/etc").join(file), etc.join(file)).expect("a file of /etc");
    }
    let script = format!("mount --bind {} /etc && exec \"$0\" doctor", etc.display());
    for (word, found) in [
        (None, "ok       users              programs of all users may meet, as there is no /etc/sidestep/users"),
        (Some("any"), "ok       users              /etc/sidestep/users lets programs of all users meet"),
        (Some("root,65533"), "ok       users              /etc/sidestep/users lets root (0), 65533 meet"),
        (Some("65533"), "limited  users              /etc/sidestep/users lets 65533 meet, not this user"),
        (Some("same"), "limited  users              /etc/sidestep/users keeps users apart"),
        (Some("?"), "limited  users              /etc/sidestep/users cannot be understood (no user is called ?)"),
    ] {
        if let Some(word) = word {
            fs::write(etc.join("sidestep/users"), word).expect("a file");
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, SIDESTEP]).env("SIDESTEP_DIR", &stage.0);
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(found), "{word:?}: {said}");
    }
}
