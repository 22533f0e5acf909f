//! The manual pages of extended sockets: one for each call of `sidestep.h`, made of the comment that stands before it there.

use super::errors::Errors;

/// The header.
pub const HEADER: &str = include_str!("../../../preload/include/sidestep.h");

/// A call, as the header declares and describes it.
#[derive(Debug)]
struct Call<'a> {
    name: &'a str,
    declaration: &'a str,
    text: String,
}

/// All pages: names of files, and what is in them.
pub fn pages() -> Vec<(String, String)> {
    let (calls, errors) = (calls(), Errors::read());
    let all: Vec<&str> = calls.iter().map(|call| call.name).collect();
    let overview = format!(
        ".TH SIDESTEP.H 3 \"\" \"Sidestep\" \"Library Functions\"\n.SH NAME\nsidestep.h \\- one-sided operations on a TCP \
         socket\n.SH SYNOPSIS\n.nf\n\\fB#include <sidestep.h>\\fP\n.fi\n.SH DESCRIPTION\n{}.SH ERRORS\nThe errors of each call \
         are on its page. Those of a completion:\n{}.SH SEE ALSO\n{}\n",
        introduction(),
        errors.list("completion"),
        references(&all)
    );
    let mut pages = vec![("sidestep.h.3".to_string(), overview)];
    pages.extend(calls.iter().map(|call| (format!("{}.3", call.name), call.render(&errors))));
    pages
}

impl Call<'_> {
    fn render(&self, errors: &Errors) -> String {
        let (name, upper) = (self.name, self.name.to_uppercase());
        let brief = self.text.split(['.', ':', ';', ',']).next().unwrap_or_default().to_lowercase();
        let declaration = self.declaration.replace(name, &format!("\\fB{name}\\fP"));
        format!(
            ".TH {upper} 3 \"\" \"Sidestep\" \"Library Functions\"\n.SH NAME\n{name} \\- {brief}\n.SH SYNOPSIS\n.nf\n\\fB#include \
             <sidestep.h>\\fP\n\n{declaration}\n.fi\n.SH DESCRIPTION\n{}\n{}.SH SEE ALSO\n{}\n",
            self.text,
            errors.sections(name),
            references(&["sidestep.h"])
        )
    }
}

fn references(names: &[&str]) -> String {
    let all: Vec<String> = names.iter().map(|name| format!(".BR {name} (3)")).collect();
    all.join(",\n")
}

/// What stands at the beginning of the header.
fn introduction() -> String {
    let comment = HEADER.split("*/").next().unwrap_or_default();
    plain(comment) + "\n"
}

/// Every declaration with the comment before it.
fn calls() -> Vec<Call<'static>> {
    let mut calls = Vec::new();
    let mut rest = HEADER;
    while let Some((_, after)) = rest.split_once("\n/* ") {
        let Some((comment, after)) = after.split_once("*/\n") else { break };
        rest = after;
        let declaration = after.split("\n").next().unwrap_or_default();
        let named = declaration.split('(').next().and_then(|head| head.rsplit([' ', '*']).next());
        let name = named.filter(|name| name.starts_with("ss_") && declaration.ends_with(");"));
        calls.extend(name.map(|name| Call { name, declaration, text: plain(comment) }));
    }
    calls
}

/// The text of a comment.
fn plain(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches("/*").trim_start_matches('*').trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declared_call_has_a_page() {
        let declared = HEADER.lines().filter(|line| line.ends_with(");") && !line.starts_with([' ', '#']));
        let calls = calls();
        assert_eq!(declared.count(), calls.len(), "{calls:#?}");
        for call in &calls {
            assert!(call.text.ends_with('.'), "{call:?}");
            assert!(call.render(&Errors::read()).lines().all(|line| !line.starts_with('\'')), "{call:?}");
        }
        assert_eq!(pages().len(), calls.len() + 1);
    }
}
