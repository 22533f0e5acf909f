//! Interfaces: a reference with typed calls, a trait for whoever implements it, and what joins both.

use super::super::syntax::{DefId, Kind};
use super::operation::Method;
use super::{CDR, Generator, ORB};

impl<'a> Generator<'a> {
    pub(super) fn interface(&mut self, id: DefId) {
        let methods = self.methods(id);
        for method in methods.iter().filter(|method| method.operation.declared_in == id) {
            self.error_of(id, method);
        }
        self.reference(id);
        self.calls(id, &methods);
        self.servant(id, &methods);
        self.skeleton(id, &methods);
    }

    /// What it inherits and declares.
    fn methods(&self, id: DefId) -> Vec<Method<'a>> {
        let mut methods = Vec::new();
        let mut calls = self.names.interface_of(id).calls.iter();
        for interface in self.specification.lineage(id) {
            let Kind::Interface(declared) = &self.specification.get(interface).kind else { continue };
            let names = &self.names.interface_of(interface).operations;
            for ((operation, names), call) in declared.operations.iter().zip(names).zip(&mut calls) {
                methods.push(Method { operation, names, call });
            }
        }
        methods
    }

    fn reference(&mut self, id: DefId) {
        let definition = self.specification.get(id);
        let name = self.name(id);
        let servant = &self.names.interface_of(id).servant;
        let repository_id = self.specification.repository_id(id);
        self.line("");
        self.docs(id);
        self.line("///");
        self.line(&format!("/// This is a reference to such an object; [`{servant}`] is what implements one."));
        self.line("#[derive(Debug, Clone, PartialEq)]");
        self.item(&format!("pub struct {name}({ORB}::Object);"));
        self.line("");
        self.item(&format!("impl {ORB}::Stub for {name} {{"));
        self.line(&format!("fn from_object(object: {ORB}::Object) -> Self {{"));
        self.line("Self(object)");
        self.line("}");
        self.line("");
        self.line(&format!("fn object(&self) -> &{ORB}::Object {{"));
        self.line("&self.0");
        self.line("}");
        self.line("}");
        self.line("");
        self.item(&format!("impl {CDR}::Reference for {name} {{"));
        self.line(&format!("const TYPE_ID: &'static str = {repository_id:?};"));
        self.line(&format!("const NAME: &'static str = {:?};", definition.name));
        self.line("");
        self.line(&format!(
            "fn from_ior(ior: {ORB}::Ior, decoder: &{CDR}::Decoder<'_>) -> ::std::result::Result<Self, {CDR}::Error> {{"
        ));
        self.line(&format!("{ORB}::Object::from_ior(ior, decoder).map(Self)"));
        self.line("}");
        self.line("");
        self.line(&format!("fn ior(&self) -> &{ORB}::Ior {{"));
        self.line("self.0.ior()");
        self.line("}");
        self.line("}");
        for base in self.specification.lineage(id).collect::<Vec<_>>() {
            if base != id {
                let base = self.path(base, definition.parent);
                self.line("");
                self.item(&format!("impl From<{name}> for {base} {{"));
                self.line(&format!("fn from(derived: {name}) -> Self {{"));
                self.line(&format!("{ORB}::Stub::from_object(derived.0)"));
                self.line("}");
                self.line("}");
            }
        }
    }

    fn servant(&mut self, id: DefId, methods: &[Method<'_>]) {
        let definition = self.specification.get(id);
        let Kind::Interface(interface) = &definition.kind else { return };
        let name = &self.names.interface_of(id).servant;
        let bases: Vec<_> = interface.bases.iter().map(|base| self.servant_path(*base, definition.parent)).collect();
        let bases = if bases.is_empty() { "Send + Sync + 'static".to_owned() } else { bases.join(" + ") };
        self.line("");
        self.line(&format!("/// What implements `{}`.", self.specification.scoped_name(id)));
        self.item(&format!("pub trait {name}: {bases} {{"));
        let own = methods.iter().filter(|method| method.operation.declared_in == id);
        for (index, method) in own.enumerate() {
            if index > 0 {
                self.line("");
            }
            self.servant_method(definition.parent, method);
        }
        self.line("}");
    }

    /// The trait of what implements an interface, as it is named within a scope.
    pub(super) fn servant_path(&self, interface: DefId, from: DefId) -> String {
        self.path_to(interface, &self.names.interface_of(interface).servant, from)
    }

    fn skeleton(&mut self, id: DefId, methods: &[Method<'_>]) {
        let definition = self.specification.get(id);
        let names = self.names.interface_of(id);
        let (name, servant) = (&names.skeleton, &names.servant);
        let lineage = self.specification.lineage(id).rev();
        let ids: Vec<_> = lineage.map(|id| format!("{:?}", self.specification.repository_id(id))).collect();
        self.line("");
        self.line(&format!("/// Makes a [`{servant}`] an object that an adapter can activate."));
        self.line("#[derive(Debug)]");
        self.item(&format!("pub struct {name}<S>(pub S);"));
        self.line("");
        self.item(&format!("impl<S: {servant}> {ORB}::Servant for {name}<S> {{"));
        self.line("fn type_ids(&self) -> &'static [&'static str] {");
        self.line(&format!("&[{}]", ids.join(", ")));
        self.line("}");
        self.line("");
        self.line(&format!(
            "fn dispatch(&self, call: &mut {ORB}::Call<'_>) -> ::std::result::Result<(), {ORB}::SystemException> {{"
        ));
        self.line("match call.operation() {");
        for method in methods {
            self.dispatch(method, definition.parent);
        }
        self.line("_ => Err(call.unknown_operation()),");
        self.line("}");
        self.line("}");
        self.line("}");
    }
}
