//! What `top` looks like, from 80 columns and 24 lines on; smaller terminals show less of it.

use std::{cmp::Reverse, collections::HashMap};

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::{Block, Clear, Paragraph, Row, Sparkline, Table},
};

use clap::ValueEnum;
use sidestep_sockets::registry::Totals;

use super::app::{App, LOOKS};
use crate::stat::{
    select::{self, SortKey},
    table::{age, bytes},
};

/// Draws everything.
pub fn draw(frame: &mut Frame, app: &mut App) {
    let [head, graph, body, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Length(3), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(app)), head);
    let history: Vec<u64> = app.history.iter().rev().take(graph.width.into()).rev().copied().collect();
    frame.render_widget(Sparkline::default().data(history), graph);
    let rows = usize::from(body.height).saturating_sub(1);
    let lines = if app.by_process { app.shown.totals().len() } else { app.shown.sockets.len() };
    app.top = app.top.min(lines.saturating_sub(rows));
    match app.by_process {
        true => processes(frame, app, body, rows),
        false => sockets(frame, app, body, rows),
    }
    if lines == 0 && app.has_looked() {
        let below = Rect { y: body.y + 1, height: body.height.saturating_sub(1), ..body };
        frame.render_widget(Paragraph::new(nothing(app)), below);
    }
    frame.render_widget(Line::from(footing(app)), foot);
    if app.help {
        help(frame);
    }
}

fn heading(app: &App) -> Vec<Line<'static>> {
    let shown = &app.shown;
    let carried = shown.sockets.iter().filter(|socket| socket.record.on_carrier != (false, false)).count();
    let rate = shown.sockets.iter().fold(0, |sum: u64, socket| sum.saturating_add(app.rate(socket)));
    let sort = app.sort.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let paused = if app.paused { "   PAUSED" } else { "" };
    let filter = if app.filter_text.is_empty() { String::new() } else { format!("   filter: {}", app.filter_text) };
    vec![
        Line::from(format!(
            "{} sockets of {} processes, {carried} on carriers   {}/s",
            shown.sockets.len(),
            shown.totals().len(),
            bytes(rate)
        )),
        Line::from(format!("sorted by {sort}{filter}{paused}")),
    ]
}

/// Why there are no lines.
fn nothing(app: &App) -> &'static str {
    match app.filter_text.is_empty() {
        true => "nothing runs under `sidestep run`, or nothing is connected",
        false => "nothing fits the filter: / and Enter take it away",
    }
}

fn footing(app: &App) -> String {
    match &app.typed {
        Some(typed) => format!("filter: {typed}_"),
        None if !app.complaint.is_empty() => app.complaint.clone(),
        None => "q quit  s sort  / filter  p processes  space pause  h help".to_owned(),
    }
}

/// From this width on there is room for what happened lately, and for more figures.
const WIDE: u16 = 130;
/// From this width on bytes that were not read have room, too.
const WIDEST: u16 = 160;

fn sockets(frame: &mut Frame, app: &App, area: Rect, rows: usize) {
    let (wide, widest) = (area.width >= WIDE, area.width >= WIDEST);
    // In 80 columns the longest name of a reason has room behind them.
    let mut widths = vec![7, if wide { 15 } else { 11 }, if wide { 5 } else { 4 }, 21, 9, 10];
    let mut names = vec!["PID", "PROGRAM", "FD", "REMOTE", "PATH", "PER SECOND"];
    if wide {
        widths.extend([LOOKS as u16, 10, 10, 7]);
        names.extend([LATELY, "READ", "WRITTEN", "AGE"]);
    }
    if widest {
        widths.push(10);
        names.push("UNREAD");
    }
    names.push("WHY");
    let room = usize::from(area.width).saturating_sub(widths.iter().map(|width| usize::from(*width) + 1).sum());
    let row = |socket: &crate::census::Sighting| {
        let record = &socket.record;
        let mut cells = vec![
            record.pid.to_string(),
            app.shown.program(record.pid).to_owned(),
            record.fd.to_string(),
            record.key.remote.to_string(),
            socket.paths(),
            bytes(app.rate(socket)),
        ];
        if wide {
            let lately: Vec<u64> = app.lately(socket).collect();
            cells.extend([
                bars(&lately),
                bytes(record.read.bytes()),
                bytes(record.written.bytes()),
                socket.age(app.shown.at).map_or("-".to_owned(), age),
            ]);
        }
        if widest {
            cells.push(socket.unread().map_or("-".to_owned(), bytes));
        }
        let why = socket.why();
        cells.push(if wide && why.chars().count() <= room { why } else { record.reason.name() }.to_owned());
        Row::new(cells)
    };
    // Only what is seen is made: there may be very many.
    let seen = app.shown.sockets.iter().skip(app.top).take(rows).map(row);
    table(frame, area, names, widths, seen.collect());
}

/// The heading of the last looks.
const LATELY: &str = "LAST LOOKS";

