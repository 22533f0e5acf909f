//! Tokens to definitions. Names are resolved on the way, since IDL declares before it uses.

use std::collections::HashMap;

use super::keywords::keyword;
use super::lexer::{Spanned, Token};
use super::syntax::{DefId, Definition, GLOBAL, Kind, RepositoryId, Specification};
use crate::source::{Diagnostics, Location};

/// A message has been written; whoever can go on behind the fault does.
#[derive(Debug)]
pub(super) struct Failed;

pub(super) type Parse<T> = Result<T, Failed>;

/// Reads a whole file.
pub(super) fn parse(tokens: Vec<Spanned>, diagnostics: &mut Diagnostics) -> Specification {
    let at = tokens[0].at.clone();
    let global = Definition {
        name: String::new(),
        repository_id: RepositoryId::default(),
        at,
        docs: Vec::new(),
        parent: GLOBAL,
        kind: Kind::Module,
    };
    let specification = Specification { definitions: vec![global] };
    let prefixes = vec![String::new()];
    let names = HashMap::new();
    let mut parser = Parser { tokens, index: 0, specification, names, scope: GLOBAL, prefixes, depth: 0, diagnostics };
    parser.settle();
    while parser.peek() != &Token::End {
        if parser.definition().is_err() {
            parser.recover();
            // A bracket too many would be met again and again.
            if parser.peek() == &Token::Symbol("}") {
                parser.bump();
            }
        }
    }
    parser.check_announced();
    parser.specification
}

/// How deep modules, types and brackets may stand in each other, and how many lengths an array may have.
pub(super) const MAX_DEPTH: usize = 64;

