//! The generated code that is kept in the repository is what the compiler makes now.
//!
//! `SIDESTEP_UPDATE=1` writes it anew.

use std::path::Path;

use sidestep_idl::{Disk, formatted, omg};

fn check(idl: &str, generated: &str) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (idl, generated) = (crates.join(idl), crates.join(generated));
    let text = std::fs::read_to_string(&idl).expect("the IDL");
    let output = omg::compile(&idl.display().to_string(), &text, &Disk::default());
    let output = output.unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let code = formatted(output.code);
    if std::env::var_os("SIDESTEP_UPDATE").is_some() {
        std::fs::write(&generated, &code).expect("writable");
    }
    let kept = std::fs::read_to_string(&generated).expect("the generated code");
    assert!(kept == code, "{} is not what the compiler makes; SIDESTEP_UPDATE=1 writes it", generated.display());
}

#[test]
fn the_naming_service_is_up_to_date() {
    check("orb/idl/naming.idl", "orb/src/naming/generated.rs");
}

#[test]
fn the_types_of_the_tests_are_up_to_date() {
    check("orb/tests/types.idl", "orb/tests/generated/types.rs");
}

#[test]
fn the_example_is_up_to_date() {
    check("orb/examples/echo/echo.idl", "orb/examples/echo/generated.rs");
}

#[test]
fn awkward_names_are_up_to_date() {
    check("cli/tests/generated/awkward.idl", "cli/tests/generated/awkward_idl.rs");
}