/// Bytes a second at the last looks as bars, the present one at the right end, the largest as high as a line.
fn bars(rates: &[u64]) -> String {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = rates.iter().copied().max().unwrap_or(0).max(1);
    let bar = |rate: &u64| HEIGHTS[(u128::from(*rate) * 8).div_ceil(u128::from(most)) as usize];
    let bars: String = rates.iter().map(bar).collect();
    format!("{bars:>LOOKS$}")
}

/// What the sockets of a process do together.
#[derive(Default)]
struct Sum {
    /// What the process is sorted by.
    weight: u64,
    rate: u64,
    /// Bytes a second at the last looks, the present one last.
    lately: [u64; LOOKS],
    sockets: usize,
    carried: usize,
}

fn processes(frame: &mut Frame, app: &App, area: Rect, rows: usize) {
    let mut sums = HashMap::<u32, Sum>::new();
    for socket in &app.shown.sockets {
        let (sum, rate) = (sums.entry(socket.record.pid).or_default(), app.rate(socket));
        let weight = select::weight(socket, app.sort, app.shown.at, rate);
        // The ages of sockets add up to nothing.
        sum.weight = if app.sort == SortKey::Age { sum.weight.max(weight) } else { sum.weight.saturating_add(weight) };
        sum.rate = sum.rate.saturating_add(rate);
        for (sum, rate) in sum.lately.iter_mut().rev().zip(app.lately(socket).rev()) {
            *sum = sum.saturating_add(rate);
        }
        sum.sockets += 1;
        sum.carried += usize::from(socket.record.on_carrier != (false, false));
    }
    let mut all: Vec<_> = app.shown.totals().into_iter().collect();
    all.sort_by_key(|(pid, _)| (Reverse(sums[pid].weight), *pid));
    let wide = area.width >= WIDE;
    let row = |(pid, totals): &(u32, Totals)| {
        let sum = &sums[pid];
        let mut cells = vec![
            pid.to_string(),
            app.shown.program(*pid).to_owned(),
            sum.sockets.to_string(),
            sum.carried.to_string(),
            bytes(sum.rate),
        ];
        if wide {
            cells.push(bars(&sum.lately));
        }
        cells.extend([bytes(totals.carried), bytes(totals.tcp)]);
        Row::new(cells)
    };
    let (mut names, mut widths) = (vec!["PID", "PROGRAM", "SOCKETS", "CARRIED", "PER SECOND"], vec![7, 15, 8, 8, 12]);
    if wide {
        names.push(LATELY);
        widths.push(LOOKS as u16);
    }
    names.extend(["BY CARRIER", "BY TCP"]);
    widths.push(11);
    let seen = all.iter().skip(app.top).take(rows).map(row);
    table(frame, area, names, widths, seen.collect());
}

/// A table whose last column takes what is left.
fn table(frame: &mut Frame, area: Rect, names: Vec<&'static str>, widths: Vec<u16>, rows: Vec<Row>) {
    let widths = widths.into_iter().map(Constraint::Length).chain([Constraint::Min(6)]);
    let head = Row::new(names).style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_widget(Table::new(rows, widths).header(head), area);
}

fn help(frame: &mut Frame) {
    let lines = HELP.lines().count() as u16;
    let area = frame.area();
    let (width, height) = (area.width.min(60), area.height.min(lines + 2));
    let area = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title(" keys ")), area);
}

const HELP: &str = "\
q, Esc         quit
s, S           sort by the next, the previous key
/              type a filter, such as  port=6379 path!=tcp
p              processes or sockets
space          pause, go on
arrows, j, k   one line up or down
PgUp, PgDn     one page
Home, End      the first lines, the last ones
h, ?           this help; any key ends it

The graph shows bytes a second of all sockets. In 130
columns or more, LAST LOOKS has those of each line, the
present ones at the right, as high as the line's largest.";

#[cfg(test)]
mod tests {
    use ratatui::{
        Terminal,
        backend::TestBackend,
        crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    };
    use sidestep_sockets::{address::Key, reason::Reason, registry::SocketRecord};

    use super::*;
    use crate::{
        census::{Census, Program, Sighting},
        stat::select::SortKey,
    };

    fn census(count: u32, at: u64, moved: u64) -> Census {
        let socket = |fd: u32| {
            let local = format!("127.{}.{}.1:80", fd / 256, fd % 256).parse().unwrap();
            let key = Key { namespace: 0, local, remote: "127.0.0.1:40000".parse().unwrap() };
            let mut record = SocketRecord::unlisted(4711, fd, key, Reason::PeerUnknown);
            (record.since, record.read.carried) = (1, moved * u64::from(fd));
            Sighting { record, peer: None }
        };
        let program = Program { name: "redis-server".to_owned(), ..Default::default() };
        Census { at, sockets: (1..=count).map(socket).collect(), processes: [(4711, program)].into() }
    }

