//! The example runs, ends well, and says what it is meant to say.

use std::process::Command;

#[test]
fn a_buffer_is_sent_into_and_fetched_from() {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own.ancestors().nth(2).unwrap().join("examples/send_fetch")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "sent \"hello\"\nfetched \"hello\"\nthen: no such buffer, or no longer\n";
    assert!(said.starts_with(expected), "{said}");
}
