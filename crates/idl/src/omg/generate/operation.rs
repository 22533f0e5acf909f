//! Operations: how a client calls one, and how a servant is called.

use super::super::syntax::{DefId, Direction, Kind, Operation, Parameter, Type};
use super::names::{CallNames, OperationNames, SYSTEM};
use super::{CDR, Generator, ORB};
use crate::names::plain;

/// An operation of an interface, perhaps an inherited one.
#[derive(Clone, Copy)]
pub(super) struct Method<'a> {
    pub(super) operation: &'a Operation,
    pub(super) names: &'a OperationNames,
    pub(super) call: &'a CallNames,
}

impl<'a> Method<'a> {
    /// What the client sends, with its name.
    fn sent(&self) -> Vec<(&'a Parameter, &'a str)> {
        let named = self.operation.parameters.iter().zip(self.names.parameters.iter().map(String::as_str));
        named.filter(|(parameter, _)| parameter.direction != Direction::Out).collect()
    }

    /// The types that come back: the result, then the out parameters.
    fn returned(&self) -> Vec<&'a Type> {
        let out = self.operation.parameters.iter().filter(|parameter| parameter.direction != Direction::In);
        self.operation.result.iter().chain(out.map(|parameter| &parameter.of)).collect()
    }
}

impl Generator<'_> {
    /// What may go wrong, if it is more than a system exception.
    pub(super) fn error_of(&mut self, interface: DefId, method: &Method<'_>) {
        let operation = method.operation;
        if operation.raises.is_empty() {
            return;
        }
        let parent = self.specification.get(interface).parent;
        let name = self.error_name(method, parent);
        let paths = operation.raises.iter().map(|id| self.path(*id, parent));
        let variants: Vec<_> = method.names.exceptions.iter().map(String::as_str).zip(paths).collect();
        let scoped = self.specification.scoped_name(interface);
        self.line("");
        self.line(&format!("/// Why `{}` of `{scoped}` failed.", operation.wire_name()));
        self.line("#[derive(Debug, Clone, PartialEq)]");
        self.item(&format!("pub enum {name} {{"));
        for (variant, path) in &variants {
            self.line("/// The servant has raised it.");
            self.line(&format!("{variant}({path}),"));
        }
        self.line("/// The call itself failed.");
        self.line(&format!("{SYSTEM}({ORB}::SystemException),"));
        self.line("}");
        self.line("");
        self.item(&format!("impl {ORB}::Failure for {name} {{"));
        self.line(&format!(
            "fn decode(id: &[u8], decoder: &mut {CDR}::Decoder<'_>) -> Option<::std::result::Result<Self, {CDR}::Error>> {{"
        ));
        for (variant, path) in &variants {
            self.line(&format!("if id == <{path} as {ORB}::UserException>::ID.as_bytes() {{"));
            self.line(&format!("return Some({CDR}::Cdr::decode(decoder).map(Self::{variant}));"));
            self.line("}");
        }
        self.line("None");
        self.line("}");
        self.line("}");
        let sources = variants.into_iter().chain([(SYSTEM, format!("{ORB}::SystemException"))]);
        let sources: Vec<_> = sources.collect();
        for (variant, path) in &sources {
            self.line("");
            self.item(&format!("impl From<{path}> for {name} {{"));
            self.line(&format!("fn from(exception: {path}) -> Self {{"));
            self.line(&format!("Self::{variant}(exception)"));
            self.line("}");
            self.line("}");
        }
        self.line("");
        self.item(&format!("impl ::std::fmt::Display for {name} {{"));
        self.line("fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {");
        self.line("match self {");
        for (variant, _) in &sources {
            self.line(&format!("Self::{variant}(exception) => exception.fmt(f),"));
        }
        self.line("}");
        self.line("}");
        self.line("}");
        self.line("");
        self.item(&format!("impl ::std::error::Error for {name} {{}}"));
    }

    /// The type of the error of an operation.
    fn error_name(&self, method: &Method<'_>, from: DefId) -> String {
        if method.operation.raises.is_empty() {
            return format!("{ORB}::SystemException");
        }
        self.path_to(method.operation.declared_in, &method.names.error, from)
    }

    /// The calls of a reference: waiting, and sent now to be collected later.
    pub(super) fn calls(&mut self, id: DefId, methods: &[Method<'_>]) {
        let parent = self.specification.get(id).parent;
        if methods.is_empty() {
            return;
        }
        self.line("");
        self.item(&format!("impl {} {{", self.name(id)));
        for (index, method) in methods.iter().enumerate() {
            if index > 0 {
                self.line("");
            }
            let CallNames { call, begin } = method.call;
            let wire_name = method.operation.wire_name();
            let parameters = self.call_parameters(method, parent);
            let result = self.outcome(method, parent);
            let error = self.error_name(method, parent);
            self.doc_lines(&method.operation.docs, &format!("`{wire_name}`"));
            self.line(&format!("pub fn {call}(&self{parameters}) -> ::std::result::Result<{result}, {error}> {{"));
            let encode = self.encode_arguments(method);
            if method.operation.oneway {
                self.line(&format!("self.0.oneway({wire_name:?}, {encode})"));
                self.line("}");
                continue;
            }
            let decode = self.decode_outcome(method);
            self.line(&format!("self.0.call({wire_name:?}, {encode}, {decode})"));
            self.line("}");
            self.line("");
            self.line(&format!("/// Sends [`Self::{}`] now; what comes back is collected later.", plain(call)));
            self.line(&format!(
                "pub fn {begin}(&self{parameters}) -> ::std::result::Result<{ORB}::Deferred<{result}, {error}>, {error}> {{"
            ));
            self.line(&format!("self.0.begin({wire_name:?}, {encode}, {decode})"));
            self.line("}");
        }
        self.line("}");
    }

    fn call_parameters(&self, method: &Method<'_>, from: DefId) -> String {
        let sent = method.sent().into_iter();
        sent.map(|(parameter, name)| format!(", {name}: {}", self.borrowed(&parameter.of, from))).collect()
    }

    /// The type of an argument that the callee does not keep.
    fn borrowed(&self, of: &Type, from: DefId) -> String {
        match self.specification.unaliased(of) {
            _ if self.is_copy(of) => self.rust(of, from),
            Type::String(0) => "&str".to_owned(),
            Type::Sequence(element, 0) => format!("&[{}]", self.rust(element, from)),
            Type::Object => format!("Option<&{ORB}::Object>"),
            Type::Named(id) if matches!(self.specification.get(*id).kind, Kind::Interface(_)) => {
                format!("Option<&{}>", self.path(*id, from))
            }
            _ => format!("&{}", self.rust(of, from)),
        }
    }

    fn encode_arguments(&self, method: &Method<'_>) -> String {
        let sent = method.sent();
        if sent.is_empty() {
            return "|_| Ok(())".to_owned();
        }
        let each = |(parameter, name): &(&Parameter, &str)| match self.specification.unaliased(&parameter.of) {
            Type::String(0) => format!("encoder.string({name})"),
            Type::Sequence(_, 0) => format!("encoder.sequence({name})"),
            Type::Object => format!("encoder.reference({name})"),
            Type::Named(id) if matches!(self.specification.get(*id).kind, Kind::Interface(_)) => {
                format!("encoder.reference({name})")
            }
            _ if self.is_copy(&parameter.of) => format!("{CDR}::Cdr::encode(&{name}, encoder)"),
            _ => format!("{CDR}::Cdr::encode({name}, encoder)"),
        };
        if let [only] = sent.as_slice() {
            return format!("|encoder| {}", each(only));
        }
        let statements: String = sent.iter().map(|parameter| format!("{}?; ", each(parameter))).collect();
        format!("|encoder| {{ {statements}Ok(()) }}")
    }

    fn outcome(&self, method: &Method<'_>, from: DefId) -> String {
        let returned: Vec<_> = method.returned().into_iter().map(|of| self.rust(of, from)).collect();
        match returned.as_slice() {
            [only] => only.clone(),
            _ => format!("({})", returned.join(", ")),
        }
    }

    fn decode_outcome(&self, method: &Method<'_>) -> String {
        let count = method.returned().len();
        match count {
            0 => "|_| Ok(())".to_owned(),
            1 => format!("{CDR}::Cdr::decode"),
            _ => format!("|decoder| Ok(({}))", vec![format!("{CDR}::Cdr::decode(decoder)?"); count].join(", ")),
        }
    }

    pub(super) fn servant_method(&mut self, from: DefId, method: &Method<'_>) {
        let sent = method.sent().into_iter();
        let parameters: String =
            sent.map(|(parameter, name)| format!(", {name}: {}", self.rust(&parameter.of, from))).collect();
        self.doc_lines(&method.operation.docs, &format!("`{}`", method.operation.wire_name()));
        let result = self.outcome(method, from);
        let error = self.error_name(method, from);
        let name = &method.names.method;
        self.line(&format!("fn {name}(&self{parameters}) -> ::std::result::Result<{result}, {error}>;"));
    }

    /// The arm that calls the servant.
    pub(super) fn dispatch(&mut self, method: &Method<'_>, from: DefId) {
        let sent = method.sent();
        // Names of the IDL could hide `call`.
        let arguments: Vec<_> = (0..sent.len()).map(|index| format!("argument_{index}")).collect();
        self.line(&format!("{:?} => {{", method.operation.wire_name()));
        let decode = vec![format!("{CDR}::Cdr::decode(decoder)?"); sent.len()].join(", ");
        match arguments.as_slice() {
            [] => self.line("call.arguments(|_| Ok(()))?;"),
            [only] => self.line(&format!("let {only} = call.arguments({CDR}::Cdr::decode)?;")),
            _ => self.line(&format!("let ({}) = call.arguments(|decoder| Ok(({decode})))?;", arguments.join(", "))),
        }
        let servant = self.servant_path(method.operation.declared_in, from);
        let separator = if arguments.is_empty() { "" } else { ", " };
        let name = &method.names.method;
        let invocation = format!("{servant}::{name}(&self.0{separator}{})", arguments.join(", "));
        let reply = match method.returned().len() {
            0 => "call.reply(|_| Ok(()))".to_owned(),
            1 => format!("call.reply(|encoder| {CDR}::Cdr::encode(&outcome, encoder))"),
            count => {
                let parts: String =
                    (0..count).map(|index| format!("{CDR}::Cdr::encode(&outcome.{index}, encoder)?; ")).collect();
                format!("call.reply(|encoder| {{ {parts}Ok(()) }})")
            }
        };
        let outcome = if method.returned().is_empty() { "()" } else { "outcome" };
        if method.operation.raises.is_empty() {
            match outcome {
                "()" => self.line(&format!("{invocation}?;")),
                _ => self.line(&format!("let outcome = {invocation}?;")),
            }
            self.line(&reply);
        } else {
            let error = self.error_name(method, from);
            self.line(&format!("match {invocation} {{"));
            self.line(&format!("Ok({outcome}) => {reply},"));
            for variant in &method.names.exceptions {
                self.line(&format!("Err({error}::{variant}(exception)) => call.raise(&exception),"));
            }
            self.line(&format!("Err({error}::{SYSTEM}(exception)) => Err(exception),"));
            self.line("}");
        }
        self.line("}");
    }
}
