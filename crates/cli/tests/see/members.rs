//! The members of what `--json` prints are those that docs/operating.md names, and no others.

use std::{
    collections::BTreeSet,
    fs,
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    path::Path,
    thread,
};

use serde_json::Value;
use sidestep_extended::{Stack, in_milliseconds};
use sidestep_testkit::process::PATIENCE;
use sidestep_vi::Nic;
use sidestep_vmmc::{Config, link};

use super::stage::Stage;

type Names = BTreeSet<String>;

/// The section of a title in the document.
fn section(title: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli");
    let text = fs::read_to_string(root.join("docs/operating.md")).expect("a document");
    let (_, rest) = text.split_once(&format!("\n## {title}\n")).expect(title);
    rest.split("\n## ").next().unwrap_or_default().to_owned()
}

/// The names in code within a text.
fn in_code(text: &str) -> Names {
    let is_name = |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    text.split('`').skip(1).step_by(2).filter(is_name).map(str::to_owned).collect()
}

/// The names of the paragraph that begins so, behind that beginning.
fn of_paragraph(text: &str, beginning: &str) -> Names {
    let (_, rest) = text.split_once(beginning).expect(beginning);
    in_code(rest.split("\n\n").next().unwrap_or_default())
}

fn members(value: &Value) -> Names {
    value.as_object().unwrap_or_else(|| panic!("an object: {value}")).keys().cloned().collect()
}

fn objects(text: &str) -> Vec<Value> {
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert!(!objects.is_empty(), "something is shown");
    objects
}

#[test]
fn of_sockets_and_totals() {
    let stage = Stage::new("members");
    let _promoted = stage.pair(&[], &["promoted"]);
    let _young = stage.pair(&[], &["young"]);
    let text = section("sidestep stat");
    let rows: Vec<(Names, Names)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('|'))
        .map(|(names, meaning)| (in_code(&format!("`{names}")), in_code(meaning)))
        .collect();
    let named: Names = rows.iter().flat_map(|(names, _)| names.clone()).collect();
    for socket in stage.sockets(&[]) {
        assert_eq!(members(&socket), named, "{socket}");
        for (name, value) in socket.as_object().expect("an object").iter().filter(|(_, value)| value.is_object()) {
            let row = rows.iter().find(|(names, _)| names.contains(name)).expect(name);
            assert_eq!(members(value), row.1, "{name} in {socket}");
        }
    }
    let totals = of_paragraph(&text, "`--json --totals` prints");
    for process in objects(&stage.said(&["stat", "--json", "--totals"])) {
        assert_eq!(members(&process), totals, "{process}");
    }
}

#[test]
fn of_cards() {
    link::provide(Config::default()).expect("a new scheme");
    let _card = Nic::open("vmmc").expect("a card");
    let own = std::process::id().to_string();
    let named = of_paragraph(&section("sidestep stat"), "`--json --cards` prints");
    for card in objects(&Stage::new("cards").said(&["stat", "--json", "--cards", &own])) {
        assert_eq!(members(&card), named, "{card}");
    }
}

#[test]
fn of_extended_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let far = listener.accept().expect("a client").0;
    let enabled = |stream: &TcpStream| {
        let stack = Stack::new().expect("a stack");
        let queue = stack.completion_queue().expect("a queue");
        let socket = stack.enable(stream.as_fd(), &queue, in_milliseconds(PATIENCE.as_millis() as u64));
        (socket.expect("both ends enable it"), queue, stack)
    };
    let _ends = thread::scope(|scope| {
        let other = scope.spawn(|| enabled(&far));
        (enabled(&near), other.join().expect("an end"))
    });
    let own = std::process::id().to_string();
    let named = of_paragraph(&section("sidestep stat"), "`--json --extended` prints");
    for socket in objects(&Stage::new("extended").said(&["stat", "--json", "--extended", &own])) {
        assert_eq!(members(&socket), named, "{socket}");
    }
}
