//! The stored inputs of the fuzz target of `.x` files, as an ordinary test: whatever is cut off, the compiler says what is
//! wrong, and does not panic.

use std::path::Path;

#[test]
fn replay_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/idl_rpc");
    let mut count = 0;
    for input in std::fs::read_dir(&corpus).unwrap() {
        let text = String::from_utf8_lossy(&std::fs::read(input.unwrap().path()).unwrap()).into_owned();
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = sidestep_idl::rpc::compile("cut.x", &text[..end]);
        }
        let lines: Vec<&str> = text.lines().collect();
        for left_out in 0..lines.len() {
            let rest = [&lines[..left_out], &lines[left_out + 1..]].concat().join("\n");
            let _ = sidestep_idl::rpc::compile("cut.x", &rest);
        }
        count += 1;
    }
    assert!(count > 0, "there is no stored input");
}
