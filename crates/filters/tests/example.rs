//! The example runs, ends well, and says what it is meant to say.

use std::process::Command;

#[test]
fn words_are_counted_by_copies() {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("examples/word_count");
    let text = std::env::temp_dir().join(format!("sidestep-words-{}", std::process::id()));
    std::fs::write(&text, "the cat and the dog and the bird\nand the mouse sees the cat\n").unwrap();
    let output = Command::new(program).args([&text, &text]).output().unwrap();
    std::fs::remove_file(&text).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "unit 0: 5 the, 3 and, 2 cat, 1 bird, 1 dog\nunit 1: 5 the, 3 and, 2 cat, 1 bird, 1 dog\n");
}
