//! CPython's own tests of what has to do with sockets, by its own runner.

use std::{fs, time::Duration};

use sidestep_testkit::sockets::Bounded;

use super::{
    super::kit::Stage,
    report::{Report, Verdict},
};

/// `import test` finds these only where the distribution's package of tests is installed.
pub const VERSION: &str = "/usr/bin/python3 -c 'import test.test_socket' && /usr/bin/python3 --version";

pub fn socket(report: &mut Report) {
    modules(report, &["test_socket", "test_socketserver"]);
}

pub fn waiting(report: &mut Report) {
    modules(report, &["test_select", "test_selectors", "test_poll", "test_epoll", "test_asyncore", "test_asynchat"]);
}

pub fn asyncio(report: &mut Report) {
    modules(report, &["test_asyncio"]);
}

pub fn ssl(report: &mut Report) {
    modules(report, &["test_ssl"]);
}

pub fn protocols(report: &mut Report) {
    let web = ["test_httplib", "test_httpservers", "test_urllib2_localnet", "test_xmlrpc", "test_wsgiref"];
    let others = ["test_ftplib", "test_smtplib", "test_poplib", "test_imaplib", "test_logging"];
    modules(report, &[&web[..], &others].concat());
}

/// Children that are forked in full, and what has to do with connections where they are started otherwise, for its time.
pub fn multiprocessing(report: &mut Report) {
    modules(report, &["test_multiprocessing_fork"]);
    let connections = ["*Listener*", "*Connection*", "*Remote*", "*TestWait*", "*Address*"];
    for name in ["test_multiprocessing_forkserver", "test_multiprocessing_spawn"] {
        matching(report, name, &connections);
    }
}

/// Runs test modules one after the other.
fn modules(report: &mut Report, names: &[&str]) {
    names.iter().for_each(|name| matching(report, name, &[]));
}

/// Runs the tests of a module that match one of these patterns, or all, and adds each of them.
fn matching(report: &mut Report, name: &str, patterns: &[&str]) {
    let stage = Stage::new("cpython");
    let results = stage.files.join(format!("{name}.xml"));
    let mut command = stage.run("/usr/bin/python3");
    command.args(["-m", "test", "--timeout", "1200", "--junit-xml"]).arg(&results);
    // Where there is no hypervisor, a connection to it is waited for without end.
    command.args(["--ignore", "*VSOCK*"]).args(patterns.iter().flat_map(|pattern| ["--match", pattern]));
    if name == "test_socketserver" {
        // It keeps to this host, but asks for the right to more.
        command.args(["-u", "network"]);
    }
    let ended = Bounded::start(command.arg(name), LIMIT).wait();
    let text = fs::read_to_string(&results).unwrap_or_default();
    if !text.contains("<testcase") {
        report.add(name, Verdict::Failed(format!("no results\n{}\n{}", ended.stdout, ended.stderr)));
    }
    // How many tests are skipped or fail is said by name, so the status of the module says nothing more.
    for (test, verdict) in tests(&text) {
        report.add(&test, verdict);
    }
}

/// The tests in what the runner writes, which is XML of one shape.
fn tests(text: &str) -> Vec<(String, Verdict)> {
    let cases = text.split("<testcase ").skip(1);
    let one = |case: &str| {
        let name = case.split_once("name=\"")?.1.split_once('"')?.0;
        let case = case.split_once("</testcase>").map_or("", |(inside, _)| inside);
        let verdict = if case.contains("<failure") || case.contains("<error") {
            Verdict::Failed(case.to_string())
        } else if case.contains("<skipped") {
            Verdict::Skipped
        } else {
            Verdict::Passed(String::new())
        };
        Some((name.to_string(), verdict))
    };
    cases.filter_map(one).collect()
}

/// For one module. The longest takes a minute and a half on two processors.
const LIMIT: Duration = Duration::from_secs(1800);
