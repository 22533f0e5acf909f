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
            "bad.x:1:1: error: `#include \"other.x\"` is not followed: run `cpp -C` first, or compile that file, too",
        ),
        ("#ifdef RPC_HDR", "bad.x:1:1: error: `#ifdef` is not understood: run `cpp -C` first"),
        ("\n#define A", "bad.x:2:1: error: only `#define NAME NUMBER` is understood: run `cpp -C` first"),
        ("#define A(x) x", "bad.x:1:1: error: only `#define NAME NUMBER` is understood: run `cpp -C` first"),
        ("\n\n#define A 0x /* hex */", "bad.x:3:11: error: `0x` is not a number of at most 64 bits"),
        ("\n#define int 3", "bad.x:2:9: error: expected the name of the constant, found the keyword `int`"),
        ("\n#define A 3\nconst A = 4;", "bad.x:3:7: error: constant `A` is already defined at bad.x:2:9"),
        ("const A = - 3;", "bad.x:1:11: error: expected a digit right behind `-`"),
        (
            "const A = \"text\";",
            "bad.x:1:11: error: texts and characters are not supported: the value of a constant is a number",
        ),
        ("typedef struct a a;", "bad.x:1:18: error: `a` is defined as itself and as nothing else"),
        ("/ a comment", "bad.x:1:1: error: `/` means nothing here: a comment begins with `/*` or `//`"),
        ("# 30 \"real.x\"\nconst A = B;", "real.x:30:11: error: there is no constant `B`"),
        ("/* no end", "bad.x:1:1: error: this comment does not end: expected `*/`"),
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

/// Messages are exactly one for one fault.
#[test]
fn a_fault_is_told_once() {
    for text in
        ["const A = - 3;", "const A = 'x';\nconst B = A;", "#define A \"text\"", "typedef a a;", "\n#define A 0x"]
    {
        assert_eq!(errors(text).len(), 1, "{text}: {:#?}", errors(text));
    }
}

#[test]
fn typedefs_do_not_stand_for_each_other_without_end() {
    let chain: String = (1..5000).map(|each| format!("typedef a{} a{each};\n", each - 1)).collect();
    let found = errors(&format!("typedef int a0;\n{chain}"));
    assert!(
        found[0].ends_with("error: more than 64 typedefs stand for each other, or they have no end"),
        "{}",
        found[0]
    );
}

#[test]
fn a_typedef_of_itself_is_ignored_with_a_warning() {
    let output = compile("good.x", "typedef struct a a;\nstruct a { int b; };\n").unwrap();
    let warnings: Vec<String> = output.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["good.x:1:18: warning: `typedef a a` says nothing new and is ignored"]);
}

#[test]
fn definitions_of_the_preprocessor_are_constants() {
    let text = "#define A 3 /* three */\n#define B (0x10) // sixteen\n# define C \\\n  -1\nstruct s { int d[A]; int e<B>; };\n";
    let code = compile("good.x", text).unwrap().code;
    for expected in ["pub const A: u32 = 3;", "pub const B: u32 = 16;", "pub const C: i32 = -1;"] {
        assert!(code.contains(expected), "{expected} is not in\n{code}");
    }
}

#[test]
fn a_comment_says_that_a_procedure_is_repeatable() {
    let text = "program P { version V {\n/* repeatable */ int GET(int) = 1;\nvoid ADD(int) = 2;\n// repeatable\nint LIST(void) = 3;\n\
                /* not repeatable */ int TAKE(void) = 4;\n} = 1; } = 1;\n";
    let output = compile("p.x", text).unwrap();
    let expected =
        "    fn repeatable(&self, procedure: u32) -> bool {\n        matches!(procedure, 0 | 1 | 3)\n    }\n";
    assert!(output.code.contains(expected), "{}", output.code);
    assert_eq!(output.warnings.iter().count(), 0);
    let none = compile("p.x", &text.replace("repeatable", "")).unwrap();
    assert!(!none.code.contains("repeatable"), "what a service has by default is procedure 0 alone");
    let astray = compile("p.x", "struct a { /* repeatable */ int b; };").unwrap();
    let warning = "p.x:1:29: warning: a comment `repeatable` is about the procedure behind it, and there is none";
    assert_eq!(astray.warnings.iter().next().map(ToString::to_string).as_deref(), Some(warning));
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
        (
            "cli/tests/generated/awkward.x",
            include_str!("../../cli/tests/generated/awkward.x"),
            "cli/tests/generated/awkward_x.rs",
        ),
        (
            "cli/tests/generated/quadruple.x",
            include_str!("../../cli/tests/generated/quadruple.x"),
            "cli/tests/generated/quadruple_x.rs",
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
