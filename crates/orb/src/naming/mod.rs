//! The naming service: a client's view of one, and a small one of our own.
//!
//! The types and calls of `CosNaming` are in [`cos_naming`], made from `idl/naming.idl`.

mod generated;
mod server;
mod text;

pub use generated::cos_naming;
pub use server::{NameServer, NameServerError};
pub use text::{BadName, parse_name, show_name};

use cos_naming::{NamingContext, NamingContextResolveError, naming_context};

use crate::{Object, Stub};

/// What a naming service has under a name, which is text such as `folder/object.kind`.
pub fn resolve(service: &Object, name: &str) -> Result<Object, NamingContextResolveError> {
    let name = parse_name(name).map_err(|_| NamingContextResolveError::InvalidName(naming_context::InvalidName {}))?;
    let found = NamingContext::from_object(service.clone()).resolve(&name)?;
    found.ok_or_else(|| {
        let why = naming_context::NotFoundReason::MissingNode;
        NamingContextResolveError::NotFound(naming_context::NotFound { why, rest_of_name: name })
    })
}
