//! The manual pages of `libvipl`: one for each call of `vipl.h`, made from the header and `crates/vipl/man/pages.txt`.

use std::{collections::HashMap, fmt::Write};

const HEADER: &str = include_str!("../../../vipl/include/vipl.h");
const PAGES: &str = include_str!("../../../vipl/man/pages.txt");

/// A page as it is written.
#[derive(Debug, Default)]
struct Page<'a> {
    name: &'a str,
    brief: &'a str,
    text: Vec<&'a str>,
    returns: Vec<&'a str>,
    status: Vec<&'a str>,
    example: Vec<&'a str>,
    see: Vec<&'a str>,
}

/// What the lines that follow belong to.
#[derive(Debug, Clone, Copy)]
enum Part {
    Text,
    Returns,
    Status,
    Example,
    Texts,
}

/// All pages: names of files, and what is in them.
pub fn pages() -> Vec<(String, String)> {
    let (pages, texts) = parse(PAGES);
    pages.iter().map(|page| (format!("{}.3", page.name), page.render(&texts))).collect()
}

fn parse(source: &str) -> (Vec<Page<'_>>, HashMap<&str, &str>) {
    let (mut pages, mut texts, mut part) = (Vec::<Page>::new(), HashMap::new(), Part::Text);
    for line in source.lines().filter(|line| !line.starts_with('#')) {
        if let Some((name, brief)) = line.strip_prefix("page ").and_then(|line| line.split_once(": ")) {
            pages.push(Page { name, brief, ..Page::default() });
            continue;
        }
        let Some(page) = pages.last_mut() else { continue };
        match (line, part) {
            ("text", _) => part = Part::Text,
            ("returns", _) => part = Part::Returns,
            ("status", _) => part = Part::Status,
            ("example", _) => part = Part::Example,
            ("texts", _) => part = Part::Texts,
            _ if line.starts_with("see ") => page.see = line.split(' ').skip(1).collect(),
            (_, Part::Text) => page.text.push(line),
            ("", _) => {}
            (_, Part::Returns) => page.returns.push(line),
            (_, Part::Status) => page.status.push(line),
            (_, Part::Example) => page.example.push(line),
            (_, Part::Texts) => drop(line.split_once(' ').map(|(name, text)| texts.insert(name, text))),
        }
    }
    (pages, texts)
}

impl Page<'_> {
    fn render(&self, texts: &HashMap<&str, &str>) -> String {
        let (name, upper) = (self.name, self.name.to_uppercase());
        let mut out = format!(".TH {upper} 3 \"\" \"Sidestep\" \"Library Functions\"\n.SH NAME\n");
        let _ = writeln!(out, "{name} \\- {}", self.brief);
        let synopsis = prototype(HEADER, name).unwrap_or_default().replace(name, &format!("\\fB{name}\\fP"));
        let _ = writeln!(out, ".SH SYNOPSIS\n.nf\n\\fB#include <vipl.h>\\fP\n\n{synopsis}\n.fi\n.SH DESCRIPTION");
        for line in self.text.join("\n").trim().lines() {
            out += &if line.is_empty() { ".PP\n".into() } else { prose(line) };
        }
        for (title, entries) in [("RETURN VALUE", &self.returns), ("STATUS", &self.status)] {
            if entries.is_empty() {
                continue;
            }
            let _ = writeln!(out, ".SH {title}");
            for entry in entries.iter() {
                let (name, text) = entry.split_once(' ').unwrap_or((entry, texts.get(entry).unwrap_or(&"")));
                let _ = write!(out, ".TP\n.B {name}\n{}", prose(text));
            }
        }
        let example = escape(&self.example.join("\n"));
        let _ = writeln!(out, ".SH EXAMPLE\n.nf\n{example}\n.fi\n.SH SEE ALSO\n.BR vipl (3),");
        let see: Vec<String> = self.see.iter().map(|name| format!(".BR {name} (3)")).collect();
        out + &see.join(",\n") + "\n"
    }
}

/// The declaration of a call.
fn prototype<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let kinds = ["VIP_RETURN ", "VIP_PVOID ", "void "];
    let at = kinds.iter().find_map(|kind| header.find(&format!("\n{kind}{name}(")))?;
    header[at + 1..].split_inclusive(';').next()
}

/// A line of text, in which names of the library are bold.
fn prose(line: &str) -> String {
    let bold = |word: &str| {
        let end = word.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(word.len());
        let (name, rest) = word.split_at(end);
        let known = name.starts_with("Vip") && name.len() > 3 || name.starts_with("VIP_");
        if known { format!("\\fB{name}\\fP{rest}") } else { word.to_string() }
    };
    let words: Vec<String> = escape(line).split(' ').map(bold).collect();
    let line = words.join(" ");
    // A line that begins with one of these would be a request.
    let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
    format!("{guard}{line}\n")
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\e")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> Vec<&'static str> {
        let calls = HEADER.lines().filter(|line| !line.starts_with([' ', '/', '#']) && !line.starts_with("typedef"));
        calls
            .filter_map(|line| line.split_once("(")?.0.split(' ').nth(1))
            .filter(|name| name.starts_with("Vip"))
            .collect()
    }

    #[test]
    fn every_call_has_a_page_and_every_page_a_call() {
        let (pages, _) = parse(PAGES);
        let names: Vec<&str> = pages.iter().map(|page| page.name).collect();
        assert_eq!(names.len(), declared().len());
        for name in declared() {
            assert!(names.contains(&name), "{name} has no page");
        }
        for page in &pages {
            assert!(prototype(HEADER, page.name).is_some(), "{} is not in the header", page.name);
        }
    }

    #[test]
    fn pages_are_complete() {
        let (pages, texts) = parse(PAGES);
        let names: Vec<&str> = pages.iter().map(|page| page.name).collect();
        for page in &pages {
            assert!(!page.text.is_empty() && !page.example.is_empty() && !page.see.is_empty(), "{page:?}");
            assert!(page.see.iter().all(|name| names.contains(name)), "{page:?}");
            let returns_code = prototype(HEADER, page.name).unwrap().starts_with("VIP_RETURN");
            assert_eq!(returns_code, !page.returns.is_empty(), "{page:?}");
            for entry in page.returns.iter().chain(&page.status) {
                let name = entry.split(' ').next().unwrap();
                assert!(HEADER.contains(&format!("{name} ")) || HEADER.contains(&format!("{name},")), "{name}");
                assert!(entry.contains(' ') || texts.contains_key(entry), "{entry} of {} has no text", page.name);
            }
        }
    }
}
