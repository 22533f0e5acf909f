//! Programs: for each version a client, a trait for the service, and what gives calls to it.

use super::{Generator, Place, shown};
use crate::rpc::names::{ProcedureNames, VersionNames};
use crate::rpc::syntax::{Base, Declaration, Definition, Procedure, Program, Shape, Version};

impl Generator<'_> {
    /// The code of a program, which is the definition with this index.
    pub fn program(&mut self, index: usize, it: &Program) {
        let program = self.model.value(&it.number);
        for (place, version) in it.versions.iter().enumerate() {
            if place > 0 {
                self.line(0, "");
            }
            let names = self.model.names.version(index, place);
            let of = format!(
                "`{}`, version {} of program `{}`",
                version.name.text,
                shown::value(&version.number),
                it.name.text
            );
            self.client(version, names, program, &of);
            self.line(0, "");
            self.service(version, names, &of);
            self.line(0, "");
            self.server(version, names, program, &of);
        }
    }

    fn client(&mut self, it: &Version, names: &VersionNames, program: i128, of: &str) {
        let name = &names.client;
        let version = self.model.value(&it.number);
        self.line(0, &format!("/// Calls {of}."));
        self.line(0, "#[derive(Debug, Clone)]");
        self.line(0, &format!("pub struct {name} {{"));
        self.line(1, "client: Client,");
        self.line(0, "}");
        self.line(0, "");
        self.line(0, &format!("impl {name} {{"));
        self.line(1, "/// The number of the program.");
        self.line(1, &format!("pub const PROGRAM: u32 = {program};"));
        self.line(1, "/// The number of the version.");
        self.line(1, &format!("pub const VERSION: u32 = {version};"));
        self.line(0, "");
        self.line(1, "/// Calls through a client that may also be used for other programs.");
        self.line(1, "pub fn new(client: Client) -> Self {");
        self.line(2, "Self { client }");
        self.line(1, "}");
        self.line(0, "");
        self.line(1, "/// Connects to an address, for example `tcp:127.0.0.1:2049`.");
        self.line(1, "pub fn connect(address: &str) -> Result<Self, Error> {");
        self.line(2, "Client::connect(address).map(Self::new)");
        self.line(1, "}");
        self.line(0, "");
        self.line(1, "/// What the calls go through.");
        self.line(1, "pub fn client(&self) -> &Client {");
        self.line(2, "&self.client");
        self.line(1, "}");
        if self.null_is_missing(it) {
            self.line(0, "");
            self.line(1, "/// Procedure 0, which does nothing.");
            self.line(1, "pub fn null(&self) -> Result<(), Error> {");
            let procedure = "Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 }";
            self.line(2, &format!("self.client.call({procedure}, |_| Ok(()), |_| Ok(()))"));
            self.line(1, "}");
        }
        for (procedure, names) in it.procedures.iter().zip(&names.procedures) {
            self.client_call(procedure, names);
        }
        self.line(0, "}");
    }

    fn client_call(&mut self, it: &Procedure, names: &ProcedureNames) {
        let ProcedureNames { call: name, begin, batch } = names;
        let arguments = argument_names(it);
        let mut parameters = String::new();
        for (argument, declaration) in arguments.iter().zip(&it.arguments) {
            parameters += &format!(", {argument}: {}", self.lent(declaration));
        }
        let result = self.result_type(it);
        let number = self.model.value(&it.number);
        let shown = shown::procedure(it);
        let encode = self.encode_arguments(it, &arguments);
        let decode = match &it.result {
            None => "|_| Ok(())".to_owned(),
            Some(declaration) => format!("|input| {}", self.decode(declaration)),
        };
        let procedure = format!(
            "let procedure = Procedure {{ program: Self::PROGRAM, version: Self::VERSION, procedure: {number} }};"
        );
        self.line(0, "");
        self.line(1, &format!("/// `{shown}`."));
        self.line(1, &format!("pub fn {name}(&self{parameters}) -> Result<{result}, Error> {{"));
        self.line(2, &procedure);
        self.line(2, &format!("self.client.call(procedure, {encode}, {decode})"));
        self.line(1, "}");
        self.line(0, "");
        self.line(1, &format!("/// Begins `{}` and does not wait for its end.", it.name.text));
        self.line(1, &format!("pub fn {begin}(&self{parameters}) -> Result<Pending<{result}>, Error> {{"));
        self.line(2, &procedure);
        self.line(2, &format!("self.client.begin(procedure, {encode}, {decode})"));
        self.line(1, "}");
        if it.result.is_none() {
            self.line(0, "");
            self.line(
                1,
                &format!(
                    "/// Sends `{}` to a server that does not reply to it. It may wait for the next call.",
                    it.name.text
                ),
            );
            self.line(1, &format!("pub fn {batch}(&self{parameters}) -> Result<(), Error> {{"));
            self.line(2, &procedure);
            self.line(2, &format!("self.client.batch(procedure, {encode})"));
            self.line(1, "}");
        }
    }

    fn encode_arguments(&self, it: &Procedure, arguments: &[String]) -> String {
        let encoded: Vec<String> = it
            .arguments
            .iter()
            .zip(arguments)
            .map(|(declaration, argument)| self.encode(declaration, &self.lent_place(declaration, argument)))
            .collect();
        match encoded.as_slice() {
            [] => "|_| Ok(())".to_owned(),
            [one] => format!("|out| {one}"),
            [first @ .., last] => {
                let first: String = first.iter().map(|it| format!("{it}?; ")).collect();
                format!("|out| {{ {first}{last} }}")
            }
        }
    }

    fn service(&mut self, it: &Version, names: &VersionNames, of: &str) {
        let name = &names.service;
        self.line(0, &format!("/// What a server does for {of}."));
        self.line(0, &format!("pub trait {name}: Send + Sync + 'static {{"));
        if self.null_is_missing(it) {
            self.line(1, "/// Procedure 0, which does nothing.");
            self.line(1, "fn null(&self, _call: &Call<'_>) -> Result<(), Refusal> {");
            self.line(2, "Ok(())");
            self.line(1, "}");
        }
        for (index, (procedure, names)) in it.procedures.iter().zip(&names.procedures).enumerate() {
            if index > 0 || self.null_is_missing(it) {
                self.line(0, "");
            }
            let mut parameters = String::new();
            for (argument, declaration) in argument_names(procedure).iter().zip(&procedure.arguments) {
                parameters += &format!(", {argument}: {}", self.given(declaration));
            }
            let result = self.result_type(procedure);
            let method = &names.call;
            self.line(1, &format!("/// `{}`.", shown::procedure(procedure)));
            self.line(1, &format!("fn {method}(&self, call: &Call<'_>{parameters}) -> Result<{result}, Refusal>;"));
        }
        self.line(0, "}");
    }

    fn server(&mut self, it: &Version, names: &VersionNames, program: i128, of: &str) {
        let VersionNames { server: name, service, .. } = names;
        let version = self.model.value(&it.number);
        self.line(0, &format!("/// Gives the calls of {of} to a service."));
        self.line(0, "#[derive(Debug)]");
        self.line(0, &format!("pub struct {name}<T>(pub T);"));
        self.line(0, "");
        self.line(0, &format!("impl<T: {service}> Service for {name}<T> {{"));
        self.line(1, "fn program(&self) -> u32 {");
        self.line(2, &program.to_string());
        self.line(1, "}");
        self.line(0, "");
        self.line(1, "fn version(&self) -> u32 {");
        self.line(2, &version.to_string());
        self.line(1, "}");
        self.line(0, "");
        self.line(
            1,
            "fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {",
        );
        self.line(2, "let _ = &out;");
        self.line(2, "match call.procedure {");
        if self.null_is_missing(it) {
            self.line(3, "0 => {");
            self.line(4, "input.finish()?;");
            self.line(4, "self.0.null(call)");
            self.line(3, "}");
        }
        for (procedure, names) in it.procedures.iter().zip(&names.procedures) {
            self.server_call(procedure, names);
        }
        self.line(3, "_ => Err(Refusal::ProcedureUnavailable),");
        self.line(2, "}");
        self.line(1, "}");
        self.repeatable(it);
        self.line(0, "}");
    }

    /// Which procedures may be executed again, if the file says so of any.
    fn repeatable(&mut self, it: &Version) {
        let said = it.procedures.iter().filter(|procedure| procedure.repeatable);
        let mut numbers: Vec<i128> = said.map(|procedure| self.model.value(&procedure.number)).collect();
        if numbers.is_empty() {
            return;
        }
        numbers.push(0);
        numbers.sort_unstable();
        numbers.dedup();
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        self.line(0, "");
        self.line(1, "fn repeatable(&self, procedure: u32) -> bool {");
        self.line(2, &format!("matches!(procedure, {})", numbers.join(" | ")));
        self.line(1, "}");
    }

    fn server_call(&mut self, it: &Procedure, names: &ProcedureNames) {
        let arguments = argument_names(it);
        self.line(3, &format!("{} => {{", self.model.value(&it.number)));
        for (argument, declaration) in arguments.iter().zip(&it.arguments) {
            let resolved = self.resolved(declaration);
            let value = match borrowed(resolved) {
                Some(_) => self.decode_borrowed(resolved),
                None => self.decode(declaration),
            };
            self.line(4, &format!("let {argument} = {value}?;"));
        }
        self.line(4, "input.finish()?;");
        let passed: String = arguments.iter().map(|argument| format!(", {argument}")).collect();
        let call = format!("self.0.{}(call{passed})", names.call);
        match &it.result {
            None => self.line(4, &call),
            Some(declaration) => {
                let place = Place { value: "result".into(), reference: "&result".into(), receiver: "result".into() };
                self.line(4, &format!("let result = {call}?;"));
                let encode = self.encode(declaration, &place);
                self.line(4, &format!("{encode}.map_err(Refusal::of_results)"));
            }
        }
        self.line(3, "}");
    }

    fn null_is_missing(&self, it: &Version) -> bool {
        it.procedures.iter().all(|procedure| self.model.value(&procedure.number) != 0)
    }

    fn result_type(&self, it: &Procedure) -> String {
        it.result.as_ref().map_or_else(|| "()".to_owned(), |declaration| self.rust_type(declaration))
    }

    /// The declaration behind all typedefs.
    fn resolved<'b>(&'b self, it: &'b Declaration) -> &'b Declaration {
        match (&it.base, &it.shape) {
            (Base::Named(name), Shape::One) => match self.model.type_named(name) {
                Some(Definition::Typedef(inner)) => match (&inner.base, &inner.shape) {
                    (Base::Named(_), Shape::One) => self.resolved(inner),
                    _ => inner,
                },
                _ => it,
            },
            _ => it,
        }
    }

    /// The type of an argument that a client passes.
    fn lent(&self, it: &Declaration) -> String {
        let resolved = self.resolved(it);
        if let Some(kind) = borrowed(resolved) {
            return kind.to_owned();
        }
        match (&resolved.base, &resolved.shape) {
            (Base::Scalar(_), Shape::One) => self.rust_type(it),
            (_, Shape::Variable(_)) => {
                let kind = self.rust_type(resolved);
                format!("&[{}]", kind.trim_start_matches("Vec<").strip_suffix('>').unwrap_or(&kind))
            }
            _ => format!("&{}", self.rust_type(it)),
        }
    }

    fn lent_place(&self, it: &Declaration, argument: &str) -> Place {
        let resolved = self.resolved(it);
        match (&resolved.base, &resolved.shape) {
            (Base::Scalar(_), Shape::One) => Place::value(argument),
            _ => Place::reference(argument),
        }
    }

    /// The type of an argument that a service gets.
    fn given(&self, it: &Declaration) -> String {
        let resolved = self.resolved(it);
        borrowed(resolved).map_or_else(|| self.rust_type(it), str::to_owned)
    }
}

/// The type in which strings and opaque data of varying length are passed without a copy.
fn borrowed(it: &Declaration) -> Option<&'static str> {
    match (&it.base, &it.shape) {
        (Base::String, _) => Some("&str"),
        (Base::Opaque, Shape::Variable(_)) => Some("&[u8]"),
        _ => None,
    }
}

fn argument_names(it: &Procedure) -> Vec<String> {
    match it.arguments.len() {
        1 => vec!["argument".to_owned()],
        count => (1..=count).map(|number| format!("argument{number}")).collect(),
    }
}
