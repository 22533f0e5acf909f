//! The table of checks in `docs/iwarp.md` is the one in the code.

use sidestep_iwarp::Check;

#[test]
fn the_note_lists_every_check() {
    let note = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/iwarp.md");
    let note = std::fs::read_to_string(note).expect("the protocol note");
    let rows: Vec<&str> = note
        .lines()
        .skip_while(|line| !line.starts_with("| check | layer |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let expected: Vec<String> = Check::ALL
        .iter()
        .map(|check| {
            let reason = check.reason();
            let name = reason.name().expect("a name of the standards");
            format!("| {} | {} | {} | {:#04x} | {name} |", check.description(), reason.layer, reason.etype, reason.code)
        })
        .collect();
    assert_eq!(rows, expected, "the table should read:\n{}\n", expected.join("\n"));
}
