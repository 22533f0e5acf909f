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
    /// What would change it, where the reason does not say that.
    remedy: Option<&'static str>,
    facts: Vec<(&'static str, String)>,
}

impl Verdict {
    /// Who is on its path for this reason.
    pub fn new(who: String, reason: Reason) -> Verdict {
        Verdict { who, reason, sentence: reason.sentence(), remedy: None, facts: Vec::new() }
    }

    /// The same of somebody else.
    pub fn of(self, who: String) -> Verdict {
        Verdict { who, ..self }
    }

    /// With another sentence than that of the reason.
    pub fn sentence(self, sentence: &'static str) -> Verdict {
        Verdict { sentence, ..self }
    }

    /// Something that has no name among the reasons of connections, and what would change it.
    fn nameless(who: String, sentence: &'static str, remedy: &'static str) -> Verdict {
        Verdict { sentence, remedy: Some(remedy), ..Verdict::new(who, Reason::Young) }
    }

    /// What can be said of something of a process that no connection under Sidestep is known of.
    pub fn of_process(who: String, pid: u32) -> Verdict {
        let settings = process::settings(pid);
        match process::has_library(pid) {
            Some(true) if settings.wrong.is_some() => {
                let wrong = settings.wrong.map(|wrong| wrong.to_string()).unwrap_or_default();
                Verdict::new(who, Reason::WrongOption).fact("wrong is", wrong)
            }
            Some(true) if settings.directory != config().directory && process::shows_settings(pid) => {
                Verdict::nameless(
                    who,
                    "runs under Sidestep with another directory",
                    "Start both programs, and ask, with the same --directory (SIDESTEP_DIR).",
                )
                .fact("directory", settings.directory)
            }
            Some(true) => Verdict::nameless(
                who,
                "runs under Sidestep, so its connections with programs that do, too, are accelerated",
                "Nothing has to be changed; connect a program that runs under Sidestep.",
            ),
            Some(false) => match (Program { path: format!("/proc/{pid}/exe").into() }).loading().why_not() {
                Some(why) => Verdict::new(who, Reason::NotLoadable).fact("it", why),
                None => Verdict::new(who, Reason::NotLoaded),
            },
            None => Verdict::nameless(
                who,
                "belongs to another user, who alone can see whether it runs under Sidestep",
                "Ask as that user or as root.",
            ),
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
        if self.remedy.is_none() {
            writeln!(out, "  {:<10} {} ({})", "reason", self.reason.name(), self.reason.detail())?;
        }
        writeln!(out, "  {:<10} {}", "to change", self.remedy.unwrap_or_else(|| self.reason.remedy()))
    }
}
