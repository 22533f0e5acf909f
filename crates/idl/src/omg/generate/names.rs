//! Every name that the generated code gives, in one table.
//!
//! Each scope of Rust has its names from one [`Scope`], in the order of declaration: a name that is taken, or that the
//! generated code itself uses there, gets an underscore at its end.

use std::collections::{HashMap, HashSet};

use super::super::syntax::{Case, DefId, Field, Interface, Kind, Operation, Role, Specification};
use crate::names::{Scope, plain};

/// The names of everything in a specification.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Of modules, types, constants and enumerators.
    definitions: HashMap<DefId, String>,
    /// Of the modules that hold what interfaces, structures and unions declare.
    modules: HashMap<DefId, String>,
    interfaces: HashMap<DefId, InterfaceNames>,
    /// Of the members of structures, exceptions and unions.
    members: HashMap<DefId, Vec<String>>,
    /// Of the variants of unions for labels that select nothing.
    no_member: HashMap<DefId, String>,
}

/// The names that are made for an interface.
#[derive(Debug)]
pub(super) struct InterfaceNames {
    pub(super) servant: String,
    pub(super) skeleton: String,
    /// Of its own operations, in the order of declaration.
    pub(super) operations: Vec<OperationNames>,
    /// Of the calls of a reference: what is inherited comes first.
    pub(super) calls: Vec<CallNames>,
}

/// The names that are made for an operation.
#[derive(Debug, Clone)]
pub(super) struct OperationNames {
    /// Of the method of the servant. Given last.
    pub(super) method: String,
    pub(super) parameters: Vec<String>,
    /// The type of its error, if it raises exceptions.
    pub(super) error: String,
    /// The variants of that type.
    pub(super) exceptions: Vec<String>,
}

/// The names of the calls of a reference for one operation.
#[derive(Debug, Clone)]
pub(super) struct CallNames {
    pub(super) call: String,
    /// The call that does not wait.
    pub(super) begin: String,
}

/// What the generated code uses without a path in every module: the prelude, and the types that are keywords elsewhere.
const IN_MODULES: [&str; 23] = [
    "Err", "From", "None", "Ok", "Option", "Send", "Some", "String", "Sync", "Vec", "bool", "char", "f32", "f64",
    "i16", "i32", "i64", "str", "u16", "u32", "u64", "u8", "usize",
];

/// The variant of an error that is no exception of the IDL.
pub(super) const SYSTEM: &str = "System";

/// Calls of the prelude that take any value, and would be meant instead of an operation of that name.
const IN_REFERENCES: [&str; 2] = ["into", "try_into"];

/// What the parameters of a call must not hide.
const IN_CALLS: [&str; 2] = ["decoder", "encoder"];

impl Names {
    pub(super) fn of(specification: &Specification) -> Self {
        let mut names = Self::default();
        let mut scopes: HashMap<DefId, Scope> = HashMap::new();
        let parents: HashSet<DefId> = specification.all().map(|id| specification.get(id).parent).collect();
        for id in specification.all() {
            let definition = specification.get(id);
            let scope = scopes.entry(definition.parent).or_insert_with(|| Scope::reserving(&IN_MODULES));
            let name = match &definition.kind {
                Kind::Module => scope.give(snake(&definition.name)),
                // Nothing is made of it but the module of what it declares.
                Kind::Interface(interface) if interface.local => camel(&definition.name),
                Kind::Const { .. } => scope.give(constant(&definition.name)),
                // Enumerators are names of their enumeration.
                Kind::Enumerator { .. } => continue,
                _ => scope.give(camel(&definition.name)),
            };
            match &definition.kind {
                Kind::Module => drop(names.modules.insert(id, name.clone())),
                Kind::Interface(interface) if interface.local => {}
                Kind::Interface(interface) => {
                    let made = interface_names(specification, scope, &camel(&definition.name), interface);
                    names.interfaces.insert(id, made);
                }
                Kind::Struct(fields) | Kind::Exception(fields) => {
                    let mut scope = Scope::default();
                    let each = |field: &Field| scope.give(snake(&field.name));
                    names.members.insert(id, fields.fields.iter().map(each).collect());
                }
                Kind::Union(union) => {
                    let mut scope = Scope::default();
                    names.no_member.insert(id, scope.give("NoMember"));
                    let each = |case: &Case| scope.give(camel(&case.field.name));
                    names.members.insert(id, union.cases.iter().map(each).collect());
                }
                Kind::Enum { members } => {
                    let mut scope = Scope::default();
                    for member in members {
                        let name = scope.give(camel(&specification.get(*member).name));
                        names.definitions.insert(*member, name);
                    }
                }
                Kind::Typedef(_) | Kind::Const { .. } | Kind::Enumerator { .. } => {}
            }
            if parents.contains(&id) && !matches!(definition.kind, Kind::Module) {
                names.modules.insert(id, scope.give(snake(&definition.name)));
            }
            names.definitions.insert(id, name);
        }
        names.calls(specification);
        names
    }

