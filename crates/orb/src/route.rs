//! The ways to an object, best first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use sidestep_sys::lock::Lock;
use sidestep_wire::giop::Version;
use sidestep_wire::ior::component::Component;
use sidestep_wire::ior::{Ior, TAG_INTERNET_IOP, iiop};

use crate::cdr::CharSet;
use crate::client::Connection;
use crate::strand::{Endpoint, is_far};

/// One way to an object.
pub(crate) struct Route {
    /// No other route of this process has it.
    pub(crate) number: u64,
    pub(crate) endpoint: Endpoint,
    pub(crate) key: Vec<u8>,
    /// Which profile of the reference it is from.
    pub(crate) profile: usize,
    pub(crate) version: Version,
    /// The code set of text; `None` if the server says nothing about code sets.
    pub(crate) chars: Option<CharSet>,
    /// The connection that was used first, for all calls until it is lost.
    first: OnceLock<Arc<Connection>>,
    /// The one that was used last, if that is another.
    last: Lock<Weak<Connection>>,
}

impl Route {
    /// The version that is spoken, if `newest` is the newest one that this broker speaks, and the code set of text.
    #[inline]
    pub(crate) fn format(&self, newest: Version) -> (Version, CharSet) {
        (self.version.min(newest), self.chars.unwrap_or(CharSet::Latin1))
    }

    /// The connection that was used first, if it works.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Arc<Connection>> {
        self.first.get().filter(|connection| connection.is_usable())
    }

    /// The connection that was used last, if it works.
    pub(crate) fn last(&self) -> Option<Arc<Connection>> {
        let last = self.last.lock().upgrade();
        last.filter(|connection| connection.is_usable())
    }

    pub(crate) fn keep(&self, connection: &Arc<Connection>) {
        let Err(connection) = self.first.set(connection.clone()) else { return };
        let before = std::mem::replace(&mut *self.last.lock(), Arc::downgrade(&connection));
        drop(before);
    }
}

/// The ways that a reference offers and this broker knows: the fabric, VIA and UNIX sockets of this host, then iWARP, then TCP.
pub(crate) fn routes(ior: &Ior) -> Vec<Route> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut routes = Vec::new();
    for (index, profile) in ior.profiles.iter().enumerate().filter(|(_, profile)| profile.tag == TAG_INTERNET_IOP) {
        let Ok(profile) = iiop::Repr::parse(profile) else { continue };
        let chars = profile.components.iter().find_map(|component| match component {
            Component::CodeSets { chars, .. } => Some(chars.chosen()),
            _ => None,
        });
        let route = |endpoint| {
            let (key, version) = (profile.object_key.clone(), profile.version);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            Route {
                number,
                endpoint,
                key,
                profile: index,
                version,
                chars,
                first: OnceLock::new(),
                last: Lock::default(),
            }
        };
        let tcp = |host: &String, port: u16| Endpoint::Tcp { host: host.clone(), port };
        for component in &profile.components {
            let here = |host: &str| host.is_empty() || host == host_name();
            match component {
                Component::Unix { host, path } if here(host) => {
                    routes.push(route(Endpoint::Unix { path: path.clone() }));
                }
                Component::Fabric { host, name } if here(host) || is_far(name) => {
                    routes.push(route(Endpoint::of_fabric_name(name)));
                }
                _ => {}
            }
        }
        if profile.port != 0 {
            routes.push(route(tcp(&profile.host, profile.port)));
        }
        for component in &profile.components {
            if let Component::Alternate { host, port } = component {
                routes.push(route(tcp(host, *port)));
            }
        }
    }
    // Keeps the order of those that are alike.
    routes.sort_by_key(|route| route.endpoint.rank());
    routes
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
