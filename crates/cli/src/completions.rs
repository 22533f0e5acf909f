//! What other programs have to know of the options: completions for shells and manual pages, made from the option table.

use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::options::Options;

/// Options of `sidestep completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Prints the completions of a shell.
pub fn run(options: &Completions) -> Result<()> {
    print!("{}", script(options.shell));
    Ok(())
}

/// Where shells look for completions, below a prefix, and what is there.
pub fn scripts() -> Vec<(&'static str, String)> {
    vec![
        ("share/bash-completion/completions/sidestep", script(Shell::Bash)),
        ("share/zsh/site-functions/_sidestep", script(Shell::Zsh)),
        ("share/fish/vendor_completions.d/sidestep.fish", script(Shell::Fish)),
    ]
}

/// The manual pages of the program and of each of its commands: names of files, and what is in them.
pub fn pages() -> Result<Vec<(String, String)>> {
    let mut whole = public();
    whole.build();
    let mut pages = vec![("sidestep.1".to_owned(), page(&whole)?)];
    for command in whole.get_subcommands().filter(|command| command.get_name() != "help") {
        pages.push((format!("sidestep-{}.1", command.get_name()), page(command)?));
    }
    Ok(pages)
}

fn page(command: &Command) -> Result<String> {
    let mut bytes = Vec::new();
    let command = command.clone().version(env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command).manual("Sidestep").render(&mut bytes).context("a manual page is text")?;
    String::from_utf8(bytes).context("a manual page is text")
}

fn script(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut public(), "sidestep", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The program as people see it: without the commands that it starts itself.
fn public() -> Command {
    let whole = Options::command();
    let about = whole.get_about().cloned().unwrap_or_default();
    let visible: Vec<Command> = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    Command::new("sidestep")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .subcommand_required(true)
        .subcommands(visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_completed_and_has_a_page() {
        let pages = pages().expect("pages");
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for command in ["run", "stat", "why", "doctor", "bench", "init-service"] {
            assert!(names.contains(&format!("sidestep-{command}.1").as_str()), "{command} in {names:?}");
            for (place, script) in scripts() {
                assert!(script.contains(command), "{command} in {place}");
            }
        }
        assert!(!names.iter().any(|name| name.contains("worker") || name.contains("-end")), "{names:?}");
        assert!(scripts().iter().all(|(_, script)| !script.contains("bench-worker")));
        let run = pages.iter().find(|(name, _)| name == "sidestep-run.1").expect("a page of run");
        assert!(run.1.contains("carrier") && run.1.contains(".TH"), "{}", run.1);
    }
}
