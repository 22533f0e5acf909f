//! An answer: the sentence, the facts, and what would change it.

use std::fmt;

use sidestep_sockets::{
    config::{Config, config},
    reason::Reason,
};

use crate::{
    census::{
        owner,
        process::{self, Library},
        tables::{Row, State},
    },
    run::program::Program,
};

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
        match process::library(pid) {
            Some(Library::Loaded) => Verdict::of_loaded(who, process::settings(pid), process::shows_settings(pid)),
            Some(Library::Absent) => match (Program { path: format!("/proc/{pid}/exe").into() }).loading().why_not() {
                Some(why) => Verdict::new(who, Reason::NotLoadable).fact("it", why),
                None => Verdict::new(who, Reason::NotLoaded),
            },
            Some(Library::Kernel) => Verdict::nameless(
                who,
                "is a thread of the kernel, which loads no library",
                "Nothing can; its connections stay on TCP.",
            ),
            Some(Library::OfOther(user)) => Verdict::of_other(who, user),
            Some(Library::Closed) => Verdict::closed(who),
            None => Verdict::nameless(who, "has ended", "Nothing can: it has no connection any more."),
        }
    }

    /// A process with the library and these settings.
    fn of_loaded(who: String, settings: Config, are_shown: bool) -> Verdict {
        match settings.wrong {
            Some(wrong) => Verdict::new(who, Reason::WrongOption).fact("wrong is", wrong),
            None if settings.directory != config().directory && are_shown => Verdict::nameless(
                who,
                "runs under Sidestep with another directory",
                "Start both programs, and ask, with the same --directory (SIDESTEP_DIR).",
            )
            .fact("directory", settings.directory),
            None => Verdict::nameless(
                who,
                "runs under Sidestep, so its connections with programs that do, too, are accelerated",
                "Nothing has to be changed; connect a program that runs under Sidestep.",
            ),
        }
    }

    /// Something of another user's, which only that user and root can look into.
    pub fn of_other(who: String, user: u32) -> Verdict {
        Verdict::nameless(
            who,
            "belongs to another user, and nobody else but root can see whether it runs under Sidestep",
            "Ask as that user or as root.",
        )
        .fact("user", owner::shown(user))
    }

    /// A process that its own user, or root, may not look into.
    fn closed(who: String) -> Verdict {
        let sentence = "does not let this user see whether it runs under Sidestep";
        match rustix::process::geteuid().is_root() {
            true => Verdict::nameless(who, sentence, "Ask as a root that has CAP_SYS_PTRACE, outside of a container.")
                .fact("", "it has capabilities that this root does not have"),
            false => Verdict::nameless(who, sentence, "Ask as root.")
                .fact("", "the kernel closes programs that keep secrets, or have rights of their own, to their user"),
        }
    }

    /// A socket that the kernel shows, in no process that this user can see.
    pub fn of_nobody(who: String, row: &Row) -> Verdict {
        match (row.inode, row.state) {
            (0, State::Connected) => {
                Verdict::nameless(who, "has not been taken by its program yet", "Wait until the program accepts it.")
            }
            (0, _) => Verdict::nameless(
                who,
                "is closed, and the kernel alone ends it",
                "Nothing has to be changed: no program has it any more.",
            ),
            _ if row.user != rustix::process::geteuid().as_raw() && !rustix::process::geteuid().is_root() => {
                Verdict::of_other(who, row.user)
            }
            _ => Verdict::nameless(
                who,
                "is in no process that can be looked into from here",
                "Ask as root, and where the process is shown: outside of, or within, its container.",
            )
            .fact("", "it is in another container, in a process that is closed to this user, or in the kernel"),
        }
    }

    /// With one more fact.
    pub fn fact(mut self, name: &'static str, fact: impl ToString) -> Verdict {
        self.facts.push((name, fact.to_string()));
        self
    }
}

/// What keeps a process from being looked into, for a message; `None` if nothing does.
pub fn hindrance(pid: u32) -> Option<String> {
    match process::library(pid)? {
        Library::OfOther(user) => {
            Some(format!("belongs to another user, {}: ask as that user or as root", owner::shown(user)))
        }
        Library::Closed if rustix::process::geteuid().is_root() => {
            Some("has capabilities that this root does not have: ask as one that has CAP_SYS_PTRACE".to_owned())
        }
        Library::Closed => Some("is closed to its own user: ask as root".to_owned()),
        Library::Loaded | Library::Absent | Library::Kernel => None,
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
