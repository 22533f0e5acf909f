//! The example runs, ends well, and says what it is meant to say.

use std::process::Command;

#[test]
fn a_client_reads_prices_without_the_server() {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own.ancestors().nth(2).unwrap().join("examples/prices")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "the client reads without the server: true\n\
                    the client may not write: the cookie is refused: it allows read, not write\n\
                    the price is 120\n";
    assert_eq!(said, expected);
}
