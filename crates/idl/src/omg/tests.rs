use super::{Files, compile, compile_with};
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
    assert!(errors("typedef long T; typedef short t;")[0].ends_with("declared at test.idl:1:14, which IDL forbids"));
    assert!(errors("interface I { void f(); void F(); };")[0].contains("which IDL forbids"));
    assert!(errors("valuetype V { public long x; };")[0].contains("not supported"));
    assert!(errors("interface A; interface B : A {};")[0].contains("declared before"));
    assert!(errors("union U switch (float) { case 1: long x; };")[0].contains("switched by"));
    assert!(errors("enum E { a, b }; union U switch (E) { case a: long x; case a: long y; };")[0].contains("already"));
    assert!(errors("struct S; struct T { S s; };")[0].contains("only a sequence"));
    assert!(errors("#include \"missing.idl\"\n")[0].contains("cannot be found"));
    assert!(errors("#if 1\nstruct S { long x; };\n")[0].contains("no #endif"));
    assert!(
        errors("struct S { long x; }; }")[0].contains("declaration (such as module, interface, struct, typedef or")
    );
    assert!(errors("Interface I {};")[0].ends_with("\"Interface\" found; the keyword is written \"interface\""));
    assert!(errors("struct S { Long x; };")[0].contains("\"Long\" differs only in case from a keyword"));
    assert!(errors("const long X = 1.5;")[0].ends_with("an integer expected, 1.5 found"));
    assert!(errors("const boolean X = 1;")[0].ends_with("TRUE or FALSE expected, 1 found"));
    assert!(errors("enum E { a }; const E X = 1;")[0].ends_with("an enumerator expected, 1 found"));
    assert!(errors("const string X = -\"a\";")[0].ends_with("a number expected behind \"-\", the text \"a\" found"));
    assert!(errors("struct S { long a; long a; };")[0].ends_with("1:25: error: there are two members \"a\""));
    let found = errors("interface I { void f(in long a, in long A); };");
    assert_eq!(found[0], "test.idl:1:41: error: \"A\" differs only in case from \"a\", which IDL forbids");
    assert!(errors("module A {}; module a {};")[0].ends_with("declared at test.idl:1:8, which IDL forbids"));
    assert!(errors("module A { typedef long T; }; typedef a::T U;")[0].contains("\"a\" is declared as \"A\""));
    assert!(errors("struct A { long x; }; interface A;")[0].contains("\"A\" is declared already"));
    assert!(errors("local struct A { long x; };")[0].contains("\"interface\" expected, \"struct\" found"));
    assert!(errors("native N;")[0].contains("not supported"));
    assert!(errors("struct S { fixed x; };")[0].contains("\"<\" expected"));
    assert!(errors("struct _1 { long x; };")[0].contains("a letter expected"));
    assert!(errors("struct __x { long x; };")[0].contains("a letter expected"));
    let covered = "union U switch (boolean) { case TRUE: long x; case FALSE: long y; default: long z; };";
    assert!(errors(covered)[0].contains("its default is never selected"));
    assert!(
        errors("interface I { struct f { long x; }; void F(); };")[0].contains("declared already, at test.idl:1:22")
    );
    assert!(errors("interface I { void f(); typedef long f; };")[0].contains("declared already, at test.idl:1:20"));
    let attribute = "interface I { attribute long x; void x(); };";
    assert!(errors(attribute)[0].contains("\"x\" is declared already, at test.idl:1:30"));
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
fn nothing_is_nested_without_end() {
    let many = 20_000;
    let nested = |open: &str, inner: &str| format!("{}{inner}", open.repeat(many));
    for text in [
        format!("const long X = {};", nested("(", "1")),
        format!("const long X = {};", nested("- ", "1")),
        format!("typedef {};", nested("sequence<", "long")),
        nested("module M { ", ""),
        format!("{}{}", "module M { ".repeat(many), "}; ".repeat(many)),
        nested("struct S { ", ""),
        nested("union U switch (long) { case 1: ", ""),
        format!("typedef long X{};", nested("[1]", "")),
    ] {
        let found = errors(&text);
        assert!(found[0].contains("64"), "{}", found[0]);
    }
    let chain: String = (1..3000).map(|each| format!("interface I{each} : I{} {{}};", each - 1)).collect();
    assert!(errors(&format!("interface I0 {{}}; {chain}"))[0].contains("inherits at most 1000 others"));
    let conditions = "#if 1\n".repeat(many);
    assert_eq!(errors(&conditions).len(), many);
}

