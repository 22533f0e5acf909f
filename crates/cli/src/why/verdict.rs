//! An answer: the sentence, the facts, and what would change it.

use std::fmt;

use sidestep_sockets::{config::config, reason::Reason};

use crate::{census::process, run::program::Program};

/// Why something is where it is.
#[derive(Debug, Clone)]
pub struct Verdict {
    who: String,
    reason: Reason,
    sentence: &'static str,
    facts: Vec<(&'static str, String)>,
}

impl Verdict {
    /// Who is on its path for this reason.
    pub fn new(who: String, reason: Reason) -> Verdict {
        Verdict { who, reason, sentence: reason.sentence(), facts: Vec::new() }
    }

    /// The same of somebody else.
    pub fn of(self, who: String) -> Verdict {
        Verdict { who, ..self }
    }

    /// With another sentence than that of the reason.
    pub fn sentence(self, sentence: &'static str) -> Verdict {
        Verdict { sentence, ..self }
    }

    /// What can be said of something of a process that no connection under Sidestep is known of.
    pub fn of_process(who: String, pid: u32) -> Verdict {
        let settings = process::settings(pid);
        match process::has_library(pid) {
            Some(true) if settings.wrong.is_some() => {
                let wrong = settings.wrong.map(|wrong| wrong.to_string()).unwrap_or_default();
                Verdict::new(who, Reason::WrongOption).fact("wrong is", wrong)
            }
            Some(true) if settings.directory != config().directory => Verdict::new(who, Reason::Young)
                .sentence("runs under Sidestep with another directory")
                .fact("directory", settings.directory),
            Some(true) => {
                Verdict::new(who, Reason::Young).sentence("runs under Sidestep, and nothing is connected yet")
            }
            Some(false) => match (Program { path: format!("/proc/{pid}/exe").into() }).loading().why_not() {
                Some(why) => Verdict::new(who, Reason::NotLoadable).fact("it", why),
                None => Verdict::new(who, Reason::NotLoaded),
            },
            None => Verdict::new(who, Reason::NotLoaded)
                .sentence("belongs to another user, who alone can see whether it runs under Sidestep"),
        }
    }

    /// With one more fact.
    pub fn fact(mut self, name: &'static str, fact: impl ToString) -> Verdict {
        self.facts.push((name, fact.to_string()));
        self
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}: {}.", self.who, self.sentence)?;
        for (name, fact) in &self.facts {
            writeln!(out, "  {name:<10} {fact}")?;
        }
        writeln!(out, "  {:<10} {} ({})", "reason", self.reason.name(), self.reason.detail())?;
        writeln!(out, "  {:<10} {}", "to change", self.reason.remedy())
    }
}
