//! What a filter is, and the kinds of filters that a group is made of.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::port::{Inputs, Outputs};
use crate::run::Ending;
use crate::setting::{Accepts, Setting};

/// A component. Each copy of a filter is one value of this type on a thread of its own.
///
/// For each unit of work the runtime calls `init`, `process` and `finalize`, in this order. An error or a panic fails the unit
/// of work and names the copy; the filter is then made anew.
pub trait Filter: Send {
    /// Prepares for a unit of work.
    fn init(&mut self, _unit: &Unit) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes buffers from its inputs until they end, and gives buffers to its outputs. The runtime ends the outputs afterwards,
    /// and steps over what was not taken.
    fn process(&mut self, work: &mut Work<'_>) -> Result<(), Failure>;

    /// Ends a unit of work that went well.
    fn finalize(&mut self, _unit: &Unit) -> Result<(), Failure> {
        Ok(())
    }
}

/// What `process` works on. The two sides can be borrowed at the same time.
#[derive(Debug)]
pub struct Work<'a> {
    /// Which unit of work.
    pub unit: &'a Unit,
    /// Which copy of the filter this is, of how many.
    pub copy: (usize, usize),
    /// Where buffers come from.
    pub inputs: &'a mut Inputs,
    /// Where buffers go.
    pub outputs: &'a mut Outputs,
    /// The end of the epoch, for filters that wait for something else than their ports.
    pub(crate) ending: &'a Ending,
}

/// A unit of work: a query, a file, a frame of a film.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Counted from 0 in a group.
    pub number: u64,
    /// What is asked, in words that the filters understand.
    pub settings: Settings,
}

/// Names and values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings(pub BTreeMap<String, String>);

impl Settings {
    /// One value.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// One that must be there.
    pub fn need(&self, name: &str) -> Result<&str, Failure> {
        self.text(name).ok_or_else(|| Failure::new(format_args!("the setting `{name}` is missing")))
    }

    /// A number, or what stands for it if it is not given.
    pub fn number<T: std::str::FromStr>(&self, name: &str, otherwise: T) -> Result<T, Failure> {
        let Some(text) = self.text(name) else { return Ok(otherwise) };
        text.parse().map_err(|_| Failure::new(format_args!("the setting `{name}` must be a number, not {text:?}")))
    }

    /// Adds a value.
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Settings {
        self.0.insert(name.to_owned(), value.to_string());
        self
    }
}

/// A port of a kind of filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name in descriptions.
    pub name: &'static str,
    /// What its buffers hold. A stream joins two ports of one type; [`ANY`] fits every type.
    pub holds: &'static str,
    /// The filter says the key of each buffer that it gives.
    pub gives_keys: bool,
}

/// The type of a port that takes buffers as they are.
pub const ANY: &str = "any";

type Make = Arc<dyn Fn(&Settings) -> Result<Box<dyn Filter>, Failure> + Send + Sync>;

/// A kind of filters: its ports, the settings that it understands, and how one is made.
#[derive(Clone)]
pub struct Kind {
    pub(crate) about: &'static str,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    settings: Vec<Setting>,
    unit_settings: Vec<Setting>,
    pub(crate) make: Make,
}

impl Kind {
    /// A kind without ports yet.
    pub fn new<F: Filter + 'static>(
        about: &'static str,
        make: impl Fn(&Settings) -> Result<F, Failure> + Send + Sync + 'static,
    ) -> Kind {
        let make: Make = Arc::new(move |settings| Ok(Box::new(make(settings)?)));
        let (inputs, outputs, settings, unit_settings) = Default::default();
        Kind { about, inputs, outputs, settings, unit_settings, make }
    }

    /// Adds an input.
    pub fn input(mut self, name: &'static str, holds: &'static str) -> Kind {
        self.inputs.push(Port { name, holds, gives_keys: false });
        self
    }

    /// Adds an output.
    pub fn output(mut self, name: &'static str, holds: &'static str) -> Kind {
        self.outputs.push(Port { name, holds, gives_keys: false });
        self
    }

    /// Adds an output for whose buffers the filter has keys: it calls [`reserve_for`](crate::Output::reserve_for).
    pub fn keyed_output(mut self, name: &'static str, holds: &'static str) -> Kind {
        self.outputs.push(Port { name, holds, gives_keys: true });
        self
    }

    /// Adds a setting that a description may have. One that no kind has said is an error.
    pub fn setting(mut self, name: &'static str, accepts: Accepts) -> Kind {
        self.settings.push(Setting { name, accepts, is_needed: false });
        self
    }

    /// Adds a setting that a description must have.
    pub fn needs(mut self, name: &'static str, accepts: Accepts) -> Kind {
        self.settings.push(Setting { name, accepts, is_needed: true });
        self
    }

    /// Adds a setting that a unit of work may have.
    pub fn unit_setting(mut self, name: &'static str, accepts: Accepts) -> Kind {
        self.unit_settings.push(Setting { name, accepts, is_needed: false });
        self
    }

    /// What it does, in a line.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Its inputs.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// Its outputs.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// The settings that it understands.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Those of units of work.
    pub fn unit_settings(&self) -> &[Setting] {
        &self.unit_settings
    }
}

/// The kinds that a program has, by name. Every process of a group must have the same.
#[derive(Clone, Default)]
pub struct Kinds(BTreeMap<&'static str, Kind>);

impl Kinds {
    /// None.
    pub fn new() -> Kinds {
        Kinds::default()
    }

    /// Adds one.
    pub fn with(mut self, name: &'static str, kind: Kind) -> Kinds {
        self.0.insert(name, kind);
        self
    }

    /// One of them.
    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.0.get(name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Kind)> {
        self.0.iter().map(|(name, kind)| (*name, kind))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Kind").field("inputs", &self.inputs).field("outputs", &self.outputs).finish()
    }
}

/// A filter made of a function that is called for each unit of work.
pub fn function<F>(process: F) -> impl Filter
where
    F: FnMut(&mut Work<'_>) -> Result<(), Failure> + Send,
{
    Function(process)
}

struct Function<F>(F);

impl<F: FnMut(&mut Work<'_>) -> Result<(), Failure> + Send> Filter for Function<F> {
    fn process(&mut self, work: &mut Work<'_>) -> Result<(), Failure> {
        (self.0)(work)
    }
}