#[test]
fn files_and_macros_do_not_grow_without_end() {
    let files = Memory(HashMap::from([("again.idl", "#include \"again.idl\"\n#include \"again.idl\"\n")]));
    let diagnostics = compile("test.idl", "#include \"again.idl\"\n", &files).expect_err("no end");
    assert_eq!(diagnostics.to_string(), "again.idl:1:1: error: files include each other without end\n");
    let doubled = |last: &str| -> String {
        let each = (0..60).map(|each| format!("#define M{each} M{} M{}\n", each + 1, each + 1));
        each.chain([format!("#define M60 {last}\n")]).collect()
    };
    for last in ["1", ""] {
        assert!(errors(&format!("{}const long X = M0;", doubled(last)))[0].contains("\"M0\" becomes too long"));
        assert!(errors(&format!("{}#if M0\n#endif\n", doubled(last)))[0].contains("more than 10000 parts"));
    }
}

#[test]
fn constants_that_cannot_be_computed_are_refused() {
    let largest = i128::MAX;
    for (expression, expected) in [
        (format!("-(~{largest})"), "cannot be computed"),
        (format!("{largest} + 1"), "cannot be computed"),
        (format!("{largest} << 63"), "cannot be computed"),
        ("1 << 64".to_owned(), "cannot be computed"),
        ("(~0 << 63 << 63) / -1".to_owned(), "is not in the range"),
        (format!("~{largest}"), "is not in the range"),
        (format!("{largest}9"), "is too large"),
    ] {
        let found = errors(&format!("const unsigned long X = {expression};"));
        assert!(found[0].contains(expected), "{expression}: {}", found[0]);
    }
    assert!(errors("const float X = 1e39;")[0].contains("1e39 is not in the range of a float"));
    assert!(errors("const double X = 1e400;")[0].contains("\"1e400\" is too large"));
    assert!(errors("const double X = 1.0 / 0.0;")[0].contains("1.0 / 0.0 cannot be computed"));
    assert!(errors("const double X = 1e308 * 10.0;")[0].contains("cannot be computed"));
    assert!(errors("const fixed X = 1D / 0D;")[0].contains("is divided by zero"));
    let long = "9".repeat(31);
    assert!(errors(&format!("const fixed X = {long}D * 10D;"))[0].contains("more than 31 digits"));
    assert!(errors(&format!("const fixed X = {long}9D;"))[0].contains("fixed-point number of at most 31 digits"));
    assert!(errors("typedef fixed<5,2> T; const T X = 12345D;")[0].contains("more digits than fixed<5, 2>"));
}

#[test]
fn fixed_point_constants_are_decimal() {
    let code = code(
        "const fixed A = 1.5D * 2.25D; const fixed B = 10D - 0.50D; const fixed C = -(1D / 3D); const fixed D = 0.05D;\n\
         typedef fixed<5,2> Money; const Money E = 1.5D; const Money F = 1.239D;",
    );
    for line in [
        "pub const A: ::sidestep_orb::cdr::Fixed<4, 3> = ::sidestep_orb::cdr::Fixed::constant(3375);",
        "pub const B: ::sidestep_orb::cdr::Fixed<2, 1> = ::sidestep_orb::cdr::Fixed::constant(95);",
        "Fixed<31, 31> = ::sidestep_orb::cdr::Fixed::constant(-3333333333333333333333333333333);",
        "pub const D: ::sidestep_orb::cdr::Fixed<2, 2> = ::sidestep_orb::cdr::Fixed::constant(5);",
        "pub const E: Money = ::sidestep_orb::cdr::Fixed::constant(150);",
        "pub const F: Money = ::sidestep_orb::cdr::Fixed::constant(123);",
    ] {
        assert!(code.contains(line), "{line} in {code}");
    }
}

