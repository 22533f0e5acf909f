//! `sidestep top` in a real terminal, which tmux has.

use std::{
    path::PathBuf,
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use sidestep_testkit::process::PATIENCE;

use super::stage::{SIDESTEP, Stage, wait_until};

/// A terminal with one program in it, until it is dropped.
pub struct Terminal {
    socket: PathBuf,
    stage: PathBuf,
}

impl Terminal {
    /// Starts `sidestep` with these arguments in a terminal of this size; `None` if there is no tmux.
    pub fn start(stage: &Stage, columns: u32, lines: u32, arguments: &str) -> Option<Terminal> {
        let terminal = Terminal { socket: stage.0.join("tmux"), stage: stage.0.clone() };
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let line = format!("exec {SIDESTEP} {arguments}");
        let size = ["new-session", "-d", "-x", &columns, "-y", &lines, &line];
        if terminal.tmux(&size).is_some_and(|output| output.status.success()) {
            return Some(terminal);
        }
        eprintln!("left out: no tmux");
        None
    }

    fn tmux(&self, arguments: &[&str]) -> Option<Output> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(arguments).env("SIDESTEP_DIR", &self.stage);
        command.output().ok()
    }

    fn asked(&self, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&self.tmux(arguments).expect("tmux runs").stdout).into_owned()
    }

    /// The program's process.
    pub fn pid(&self) -> u32 {
        self.asked(&["display-message", "-p", "#{pane_pid}"]).trim().parse().expect("a number")
    }

    /// What the terminal shows.
    pub fn screen(&self) -> String {
        self.asked(&["capture-pane", "-p"])
    }

    /// The first screen with this on it.
    pub fn wait_for(&self, what: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if screen.contains(what) {
                return screen;
            }
            assert!(Instant::now() < end && self.runs(), "no {what} in\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses these keys.
    pub fn press(&self, keys: &[&str]) {
        self.asked(&[&["send-keys"], keys].concat());
    }

    /// Whether the program runs.
    pub fn runs(&self) -> bool {
        self.tmux(&["has-session"]).is_some_and(|output| output.status.success())
    }

    /// The program must end by itself.
    pub fn wait_for_end(&self) {
        wait_until("the end", || !self.runs());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
