//! Extended sockets from C: a program that is linked with the library, alone and with the library before it.

mod programs;

#[test]
fn a_linked_program_has_extended_sockets() {
    let program = programs::compile_linked("extended");
    for promote in [None, Some("never"), Some("default"), Some("eager")] {
        let output = programs::run(&program, promote);
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(output.status.success() && said[0] == "extended\n", "{promote:?}: {}\n{said:?}", output.status);
    }
}

#[test]
fn the_example_runs() {
    let program = programs::compile_example("prices");
    let output = programs::run(&program, None);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "the client reads without the server: yes\n\
                    the client may not write: the cookie is refused: it allows read, not write\n\
                    the price is 120\n";
    assert_eq!(said, expected);
}
