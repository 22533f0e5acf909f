//! `sidestep idl`, `sidestep names` and `sidestep bench orb`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use sidestep_orb::naming::{cos_naming::NamingContextExt, parse_name, resolve};
use sidestep_orb::{Orb, Stub};

const SIDESTEP: &str = env!("CARGO_BIN_EXE_sidestep");

#[test]
fn idl_becomes_rust_or_messages() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let compiled = Command::new(SIDESTEP).arg("idl").arg(crates.join("orb/examples/echo/echo.idl")).output().unwrap();
    let kept = std::fs::read(crates.join("orb/examples/echo/generated.rs")).unwrap();
    assert!(compiled.status.success() && compiled.stdout == kept, "{compiled:?}");
    let broken = std::env::temp_dir().join(format!("sidestep-broken-{}.idl", std::process::id()));
    std::fs::write(&broken, "interface I {\n  void f(long x);\n  Unknown g();\n};\n").unwrap();
    let refused = Command::new(SIDESTEP).arg("idl").arg(&broken).output().unwrap();
    std::fs::remove_file(&broken).unwrap();
    let messages = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(messages.contains(":2:10: error: ") && messages.contains(":3:3: error: "), "{messages}");
}

#[test]
fn names_are_served() {
    let mut server =
        Command::new(SIDESTEP).args(["names", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut reference = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut reference).unwrap();
    let orb = Orb::builder().build().unwrap();
    let root: NamingContextExt = orb.string_to_object(&reference).unwrap().narrow().unwrap().expect("a context");
    root.bind(&parse_name("self.context").unwrap(), Some(root.object())).unwrap();
    assert_eq!(&resolve(root.object(), "self.context").unwrap(), root.object());
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn calls_are_measured() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let only = "null,first,clients,channel,fabric,iwarp,via-dispatcher,tcp-dispatcher";
    let output = Command::new(SIDESTEP)
        .args(["bench", "orb", "--quick", "--rounds", "1", "--json", "--only", only])
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    let records: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (bench, path, metric) in [
        ("orb.null", "channel", "round_trip_p50"),
        ("orb.null", "fabric", "round_trip_p50"),
        ("orb.null", "via-dispatcher", "cpu_per_message"),
        ("orb.null", "iwarp", "round_trip_p50"),
        ("orb.first", "fabric", "round_trip_p50"),
        ("orb.first", "fabric", "call_p50"),
        ("orb.first", "fabric", "cost"),
        ("orb.clients", "tcp-dispatcher", "requests"),
        ("orb.clients", "fabric", "requests"),
    ] {
        let found = records.iter().find(|it| it["bench"] == bench && it["path"] == path && it["metric"] == metric);
        assert!(found.is_some_and(|it| it["value"].as_f64() > Some(0.0)), "{bench} {path} {metric} in {text}");
    }
    let refused = Command::new(SIDESTEP).args(["bench", "orb", "--only", "nothing"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--only nothing"), "{refused:?}");
}
