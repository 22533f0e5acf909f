//! `sidestep pipe`: the examples, and descriptions that are wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn pipe(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_sidestep")).arg("pipe").args(arguments).current_dir(root).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("sidestep-pipe-{}-{name}", std::process::id()));
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_example_is_a_good_description_with_a_picture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let picture = Scratch::new("picture.svg");
    let mut count = 0;
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "toml")) {
        let output = pipe(&["check", file.to_str().unwrap(), "--svg", picture.path()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("nothing is wrong with it"));
        assert!(std::fs::read_to_string(&picture.0).unwrap().starts_with("<svg"));
        count += 1;
    }
    assert!(count >= 6, "{count} examples");
}

#[test]
fn whole_programs_are_filters() {
    for transport in ["channel", "tcp", "vi"] {
        let output = pipe(&["examples/programs.toml", "--transport", transport]);
        let (said, told) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{told}");
        assert!(said.contains("| PAIR MEMORY | MEMORY THAT A PEER CAN WRITE |"), "{said}");
        assert!(told.contains("the bottleneck"), "{told}");
    }
}

/// What is compressed comes back, and the checksums are in the order of the names.
#[test]
fn a_folder_is_compressed() {
    let (from, into, file) = (Scratch::new("from"), Scratch::new("into"), Scratch::new("compress.toml"));
    std::fs::create_dir_all(from.0.join("deeper")).unwrap();
    for number in 0..9 {
        let name = if number % 2 == 0 { format!("{number}.txt") } else { format!("deeper/{number}.txt") };
        std::fs::write(from.0.join(name), format!("text {number} ").repeat(1000)).unwrap();
    }
    let example = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/compress.toml"));
    let example = example.unwrap().replace("\"docs\"", &format!("{:?}", from.path()));
    std::fs::write(&file.0, example.replace("\"target/compressed\"", &format!("{:?}", into.path()))).unwrap();
    let output = pipe(&[file.path()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let names: Vec<&str> = said.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let mut sorted: Vec<&str> = names.clone();
    sorted.sort_by_key(|name| PathBuf::from(name));
    assert_eq!((names.len(), &names), (9, &sorted), "{said}");
    let unpacked = Command::new("gzip").arg("-dc").arg(into.0.join("deeper/3.txt.gz")).output().unwrap();
    assert_eq!(text(&unpacked.stdout), "text 3 ".repeat(1000));
}

#[test]
fn a_run_is_told_as_json() {
    let file = Scratch::new("json.toml");
    let description = r#"units = 3
[[filter]]
name = "a"
kind = "generate"
settings = { bytes = 100000 }
[[filter]]
name = "b"
kind = "compute"
copies = 2
place = "process"
[[filter]]
name = "c"
kind = "null"
[[stream]]
from = "a.out"
to = "b.in"
buffer = 1000
schedule = "demand"
[[stream]]
from = "b.out"
to = "c.in"
"#;
    std::fs::write(&file.0, description).unwrap();
    let output = pipe(&[file.path(), "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["units"].as_array().unwrap().len(), 3);
    assert_eq!(told["filters"][1]["counts"]["buffers_in"], 300);
    assert_eq!(told["filters"][2]["counts"]["bytes_in"], 300_000);
    // And what is wrong has its line and a remedy.
    std::fs::write(&file.0, description.replace("\"b.out\"", "\"b.aus\"")).unwrap();
    for words in [&[file.path()][..], &["check", file.path()][..]] {
        let output = pipe(words);
        assert!(!output.status.success());
        let told = text(&output.stderr);
        assert!(told.contains("line 20: filter `b` has no output `aus`; it has `b.out`"), "{told}");
    }
    // A program that fails fails its unit, by name.
    let failing = description.replace("kind = \"compute\"", "kind = \"program\"\nsettings = { command = [\"false\"] }");
    std::fs::write(&file.0, failing.replace("units = 3", "units = 1")).unwrap();
    let output = pipe(&[file.path()]);
    assert!(!output.status.success());
    let told = text(&output.stderr);
    assert!(told.contains("unit 0 failed: b[") && told.contains("false ended with exit status: 1"), "{told}");
}
