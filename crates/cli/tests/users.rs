//! Programs that change their user, fork in long lines, or live in other namespaces: they work, leak nothing, and are promoted
//! with processes of the user that they are. And what can be done to the directory of the registry while it is in use.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use sidestep_testkit::{
    process::PATIENCE,
    sockets::{Bounded, Ended, compile},
};

const SIDESTEP: &str = env!("CARGO_BIN_EXE_sidestep");
/// Two users without a name.
const USER: u32 = 65532;
const OTHER: u32 = 65533;

#[test]
fn a_thousand_changes_of_user() {
    let Some(ended) = as_root("often") else { return };
    assert!(ended.stderr.contains("2 of 2 connections left TCP"), "{}", ended.stderr);
    let more = ended.stdout.split(' ').next().and_then(|number| number.parse::<i64>().ok());
    assert!(more.is_some_and(|more| more < 10), "{}", ended.stdout);
}

#[test]
fn a_change_of_user_while_a_thread_sleeps() {
    let Some(ended) = as_root("asleep") else { return };
    assert_eq!(ended.stdout, "the sleeper got 1\n");
}

#[test]
fn connections_after_thousands_of_children() {
    let folder = Folder::new("children");
    let ended = finished(&folder, "children");
    assert!(ended.stderr.contains("2 of 2 connections left TCP"), "{}", ended.stderr);
}

#[test]
fn the_last_of_a_line_of_forks_is_promoted() {
    let folder = Folder::new("line");
    let watched = Watched::start(&folder, "line");
    expect_ring(&folder, &watched.pid);
    watched.end();
}

#[test]
fn a_process_is_promoted_as_the_user_that_it_has_become() {
    if !is_root() {
        return;
    }
    for role in ["other", "dropped"] {
        let folder = Folder::new(role);
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o1777)).expect("a folder");
        let watched = Watched::start(&folder, role);
        // Root is shown the connections of all users.
        expect_ring(&folder, &watched.pid);
        let names: Vec<String> = names(&folder);
        assert!(names.iter().any(|name| name.starts_with("65533-")), "{names:?}");
        watched.end();
    }
}

/// Two users, and what each end allows.
#[test]
fn connections_between_users_are_promoted_if_both_ends_allow_it() {
    if !is_root() {
        return;
    }
    let [one, other] = [USER, OTHER].map(|user| user.to_string());
    let listed = format!("{one},{other}");
    let cases = [
        ([USER, OTHER], ["any", "any"], true),
        ([0, OTHER], ["any", "any"], true),
        ([OTHER, 0], ["any", "any"], true),
        ([USER, OTHER], [&listed, &listed], true),
        ([USER, OTHER], [other.as_str(), one.as_str()], true),
        ([USER, OTHER], ["same", "any"], false),
        ([USER, OTHER], ["any", "same"], false),
        ([USER, OTHER], ["any", other.as_str()], false),
        ([USER, USER], ["same", "same"], true),
    ];
    for (users, allowed, promoted) in cases {
        for waits in ["0", "1"] {
            let folder = Folder::for_all("between");
            let server = Watched::begin(folder.command(users[0], &["--users", allowed[0]], &["answer", waits]));
            let mut client = Watched::begin(folder.command(users[1], &["--users", allowed[1]], &["call", &server.pid]));
            let (found, said) = client.is_promoted(&folder, promoted);
            assert_eq!(found, promoted, "{users:?} {allowed:?}: {said}");
            client.end();
            server.end();
        }
    }
}

