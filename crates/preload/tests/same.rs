//! Programs behave the same with the library before them: what they print, and how they end.

mod programs;

use std::process::Output;

macro_rules! same {
    ($($name:ident)*) => {
        $(#[test] fn $name() { runs_the_same(stringify!($name)); })*
    };
}

same! { sandboxed errors signals processes closing syscalls streams before_main selects cancelled handed_on allocator }

fn runs_the_same(name: &str) {
    let program = programs::compile(name);
    let plain = programs::run(&program, None);
    assert!(plain.status.success(), "{name} alone: {}", shown(&plain));
    for promote in ["never", "default", "eager"] {
        let preloaded = programs::run(&program, Some(promote));
        assert!(
            plain.stdout == preloaded.stdout && plain.status == preloaded.status,
            "{name} differs, SIDESTEP_PROMOTE={promote}.\nplain: {}\npreloaded: {}",
            shown(&plain),
            shown(&preloaded)
        );
    }
}

/// Says what the library costs a call that is none of its business.
#[test]
fn cost_of_a_call_on_another_descriptor() {
    let program = programs::compile("cost");
    for promote in [None, Some("default")] {
        let output = programs::run(&program, promote);
        assert!(output.status.success(), "{}", shown(&output));
        let who = if promote.is_some() { "preloaded" } else { "plain" };
        println!("{who}: {}", String::from_utf8_lossy(&output.stdout).trim());
    }
}

fn shown(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{}\n{out}{err}", output.status)
}
