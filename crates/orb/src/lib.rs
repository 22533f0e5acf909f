//! A CORBA object broker.
//!
//! **What it is.** [`Orb`] connects callers with objects: [`Object`] is a reference, [`Poa`] leads requests to a
//! [`Servant`]. Typed references and servants are made from IDL by `sidestep idl`. It speaks GIOP 1.0 to 1.2 over
//! TCP (IIOP) and UNIX sockets, with any broker that does, and over the fabric, iWARP and VIA with its like.
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
//! # From IDL to a running server, in five minutes
//!
//! An interface, as `echo.idl` (there is one in `examples/echo`):
//!
//! ```text
//! module Example {
//!     exception Silence { string why; };
//!     interface Echo {
//!         string say(in string text) raises (Silence);
//!         readonly attribute unsigned long count;
//!     };
//! };
//! ```
//!
//! `sidestep idl echo.idl -o src/echo.rs` makes Rust of it: `Echo` is a typed reference, `EchoServant` a trait with the operations, and
//! `EchoSkeleton` leads requests to what implements it. The server implements the trait, activates an object and hands out its
//! reference; the client makes a typed reference of the text, and calls. Here both are in one program, and each has a broker of its
//! own, so the calls go over the network:
//!
//! ```
//! # mod echo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/echo/generated.rs")); }
//! use std::error::Error;
//!
//! use echo::example::{Echo, EchoSayError, EchoServant, EchoSkeleton, Silence};
//! use sidestep_orb::{Orb, Stub, SystemException};
//!
//! struct MyEcho;
//!
//! impl EchoServant for MyEcho {
//!     fn say(&self, text: String) -> Result<String, EchoSayError> {
//!         if text.is_empty() {
//!             return Err(Silence { why: "nothing was said".to_owned() }.into());
//!         }
//!         Ok(text)
//!     }
//!
//!     fn count(&self) -> Result<u32, SystemException> {
//!         Ok(0)
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     // The server.
//!     let server = Orb::builder().tcp("127.0.0.1:0").build()?;
//!     let echo: Echo = server.root_poa().activate(EchoSkeleton(MyEcho))?;
//!     server.root_poa().manager().activate()?;
//!     let text = echo.object().ior().to_string();
//!
//!     // The client.
//!     let client = Orb::builder().build()?;
//!     let echo: Echo = client.string_to_object(&text)?.narrow()?.ok_or("not an Echo")?;
//!     assert_eq!(echo.say("hello")?, "hello");
//!     assert!(matches!(echo.say(""), Err(EchoSayError::Silence(_))));
//!
//!     // A server of its own would wait here: `server.run()`.
//!     server.shutdown();
//!     Ok(())
//! }
//! ```

#![forbid(unsafe_code)]

// The generated code of the naming service names this crate as others do.
extern crate self as sidestep_orb;

pub mod naming;

mod answer;
mod assembler;
mod buffers;
mod call;
mod client;
mod deferred;
mod draft;
mod exception;
mod locate;
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