#[test]
fn characters_are_written_in_every_way() {
    let code = code(
        "const string A = \"\\x41\\102\\t\\\"\\\\\\?\\'\"; const char B = '\\377'; const wchar C = L'\\u20ac';\n\
         const wstring D = L\"\\ud83d\\ude00!\" L\"\\x41\"; const string E = \"gr\u{fc}n\"; const char F = '\u{e9}'; const char G = '\\0';",
    );
    for line in [
        r#"pub const A: &str = "AB\t\"\\?'";"#,
        "pub const B: char = '\u{ff}';",
        "pub const C: ::sidestep_orb::cdr::WChar = ::sidestep_orb::cdr::WChar('\u{20ac}');",
        "pub const D: &str = \"\u{1f600}!A\";",
        "pub const E: &str = \"gr\u{fc}n\";",
        "pub const F: char = '\u{e9}';",
        "pub const G: char = '\\0';",
    ] {
        assert!(code.contains(line), "{line} in {code}");
    }
    for (literal, expected) in [
        ("string X = \"a\\0\"", "test.idl:1:20: error: a string cannot hold the character 0"),
        (
            "string X = \"a\\u20ac\"",
            "test.idl:1:20: error: \\u is for wide characters and strings, such as L\"\\u20ac\"",
        ),
        ("string X = \"a\\xg\"", "test.idl:1:20: error: one or two hexadecimal digits expected behind \\x"),
        ("string X = \"\\q\"", "test.idl:1:19: error: the escape \\q is not known"),
        ("char X = '\\400'", "test.idl:1:17: error: \\400 is more than \\377"),
        (
            "char X = '\u{20ac}'",
            "test.idl:1:16: error: a character of ISO 8859-1 expected, the character '\u{20ac}' found",
        ),
        ("wstring X = L\"\\ud83d\"", "test.idl:1:21: error: \\ud83d is half a character"),
        ("string X = \"a", "test.idl:1:18: error: this literal does not end: \" expected"),
    ] {
        assert_eq!(errors(&format!("const {literal};"))[0], expected);
    }
}

#[test]
fn files_may_begin_with_the_mark_of_their_encoding() {
    let text = "\u{feff}#ifndef A\r\n#define A 1 + \\\r\n 2 /* three\r\n */\r\n#endif\r\nconst long X = A;\r\n";
    assert!(code(text).contains("pub const X: i32 = 3;"));
}

#[test]
fn a_module_may_be_called_corba() {
    let code = code(
        "module CORBA { typedef long Handle; interface TypeCode; };\n\
         struct S { CORBA::Handle a; ::CORBA::TypeCode b; CORBA::Object c; };",
    );
    for line in
        ["pub a: corba::Handle,", "pub b: ::sidestep_orb::cdr::TypeCode,", "pub c: Option<::sidestep_orb::Object>,"]
    {
        assert!(code.contains(line), "{line} in {code}");
    }
    assert!(errors("typedef CORBA::Missing T;")[0].contains("\"CORBA::Missing\" is not declared"));
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
    let text = "#define SMALL\n#define SIZE THREE\n#define THREE 3\n#ifdef SMALL\nconst long A = SIZE;\n#else\n\
                const long A = 4;\n#endif\n#if defined(LARGE) || SIZE < 3 /* not yet */\nnonsense\n#elif SIZE * 2 == 6 // so\n\
                const long B = 1;\n#elif 1 / 0\n#else\nnonsense\n#endif\n#if 0\n#if nonsense (\n#else\nnonsense\n#endif\n#endif\n";
    let code = code(text);
    assert!(code.contains("pub const A: i32 = 3;") && code.contains("pub const B: i32 = 1;"));
    for (text, expected) in [
        (
            "\n#if SIZE +\n#else\nnonsense\n#endif\n",
            "test.idl:2:1: error: #if: a number or a name expected, the end of",
        ),
        ("#if 0\n#elif (1\n#endif\n", "test.idl:2:1: error: #elif: \")\" expected"),
        ("#ifdef\n#endif\n", "test.idl:1:1: error: #ifdef: the name of a macro expected"),
        ("#if 0\n#else\n#else\n#endif\n", "test.idl:3:1: error: #else behind #else"),
        ("#define F(x) x\n", "test.idl:1:1: error: the macro \"F\" has parameters, which are not supported"),
    ] {
        assert!(errors(text)[0].starts_with(expected), "{}", errors(text)[0]);
        assert_eq!(errors(text).len(), 1, "{text}");
    }
}

#[test]
fn macros_may_be_given() {
    let macros = ["WIDE".to_owned(), "SIZE=3".to_owned()];
    let text = "#if WIDE && SIZE >= 3\ntypedef long Row[SIZE];\n#endif\n";
    let output = compile_with("test.idl", text, &Memory(HashMap::new()), &macros).expect("valid");
    assert!(output.code.contains("pub type Row = [i32; 3];"));
}

#[test]
fn context_is_ignored_with_a_warning() {
    let text = "interface I { void f() context(\"a\"); };";
    let output = compile("test.idl", text, &Memory(HashMap::new())).expect("valid");
    assert!(output.warnings.to_string().contains("test.idl:1:24: warning: \"context\" is ignored"));
}
