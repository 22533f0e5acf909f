//! Object adapters: which servant serves which object (CORBA 3.3 part 1 §15).

mod activation;
mod adapter;
mod entry;
mod hash;
mod key;
mod manager;
mod policies;
mod serving;

pub use adapter::Poa;
pub use manager::{ManagerState, PoaManager};
pub use policies::{IdAssignment, IdUniqueness, Lifespan, Policies, RequestProcessing, Retention};
pub use serving::{Current, Refusal, ServantActivator, ServantLocator};

pub(crate) use entry::Entry;
pub(crate) use key::ObjectKey;
pub(crate) use serving::Serving;

/// What an adapter refuses its owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoaError {
    /// There is an adapter of this name already.
    #[error("there is an adapter {0:?} already")]
    AdapterAlreadyExists(String),
    /// There is no adapter of this name.
    #[error("there is no adapter {0:?}")]
    AdapterNonExistent(String),
    /// Policies contradict each other.
    #[error("the policies contradict each other: {0}")]
    InvalidPolicy(&'static str),
    /// The policies of the adapter do not allow it.
    #[error("the policies of the adapter do not allow this: {0}")]
    WrongPolicy(&'static str),
    /// The object is active already.
    #[error("the object is active already")]
    ObjectAlreadyActive,
    /// The servant serves another object already, and may serve only one.
    #[error("the servant serves another object already")]
    ServantAlreadyActive,
    /// The object is not active.
    #[error("the object is not active")]
    ObjectNotActive,
    /// The servant serves no object.
    #[error("the servant serves no object")]
    ServantNotActive,
    /// The reference is of another adapter.
    #[error("the reference is not one of this adapter")]
    WrongAdapter,
    /// The adapter has been destroyed, or its broker.
    #[error("the adapter has been destroyed")]
    Destroyed,
    /// A name or an id is too long for an object key.
    #[error("names of adapters have at most 255 bytes")]
    TooLong,
}
