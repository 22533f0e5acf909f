//! The compiler of `.x` files: what it generates, and what it says about what it cannot.

use sidestep_idl::rpc::compile;

fn errors(text: &str) -> Vec<String> {
    let diagnostics = compile("bad.x", text).expect_err("errors");
    diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn errors_have_a_line_a_column_and_a_reason() {
    for (text, expected) in [
        ("struct a { int b };", "bad.x:1:18: error: expected `;`, found `}`"),
        ("struct a {\n  colour b;\n};", "bad.x:2:10: error: there is no type `colour`"),
        ("typedef int a<N>;", "bad.x:1:15: error: there is no constant `N`"),
        (
            "const A = B; const B = A;",
            "bad.x:1:11: error: the value of `A` depends on itself or on an unknown constant",
        ),
        ("struct a { a b; };", "bad.x:1:8: error: a `a` contains itself and so has no end"),
        ("typedef b *a; typedef a *b;", "bad.x:1:12: error: a `a` contains itself and so has no end"),
        ("struct a { int b; }; enum a { C };", "bad.x:1:27: error: type `a` is already defined at bad.x:1:8"),
        (
            "struct a_b { int b; }; enum aB { C };",
            "bad.x:1:29: error: type `aB` would be `AB` in Rust, as `a_b` at bad.x:1:8",
        ),
        ("enum a { B = 1, C = 1 };", "bad.x:1:17: error: `C` has the value of `B`"),
        (
            "union a switch (float b) { case 1: void; };",
            "bad.x:1:23: error: a discriminant is an int, an unsigned int, a bool or an enumeration",
        ),
        ("union a switch (int b) { case 1: void; case 1: int c; };", "bad.x:1:45: error: a second case for 1"),
        ("union a switch (bool b) { case 2: void; };", "bad.x:1:32: error: discriminant `b` is never 2"),
        ("typedef opaque a[0];", "bad.x:1:18: error: a fixed length is from 1 to 16777216, not 0"),
        ("typedef string a;", "bad.x:1:9: error: a string has a limit: `string name<>`"),
        (
            "struct a { struct { int b; } c; };",
            "bad.x:1:12: error: give this struct a name and a definition of its own",
        ),
        (
            "#include \"other.x\"",
            "bad.x:1:1: error: `#include \"other.x\"` is not followed: run `cpp -P` first, or compile that file, too",
        ),
        ("#ifdef RPC_HDR", "bad.x:1:1: error: `#ifdef` is not understood: run `cpp -P` first"),
        ("# 30 \"real.x\"\nconst A = B;", "real.x:30:11: error: there is no constant `B`"),
        ("/* no end", "bad.x:1:1: error: this comment does not end"),
        (
            "const A = 0x1ffffffffffffffff;",
            "bad.x:1:11: error: `0x1ffffffffffffffff` is not a number of at most 64 bits",
        ),
        (
            "program P { version V { void A(void) = 1; void B(void) = 1; } = 1; } = 1;",
            "bad.x:1:58: error: `B` and `A` have the same number 1",
        ),
        ("typedef int if$;", "bad.x:1:15: error: `$` means nothing here"),
        ("const int = 3;", "bad.x:1:7: error: expected the name of the constant, found the keyword `int`"),
    ] {
        assert_eq!(errors(text).first().map(String::as_str), Some(expected), "{text}");
    }
}

#[test]
fn one_run_shows_several_errors() {
    let found = errors("struct a { int b }\nstruct c { int d; };\nconst E;\nenum f { G = };\n");
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn lines_of_c_are_ignored_with_a_warning() {
    let output = compile("good.x", "%int c;\nconst A = 017;\n").unwrap();
    let warnings: Vec<String> = output.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["good.x:1:1: warning: a line of C is ignored"]);
    assert!(output.code.contains("pub const A: u32 = 15;"), "{}", output.code);
}

/// The compiler takes any text: it may complain, but neither panics nor hangs.
#[test]
fn every_beginning_of_a_file_is_taken() {
    let text = include_str!("every_type.x");
    for end in (0..text.len()).step_by(5).filter(|end| text.is_char_boundary(*end)) {
        let _ = compile("every_type.x", &text[..end]);
        let _ = compile("every_type.x", &format!("{}{}", &text[..end], &text[(end + 7).min(text.len())..]));
    }
}

#[test]
fn typedefs_keep_their_limits_wherever_they_are_used() {
    let code =
        compile("t.x", "const N = 7; typedef string name<N>; struct s { name a; name b<2>; name *c; };").unwrap().code;
    for expected in [
        "out.string(&self.a, N)",
        "out.array(&self.b, 2, |out, item| out.string(item, N))",
        "out.optional(self.c.as_ref(), |out, item| out.string(item, N))",
        "b: input.array(2, |input| input.string(N).map(str::to_owned))?",
    ] {
        assert!(code.contains(expected), "{expected} is not in\n{code}");
    }
}

/// What the tests of the runtime use is what the compiler generates today. With `SIDESTEP_GENERATE=1`, writes it.
#[test]
fn generated_files_are_up_to_date() {
    for (folder, source, code) in [
        ("idl/tests/every_type.x", include_str!("every_type.x"), "rpc/tests/every/generated.rs"),
        (
            "rpc/examples/key_value/kv.x",
            include_str!("../../rpc/examples/key_value/kv.x"),
            "rpc/examples/key_value/kv.rs",
        ),
    ] {
        let path = format!("{}/../{code}", env!("CARGO_MANIFEST_DIR"));
        let code = compile(folder, source).expect("a good file").code;
        if std::env::var_os("SIDESTEP_GENERATE").is_some() {
            std::fs::write(path, code).unwrap();
            continue;
        }
        let is = std::fs::read_to_string(&path).unwrap();
        assert!(is == code, "{path}: run SIDESTEP_GENERATE=1 cargo test -p sidestep-idl");
    }
}
