//! Unions: an enumeration of Rust with a variant for each member.

use super::super::syntax::{Case, DefId, Kind, Union, Value};
use super::{CDR, Generator};

impl Generator<'_> {
    pub(super) fn union(&mut self, id: DefId, union: &Union) {
        let definition = self.specification.get(id);
        let name = self.name(id);
        let parent = definition.parent;
        let discriminator = self.rust(&union.discriminator, parent);
        let uncovered = !self.is_covered(union);
        self.line("");
        self.docs(id);
        self.line("#[derive(Debug, Clone, PartialEq)]");
        self.item(&format!("pub enum {name} {{"));
        for (case, variant) in union.cases.iter().zip(self.names.members(id)) {
            let of = self.rust(&case.field.of, parent);
            self.doc_lines(&case.field.docs, &format!("`{}`", case.field.name));
            if has_label(case) {
                self.line(&format!("{variant} {{"));
                self.line("/// Which of its labels selects it.");
                self.line(&format!("label: {discriminator},"));
                self.line("/// The member.");
                self.line(&format!("value: {of},"));
                self.line("},");
            } else {
                self.line(&format!("{variant}({of}),"));
            }
        }
        if uncovered {
            self.line("/// A label that selects no member.");
            self.line(&format!("{}({discriminator}),", self.names.no_member(id)));
        }
        self.line("}");
        self.line("");
        self.item(&format!("impl {CDR}::Cdr for {name} {{"));
        self.line(&format!("const MIN_LEN: usize = <{discriminator} as {CDR}::Cdr>::MIN_LEN;"));
        self.union_encode(id, union, uncovered);
        self.union_decode(id, union, uncovered);
        self.line("}");
        self.union_type_code(id, union);
    }

    fn union_encode(&mut self, id: DefId, union: &Union, uncovered: bool) {
        let parent = self.specification.get(id).parent;
        let name = self.specification.get(id).name.clone();
        let discriminator = self.rust(&union.discriminator, parent);
        self.line("");
        self.line(&format!(
            "fn encode(&self, encoder: &mut {CDR}::Encoder) -> ::std::result::Result<(), {CDR}::Error> {{"
        ));
        self.line("match self {");
        for (case, variant) in union.cases.iter().zip(self.names.members(id)) {
            if has_label(case) {
                let (own, negation) = match self.pattern(union, case, parent) {
                    Some(own) => (own, "!"),
                    None => (self.other_labels(union, parent), ""),
                };
                self.line(&format!("Self::{variant} {{ label, value }} => {{"));
                if !own.is_empty() {
                    self.line(&format!("if {negation}matches!(*label, {own}) {{"));
                    self.line(&format!("return Err({CDR}::Error::Discriminator {{ union: {name:?} }});"));
                    self.line("}");
                }
                self.line(&format!("{CDR}::Cdr::encode(label, encoder)?;"));
            } else {
                let label = case.labels[0].as_ref().map(|label| self.value(&union.discriminator, label, parent));
                self.line(&format!("Self::{variant}(value) => {{"));
                let label = label.unwrap_or_default();
                self.line(&format!("<{discriminator} as {CDR}::Cdr>::encode(&{label}, encoder)?;"));
            }
            self.line(&format!("{CDR}::Cdr::encode(value, encoder)"));
            self.line("}");
        }
        if uncovered {
            let labels = self.other_labels(union, parent);
            let variant = self.names.no_member(id);
            self.line(&format!("Self::{variant}(label) if !matches!(*label, {labels}) => {{"));
            self.line(&format!("{CDR}::Cdr::encode(label, encoder)"));
            self.line("}");
            self.line(&format!("Self::{variant}(_) => Err({CDR}::Error::Discriminator {{ union: {name:?} }}),"));
        }
        self.line("}");
        self.line("}");
    }

    fn union_decode(&mut self, id: DefId, union: &Union, uncovered: bool) {
        let parent = self.specification.get(id).parent;
        let discriminator = self.rust(&union.discriminator, parent);
        self.line("");
        self.line(&format!(
            "fn decode(decoder: &mut {CDR}::Decoder<'_>) -> ::std::result::Result<Self, {CDR}::Error> {{"
        ));
        self.line(&format!("let label = <{discriminator} as {CDR}::Cdr>::decode(decoder)?;"));
        self.line("Ok(match label {");
        self.indent += 1;
        // The default comes last, since it takes what the others leave.
        let cases = union.cases.iter().zip(self.names.members(id));
        let (default, others): (Vec<_>, Vec<_>) = cases.partition(|(case, _)| case.labels.contains(&None));
        for (case, variant) in others.into_iter().chain(default) {
            let pattern = self.pattern(union, case, parent).unwrap_or_else(|| "_".to_owned());
            if has_label(case) {
                self.line(&format!("{pattern} => Self::{variant} {{ label, value: {CDR}::Cdr::decode(decoder)? }},"));
            } else {
                self.line(&format!("{pattern} => Self::{variant}({CDR}::Cdr::decode(decoder)?),"));
            }
        }
        if uncovered {
            self.line(&format!("_ => Self::{}(label),", self.names.no_member(id)));
        }
        self.line("})");
        self.line("}");
    }

    fn union_type_code(&mut self, id: DefId, union: &Union) {
        let definition = self.specification.get(id);
        let parent = definition.parent;
        let repository_id = self.specification.repository_id(id);
        let discriminator = self.rust(&union.discriminator, parent);
        self.line("");
        self.begin_type_code(self.name(id), "path");
        self.line(&format!("path.enter({repository_id:?}, |path| {{"));
        self.line(&format!("let discriminator = <{discriminator} as {CDR}::Typed>::type_code_in(path);"));
        self.line("let members = vec![");
        let mut default = "None".to_owned();
        let mut index = 0;
        for case in &union.cases {
            let of = self.rust(&case.field.of, parent);
            for label in &case.labels {
                if label.is_none() {
                    default = format!("Some({index})");
                }
                let label = label.as_ref().map_or(0, |label| self.label_number(label));
                self.line(&format!("({label}, {:?}, <{of} as {CDR}::Typed>::type_code_in(path)),", case.field.name));
                index += 1;
            }
        }
        self.line("];");
        let name = &definition.name;
        self.line(&format!("{CDR}::TypeCode::union({repository_id:?}, {name:?}, discriminator, {default}, members)"));
        self.line("})");
        self.line("}");
        self.line("}");
    }

    /// The labels of a case as a pattern; `None` for the default, which is all others.
    fn pattern(&self, union: &Union, case: &Case, parent: DefId) -> Option<String> {
        let labels =
            case.labels.iter().map(|label| label.as_ref().map(|label| self.value(&union.discriminator, label, parent)));
        labels.collect::<Option<Vec<_>>>().map(|labels| labels.join(" | "))
    }

    /// The labels of every case but the default.
    fn other_labels(&self, union: &Union, parent: DefId) -> String {
        let cases = union.cases.iter().filter(|case| !case.labels.contains(&None));
        let labels = cases.flat_map(|case| case.labels.iter().flatten());
        labels.map(|label| self.value(&union.discriminator, label, parent)).collect::<Vec<_>>().join(" | ")
    }

    /// Whether every value of the discriminator selects a member.
    fn is_covered(&self, union: &Union) -> bool {
        let labels: Vec<_> = union.cases.iter().flat_map(|case| &case.labels).collect();
        labels.contains(&&None) || Some(labels.len()) == self.specification.label_count(&union.discriminator)
    }

    fn label_number(&self, label: &Value) -> i64 {
        match label {
            Value::Integer(number) => *number as i64,
            Value::Boolean(value) => i64::from(*value),
            Value::Char(value) | Value::WChar(value) => i64::from(u32::from(*value)),
            Value::Enumerator(id) => match self.specification.get(*id).kind {
                Kind::Enumerator { ordinal, .. } => i64::from(ordinal),
                _ => 0,
            },
            _ => 0,
        }
    }
}

/// A member with several labels, or the default, remembers which label it is.
fn has_label(case: &Case) -> bool {
    case.labels.len() > 1 || case.labels.contains(&None)
}
