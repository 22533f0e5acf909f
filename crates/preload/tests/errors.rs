//! The manual pages of `sidestep.h` list every error that the calls give by themselves, before or beside what the extended sockets below
//! them say: read out of their source, from each call through all that it uses there. (What those say is tested in `extended`.)

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    path::Path,
};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Functions and constants of a source, with the text of each.
fn items(source: &str) -> BTreeMap<String, String> {
    let (mut items, mut open): (BTreeMap<String, String>, Option<String>) = (BTreeMap::new(), None);
    for line in source.lines() {
        let words: Vec<&str> = line.trim_start().split([' ', '(', '<', ':']).collect();
        let named = words.iter().position(|word| ["fn", "const"].contains(word)).and_then(|at| words.get(at + 1));
        if open.is_none()
            && let Some(name) = named
            && line.chars().next().is_some_and(|first| !first.is_whitespace())
        {
            open = Some(name.to_string());
        }
        if let Some(name) = &open {
            let text = items.entry(name.clone()).or_default();
            *text += line;
            text.push('\n');
            if line.starts_with('}') || line.ends_with(';') && !text.contains('{') {
                open = None;
            }
        }
    }
    items
}

/// A source without comments and without what is between quotes.
fn bare(source: &str) -> String {
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| line.split('"').step_by(2).collect::<String>() + "\n").collect()
}

/// Words of a text that could be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// The errors that an item names, itself and by what it uses.
fn errors(items: &BTreeMap<String, String>, name: &str, seen: &mut HashSet<String>) -> BTreeSet<String> {
    let Some(text) = items.get(name).filter(|_| seen.insert(name.to_string())) else { return BTreeSet::new() };
    let own = text.split("libc::E").skip(1).filter_map(|rest| Some(format!("E{}", words(rest).next()?)));
    let mut all: BTreeSet<String> = own.collect();
    for used in items.keys().filter(|used| uses(text, used)) {
        all.extend(errors(items, used, seen));
    }
    all
}

/// Whether a text calls a function of this name, or names this constant.
fn uses(text: &str, name: &str) -> bool {
    let is_constant = name.chars().next().is_some_and(char::is_uppercase);
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let behind = text[at + name.len()..].chars().next().unwrap_or(' ');
        let of_a_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        match is_constant {
            true => !of_a_word(before) && !of_a_word(behind),
            // Not a method of the same name.
            false => !of_a_word(before) && before != '.' && behind == '(',
        }
    })
}

fn listed() -> HashSet<(String, String)> {
    let (text, mut calls, mut listed) = (read("man/errors.txt"), Vec::new(), HashSet::new());
    for line in text.lines().take_while(|line| *line != "texts").filter(|line| !line.starts_with('#')) {
        match line.split_once(' ') {
            Some(("call", names)) => calls = names.split(' ').map(str::to_string).collect(),
            _ => {
                let number = line.split([' ', '-']).next().unwrap_or_default().to_string();
                listed.extend(calls.iter().map(|call| (call.clone(), number.clone())));
            }
        }
    }
    listed
}

#[test]
fn the_manual_lists_every_error_of_every_call() {
    let source = bare(&(read("src/extended.rs") + &read("src/extended/posting.rs")));
    let (items, listed) = (items(&source), listed());
    let calls: Vec<&String> = items.keys().filter(|name| name.starts_with("ss_")).collect();
    let header = read("include/sidestep.h");
    let declared = header.lines().filter(|line| line.ends_with(");") && !line.starts_with(' ')).count();
    assert_eq!(calls.len(), declared, "{calls:?}");
    let mut count = 0;
    for call in calls {
        for error in errors(&items, call, &mut HashSet::new()) {
            assert!(listed.contains(&(call.clone(), error.clone())), "{call} can give {error}");
            count += 1;
        }
    }
    // The look into the source finds something: these two lie behind several steps.
    assert!(count > 30, "{count}");
    let of = |name: &str| errors(&items, name, &mut HashSet::new());
    assert!(of("ss_post_put").is_superset(&BTreeSet::from(["ENOTCONN".into(), "EINVAL".into()])));
    assert_eq!(of("ss_disable"), BTreeSet::from(["ENOTCONN".to_string()]));
}