/// The administrator's word stands above those of the programs.
#[test]
fn a_host_can_forbid_connections_between_users() {
    if !is_root() {
        return;
    }
    for (word, promoted) in [("same", false), ("any", true), ("what is this?", false)] {
        let folder = Folder::for_all("forbidden");
        let etc = folder.0.join("etc");
        fs::create_dir_all(etc.join("sidestep")).expect("a folder");
        fs::write(etc.join("sidestep/users"), word).expect("a file");
        for file in ["passwd", "ld.so.cache"] {
            fs::copy(Path::new("/etc").join(file), etc.join(file)).expect("a file of /etc");
        }
        let server = Watched::begin(folder.command(USER, &[], &["answer", "0"]));
        let inner = folder.command(OTHER, &[], &["call", &server.pid]);
        let mut command = Command::new("unshare");
        let script = format!(
            "mount --bind {} /etc && exec setpriv --reuid {OTHER} --regid {OTHER} --clear-groups \"$@\"",
            etc.display()
        );
        command.args(["--mount", "sh", "-c", &script, "sh"]).arg(inner.get_program()).args(inner.get_args());
        command.env("SIDESTEP_DIR", &folder.0);
        let mut client = Watched::begin(command);
        let (found, said) = client.is_promoted(&folder, promoted);
        assert_eq!(found, promoted, "{word}: {said}");
        client.end();
        server.end();
    }
}

#[test]
fn nobody_is_promoted() {
    let folder = Folder::new("nobody");
    let Some(watched) = Watched::try_start(&folder, "nobody") else {
        eprintln!("left out: this user may not make a user namespace");
        return;
    };
    let said = stat(&folder, &watched.pid);
    assert!(!said.contains(r#""writes_to":"ring""#), "{said}");
    watched.end();
}

/// What is done to a directory.
type Attack = (&'static str, fn(&Path));

/// Everything that a process of the same user, or the owner of the directory, can do to it.
#[test]
fn whatever_happens_to_the_directory_harms_no_program() {
    let attacks: [Attack; 8] = [
        ("emptied", |folder| each_file(folder, |file| fs::write(file, b""))),
        ("overwritten", |folder| each_file(folder, |file| fs::write(file, [0xa5; 32]))),
        ("grown", |folder| each_file(folder, |file| fs::write(file, vec![1; 1 << 20]))),
        ("removed", |folder| each_file(folder, |file| fs::remove_file(file))),
        ("replaced by links", |folder| {
            each_file(folder, |file| fs::remove_file(file).and_then(|()| symlink("/dev/full", file)))
        }),
        ("replaced by folders", |folder| {
            each_file(folder, |file| fs::remove_file(file).and_then(|()| fs::create_dir(file)))
        }),
        ("full of other files", |folder| {
            (0..2000).for_each(|at| fs::write(folder.join(format!("{at}-1")), b"x").expect("a file"))
        }),
        ("closed", |folder| fs::set_permissions(folder, fs::Permissions::from_mode(0o000)).expect("a mode")),
    ];
    for (what, attack) in attacks {
        let folder = Folder::new("attacked");
        let mut watched = Watched::start(&folder, "look");
        expect_ring(&folder, &watched.pid);
        attack(&folder.0);
        // It goes on, and so does one that begins now, on whichever path.
        watched.go_on();
        let second = Watched::start(&folder, "look");
        stat(&folder, &second.pid);
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o700)).expect(what);
        watched.end();
        second.end();
    }
}

#[test]
fn directories_that_cannot_be_used_harm_no_program() {
    let folder = Folder::new("unusable");
    let link = folder.0.join("link");
    fs::create_dir(folder.0.join("elsewhere")).expect("a folder");
    symlink(folder.0.join("elsewhere"), &link).expect("a link");
    let open = folder.0.join("open");
    fs::create_dir(&open).expect("a folder");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("a mode");
    for directory in [link, open, folder.0.join("not/there"), "/proc/1".into(), "/sys".into()] {
        let ended = finished(&Folder(directory.clone()), "once");
        assert!(ended.stderr.contains("there is no registry"), "{}: {}", directory.display(), ended.stderr);
    }
    assert_eq!(names(&Folder(folder.0.join("elsewhere"))).len(), 0, "a link was followed");
}

/// Runs a role to its end, with nothing to wait for; `None` if this is not root.
fn as_root(role: &str) -> Option<Ended> {
    let folder = Folder::new(role);
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o1777)).expect("a folder");
    is_root().then(|| finished(&folder, role))
}

