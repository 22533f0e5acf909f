//! Names of C as names of Rust: every name that the generated code gives, in one table.

use std::collections::HashMap;

use super::syntax::{Definition, Name, Program, Value};
use crate::names::{Scope, plain};

/// The names of everything in a file.
#[derive(Debug, Default)]
pub struct Names {
    types: HashMap<String, String>,
    constants: HashMap<String, String>,
    /// The values of enumerations, which C keeps in one scope: the enumeration, and the variant.
    values: HashMap<String, (String, String)>,
    /// The members of structures.
    fields: HashMap<String, Vec<String>>,
    /// By the program's place in the file, and the version's in the program.
    versions: HashMap<(usize, usize), VersionNames>,
}

/// What is made of a version of a program.
#[derive(Debug, Clone)]
pub struct VersionNames {
    pub client: String,
    pub service: String,
    pub server: String,
    pub procedures: Vec<ProcedureNames>,
}

/// What is made of a procedure.
#[derive(Debug, Clone)]
pub struct ProcedureNames {
    /// The call of the client, and the method of the service.
    pub call: String,
    /// The call that does not wait.
    pub begin: String,
    /// The call without a reply.
    pub batch: String,
}

/// What the generated code names without a path.
const IN_FILE: [&str; 23] = [
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
    "Send",
    "Service",
    "Some",
    "String",
    "Sync",
    "Vec",
    "Writer",
    "Xdr",
];

/// What every client has, and calls of the prelude that take any value.
const IN_CLIENT: [&str; 5] = ["client", "connect", "into", "new", "try_into"];

/// The variant of a union for labels without a case.
pub const DEFAULT: &str = "Default";

impl Names {
    /// Names what the definitions declare, whose numbers have these values.
    pub fn of(definitions: &[Definition], number: &dyn Fn(&Value) -> i128) -> Self {
        let mut names = Self::default();
        let mut scope = Scope::reserving(&IN_FILE);
        for (index, definition) in definitions.iter().enumerate() {
            let name = &definition.name().text;
            match definition {
                Definition::Const(_) => {
                    names.constants.insert(name.clone(), scope.give(constant_name(name)));
                    continue;
                }
                Definition::Program(program) => {
                    names.program(index, program, number, &mut scope);
                    continue;
                }
                Definition::Enum(it) => {
                    let mut scope = Scope::default();
                    for (Name { text, .. }, _) in &it.members {
                        names.values.insert(text.clone(), (name.clone(), scope.give(type_name(text))));
                    }
                }
                Definition::Struct(it) => {
                    let mut scope = Scope::default();
                    let fields = it.fields.iter().map(|field| scope.give(field_name(&field.name.text)));
                    names.fields.insert(name.clone(), fields.collect());
                }
                Definition::Union(_) | Definition::Typedef(_) => {}
            }
            names.types.insert(name.clone(), scope.give(type_name(name)));
        }
        names
    }

    fn program(&mut self, index: usize, program: &Program, number: &dyn Fn(&Value) -> i128, scope: &mut Scope) {
        for (place, version) in program.versions.iter().enumerate() {
            let mut in_client = Scope::reserving(&IN_CLIENT);
            // A client has a procedure 0 anyway.
            if version.procedures.iter().all(|procedure| number(&procedure.number) != 0) {
                in_client.give("null");
            }
            let mut procedures = Vec::new();
            for procedure in &version.procedures {
                let call = in_client.give(field_name(&procedure.name.text));
                let end = plain(&call).trim_start_matches('_');
                let begin = in_client.give(format!("begin_{end}"));
                let batch = match procedure.result {
                    None => in_client.give(format!("batch_{end}")),
                    Some(_) => String::new(),
                };
                procedures.push(ProcedureNames { call, begin, batch });
            }
            let name = type_name(&version.name.text);
            let client = scope.give(format!("{name}Client"));
            let service = scope.give(format!("{name}Service"));
            let server = scope.give(format!("{name}Server"));
            self.versions.insert((index, place), VersionNames { client, service, server, procedures });
        }
    }

    /// A structure, a union, an enumeration or a typedef.
    pub fn type_named(&self, name: &str) -> &str {
        &self.types[name]
    }

    pub fn constant(&self, name: &str) -> &str {
        &self.constants[name]
    }

    /// The variant of a value of an enumeration.
    pub fn variant(&self, value: &str) -> &str {
        &self.values[value].1
    }

    /// A constant or a value of an enumeration, if there is one of that name.
    pub fn number(&self, name: &str) -> Option<String> {
        let value = |(of, variant): &(String, String)| format!("{}::{variant}", self.type_named(of));
        self.constants.get(name).cloned().or_else(|| self.values.get(name).map(value))
    }

    /// The members of a structure.
    pub fn fields(&self, name: &str) -> &[String] {
        &self.fields[name]
    }

    /// What is made of a version, by the program's place in the file, and the version's in the program.
    pub fn version(&self, program: usize, version: usize) -> &VersionNames {
        &self.versions[&(program, version)]
    }
}

/// `kv_pair`, `KV_PAIR` and `kvPair` as `KvPair`.
fn type_name(name: &str) -> String {
    let camel: String = words(name).iter().map(|word| capitalized(word)).collect();
    named(camel, "Underscore")
}

/// `KvPair` and `KV_PAIR` as `kv_pair`.
fn field_name(name: &str) -> String {
    named(words(name).join("_").to_lowercase(), "underscore")
}

/// `kvPair` and `kv_pair` as `KV_PAIR`.
fn constant_name(name: &str) -> String {
    named(words(name).join("_").to_uppercase(), "UNDERSCORE")
}

/// A name of C may be nothing but `_`, or have a digit behind it.
fn named(name: String, underscore: &str) -> String {
    match name.chars().next() {
        None => underscore.to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_c_become_names_of_rust() {
        assert_eq!(["kv_pair", "KV_PAIR", "kvPair"].map(type_name), ["KvPair"; 3]);
        assert_eq!(["MOUNT_V3", "nfs3_fh", "_", "_3"].map(type_name), ["MountV3", "Nfs3Fh", "Underscore", "_3"]);
        assert_eq!(["KvPair", "type", "_3", "KEY"].map(field_name), ["kv_pair", "type", "_3", "key"]);
        assert_eq!(["maxKey", "MAX_KEY", "_"].map(constant_name), ["MAX_KEY", "MAX_KEY", "UNDERSCORE"]);
    }
}
