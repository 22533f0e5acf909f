//! The layouts of shared memory in docs/fabric.md are those that the code uses.

use std::{fmt::Write, fs, path::Path};

use sidestep_fabric::{link::shm::PAIR_LAYOUT, queue::BLOCK_LAYOUT};
use sidestep_shm::{event_ring::EVENT_RING_LAYOUT, gate::GATE_LAYOUT, layout::Field};

const LAYOUTS: [(&str, &[Field]); 4] =
    [("block", BLOCK_LAYOUT), ("pair", PAIR_LAYOUT), ("gate", GATE_LAYOUT), ("events", EVENT_RING_LAYOUT)];

#[test]
fn the_manual_has_the_layouts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root").join("docs/fabric.md");
    let manual = fs::read_to_string(&path).expect("docs/fabric.md");
    let wanted = LAYOUTS.iter().fold(manual.clone(), |text, (name, fields)| with_table(&text, name, &table(fields)));
    if std::env::var_os("SIDESTEP_BLESS").is_some() {
        fs::write(&path, &wanted).expect("writable");
    } else {
        let how = "SIDESTEP_BLESS=1 cargo test -p sidestep-fabric --test documented";
        assert!(manual == wanted, "docs/fabric.md is out of date: run {how}");
    }
}

fn table(fields: &[Field]) -> String {
    let mut text = String::from("| offset | what | writer |\n|---|---|---|\n");
    for Field { offset, what, writer } in fields {
        writeln!(text, "| {offset:#04x} | {what} | {writer} |").expect("a string takes everything");
    }
    text
}

/// The text with another table between the marks of a name.
fn with_table(text: &str, name: &str, table: &str) -> String {
    let [begins, ends] = ["begins", "ends"].map(|side| format!("<!-- {name} {side} -->\n"));
    let (before, rest) = text.split_once(&begins).expect("the first mark");
    let (_, after) = rest.split_once(&ends).expect("the second mark");
    format!("{before}{begins}{table}{ends}{after}")
}
