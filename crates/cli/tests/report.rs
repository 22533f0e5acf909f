//! `sidestep bench --report`: the page of a run, what is made of saved runs, and how the page looks in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sidestep_testkit::process::{PATIENCE, full};
use sidestep_testkit::sockets::Bounded;

#[test]
fn a_run_leaves_a_page_and_is_compared_and_judged() {
    let folder = Folder::new("report");
    let report = folder.path("out");
    let words = ["bench", "sockets", "--quick", "--rounds", "1", "--only", "latency,requests,twoway", "--report"];
    let said = Bounded::start(program().args(words).arg(&report), PATIENCE).wait().expect("sidestep");
    assert!(said.contains("requests"), "tables are printed, too:\n{said}");
    let page = fs::read_to_string(report.join("index.html")).expect("a page");
    for expected in
        ["<svg", "prefers-color-scheme: dark", "sidestep bench sockets", "kernel", "cpu/message", "by connections"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(!page.contains("<script") && !page.contains("src="), "it is whole in itself");
    let run: Value = serde_json::from_slice(&fs::read(report.join("run.json")).expect("a run")).expect("JSON");
    let records = run["records"].as_array().expect("records");
    let found = |bench: &str, path: &str, metric: &str| {
        records.iter().any(|record| record["bench"] == bench && record["path"] == path && record["metric"] == metric)
    };
    for path in ["ring", "tcp"] {
        assert!(
            found("sockets.requests", path, "requests") && found("sockets.requests", path, "cpu_per_call"),
            "{path}"
        );
        assert!(
            found("sockets.twoway", path, "bandwidth") && found("sockets.twoway", path, "cpu_per_message"),
            "{path}"
        );
        assert!(found("sockets.latency", path, "one_way_p999"), "{path}");
    }
    let timed = records.iter().find(|record| record["extra"].is_null() && record["distribution"].is_array());
    assert!(timed.is_some_and(|record| record["distribution"].as_array().is_some_and(|points| points.len() == 14)));

    let mut compare = program();
    let said = Bounded::start(compare.args(["bench", "compare"]).args([&report, &report]), PATIENCE).wait();
    assert!(said.expect("compare").contains("0 slower"), "a run does not differ from itself");
    let mut seeds = program();
    let said = Bounded::start(seeds.args(["bench", "seeds"]).arg(&report), PATIENCE).wait().expect("seeds");
    for expected in ["000 Riddoch", "004 Balaji", "not built", "not measured", "Fig 8.3"] {
        assert!(said.contains(expected), "{expected} in\n{said}");
    }
    let two_way = said.lines().find(|line| line.contains("Fig 8.3")).expect("a line");
    assert!(!two_way.contains("not measured"), "{two_way}");
}

/// In both colour schemes: no label lies on another or outside its plot, no plot is empty, text is told from its ground.
#[test]
fn a_page_is_read_in_a_browser() {
    if !full() {
        eprintln!("left out: the browser is large; ./test full installs it");
        return;
    }
    let Some(browser) = browser() else {
        eprintln!("left out: chromium-headless-shell is not installed");
        return;
    };
    let folder = Folder::new("browser");
    let report = folder.path("out");
    let words =
        ["bench", "sockets", "--quick", "--rounds", "3", "--only", "latency,pingpong,requests,fanin", "--report"];
    Bounded::start(program().args(words).arg(&report), PATIENCE).wait().expect("sidestep");
    let page = fs::read_to_string(report.join("index.html")).expect("a page");
    let looked = folder.path("looked.html");
    fs::write(&looked, page.replace("</body>", &format!("<script>{LOOK}</script></body>"))).expect("a file");
    let mut grounds = Vec::new();
    for (scheme, number) in [("dark", "0"), ("light", "1")] {
        let mut command = Command::new(&browser);
        command.args(["--no-sandbox", "--disable-gpu", "--window-size=1400,1000", "--dump-dom"]);
        command.arg(format!("--blink-settings=preferredColorScheme={number}")).arg(url(&looked));
        let dom = Bounded::start(&mut command, PATIENCE).wait().expect("chromium");
        let found = dom
            .split("<pre id=\"found\">")
            .nth(1)
            .and_then(|rest| rest.split("</pre>").next())
            .expect("what was found");
        let found: Value =
            serde_json::from_str(&found.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")).expect("JSON");
        assert_eq!(found["problems"].as_array().map(Vec::len), Some(0), "{scheme}: {found}");
        assert!(found["plots"].as_u64() >= Some(4), "{scheme}: {found}");
        assert!(found["contrast"].as_f64() > Some(7.0), "{scheme}: {found}");
        grounds.push(found["ground"].as_str().expect("a colour").to_owned());

        let picture = folder.path(&format!("{scheme}.png"));
        let mut command = Command::new(&browser);
        command.args(["--no-sandbox", "--disable-gpu", "--window-size=1400,4000"]);
        command.arg(format!("--blink-settings=preferredColorScheme={number}"));
        command.arg(format!("--screenshot={}", picture.display())).arg(url(&report.join("index.html")));
        Bounded::start(&mut command, PATIENCE).wait().expect("chromium");
        let bytes = fs::read(&picture).expect("a picture");
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000, "{} bytes", bytes.len());
    }
    assert_ne!(grounds[0], grounds[1], "dark and light differ");
}

/// Looks at the page from within.
const LOOK: &str = r#"
const problems = [], boxes = [];
for (const svg of document.querySelectorAll("figure > svg")) {
  const frame = svg.getBoundingClientRect(), own = [];
  for (const text of svg.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      problems.push("outside: " + text.textContent);
    for (const [other, name] of own)
      if (box.left < other.right && other.left < box.right && box.top + 3 < other.bottom && other.top + 3 < box.bottom)
        problems.push(name + " on " + text.textContent);
    own.push([box, text.textContent]);
  }
  if (svg.querySelectorAll(".mark").length < 4) problems.push("empty: " + svg.getAttribute("aria-label"));
  for (const mark of svg.querySelectorAll(".mark")) {
    const box = mark.getBoundingClientRect();
    if (!(box.width > 0) || box.left < frame.left || box.right > frame.right + 1) problems.push("a mark outside");
  }
}
if (document.documentElement.scrollWidth > innerWidth + 1) problems.push("the page is wider than the window");
const light = colour => {
  const [r, g, b] = colour.match(/\d+/g).map(Number).map(c => c / 255).map(c => c <= 0.04 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const style = getComputedStyle(document.body), [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x);
const found = document.createElement("pre");
found.id = "found";
found.textContent = JSON.stringify({problems, plots: document.querySelectorAll("figure > svg").length,
  contrast: (a + 0.05) / (b + 0.05), ground: style.backgroundColor});
document.body.append(found);
"#;

struct Folder(PathBuf);

impl Folder {
    fn new(word: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("sidestep-{word}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn url(file: &Path) -> String {
    format!("file://{}", file.display())
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium-headless-shell", "chromium"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file())
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
}
