//! What other programs have to know of the options: completions for shells and manual pages, made from the option table.

use std::io;

use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

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
    // `help` is a word of the command line that has no page of its own.
    let mut whole = public().disable_help_subcommand(true);
    whole.build();
    let mut pages = vec![("sidestep.1".to_owned(), page(&whole)?)];
    add_pages(&whole, "sidestep", &mut pages)?;
    Ok(pages)
}

/// Those of the commands of a command, which has this name.
fn add_pages(whole: &Command, name: &str, pages: &mut Vec<(String, String)>) -> Result<()> {
    for command in whole.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("{name}-{}", command.get_name());
        pages.push((format!("{name}.1"), page(command)?));
        add_pages(command, &name, pages)?;
    }
    Ok(())
}

fn page(command: &Command) -> Result<String> {
    let mut bytes = Vec::new();
    write_page(command, &mut bytes).context("a manual page is written to memory")?;
    String::from_utf8(bytes).context("a manual page is text")
}

fn write_page(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let page = Man::new(command.clone().version(env!("CARGO_PKG_VERSION"))).manual("Sidestep");
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    if let Some(text) = command.get_after_long_help() {
        sections(&text.to_string()).to_writer(out)?;
    }
    page.render_version_section(out)
}

/// What stands below the options of a command's help, as sections of a page: each begins with its name and a colon.
fn sections(text: &str) -> Roff {
    let mut page = Roff::default();
    for line in text.lines() {
        match line.strip_suffix(':') {
            Some(name) if !line.starts_with(' ') => {
                page.control("SH", [name.to_uppercase().as_str()]).control("nf", []);
            }
            _ => _ = page.text([roman(line)]),
        }
    }
    page.control("fi", []);
    page
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

    /// Every page that a page names is there, and each section has a name of its own.
    #[test]
    fn pages_are_whole() {
        let pages = pages().expect("pages");
        let named = |text: &str| {
            let words = text.split(|letter: char| letter.is_whitespace()).map(|word| word.replace("\\-", "-"));
            words.filter_map(|word| Some(word.strip_suffix("(1)")?.to_owned())).collect::<Vec<_>>()
        };
        let all: Vec<String> = pages.iter().flat_map(|(_, text)| named(text)).collect();
        assert!(all.len() > 10, "{all:?}");
        for name in &all {
            assert!(pages.iter().any(|(file, _)| *file == format!("{name}.1")), "{name}(1) is not there");
        }
        for (page, section) in [
            ("sidestep-why.1", "EXAMPLES"),
            ("sidestep-tap.1", "EXAMPLES"),
            ("sidestep-stat.1", "FILTERS"),
            ("sidestep-run.1", "RULES"),
            ("sidestep-run.1", "\"EXIT STATUS\""),
        ] {
            let text = &pages.iter().find(|(file, _)| file == page).expect(page).1;
            assert!(text.contains(&format!("\n.SH {section}\n")), "{section} in {text}");
        }
        for (page, text) in &pages {
            assert!(!text.contains("EXTRA"), "{page}");
            // None is one of the formatter's requests.
            let requests = text.lines().filter(|line| line.starts_with(['.', '\'']));
            let known = [".TH", ".SH", ".TP", ".PP", ".RS", ".RE", ".IP", ".nf", ".fi", ".ie", ".el", ".br"];
            for line in requests {
                assert!(known.iter().any(|request| line.starts_with(request)), "{page}: {line}");
            }
        }
    }
}
