use super::{Files, compile};
use std::collections::HashMap;

struct Memory(HashMap<&'static str, &'static str>);

impl Files for Memory {
    fn read(&self, name: &str, _: &str) -> Option<(String, String)> {
        self.0.get(name).map(|text| (name.to_owned(), (*text).to_owned()))
    }
}

fn code(text: &str) -> String {
    match compile("test.idl", text, &Memory(HashMap::new())) {
        Ok(output) => output.code,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn errors(text: &str) -> Vec<String> {
    let diagnostics = compile("test.idl", text, &Memory(HashMap::new())).expect_err("errors");
    diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn several_errors_are_found_in_one_run() {
    let found = errors(
        "module M {\n  struct S { Unknown x; long y; };\n  typedef sequence<long, 0> Empty;\n  interface I {\n    \
         void f(long x);\n    oneway long g();\n    void h() raises (S);\n  };\n  const short BIG = 70000;\n};\n",
    );
    assert_eq!(
        found,
        [
            "test.idl:2:14: error: \"Unknown\" is not declared",
            "test.idl:3:26: error: the greatest length is at least 1 and at most 4294967295, not 0",
            "test.idl:5:12: error: \"in\", \"out\" or \"inout\" expected, \"long\" found",
            "test.idl:6:17: error: a oneway operation returns nothing, has only in parameters and raises nothing",
            "test.idl:7:22: error: only exceptions can be raised",
            "test.idl:9:21: error: 70000 is not in the range from -32768 to 32767",
        ]
    );
}

#[test]
fn errors_name_what_was_expected() {
    assert_eq!(errors("struct S { long x }")[0], "test.idl:1:19: error: \";\" expected, \"}\" found");
    assert_eq!(errors("interface I { void f(in long out); };").len(), 1);
    assert!(errors("typedef long T; typedef short t;")[0].contains("differs only in case"));
    assert!(errors("typedef long foo_bar; typedef long FooBar;")[0].contains("would both be called FooBar"));
    assert!(errors("valuetype V { public long x; };")[0].contains("not supported"));
    assert!(errors("interface A; interface B : A {};")[0].contains("declared before"));
    assert!(errors("union U switch (float) { case 1: long x; };")[0].contains("switched by"));
    assert!(errors("enum E { a, b }; union U switch (E) { case a: long x; case a: long y; };")[0].contains("already"));
    assert!(errors("struct S; struct T { S s; };")[0].contains("only a sequence"));
    assert!(errors("#include \"missing.idl\"\n")[0].contains("cannot be found"));
    assert!(errors("#if 1\nstruct S { long x; };\n")[0].contains("no #endif"));
    assert!(errors("struct S { long x; }; }")[0].contains("declaration expected"));
}

#[test]
fn text_of_any_kind_is_refused_and_never_panics() {
    let seed = "module M { interface I : A { void f(in sequence<long> x) raises(E); attribute string<5> s; }; };";
    for cut in 0..seed.len() {
        let _ = compile("test.idl", &seed[..cut], &Memory(HashMap::new()));
        let _ = compile("test.idl", &seed[cut..], &Memory(HashMap::new()));
    }
    for text in ["#", "#include", "\"", "'", "/*", "0x", "1e", "L'", "case", "{{{{", "const long x = 1 / 0;", "\\"] {
        let _ = compile("test.idl", text, &Memory(HashMap::new()));
    }
}

#[test]
fn constants_are_computed() {
    let code = code(
        "const long A = (1 << 4) | 3; const unsigned long B = ~0; const double C = 1 / 2.0;\n\
         const string D = \"a\" \"b\"; const char E = '\\x41'; const octet F = A + 1;\n\
         enum Color { red, green }; const Color G = green; const fixed H = 12.50D; const boolean I = TRUE;\n\
         const long J = -7 % 4; const wchar K = L'x'; const unsigned long long L = 0xffffffffffffffff;",
    );
    for line in [
        "pub const A: i32 = 19;",
        "pub const B: u32 = 4294967295;",
        "pub const C: f64 = 0.5;",
        "pub const D: &str = \"ab\";",
        "pub const E: char = 'A';",
        "pub const F: u8 = 20;",
        "pub const G: Color = Color::Green;",
        "pub const H: ::sidestep_orb::cdr::Fixed<3, 1> = ::sidestep_orb::cdr::Fixed::constant(125);",
        "pub const I: bool = true;",
        "pub const J: i32 = -3;",
        "pub const L: u64 = 18446744073709551615;",
    ] {
        assert!(code.contains(line), "{line} in {code}");
    }
}

#[test]
fn repository_ids_follow_the_pragmas() {
    let inner = "#pragma prefix \"inner\"\nmodule N { exception X {}; };\n";
    let text = "#pragma prefix \"outer.org\"\n#include \"inner.idl\"\nmodule M {\n  exception A {};\n\
                #pragma prefix \"changed\"\n  exception B {};\n  exception C {};\n#pragma ID C \"LOCAL:mine\"\n\
                exception D {};\n#pragma version D 2.3\n};\nexception E {};\n";
    let files = Memory(HashMap::from([("inner.idl", inner)]));
    let code = compile("test.idl", text, &files).expect("valid").code;
    for id in [
        "IDL:inner/N/X:1.0",
        "IDL:outer.org/M/A:1.0",
        "IDL:changed/M/B:1.0",
        "LOCAL:mine",
        "IDL:changed/M/D:2.3",
        "IDL:outer.org/E:1.0",
    ] {
        assert!(code.contains(&format!("const ID: &'static str = {id:?};")), "{id} in {code}");
    }
}

#[test]
fn comments_become_documentation() {
    let code = code(
        "// About nothing.\n\n/// Says hello.\n/// Twice.\ninterface Greeter {\n  /** One word. */\n  void greet(); \
         // behind\n  void leave();\n};\n",
    );
    assert!(code.contains("/// Says hello.\n/// Twice.\n"));
    assert!(code.contains("/// One word.\n"));
    assert!(code.contains("/// `leave`\n"));
    assert!(!code.contains("behind") && !code.contains("nothing"));
}

#[test]
fn conditions_choose() {
    let text = "#define SMALL\n#define SIZE 3\n#ifdef SMALL\nconst long A = SIZE;\n#else\nconst long A = 4;\n#endif\n\
                #if defined(LARGE) || 0\nnonsense\n#elif 1\nconst long B = 1;\n#endif\n";
    let code = code(text);
    assert!(code.contains("pub const A: i32 = 3;") && code.contains("pub const B: i32 = 1;"));
}

#[test]
fn context_is_ignored_with_a_warning() {
    let text = "interface I { void f() context(\"a\"); };";
    let output = compile("test.idl", text, &Memory(HashMap::new())).expect("valid");
    assert!(output.warnings.to_string().contains("test.idl:1:24: warning: \"context\" is ignored"));
}
