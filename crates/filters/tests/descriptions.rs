//! What is wrong with a description is said with the line and a remedy.

mod kit;

use sidestep_filters::{builtin, check, draw, parse};

const GOOD: &str = r#"name = "good"
transport = "tcp"

[[filter]]
name = "numbers"
kind = "numbers"
settings = { most = 10 }

[[filter]]
name = "mix"
kind = "mix"
copies = 3
place = "process"

[[filter]]
name = "gather"
kind = "gather"

[[stream]]
from = "numbers.out"
to = "mix.in"
buffer = 4096
schedule = "demand"

[[stream]]
from = "mix.out"
to = "gather.in"
ordered = true
"#;

/// The problems of the description with a change made, as text.
fn problems(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    let found = match parse(&text) {
        Ok(graph) => check(&graph, &kit::kinds(&kit::Found::default())),
        Err(problems) => problems,
    };
    found.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn a_good_one_has_no_problems_and_a_picture() {
    assert_eq!(problems("good", "good"), "");
    let graph = parse(GOOD).unwrap();
    let picture = draw(&graph);
    for word in ["numbers", "mix x 3", "own process", "demand", "4096 B", "ordered"] {
        assert!(picture.contains(word), "{word}: {picture}");
    }
}

#[test]
fn every_mistake_has_its_line_and_a_remedy() {
    for (from, to, line, what, remedy) in [
        ("kind = \"mix\"", "kind = \"stir\"", 10, "no kind `stir`", "gather, mix, numbers"),
        ("copies = 3", "copies = 0", 10, "can be reached", "1 to 256"),
        ("name = \"mix\"", "name = \"numbers\"", 10, "twice", "line 5"),
        ("from = \"mix.out\"", "from = \"mix.aus\"", 26, "no output `aus`", "`mix.out`"),
        ("from = \"mix.out\"", "from = \"stir.out\"", 26, "no filter `stir`", "numbers, mix, gather"),
        ("from = \"mix.out\"", "from = \"numbers.out\"", 26, "gives numbers, and `gather.in` takes mixed", "between"),
        ("from = \"mix.out\"", "from = \"mix\"", 26, "`mix` is no port", "FILTER.OUTPUT"),
        ("buffer = 4096", "buffer = 4", 20, "a buffer of 4 bytes", "16"),
        ("place = \"process\"", "place = \"moon\"", 13, "`moon` is no place", "process:NAME"),
        ("place = \"process\"", "host = \"b\"", 10, "no host `b`", "[[host]]"),
        ("schedule = \"demand\"", "schedule = \"fair\"", 23, "fair", "docs/filters.md"),
        ("most = 10", "mast = 10", 7, "no setting `mast`", "it has most"),
        ("most = 10", "most = \"many\"", 7, "\"many\" cannot be the setting `most`", "a whole number from 0"),
        ("most = 10", "most = 1.5", 7, "\"1.5\" cannot be", "a whole number from 0"),
        ("{ most = 10 }", "{ path = \"x\", most = 10 }", 7, "no setting `path`", "it has most"),
        ("schedule = \"demand\"", "key = { field = 1 }", 20, "not dealt by it", "schedule = \"keyed\""),
        ("schedule = \"demand\"", "schedule = \"keyed\"\nkey = { field = 0 }", 20, "the key is empty", "from 1"),
        ("schedule = \"demand\"", "schedule = \"keyed\"\nkey = { at = 8 }", 24, "no key", "{ at = 0, bytes = 8 }"),
        ("schedule = \"demand\"", "schedule = \"keyed\"\nkey = { at = 4096, bytes = 1 }", 20, "byte 4096", "within"),
        ("schedule = \"demand\"", "schedule = \"keyed\"\nkey = { file = 1 }", 24, "file", "docs/filters.md"),
        ("copies = 3", "copys = 3", 12, "copys", "docs/filters.md"),
        ("ordered = true", "ordered = tru", 28, "", "docs/filters.md"),
    ] {
        let found = problems(from, to);
        let at = format!("line {line}: ");
        let own = found.lines().find(|text| text.starts_with(&at) && text.contains(what));
        assert!(
            own.is_some_and(|own| own.contains(remedy)) || found.contains(remedy) && own.is_some(),
            "{to}: {found}"
        );
    }
}

#[test]
fn circles_and_loose_ends_are_found() {
    let circle = r#"
[[filter]]
name = "a"
kind = "mix"
[[filter]]
name = "b"
kind = "mix"
[[stream]]
from = "a.out"
to = "b.in"
[[stream]]
from = "b.out"
to = "a.in"
"#;
    let kinds = sidestep_filters::Kinds::new().with(
        "mix",
        sidestep_filters::Kind::new("", |_| Ok(sidestep_filters::function(|_| Ok(()))))
            .input("in", "any")
            .output("out", "any"),
    );
    let found = check(&parse(circle).unwrap(), &kinds);
    assert_eq!(found.len(), 1);
    assert!(found[0].what.contains("in a circle: ") && found[0].line == 12, "{found:?}");
    let loose = check(&parse("[[filter]]\nname = \"a\"\nkind = \"mix\"\n").unwrap(), &kinds);
    assert_eq!(loose.len(), 2);
    assert!(loose.iter().all(|problem| problem.line == 2), "{loose:?}");
}

/// What stands before the filters, or behind the streams.
#[test]
fn mistakes_besides_filters_have_their_lines_too() {
    let host = |address: &str| format!("[[host]]\nname = \"b\"\naddress = \"{address}\"\ncommand = [\"true\"]\n");
    for (text, line, what, remedy) in [
        (host("b.example"), 31, "`b.example` is no IP address", "names are not looked up"),
        (host("192.0.2"), 31, "`192.0.2` is no IP address", "192.0.2.7"),
        (host("192.0.2.7:80"), 31, "no IP address", "192.0.2.7"),
        (host("::1") + &host("192.0.2.7"), 33, "host `b` is there twice", "line 29"),
        ("[[unit]]\nsafe = \"yes\"\nsave = 1\n".into(), 31, "no setting `save`", "it has most, safe"),
    ] {
        let text = format!("{GOOD}{text}");
        let found = match parse(&text) {
            Ok(graph) => check(&graph, &kit::kinds(&kit::Found::default())),
            Err(problems) => problems,
        };
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        let at = format!("line {line}: ");
        assert!(
            said.iter().any(|said| said.starts_with(&at) && said.contains(what) && said.contains(remedy)),
            "{said:?}"
        );
    }
    for (first, what, remedy) in [
        ("units = 0", "without a unit of work nothing is done", "1 to 1000000"),
        ("units = 1000001", "too many units", "1 to 1000000"),
        ("patience = 0", "so long", "1 to 86400"),
        ("pipelined = 0", "so many units at once", "1 to 64"),
    ] {
        let problems = parse(&format!("{first}\n{GOOD}")).unwrap_err();
        assert!(problems[0].to_string().starts_with("line 1: "), "{problems:?}");
        assert!(problems[0].what.contains(what) && problems[0].remedy.contains(remedy), "{problems:?}");
    }
    let both = parse(&format!("units = 2\n{GOOD}[[unit]]\nsafe = \"yes\"\n")).unwrap_err();
    assert!(both[0].to_string().starts_with("line 1: `units` is there besides"), "{both:?}");
}

/// The kinds of `sidestep pipe`: what they cannot do without, and a stream by key without one.
#[test]
fn what_a_kind_needs_is_asked_for() {
    let text = r#"
[[filter]]
name = "files"
kind = "files"
[[filter]]
name = "list"
kind = "write"
copies = 2
[[stream]]
from = "files.out"
to = "list.in"
schedule = "keyed"
"#;
    let found: Vec<String> = check(&parse(text).unwrap(), &builtin::kinds()).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], "line 3: a filter of kind `files` needs `path`; add `path` to its settings: it is text");
    assert!(found[1].starts_with("line 10: `files.out` says no keys"), "{found:?}");
    let mended = text.replace("kind = \"files\"", "kind = \"files\"\nsettings = { path = \".\" }");
    let mended = mended.replace("\"keyed\"", "\"keyed\"\nkey = { at = 0, bytes = 8 }");
    assert_eq!(check(&parse(&mended).unwrap(), &builtin::kinds()), []);
}
