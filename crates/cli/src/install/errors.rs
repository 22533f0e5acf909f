//! What the calls of `sidestep.h` return, and with which errors, for their manual pages: made of `crates/preload/man/errors.txt`.

use std::{collections::HashMap, fmt::Write};

const SOURCE: &str = include_str!("../../../preload/man/errors.txt");

/// What is said of calls, by name; `completion` is one of them.
#[derive(Debug, Default)]
pub struct Errors {
    calls: HashMap<&'static str, Said>,
    texts: HashMap<&'static str, &'static str>,
}

/// What is said of a call.
#[derive(Debug, Clone, Default)]
struct Said {
    returns: &'static str,
    /// Each is a name, or a name and a text.
    errors: Vec<&'static str>,
}

impl Errors {
    /// All that is said.
    pub fn read() -> Errors {
        let (mut errors, mut named, mut in_texts) = (Errors::default(), Vec::new(), false);
        for line in SOURCE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split_once(' ') {
                _ if line == "texts" => in_texts = true,
                Some((name, text)) if in_texts => _ = errors.texts.insert(name, text),
                Some(("call", names)) => {
                    named = names.split(' ').collect();
                    errors.calls.extend(named.iter().map(|name| (*name, Said::default())));
                }
                Some(("returns", text)) => errors.of(&named, |said| said.returns = text),
                _ => errors.of(&named, |said| said.errors.push(line)),
            }
        }
        errors
    }

    fn of(&mut self, names: &[&'static str], act: impl Fn(&mut Said)) {
        names.iter().filter_map(|name| self.calls.get_mut(name).map(&act)).for_each(drop);
    }

    /// The sections of a call's page.
    pub fn sections(&self, name: &str) -> String {
        let Some(said) = self.calls.get(name) else { return String::new() };
        let mut out = format!(".SH RETURN VALUE\n{}\n", said.returns);
        if !said.errors.is_empty() {
            out += "On failure \\fIerrno\\fP is set, and \\fBss_error\\fP(3) says in a sentence what happened.\n.SH ERRORS\n";
            out += &self.list(name);
        }
        out
    }

    /// The errors of a call, each with what it means.
    pub fn list(&self, name: &str) -> String {
        let mut out = String::new();
        for error in self.calls.get(name).map_or(&[][..], |said| &said.errors) {
            let (error, text) = error.split_once(' ').unwrap_or((error, self.texts.get(error).unwrap_or(&"")));
            let number = error.split('-').next().unwrap_or(error);
            let _ = write!(out, ".TP\n.B {number}\n{text}\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::install::calls::HEADER;

    #[test]
    fn every_call_is_told_of_once_and_every_error_has_a_text() {
        let errors = Errors::read();
        let declared = HEADER.lines().filter(|line| line.ends_with(");") && line.contains("ss_"));
        let names = declared.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next());
        let names: HashSet<&str> = names.chain(["completion"]).collect();
        assert_eq!(errors.calls.keys().copied().collect::<HashSet<_>>(), names);
        let mut used = HashSet::new();
        for (name, said) in &errors.calls {
            assert!(!said.returns.is_empty(), "{name}");
            for error in &said.errors {
                let known = error.contains(' ') || errors.texts.contains_key(error);
                assert!(known, "{name}: {error} has no text");
                used.insert(*error);
            }
            let mut sorted = said.errors.clone();
            sorted.sort_unstable_by_key(|error| error.split([' ', '-']).next());
            sorted.dedup_by_key(|error| error.split([' ', '-']).next());
            assert_eq!(sorted, said.errors, "{name}: in order, each once");
        }
        for text in errors.texts.keys() {
            assert!(used.contains(text), "{text} is of no call");
        }
        assert!(errors.sections("ss_queue_wait").contains(".B EINTR\nA signal"));
        assert!(errors.sections("ss_disable").contains(".B ENOTCONN\nThe descriptor"));
    }
}
