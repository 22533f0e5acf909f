//! The stored inputs of the fuzz targets of both languages, as ordinary tests: whatever is cut off, the compiler says what is
//! wrong, and does not panic.

use std::path::Path;

use sidestep_idl::omg::Files;

/// There is nothing to be included.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str, _: &str) -> Option<(String, String)> {
        None
    }
}

/// Compiles every stored input, cut off after every so many characters, and without each of its lines.
fn replay(target: &str, step: usize, compile: impl Fn(&str)) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for input in std::fs::read_dir(&corpus).unwrap() {
        let text = String::from_utf8_lossy(&std::fs::read(input.unwrap().path()).unwrap()).into_owned();
        for end in (0..=text.len()).step_by(step).filter(|end| text.is_char_boundary(*end)) {
            compile(&text[..end]);
        }
        let lines: Vec<&str> = text.lines().collect();
        for left_out in 0..lines.len() {
            compile(&[&lines[..left_out], &lines[left_out + 1..]].concat().join("\n"));
        }
        count += 1;
    }
    assert!(count > 0, "there is no stored input of {target}");
}

#[test]
fn replay_the_corpus_of_rpc() {
    replay("idl_rpc", 1, |text| drop(sidestep_idl::rpc::compile("cut.x", text)));
}

#[test]
fn replay_the_corpus_of_omg() {
    replay("idl_omg", 11, |text| drop(sidestep_idl::omg::compile("cut.idl", text, &NoFiles)));
}
