//! What an adapter does, chosen when it is made.

use super::PoaError;

/// How long references of an adapter are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifespan {
    /// As long as the process lives.
    #[default]
    Transient,
    /// Also in later processes that make an adapter of the same name.
    Persistent,
}

/// Who chooses the ids of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdAssignment {
    /// The adapter.
    #[default]
    System,
    /// The owner of the adapter.
    User,
}

/// How many objects a servant may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdUniqueness {
    /// One.
    #[default]
    Unique,
    /// Any number.
    Multiple,
}

/// Whether the adapter remembers which servant serves which object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// It does.
    #[default]
    Retain,
    /// It asks for a servant at every request.
    NonRetain,
}

/// What happens to requests for objects that are not active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestProcessing {
    /// They fail.
    #[default]
    ActiveObjectsOnly,
    /// The default servant serves them.
    DefaultServant,
    /// A servant activator (with retention) or a servant locator (without) is asked.
    ServantManager,
}

/// The policies of an adapter. The defaults are those of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policies {
    /// How long references are valid.
    pub lifespan: Lifespan,
    /// Who chooses ids.
    pub id_assignment: IdAssignment,
    /// How many objects a servant may serve.
    pub id_uniqueness: IdUniqueness,
    /// Whether servants are remembered.
    pub retention: Retention,
    /// What happens to requests for objects that are not active.
    pub request_processing: RequestProcessing,
}

impl Policies {
    pub(super) fn check(&self) -> Result<(), PoaError> {
        if self.retention == Retention::NonRetain && self.request_processing == RequestProcessing::ActiveObjectsOnly {
            return Err(PoaError::InvalidPolicy("without retention there has to be a default servant or a manager"));
        }
        let one_servant = self.request_processing == RequestProcessing::DefaultServant;
        if one_servant && self.id_uniqueness == IdUniqueness::Unique {
            return Err(PoaError::InvalidPolicy("a default servant serves many objects"));
        }
        Ok(())
    }
}
