//! Names as text (Naming Service 1.3 §2.4): components divided by `/`, id and kind by `.`, `\` before a sign that is meant.

use super::cos_naming::NameComponent;

/// The text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a name: {reason}")]
pub struct BadName {
    /// The text.
    pub text: String,
    /// What is wrong.
    pub reason: &'static str,
}

/// The name that a text stands for.
pub fn parse_name(text: &str) -> Result<Vec<NameComponent>, BadName> {
    let wrong = |reason| BadName { text: text.to_owned(), reason };
    let mut name = Vec::new();
    let mut parts = vec![String::new()];
    let mut dotted = false;
    let mut finish = |parts: &mut Vec<String>, dotted: &mut bool| {
        let kind = if parts.len() > 1 { parts.pop().unwrap_or_default() } else { String::new() };
        let id = parts.pop().unwrap_or_default();
        if id.is_empty() && kind.is_empty() && !*dotted {
            return Err(wrong("a component is empty"));
        }
        if *dotted && kind.is_empty() && !id.is_empty() {
            return Err(wrong("a kind is missing behind a point"));
        }
        name.push(NameComponent { id, kind });
        *parts = vec![String::new()];
        *dotted = false;
        Ok(())
    };
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.next() {
                Some(sign @ ('/' | '.' | '\\')) => parts.last_mut().into_iter().for_each(|part| part.push(sign)),
                _ => return Err(wrong("a backslash stands before a slash, a point or a backslash")),
            },
            '/' => finish(&mut parts, &mut dotted)?,
            '.' if dotted => return Err(wrong("a component has two points")),
            '.' => {
                dotted = true;
                parts.push(String::new());
            }
            sign => parts.last_mut().into_iter().for_each(|part| part.push(sign)),
        }
    }
    finish(&mut parts, &mut dotted)?;
    Ok(name)
}

/// A name as text.
#[must_use]
pub fn show_name(name: &[NameComponent]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('/', "\\/").replace('.', "\\.");
    let component = |component: &NameComponent| {
        let NameComponent { id, kind } = component;
        match kind.is_empty() && !id.is_empty() {
            true => escaped(id),
            false => format!("{}.{}", escaped(id), escaped(kind)),
        }
    };
    name.iter().map(component).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for text in ["a", "a.b", "a/b.c/.d", "a\\/b\\.c", ".", "x/./y"] {
            assert_eq!(show_name(&parse_name(text).unwrap()), text);
        }
        for text in ["", "/a", "a//b", "a.", "a.b.c", "\\x", "a/"] {
            assert!(parse_name(text).is_err(), "{text}");
        }
    }
}
