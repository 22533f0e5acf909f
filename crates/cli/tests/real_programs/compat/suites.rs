//! Suites that programs bring in their sources, which `tests/compat/sources` fetches: those of Redis, PostgreSQL, libuv and Node. The programs
//! that they test are the installed ones.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use sidestep_testkit::sockets::{Bounded, Ended};

use super::{
    super::{
        database,
        kit::{Stage, is_root, program},
    },
    report::{Report, Verdict},
    target,
};

/// Where the sources of a program lie.
pub fn sources(name: &str) -> PathBuf {
    target().join("compat/sources").join(name)
}

/// What Redis answers to its clients, to many of them, and to those that are slow.
pub fn redis_commands(report: &mut Report) {
    let types =
        ["string", "incr", "list", "list-2", "set", "zset", "hash", "stream"].map(|name| format!("type/{name}"));
    let others =
        ["auth", "protocol", "keyspace", "scan", "sort", "expire", "other", "multi", "quit", "pubsub", "limits"];
    let clients = ["introspection", "tracking", "wait", "pause", "querybuf", "obuf-limits", "networking", "scripting"];
    let units = types.into_iter().chain(others.iter().chain(&clients).map(ToString::to_string));
    redis(report, units.map(|name| format!("unit/{name}")));
}

/// Its replicas, which follow it through losses of their connections, and take its place.
pub fn redis_replication(report: &mut Report) {
    let units =
        ["block-repl", "replication", "replication-2", "replication-3", "replication-psync", "psync2", "failover"];
    redis(report, units.iter().map(|name| format!("integration/{name}")));
}

/// Its files, which a child writes while it serves, and its own programs.
pub fn redis_saving(report: &mut Report) {
    let units = ["rdb", "aof", "shutdown", "redis-cli", "redis-benchmark"];
    redis(report, units.iter().map(|name| format!("integration/{name}")).chain(["unit/aofrw".to_string()]));
}

fn redis(report: &mut Report, units: impl Iterator<Item = String>) {
    let stage = Stage::new("redis-suite");
    copy(&stage, &sources("redis"), &["tests", "utils", "redis.conf"]);
    fs::create_dir(stage.files.join("src")).expect("a folder");
    for name in ["server", "cli", "benchmark", "check-aof", "check-rdb"].map(|name| format!("redis-{name}")) {
        let installed = program(&name).expect("Redis");
        std::os::unix::fs::symlink(installed, stage.files.join("src").join(name)).expect("a link");
    }
    // Two suites at a time keep apart, and below the ports that the kernel gives to clients: one that is taken makes the suite wait
    // for ever now and then, since it counts lines of a log that it has cut.
    let first = (20_000 + std::process::id() % 12 * 1000).to_string();
    for unit in units {
        let mut command = stage.run("tclsh");
        // A test that fails does not end the others, and none measures time.
        command.args(["tests/test_helper.tcl", "--clients", "1", "--durable", "--no-latency", "--single", &unit]);
        command.args(["--baseport", &first, "--portcount", "900"]);
        let ended = Bounded::start(&mut command, LIMIT).wait();
        lines(report, &unit, &ended, |line| {
            let line = without_colours(line);
            let (word, rest) = line.strip_prefix('[')?.split_once("]: ")?;
            let rest = if unit.ends_with("/psync2") { &without_numbers(rest) } else { rest };
            match word {
                // How long it took.
                "ok" => Some((rest.rsplit_once(" (").map_or(rest, |(name, _)| name).to_string(), true)),
                "err" => Some((rest.split(" in tests/").next()?.to_string(), false)),
                "exception" => Some(("an exception".to_string(), false)),
                _ => None,
            }
        });
    }
}

/// The regression tests of PostgreSQL, over TCP.
pub fn postgresql(report: &mut Report) {
    let stage = Stage::new("postgres-suite");
    let regress = sources("postgresql").join("src/test/regress");
    stage.open_to_all();
    copy(&stage, &regress, &["sql", "expected", "data", "resultmap", "parallel_schedule"]);
    let programs = database::programs().expect("PostgreSQL");
    let config = |what: &str| output(Command::new(programs.join("pg_config")).arg(what));
    let (include, makefile) = (config("--includedir-server"), PathBuf::from(config("--pgxs")));
    let runner = makefile.ancestors().nth(2).expect("a folder").join("test/regress/pg_regress");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-w", "-o", "regress.so"]).arg(format!("-I{include}"));
    output(compiler.arg(regress.join("regress.c")).current_dir(&stage.files));
    stage.open_to_all();
    let server = database::Server::start(&stage, programs.clone(), stage.copies());
    let mut command = server.run(&stage, runner);
    command.args(["--host=127.0.0.1", "--user=postgres", "--max-connections=8", "--inputdir=.", "--outputdir=out"]);
    command.args(["--schedule=parallel_schedule", "--dlpath=.", &format!("--port={}", server.port)]);
    command.arg(format!("--bindir={}", programs.display()));
    let ended = Bounded::start(&mut command, LIMIT).wait();
    let differences = fs::read_to_string(stage.files.join("out/regression.diffs")).unwrap_or_default();
    lines(report, "regression", &ended, |line| {
        let words: Vec<&str> = line.trim_start_matches("test").split_whitespace().collect();
        let [name, "...", verdict, ..] = words[..] else { return None };
        Some((name.to_string(), verdict == "ok"))
    });
    if !differences.is_empty() {
        println!("{differences}");
    }
}