    /// Names the operations of every interface: bases first, since an interface has the names of its bases, too.
    fn calls(&mut self, specification: &Specification) {
        let mut interfaces: Vec<(DefId, &Interface)> = Vec::new();
        for id in specification.all() {
            if let Kind::Interface(interface) = &specification.get(id).kind {
                interfaces.push((id, interface));
            }
        }
        // An interface inherits more than each of its bases.
        interfaces.sort_by_key(|(_, interface)| interface.inherited.len());
        for (id, interface) in interfaces {
            let mut scope = Scope::reserving(&IN_REFERENCES);
            // What is inherited is called as in its own interface, unless two bases have the same name for it.
            let inherited = interface.inherited.iter().filter_map(|base| self.interfaces.get(base));
            let inherited = inherited.flat_map(|base| &base.operations);
            let mut calls: Vec<_> =
                inherited.map(|operation| call_names(&mut scope, plain(&operation.method))).collect();
            let Some(names) = self.interfaces.get_mut(&id) else { continue };
            for (operation, names) in interface.operations.iter().zip(&mut names.operations) {
                let call = call_names(&mut scope, &method(operation));
                names.method.clone_from(&call.call);
                calls.push(call);
            }
            names.calls = calls;
        }
    }

    /// The name of a module, a type, a constant or an enumerator.
    pub(super) fn definition(&self, id: DefId) -> &str {
        &self.definitions[&id]
    }

    /// The module that holds what a definition declares, if it declares anything.
    pub(super) fn module(&self, id: DefId) -> Option<&str> {
        self.modules.get(&id).map(String::as_str)
    }

    pub(super) fn interface_of(&self, id: DefId) -> &InterfaceNames {
        &self.interfaces[&id]
    }

    /// The members of a structure, an exception or a union.
    pub(super) fn members(&self, id: DefId) -> &[String] {
        &self.members[&id]
    }

    /// The variant of a union for labels that select nothing.
    pub(super) fn no_member(&self, id: DefId) -> &str {
        &self.no_member[&id]
    }
}

/// All names of an interface but those of its methods.
fn interface_names(
    specification: &Specification,
    scope: &mut Scope,
    name: &str,
    interface: &Interface,
) -> InterfaceNames {
    let servant = scope.give(format!("{name}Servant"));
    let skeleton = scope.give(format!("{name}Skeleton"));
    let mut operation_names = |operation: &Operation| {
        let mut parameters = Scope::reserving(&IN_CALLS);
        let mut exceptions = Scope::reserving(&[SYSTEM]);
        let variants = operation.raises.iter().map(|id| exceptions.give(camel(&specification.get(*id).name)));
        let variants = variants.collect();
        let set = if operation.role == Role::Setter { "set_" } else { "" };
        let error = format!("{name}{}Error", camel(&format!("{set}{}", operation.name)));
        OperationNames {
            method: String::new(),
            parameters: operation.parameters.iter().map(|each| parameters.give(snake(&each.name))).collect(),
            error: if operation.raises.is_empty() { String::new() } else { scope.give(error) },
            exceptions: variants,
        }
    };
    let operations = interface.operations.iter().map(&mut operation_names).collect();
    InterfaceNames { servant, skeleton, operations, calls: Vec::new() }
}

fn call_names(scope: &mut Scope, method: &str) -> CallNames {
    let call = scope.give(method);
    let begin = scope.give(format!("begin_{}", plain(&call)));
    CallNames { call, begin }
}

fn method(operation: &Operation) -> String {
    match operation.role {
        Role::Setter => format!("set_{}", snake(&operation.name)),
        Role::Operation | Role::Getter => snake(&operation.name),
    }
}

/// The name of a type: `FooBar`.
fn camel(name: &str) -> String {
    let mut camel = String::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut chars = part.chars();
        camel.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        let rest = chars.as_str();
        // FOO_BAR is not meant to be shouted.
        if name.contains('_') && part.chars().all(|each| !each.is_ascii_lowercase()) {
            camel.push_str(&rest.to_ascii_lowercase());
        } else {
            camel.push_str(rest);
        }
    }
    camel
}

/// The name of a field, a function or a module: `foo_bar`.
fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, each) in chars.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| chars[before]);
        // Rust has one underscore between words.
        if *each == '_' && before == Some('_') {
            continue;
        }
        let lower_before = before.is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit());
        let upper_before = before.is_some_and(|before| before.is_ascii_uppercase());
        let lower_after = chars.get(index + 1).is_some_and(char::is_ascii_lowercase);
        if each.is_ascii_uppercase() && (lower_before || (upper_before && lower_after)) {
            snake.push('_');
        }
        snake.push(each.to_ascii_lowercase());
    }
    snake
}

/// The name of a constant: `FOO_BAR`.
fn constant(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_look_like_rust() {
        assert_eq!(camel("namingContext"), "NamingContext");
        assert_eq!(camel("foo_bar"), "FooBar");
        assert_eq!(camel("RED_ONE"), "RedOne");
        assert_eq!(snake("NamingContextExt"), "naming_context_ext");
        assert_eq!(snake("HTTPServer"), "http_server");
        assert_eq!(snake("to_URL"), "to_url");
        assert_eq!(snake("to__x"), "to_x");
        assert_eq!(constant("maxSize"), "MAX_SIZE");
    }
}
