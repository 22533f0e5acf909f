//! Names of IDL as names of Rust.

use std::collections::HashMap;

use super::super::syntax::{Kind, Specification};
use crate::source::Diagnostics;

/// The name of a type: `FooBar`.
pub(crate) fn camel(name: &str) -> String {
    let mut camel = String::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut chars = part.chars();
        camel.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        let rest = chars.as_str();
        // FOO_BAR is not meant to be shouted.
        if name.contains('_') && part.chars().all(|each| !each.is_ascii_lowercase()) {
            camel.push_str(&rest.to_ascii_lowercase());
        } else {
            camel.push_str(rest);
        }
    }
    match camel.as_str() {
        "" => "Underscore".to_owned(),
        "Self" => "Self_".to_owned(),
        _ => camel,
    }
}

/// The name of a field, a function or a module: `foo_bar`.
pub(crate) fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, each) in chars.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| chars[before]);
        let lower_before = before.is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit());
        let upper_before = before.is_some_and(|before| before.is_ascii_uppercase());
        let lower_after = chars.get(index + 1).is_some_and(char::is_ascii_lowercase);
        if each.is_ascii_uppercase() && (lower_before || (upper_before && lower_after)) {
            snake.push('_');
        }
        snake.push(each.to_ascii_lowercase());
    }
    match snake.as_str() {
        "self" | "super" | "crate" | "_" => format!("{snake}_"),
        keyword if KEYWORDS.contains(&keyword) => format!("r#{snake}"),
        _ => snake,
    }
}

/// The name of a constant: `FOO_BAR`.
pub(crate) fn constant(name: &str) -> String {
    snake(name).trim_start_matches("r#").to_ascii_uppercase()
}

/// Two definitions of one scope may not become one name.
pub(super) fn check(specification: &Specification, diagnostics: &mut Diagnostics) {
    let mut seen: HashMap<(usize, String), String> = HashMap::new();
    for definition in specification.definitions.iter().skip(1) {
        let name = match definition.kind {
            Kind::Module => snake(&definition.name),
            Kind::Const { .. } => constant(&definition.name),
            Kind::Enumerator { .. } => continue,
            _ => camel(&definition.name),
        };
        let before = seen.insert((definition.parent.0, name.clone()), definition.name.clone());
        if let Some(before) = before.filter(|before| *before != definition.name) {
            diagnostics.error(
                &definition.at,
                format!("{:?} and {before:?} would both be called {name} in Rust", definition.name),
            );
        }
    }
}

/// The keywords of Rust that a name of IDL may be.
const KEYWORDS: [&str; 46] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut",
    "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "try", "type", "typeof", "unsafe",
    "unsized", "use", "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_look_like_rust() {
        assert_eq!(camel("namingContext"), "NamingContext");
        assert_eq!(camel("foo_bar"), "FooBar");
        assert_eq!(camel("RED_ONE"), "RedOne");
        assert_eq!(snake("NamingContextExt"), "naming_context_ext");
        assert_eq!(snake("HTTPServer"), "http_server");
        assert_eq!(snake("to_URL"), "to_url");
        assert_eq!(snake("type"), "r#type");
        assert_eq!(constant("maxSize"), "MAX_SIZE");
    }
}
