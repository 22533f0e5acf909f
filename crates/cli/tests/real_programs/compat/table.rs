//! The table of all programs, as Markdown.

use std::{fs, path::PathBuf};

use super::{report::Report, rows::ROWS, target};

/// Where rows and logs lie. A row stays until it is made again, so that programs can be run one at a time.
pub struct Table {
    folder: PathBuf,
}

/// What a program did in one way.
pub struct Cell {
    /// The first run.
    pub report: Report,
    /// Connections that left TCP in it.
    pub promoted: u64,
    /// What differed from plain in every run.
    pub steady: Vec<String>,
    /// What differed at first, and not again.
    pub once: Vec<String>,
}

impl Table {
    /// The one in the folder of the build.
    pub fn new() -> Table {
        let folder = target().join("compat");
        for part in ["rows", "logs"] {
            fs::create_dir_all(folder.join(part)).expect("a folder");
        }
        Table { folder }
    }

    /// Notes a program that is not run, and why.
    pub fn leave_out(&self, name: &str, why: &str) {
        println!("left out: {name}: {why}");
        self.write(name, &format!("| {name} | {why} | | | | | |"));
    }

    /// Adds the row of a program: plain, and the ways of promoting.
    pub fn add(&self, name: &str, version: &str, cells: &[Cell]) {
        let mut row = format!("| {name} | {version} |");
        for (index, cell) in cells.iter().enumerate() {
            let promoted = if index == 0 { String::new() } else { format!(", {}", cell.promoted) };
            row += &format!(" {}{promoted} |", cell.report.counts());
        }
        let list = |of: fn(&Cell) -> &Vec<String>| {
            let mut names: Vec<&str> = cells.iter().flat_map(of).map(String::as_str).collect();
            names.sort_unstable();
            names.dedup();
            names.join(", ")
        };
        let (steady, once) = (list(|cell| &cell.steady), list(|cell| &cell.once));
        let told = match (steady.is_empty(), once.is_empty()) {
            (true, true) => "none".to_string(),
            (true, false) => format!("none twice; once: {once}"),
            (false, true) => steady,
            (false, false) => format!("{steady}; once: {once}"),
        };
        self.write(name, &format!("{row} {told} |"));
    }

    /// Keeps what failed in one way.
    pub fn log(&self, name: &str, way: &str, report: &Report) {
        let file = format!("{}.{}.txt", file_name(name), file_name(way));
        fs::write(self.folder.join("logs").join(file), report.failures()).expect("a file");
    }

    /// Puts all rows that there are together, and returns the table.
    pub fn assemble(&self) -> String {
        let mut table = String::from(
            "| program | version | plain | default | eager | random | differences |\n|---|---|---|---|---|---|---|\n",
        );
        for row in ROWS {
            table += &fs::read_to_string(self.row(row.name)).unwrap_or_default();
        }
        fs::write(self.folder.join("table.md"), &table).expect("a file");
        table
    }

    fn write(&self, name: &str, row: &str) {
        fs::write(self.row(name), format!("{row}\n")).expect("a file");
        self.assemble();
    }

    fn row(&self, name: &str) -> PathBuf {
        self.folder.join("rows").join(file_name(name) + ".md")
    }
}

fn file_name(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }).collect()
}