/// The tests of libuv, with the installed library. They refuse to be root's, and nobody has no registry.
pub fn libuv(report: &mut Report) {
    let stage = Stage::new("libuv");
    let (source, built) = (sources("libuv"), sources("libuv-tests"));
    if !built.is_file() {
        let mut compiler = Command::new("sh");
        // The benchmarks, and programs for other systems, are not among them.
        compiler.args([
            "-c",
            "exec cc -w -D_GNU_SOURCE -Iinclude -Isrc -o ../libuv-tests test/test-*.c test/*-server.c test/run-tests.c \
             test/runner.c test/runner-unix.c -luv -lpthread -ldl",
        ]);
        output(compiler.current_dir(&source));
    }
    copy(&stage, &source, &["test"]);
    let tests = stage.files.join("run-tests");
    fs::copy(built, &tests).expect("a copy");
    let sidestep = stage.copies();
    stage.open_to_all();
    let mut command = match is_root() {
        true => {
            output(Command::new("chown").args(["-R", "daemon"]).arg(&stage.files));
            stage.run_as("daemon", &sidestep, tests)
        }
        false => stage.run(tests),
    };
    let ended = Bounded::start(&mut command, LIMIT).wait();
    lines(report, "libuv", &ended, |line| {
        let (passed, rest) = verdict(line)?;
        // Those that are skipped say why.
        let name = rest.split_once(" - ")?.1;
        Some((name.split(" # ").next()?.to_string(), passed))
    });
}

/// Node's tests of TCP.
pub fn node_net(report: &mut Report) {
    node(report, "test/parallel/test-net-*.js");
}

/// Node's tests of HTTP that are named after a client or a server; all of them would take four times as long.
pub fn node_http(report: &mut Report) {
    node(report, "test/parallel/test-http-client-*.js test/parallel/test-http-server-*.js");
}

/// Each test is a program, and passes if that ends well. The tests may be those of another version: then some fail in all ways.
fn node(report: &mut Report, tests: &str) {
    let stage = Stage::new("node");
    copy(&stage, &sources("node"), &["test"]);
    let mut command = stage.run("sh");
    // Two at a time. Those of another version may hang: each has as long as the runner of the suite gives it.
    let each = "if timeout --foreground 120 node $(sed -n \"s,^// Flags: ,,p\" $0) $0 >$0.out 2>&1 </dev/null; then echo ok $0; else echo not ok $0 status $?; tail -n 20 $0.out; fi";
    let all = format!("ls {tests} | xargs -P 2 -n 1 sh -c '{each}'");
    let ended = Bounded::start(command.args(["-c", &all]), LIMIT).wait();
    lines(report, "node", &ended, |line| {
        let (passed, rest) = verdict(line)?;
        Some((rest.split_whitespace().next()?.trim_start_matches("test/parallel/").to_string(), passed))
    });
}

/// Whether a line says that a test passed or failed, and of which one.
fn verdict(line: &str) -> Option<(bool, &str)> {
    let passed = line.strip_prefix("ok ").map(|rest| (true, rest));
    passed.or_else(|| line.strip_prefix("not ok ").map(|rest| (false, rest)))
}

/// Adds the tests that the lines of an output name. One that says nothing has failed as a whole.
fn lines(report: &mut Report, suite: &str, ended: &Ended, parse: impl Fn(&str) -> Option<(String, bool)>) {
    let found: Vec<_> = ended.stdout.lines().filter_map(parse).collect();
    // One that fails although none of its tests does was not run to its end.
    if !ended.success() && found.iter().all(|(_, passed)| *passed) {
        report.add(suite, Verdict::Failed(format!("{:?}\n{}\n{}", ended.status, ended.stdout, ended.stderr)));
    }
    for (name, passed) in found {
        let verdict =
            if passed { Verdict::Passed(String::new()) } else { Verdict::Failed(excerpt(&ended.stdout, &name)) };
        report.add(&format!("{suite}: {name}"), verdict);
    }
}

/// The lines after the name of a test that failed.
fn excerpt(text: &str, name: &str) -> String {
    let found = text.lines().position(|line| line.contains(name) && !line.contains("ok")).unwrap_or(0);
    text.lines().skip(found).take(12).collect::<Vec<_>>().join("\n")
}

fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// For a suite that draws its steps at random, for as long as it likes, and names them by their numbers.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for letter in line.chars() {
        match letter.is_ascii_digit() {
            true if text.ends_with('0') => {}
            true => text.push('0'),
            false => text.push(letter),
        }
    }
    text
}

/// Copies files and folders of a source to the folder of the test, where a suite writes beside itself.
fn copy(stage: &Stage, source: &Path, names: &[&str]) {
    let files = names.iter().map(|name| source.join(name));
    output(Command::new("cp").arg("-r").args(files).arg(&stage.files));
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// For one suite, or one unit of it. The longest takes two minutes on two processors.
const LIMIT: Duration = Duration::from_secs(1800);
