//! Interfaces: a reference with typed calls, a trait for whoever implements it, and what joins both.

use super::super::syntax::{DefId, Kind, Operation};
use super::{CDR, Generator, ORB, camel};

impl Generator<'_> {
    pub(super) fn interface(&mut self, id: DefId) {
        let operations = self.operations(id);
        for operation in operations.iter().filter(|operation| operation.declared_in == id) {
            self.error_of(id, operation);
        }
        self.reference(id);
        self.calls(id, &operations);
        self.servant(id);
        self.skeleton(id, &operations);
    }

    /// What it declares and inherits.
    fn operations(&self, id: DefId) -> Vec<Operation> {
        let lineage = self.specification.lineage(id);
        let interfaces = lineage.iter().filter_map(|id| match &self.specification.get(*id).kind {
            Kind::Interface(interface) => Some(interface),
            _ => None,
        });
        interfaces.flat_map(|interface| interface.operations.iter().cloned()).collect()
    }

    fn reference(&mut self, id: DefId) {
        let definition = self.specification.get(id);
        let name = camel(&definition.name);
        let repository_id = self.specification.repository_id(id);
        self.line("");
        self.docs(id);
        self.line("///");
        self.line(&format!("/// This is a reference to such an object; [`{name}Servant`] is what implements one."));
        self.line("#[derive(Debug, Clone, PartialEq)]");
        self.line(&format!("pub struct {name}({ORB}::Object);"));
        self.line("");
        self.line(&format!("impl {ORB}::Stub for {name} {{"));
        self.line(&format!("fn from_object(object: {ORB}::Object) -> Self {{"));
        self.line("Self(object)");
        self.line("}");
        self.line("");
        self.line(&format!("fn object(&self) -> &{ORB}::Object {{"));
        self.line("&self.0");
        self.line("}");
        self.line("}");
        self.line("");
        self.line(&format!("impl {CDR}::Reference for {name} {{"));
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
        for base in self.specification.lineage(id) {
            if base != id {
                let base = self.path(base, definition.parent);
                self.line("");
                self.line(&format!("impl From<{name}> for {base} {{"));
                self.line(&format!("fn from(derived: {name}) -> Self {{"));
                self.line(&format!("{ORB}::Stub::from_object(derived.0)"));
                self.line("}");
                self.line("}");
            }
        }
    }

    fn servant(&mut self, id: DefId) {
        let definition = self.specification.get(id);
        let Kind::Interface(interface) = &definition.kind else { return };
        let name = camel(&definition.name);
        let bases: Vec<_> =
            interface.bases.iter().map(|base| format!("{}Servant", self.path(*base, definition.parent))).collect();
        let bases = if bases.is_empty() { "Send + Sync + 'static".to_owned() } else { bases.join(" + ") };
        self.line("");
        self.line(&format!("/// What implements `{}`.", self.specification.scoped_name(id)));
        self.line(&format!("pub trait {name}Servant: {bases} {{"));
        for (index, operation) in interface.operations.iter().enumerate() {
            if index > 0 {
                self.line("");
            }
            self.servant_method(definition.parent, operation);
        }
        self.line("}");
    }

    fn skeleton(&mut self, id: DefId, operations: &[Operation]) {
        let definition = self.specification.get(id);
        let name = camel(&definition.name);
        let mut lineage = self.specification.lineage(id);
        lineage.reverse();
        let ids: Vec<_> = lineage.iter().map(|id| format!("{:?}", self.specification.repository_id(*id))).collect();
        self.line("");
        self.line(&format!("/// Makes a [`{name}Servant`] an object that an adapter can activate."));
        self.line("#[derive(Debug)]");
        self.line(&format!("pub struct {name}Skeleton<S>(pub S);"));
        self.line("");
        self.line(&format!("impl<S: {name}Servant> {ORB}::Servant for {name}Skeleton<S> {{"));
        self.line("fn type_ids(&self) -> &'static [&'static str] {");
        self.line(&format!("&[{}]", ids.join(", ")));
        self.line("}");
        self.line("");
        self.line(&format!(
            "fn dispatch(&self, call: &mut {ORB}::Call<'_>) -> ::std::result::Result<(), {ORB}::SystemException> {{"
        ));
        self.line("match call.operation() {");
        for operation in operations {
            self.dispatch(operation, definition.parent);
        }
        self.line("_ => Err(call.unknown_operation()),");
        self.line("}");
        self.line("}");
        self.line("}");
    }
}
