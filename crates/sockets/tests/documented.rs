//! The tables of the documents are those of the code.

use std::{fs, path::Path};

use sidestep_sockets::{config::options, reason, registry::layout};

#[test]
fn the_documents_have_the_tables() {
    let tables = [
        ("docs/sockets.md", "registry", layout::table()),
        ("docs/operating.md", "options", options::table()),
        ("docs/operating.md", "reasons", reason::table()),
    ];
    for (document, name, table) in tables {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root").join(document);
        let text = fs::read_to_string(&path).expect(document);
        let wanted = with_table(&text, name, &table);
        if std::env::var_os("SIDESTEP_BLESS").is_some() {
            fs::write(&path, &wanted).expect("writable");
        } else {
            assert!(
                text == wanted,
                "{document} is out of date: run SIDESTEP_BLESS=1 cargo test -p sidestep-sockets --test documented"
            );
        }
    }
}

fn with_table(text: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: made from the code -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no mark for {name}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no end of {name}"));
    format!("{before}{begin}{table}\n{end}{after}")
}