pub(super) struct Parser<'a> {
    tokens: Vec<Spanned>,
    index: usize,
    pub(super) specification: Specification,
    /// Names in lower case, since two names may not differ in case alone.
    names: HashMap<(DefId, String), DefId>,
    pub(super) scope: DefId,
    /// What `#pragma prefix` said, for each file and scope that is open.
    prefixes: Vec<String>,
    /// How many things are open that stand in each other.
    depth: usize,
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.index].token
    }

    /// A token behind the next one.
    pub(super) fn ahead(&self, count: usize) -> Option<&Token> {
        self.tokens.get(self.index + count).map(|spanned| &spanned.token)
    }

    pub(super) fn at(&self) -> Location {
        self.tokens[self.index].at.clone()
    }

    pub(super) fn docs(&self) -> Vec<String> {
        self.tokens[self.index].comment.clone()
    }

    pub(super) fn bump(&mut self) -> Token {
        let token = self.peek().clone();
        if token != Token::End {
            self.index += 1;
            self.settle();
        }
        token
    }

    /// Carries out the directives in front of the next token.
    fn settle(&mut self) {
        loop {
            match self.peek().clone() {
                Token::Pragma(line) => self.pragma(&line),
                Token::FileBegins => self.prefixes.push(String::new()),
                Token::FileEnds => drop(self.prefixes.pop()),
                _ => return,
            }
            self.index += 1;
        }
    }

    /// Refuses a name that is there already, or differs from one that is there only in case.
    pub(super) fn unlike<'n>(
        &mut self,
        mut names: impl Iterator<Item = &'n str>,
        name: &str,
        what: &str,
        at: &Location,
    ) -> Parse<()> {
        match names.find(|before| before.eq_ignore_ascii_case(name)) {
            None => Ok(()),
            Some(before) if before == name => self.error_at(at, format!("there are two {what} {name:?}")),
            Some(before) => {
                self.error_at(at, format!("{name:?} differs only in case from {before:?}, which IDL forbids"))
            }
        }
    }

    pub(super) fn error<T>(&mut self, message: impl Into<String>) -> Parse<T> {
        let at = self.at();
        self.error_at(&at, message)
    }

    pub(super) fn error_at<T>(&mut self, at: &Location, message: impl Into<String>) -> Parse<T> {
        self.diagnostics.error(at, message);
        Err(Failed)
    }

    pub(super) fn expected<T>(&mut self, what: &str) -> Parse<T> {
        let found = match self.peek() {
            Token::End => "the end of the file".to_owned(),
            Token::Identifier { name, .. } => format!("{name:?}"),
            Token::Symbol(symbol) => format!("{symbol:?}"),
            Token::Integer(number) => number.to_string(),
            Token::Float(number) => format!("{number:?}"),
            Token::Fixed(_) => "a fixed-point number".to_owned(),
            Token::Char(each) | Token::WideChar(each) => format!("the character {each:?}"),
            Token::Text(text) | Token::WideText(text) => format!("the text {text:?}"),
            Token::Pragma(_) | Token::FileBegins | Token::FileEnds => "a directive".to_owned(),
        };
        // Foo instead of foo is a mistake that is easily overlooked.
        let hint = match self.peek() {
            Token::Identifier { name, escaped: false } => keyword(name).filter(|keyword| keyword != name),
            _ => None,
        };
        let hint = hint.map(|keyword| format!("; the keyword is written {keyword:?}")).unwrap_or_default();
        self.error(format!("{what} expected, {found} found{hint}"))
    }

    /// Reads something that may stand in its like.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth == MAX_DEPTH {
            return self.error(format!("this is nested more than {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    pub(super) fn symbol(&mut self, symbol: &'static str) -> Parse<()> {
        if self.accept(symbol) { Ok(()) } else { self.expected(&format!("{symbol:?}")) }
    }

    pub(super) fn accept(&mut self, symbol: &'static str) -> bool {
        // Two closing brackets of nested sequences look like a shift.
        if symbol == ">" && self.peek() == &Token::Symbol(">>") {
            self.tokens[self.index].token = Token::Symbol(">");
            return true;
        }
        let found = self.peek() == &Token::Symbol(symbol);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Token::Identifier { name, escaped: false } if name == keyword)
    }

    pub(super) fn accept_keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn identifier(&mut self, what: &str) -> Parse<String> {
        match self.peek().clone() {
            Token::Identifier { name, escaped } => {
                if let Some(keyword) = keyword(&name).filter(|_| !escaped) {
                    let is = if keyword == name { "is" } else { "differs only in case from" };
                    return self.error(format!("{what} expected; {name:?} {is} a keyword, _{name} would be a name"));
                }
                self.bump();
                Ok(name)
            }
            _ => self.expected(what),
        }
    }

    pub(super) fn text(&mut self, what: &str) -> Parse<String> {
        match self.peek().clone() {
            Token::Text(mut text) => {
                self.bump();
                while let Token::Text(more) = self.peek().clone() {
                    text.push_str(&more);
                    self.bump();
                }
                Ok(text)
            }
            _ => self.expected(what),
        }
    }

    /// Goes on behind the next semicolon, or before the bracket that closes the scope.
    pub(super) fn recover(&mut self) {
        let mut depth = 0;
        loop {
            match self.peek() {
                Token::End => return,
                Token::Symbol("{") => depth += 1,
                Token::Symbol("}") if depth == 0 => return,
                Token::Symbol("}") => depth -= 1,
                Token::Symbol(";") if depth == 0 => {
                    self.bump();
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Adds a definition to the scope.
    pub(super) fn declare(&mut self, name: &str, at: &Location, docs: Vec<String>, kind: Kind) -> Parse<DefId> {
        if let Some(&before) = self.names.get(&(self.scope, name.to_lowercase())) {
            let before = self.specification.get(before);
            let message = match before.name == name {
                true => format!("{name:?} is declared already, at {}", before.at),
                false => format!(
                    "{name:?} differs only in case from {:?}, declared at {}, which IDL forbids",
                    before.name, before.at
                ),
            };
            return self.error_at(at, message);
        }
        if let Kind::Interface(interface) = &self.specification.get(self.scope).kind
            && let Some(before) = interface.operations.iter().find(|before| before.name.eq_ignore_ascii_case(name))
        {
            let message = format!("{name:?} is declared already, at {}", before.at);
            return self.error_at(at, message);
        }
        let prefix = self.prefixes.last().cloned().unwrap_or_default();
        let repository_id = RepositoryId { prefix, ..RepositoryId::default() };
        let id = DefId(self.specification.definitions.len());
        let parent = self.scope;
        let definition = Definition { name: name.to_owned(), repository_id, at: at.clone(), docs, parent, kind };
        self.specification.definitions.push(definition);
        self.names.insert((self.scope, name.to_lowercase()), id);
        Ok(id)
    }

    /// What this scope itself declares under a name.
    pub(super) fn declared(&self, scope: DefId, name: &str) -> Option<DefId> {
        self.names.get(&(scope, name.to_lowercase())).copied()
    }

    /// What is declared under just this name in the scope that is read.
    pub(super) fn declared_here(&self, name: &str) -> Option<DefId> {
        self.declared(self.scope, name).filter(|id| self.specification.get(*id).name == name)
    }

    /// Reads what stands within a definition.
    pub(super) fn within<T>(&mut self, scope: DefId, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.scope, scope);
        let prefix = self.prefixes.last().cloned().unwrap_or_default();
        self.prefixes.push(prefix);
        let value = read(self);
        self.prefixes.pop();
        self.scope = outer;
        value
    }

    /// Reads a scoped name and finds what it names.
    pub(super) fn scoped_name(&mut self, what: &str) -> Parse<DefId> {
        let at = self.at();
        let global = self.accept("::");
        let mut shown = if global { "::".to_owned() } else { String::new() };
        let first = self.identifier(what)?;
        shown.push_str(&first);
        let mut found = if global { self.declared(GLOBAL, &first) } else { self.lookup(&first) };
        self.same_case(found, &first, &at)?;
        while self.accept("::") {
            let name = self.identifier("a name")?;
            shown.push_str("::");
            shown.push_str(&name);
            found = found.and_then(|scope| self.lookup_in(scope, &name));
            self.same_case(found, &name, &at)?;
        }
        match found {
            Some(id) => Ok(id),
            None => self.error_at(&at, format!("{shown:?} is not declared")),
        }
    }

    fn same_case(&mut self, found: Option<DefId>, written: &str, at: &Location) -> Parse<()> {
        match found.map(|id| self.specification.get(id).name.clone()) {
            Some(name) if name != written => {
                self.error_at(at, format!("{written:?} is declared as {name:?}, and case matters"))
            }
            _ => Ok(()),
        }
    }

    /// What a name means here: in this scope, what it inherits, or the scopes around it.
    fn lookup(&self, name: &str) -> Option<DefId> {
        let mut scope = self.scope;
        loop {
            if let Some(found) = self.lookup_in(scope, name) {
                return Some(found);
            }
            if scope == GLOBAL {
                return None;
            }
            // The name of a scope is known within it.
            if self.specification.get(scope).name.eq_ignore_ascii_case(name) {
                return Some(scope);
            }
            scope = self.specification.get(scope).parent;
        }
    }

    fn lookup_in(&self, scope: DefId, name: &str) -> Option<DefId> {
        self.specification.lineage(scope).rev().find_map(|scope| self.declared(scope, name))
    }

    fn pragma(&mut self, line: &str) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let at = self.at();
        match word {
            "prefix" => {
                if let Some(prefix) = self.prefixes.last_mut() {
                    *prefix = rest.trim_matches('"').to_owned();
                }
            }
            "ID" | "version" => {
                let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let mut parts = name.trim_start_matches("::").split("::");
                let first = parts.next().unwrap_or_default();
                let found = parts.fold(self.lookup(first), |scope, part| self.lookup_in(scope?, part));
                let Some(found) = found else {
                    return self.diagnostics.error(&at, format!("#pragma {word}: {name:?} is not declared"));
                };
                let id = &mut self.specification.definitions[found.0].repository_id;
                let value = value.trim().trim_matches('"').to_owned();
                match word {
                    "ID" => id.explicit = Some(value),
                    _ => id.version = Some(value),
                }
            }
            _ => self.diagnostics.warning(&at, format!("#pragma {word} is ignored")),
        }
    }

    /// Types that were announced have to be declared, except interfaces, which others may declare.
    fn check_announced(&mut self) {
        for definition in &self.specification.definitions {
            let announced = match &definition.kind {
                Kind::Struct(fields) => !fields.complete,
                Kind::Union(union) => !union.complete,
                _ => false,
            };
            if announced {
                self.diagnostics
                    .error(&definition.at, format!("{:?} is announced and never declared", definition.name));
            }
        }
    }
}
