//! What is wrong with a description is said with the line and a remedy.

mod kit;

use sidestep_filters::{check, draw, parse};

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
