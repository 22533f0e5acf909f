//! A CORBA object broker.
//!
//! **What it is.** [`Orb`] connects callers with objects: [`Object`] is a reference, [`Poa`] leads requests to a
//! [`Servant`]. Typed references and servants are made from IDL by `sidestep idl`. It speaks GIOP 1.0 to 1.2 over
//! TCP (IIOP) and UNIX sockets, with any broker that does, and over the fabric and VIA with its like.
//!
//! **Who calls it.** Programs with generated code, `sidestep names`.
//!
//! **What it calls.** `sidestep-wire` for bytes, `sidestep-fabric` and `sidestep-vi`, the operating system for sockets and
//! threads.
//!
//! **What it never does.** It never trusts a message: one that is malformed, too large or out of place ends its
//! connection, or becomes a system exception of that one call. It never starts a thread for a client, and never calls a
//! client back over the client's own connection.
//!
//! # From IDL to a running server
//!
//! ```text
//! interface Echo { string echo_string(in string text); };       echo.idl
//! $ sidestep idl echo.idl > src/echo.rs
//! ```
//!
//! The server implements the trait that was made for it and activates an object:
//!
//! ```ignore
//! struct MyEcho;
//!
//! impl EchoServant for MyEcho {
//!     fn echo_string(&self, text: String) -> Result<String, SystemException> {
//!         Ok(text)
//!     }
//! }
//!
//! let orb = Orb::builder().tcp("127.0.0.1:0").build()?;
//! let echo: Echo = orb.root_poa().activate(EchoSkeleton(MyEcho))?;
//! println!("{}", echo.object().ior());
//! orb.root_poa().manager().activate()?;
//! orb.run();
//! ```
//!
//! The client makes a reference of the text and calls it:
//!
//! ```ignore
//! let orb = Orb::builder().build()?;
//! let echo: Echo = orb.string_to_object(&text)?.narrow()?.ok_or("not an Echo")?;
//! println!("{}", echo.echo_string("hello")?);
//! ```

#![forbid(unsafe_code)]

// The generated code of the naming service names this crate as others do.
extern crate self as sidestep_orb;

pub mod naming;

mod assembler;
mod buffers;
mod call;
mod client;
mod deferred;
mod draft;
mod exception;
mod marshal;
mod object;
mod orb;
mod poa;
mod request;
mod route;
mod server;
mod settings;
mod strand;

pub use call::{Call, Servant};
pub use deferred::Deferred;
pub use exception::{Completion, Failure, Kind, SystemException, UserException};
pub use object::{Object, Stub};
pub use orb::{Orb, ResolveError};
pub use poa::{
    Current, IdAssignment, IdUniqueness, Lifespan, ManagerState, Poa, PoaError, PoaManager, Policies, Refusal,
    RequestProcessing, Retention, ServantActivator, ServantLocator,
};
pub use server::{Counters, Dispatching, Threads};
pub use settings::Builder;
pub use sidestep_wire::cdr;
pub use sidestep_wire::giop::Version;
pub use sidestep_wire::ior::Ior;