fn finished(folder: &Folder, role: &str) -> Ended {
    let ended = Bounded::start(&mut command(folder, role), PATIENCE).wait();
    assert!(ended.success(), "{role}: {:?}\n{}", ended.status, ended.stderr);
    ended
}

fn command(folder: &Folder, role: &str) -> Command {
    let mut command = Command::new(SIDESTEP);
    command.args(["run", "--verbose", "--"]).arg(program()).args([role, "0"]).env("SIDESTEP_DIR", &folder.0);
    command
}

/// A program that waits, with a connection to look at.
struct Watched {
    child: Child,
    input: ChildStdin,
    pid: String,
}

impl Watched {
    fn start(folder: &Folder, role: &str) -> Watched {
        Watched::try_start(folder, role).expect("it is ready")
    }

    fn begin(command: Command) -> Watched {
        Watched::try_begin(command).expect("it is ready")
    }

    /// `None`: it says that it may not do what it should.
    fn try_start(folder: &Folder, role: &str) -> Option<Watched> {
        Watched::try_begin(command(folder, role))
    }

    fn try_begin(mut command: Command) -> Option<Watched> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        output.read_line(&mut line).expect("a line");
        let input = child.stdin.take().expect("its input");
        let Some(pid) = line.trim().strip_prefix("ready ").map(str::to_string) else {
            child.wait().expect("its end");
            return None;
        };
        Some(Watched { child, input, pid })
    }

    fn go_on(&mut self) {
        for _ in 0..20 {
            self.input.write_all(b"x").expect("it reads");
        }
    }

    /// Whether its connection is on a ring: after many exchanges, which depend on how the two ends meet; or after some, if it is to
    /// stay on TCP.
    fn is_promoted(&mut self, folder: &Folder, expected: bool) -> (bool, String) {
        let mut said = String::new();
        for _ in 0..if expected { 500 } else { 5 } {
            said = stat(folder, &self.pid);
            if said.contains(r#""writes_to":"ring""#) {
                return (true, said);
            }
            self.go_on();
        }
        (false, said)
    }

    fn end(mut self) {
        drop(self.input);
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status:?}");
    }
}

fn expect_ring(folder: &Folder, pid: &str) {
    let said = stat(folder, pid);
    assert_eq!(said.matches(r#""writes_to":"ring""#).count(), 2, "{said}");
}

fn stat(folder: &Folder, pid: &str) -> String {
    let mut command = Command::new(SIDESTEP);
    command.args(["stat", "--json", pid]).env("SIDESTEP_DIR", &folder.0);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A directory for a registry, removed at the end if it is this test's.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = Path::new("/dev/shm").join(format!("sidestep-users-{name}-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        Folder(folder)
    }

    /// One that all users can use, with a copy of the programs, since others may not reach the build folder.
    fn for_all(name: &str) -> Folder {
        let folder = Folder::new(name);
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o1777)).expect("a folder");
        let library = Path::new(SIDESTEP).with_file_name("libsidestep.so");
        for (file, name) in [(Path::new(SIDESTEP), "sidestep"), (&library, "libsidestep.so"), (&program(), "users")] {
            fs::copy(file, folder.0.join(name)).expect("a copy");
        }
        folder
    }

    /// A role of such a copy, as this user, with these options of `run`.
    fn command(&self, user: u32, options: &[&str], role: &[&str]) -> Command {
        let mut command = Command::new(self.0.join("sidestep"));
        command.arg("run").args(options).arg("--").arg(self.0.join("users")).args(role);
        command.env("SIDESTEP_DIR", &self.0).uid(user).gid(user);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.0.parent() == Some(Path::new("/dev/shm")) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(&folder.0).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn each_file(folder: &Path, mut attack: impl FnMut(&Path) -> std::io::Result<()>) {
    let files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    assert!(!files.is_empty(), "there is something to attack");
    files.iter().for_each(|file| attack(file).expect("the attack"));
}

fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli");
    let built = std::env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("users");
    compile(&root.join("tests/users/users.c"), &built, &[])
}

/// Whether this is root; says so if not.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("left out: only root can change its user");
    }
    root
}
