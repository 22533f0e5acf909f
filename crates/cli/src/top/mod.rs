//! `sidestep top`: processes, sockets and rates, live in the terminal.

mod app;
mod draw;

use std::{io::IsTerminal, sync::mpsc, thread, time::Duration};

use anyhow::{Result, bail};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::{census::Census, options::Top};

use app::App;

/// Shows it until the user has seen enough.
pub fn run(options: Top) -> Result<()> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("`sidestep top` needs a terminal; `sidestep stat --watch` prints to anything");
    }
    let (sender, looks) = mpsc::sync_channel(1);
    let pause = options.interval;
    // Looking takes a while where there are many processes; keys are answered meanwhile. It ends with the process.
    thread::spawn(move || {
        while sender.send(Census::take()).is_ok() {
            thread::sleep(pause);
        }
    });
    let mut terminal = ratatui::init();
    let outcome = show(&mut terminal, App::new(options.sort, options.filter), &looks);
    ratatui::restore();
    outcome
}

/// Time between two looks at what has arrived.
const TICK: Duration = Duration::from_millis(100);

fn show(terminal: &mut ratatui::DefaultTerminal, mut app: App, looks: &mpsc::Receiver<Census>) -> Result<()> {
    loop {
        while let Ok(census) = looks.try_recv() {
            app.see(census);
        }
        terminal.draw(|frame| draw::draw(frame, &mut app))?;
        if event::poll(TICK)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && app.press(key)
        {
            return Ok(());
        }
    }
}
