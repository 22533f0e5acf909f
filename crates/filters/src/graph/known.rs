//! Settings that nobody understands, or that are none of what they may be.

use super::{FilterSpec, Graph, Problem, UnitSpec};
use crate::filter::{Kind, Kinds};
use crate::setting::Setting;

/// What is wrong with the settings of filters and of units of work.
pub(super) fn settings(graph: &Graph, kinds: &Kinds, problems: &mut Vec<Problem>) {
    for filter in &graph.filters {
        if let Some(kind) = kinds.kind(&filter.kind) {
            of_filter(filter, kind, problems);
        }
    }
    // Without all kinds nobody knows what a unit may ask.
    let all: Option<Vec<&Kind>> = graph.filters.iter().map(|filter| kinds.kind(&filter.kind)).collect();
    let Some(all) = all else { return };
    let known: Vec<&Setting> = all.iter().flat_map(|kind| kind.unit_settings()).collect();
    graph.units.iter().for_each(|unit| of_unit(unit, &known, problems));
}

fn of_filter(filter: &FilterSpec, kind: &Kind, problems: &mut Vec<Problem>) {
    let known: Vec<&Setting> = kind.settings().iter().collect();
    let whose = format!("a filter of kind `{}`", filter.kind);
    for (name, value) in &filter.settings.0 {
        let line = filter.setting_lines.get(name).copied().unwrap_or(filter.line);
        one(name, value, &known, &whose, line, problems);
    }
    for needed in known.iter().filter(|setting| setting.is_needed && filter.settings.text(setting.name).is_none()) {
        let remedy = format!("add `{}` to its settings: it is {}", needed.name, needed.accepts);
        problems.push(Problem::new(filter.line, format!("{whose} needs `{}`", needed.name), remedy));
    }
}

fn of_unit(unit: &UnitSpec, known: &[&Setting], problems: &mut Vec<Problem>) {
    for (name, value) in &unit.settings.0 {
        let line = unit.setting_lines.get(name).copied().unwrap_or(0);
        one(name, value, known, "a unit of work of these filters", line, problems);
    }
}

fn one(name: &str, value: &str, known: &[&Setting], whose: &str, line: usize, problems: &mut Vec<Problem>) {
    let mut own = known.iter().filter(|setting| setting.name == name).peekable();
    if own.peek().is_none() {
        let mut names: Vec<&str> = known.iter().map(|setting| setting.name).collect();
        names.sort_unstable();
        names.dedup();
        let remedy = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
        problems.push(Problem::new(line, format!("{whose} has no setting `{name}`"), remedy));
    }
    if let Some(other) = own.find(|setting| !setting.accepts.fits(value)) {
        let remedy = format!("it is {}", other.accepts);
        problems.push(Problem::new(line, format!("{value:?} cannot be the setting `{name}` of {whose}"), remedy));
    }
}