    fn screen(app: &mut App, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, app)).unwrap();
        terminal.backend().to_string()
    }

    fn press(app: &mut App, keys: &str) -> bool {
        let code = |key| if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        keys.chars().any(|key| app.press(KeyEvent::new(code(key), KeyModifiers::NONE)))
    }

    #[test]
    fn a_small_terminal_shows_what_matters() {
        let mut app = App::new(SortKey::Rate, Vec::new());
        app.see(census(3, 1_000_000_000, 0));
        app.see(census(3, 2_000_000_000, 1024));
        let text = screen(&mut app, 80, 24);
        assert!(text.contains("3 sockets of 1 processes, 0 on carriers   6.0 KiB/s"), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[5].contains("PID") && lines[5].contains("WHY"), "{text}");
        // The fastest first, with its reason.
        assert!(
            lines[6].contains("4711 ") && lines[6].contains("3.0 KiB ") && lines[6].contains("PeerUnknown"),
            "{text}"
        );
        assert!(lines[23].contains("q quit"), "{text}");
        assert!(!text.contains("nothing"), "{text}");
        let wide = screen(&mut app, 200, 24);
        assert!(wide.contains("the program at the other end does not run under Sidestep"), "{wide}");
        // A sentence that has no room is left out, not cut.
        let less = screen(&mut app, 130, 24);
        assert!(less.contains("PeerUnknown") && !less.contains("the program at"), "{less}");
        for (width, height) in [(1, 1), (20, 5), (300, 100)] {
            screen(&mut app, width, height);
        }
    }

    /// From 130 columns on each line has bars of its own, as high as its own largest.
    #[test]
    fn wide_terminals_show_what_happened_lately() {
        let mut app = App::new(SortKey::Rate, Vec::new());
        let moved = [0, 8, 8, 10, 14];
        for (second, moved) in moved.into_iter().enumerate() {
            app.see(census(2, (second as u64 + 1) * 1_000_000_000, moved * 1024));
        }
        // Eight, nothing, two and four KiB a second, twice of it for the second socket.
        let wide = screen(&mut app, 130, 24);
        assert_eq!(wide.matches("█ ▂▄").count(), 2, "{wide}");
        assert!(wide.contains(LATELY) && !screen(&mut app, 129, 24).contains(LATELY));
        press(&mut app, "p");
        assert_eq!(screen(&mut app, 160, 50).matches("█ ▂▄").count(), 1);
        for second in 5..40 {
            app.see(census(2, (second + 1) * 1_000_000_000, second * 1024 + 14));
        }
        assert_eq!(bars(&app.lately(&app.shown.sockets[0]).collect::<Vec<_>>()), "█".repeat(LOOKS));
        assert_eq!(bars(&[0, u64::MAX, 1]).trim_start(), "█▁");
    }

    #[test]
    fn nothing_is_explained() {
        let mut app = App::new(SortKey::Rate, Vec::new());
        assert!(!screen(&mut app, 80, 24).contains("nothing"), "nobody has looked yet");
        app.see(census(0, 1, 0));
        assert!(screen(&mut app, 80, 24).contains("nothing runs under `sidestep run`"));
        app.see(census(1, 2, 0));
        press(&mut app, "/fd=77\n");
        assert!(screen(&mut app, 80, 24).contains("nothing fits the filter"));
    }

    #[test]
    fn processes_are_sorted_by_the_key_that_is_shown() {
        let mut app = App::new(SortKey::Bytes, Vec::new());
        let mut all = census(4, 1_000_000_000, 1);
        all.processes.insert(9, Program { name: "client".to_owned(), ..Default::default() });
        all.sockets[2].record.pid = 9;
        app.see(all);
        press(&mut app, "p");
        let is_server_first = |app: &mut App| {
            let text = screen(app, 80, 24);
            text.find("redis-server") < text.find("client")
        };
        assert!(is_server_first(&mut app), "seven bytes against three");
        app.sort = SortKey::Pid;
        assert!(!is_server_first(&mut app));
    }

    #[test]
    fn keys_sort_filter_and_scroll_ten_thousand_sockets() {
        let mut app = App::new(SortKey::Rate, Vec::new());
        app.see(census(10_000, 1_000_000_000, 0));
        app.see(census(10_000, 2_000_000_000, 1));
        assert!(screen(&mut app, 80, 24).contains("10000 sockets"));
        app.press(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
        let last = screen(&mut app, 80, 24);
        assert!(last.contains(" 1 B "), "{last}");
        press(&mut app, "/fd=77\n");
        let one = screen(&mut app, 80, 24);
        assert!(one.contains("1 sockets of 1 processes") && one.contains("filter: fd=77"), "{one}");
        press(&mut app, "/fd=x\n");
        assert!(screen(&mut app, 80, 24).contains("fd is a number"));
        press(&mut app, "/\np");
        assert!(screen(&mut app, 80, 24).contains("BY CARRIER"));
        press(&mut app, "h");
        assert!(screen(&mut app, 80, 24).contains("type a filter"));
        assert!(!press(&mut app, "q"), "any key ends the help");
        press(&mut app, "s");
        assert_eq!(app.sort, SortKey::Bytes);
        assert!(press(&mut app, "q"));
    }
}
