//! Names of C as names of Rust.

/// `kv_pair`, `KV_PAIR` and `kvPair` as `KvPair`.
pub fn type_name(name: &str) -> String {
    let camel = variant_name(name);
    if TAKEN.contains(&camel.as_str()) { camel + "_" } else { camel }
}

/// Like [`type_name`], but nothing else has such a name.
pub fn variant_name(name: &str) -> String {
    let mut camel: String = words(name).iter().map(|word| capitalized(word)).collect();
    if camel.is_empty() || camel == "Self" {
        camel.push('_');
    }
    camel
}

/// `KvPair` and `KV_PAIR` as `kv_pair`.
pub fn field_name(name: &str) -> String {
    let snake = words(name).join("_").to_lowercase();
    match snake.as_str() {
        "" | "self" | "super" | "crate" => snake + "_",
        word if KEYWORDS.contains(&word) => format!("r#{snake}"),
        _ => snake,
    }
}

/// `kvPair` and `kv_pair` as `KV_PAIR`.
pub fn constant_name(name: &str) -> String {
    let upper = words(name).join("_").to_uppercase();
    if upper.is_empty() { upper + "_" } else { upper }
}

/// Cuts at `_` and where a capital follows a small letter or a digit.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split('_') {
        let mut word = String::new();
        let mut before = 'A';
        for letter in part.chars() {
            if letter.is_uppercase() && !before.is_uppercase() {
                words.push(std::mem::take(&mut word));
            }
            word.push(letter);
            before = letter;
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    words
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters.flat_map(char::to_lowercase)).collect())
}

/// What generated code names without a path.
const TAKEN: [&str; 21] = [
    "Box",
    "Call",
    "Client",
    "Debug",
    "Err",
    "Error",
    "None",
    "Ok",
    "Option",
    "Pending",
    "Procedure",
    "Quadruple",
    "Reader",
    "Refusal",
    "Result",
    "Service",
    "Some",
    "String",
    "Vec",
    "Writer",
    "Xdr",
];

const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_c_become_names_of_rust() {
        assert_eq!(["kv_pair", "KV_PAIR", "kvPair"].map(type_name), ["KvPair"; 3]);
        assert_eq!(["MOUNT_V3", "nfs3_fh", "result"].map(type_name), ["MountV3", "Nfs3Fh", "Result_"]);
        assert_eq!(["KvPair", "type", "self", "KEY"].map(field_name), ["kv_pair", "r#type", "self_", "key"]);
        assert_eq!(["maxKey", "MAX_KEY", "_"].map(constant_name), ["MAX_KEY", "MAX_KEY", "_"]);
    }
}
