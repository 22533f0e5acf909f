//! The ways to an object, best first.

use sidestep_wire::giop::Version;
use sidestep_wire::ior::component::Component;
use sidestep_wire::ior::{Ior, TAG_INTERNET_IOP, iiop};

use crate::cdr::CharSet;
use crate::strand::Endpoint;

/// One way to an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Route {
    pub(crate) endpoint: Endpoint,
    pub(crate) key: Vec<u8>,
    pub(crate) version: Version,
    /// The code set of text; `None` if the server says nothing about code sets.
    pub(crate) chars: Option<CharSet>,
}

/// The ways that a reference offers and this broker knows: the fabric and UNIX sockets of this host before TCP.
pub(crate) fn routes(ior: &Ior) -> Vec<Route> {
    let mut routes = Vec::new();
    for profile in ior.profiles.iter().filter(|profile| profile.tag == TAG_INTERNET_IOP) {
        let Ok(profile) = iiop::Repr::parse(profile) else { continue };
        let chars = profile.components.iter().find_map(|component| match component {
            Component::CodeSets { chars, .. } => Some(chars.chosen()),
            _ => None,
        });
        let route = |endpoint| Route { endpoint, key: profile.object_key.clone(), version: profile.version, chars };
        let tcp = |host: &String, port: u16| Endpoint::Tcp { host: host.clone(), port };
        for component in &profile.components {
            let here = |host: &str| host.is_empty() || host == host_name();
            match component {
                Component::Unix { host, path } if here(host) => {
                    routes.push(route(Endpoint::Unix { path: path.clone() }));
                }
                Component::Fabric { host, name } if here(host) => {
                    routes.push(route(Endpoint::Fabric { name: name.clone() }));
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
    routes.sort_by_key(|route| match route.endpoint {
        Endpoint::Fabric { .. } => 0,
        Endpoint::Unix { .. } => 1,
        Endpoint::Tcp { .. } => 2,
    });
    routes
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
