//! The connections of a broker, one for each server and code set.

use std::collections::HashMap;
use std::io;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use sidestep_wire::giop::Version;

use super::Connection;
use crate::cdr::CharSet;
use crate::strand::{Endpoint, Strand};

#[derive(Default)]
pub(crate) struct Pool {
    connections: Mutex<HashMap<Key, Arc<Connection>>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    endpoint: Endpoint,
    version: Version,
    utf8: bool,
    slot: usize,
}

impl Pool {
    /// The connection to a server, made if there is none that works. Each slot has its own.
    pub(crate) fn connection(
        &self,
        (endpoint, slot): (&Endpoint, usize),
        version: Version,
        chars: CharSet,
        sizes: RangeInclusive<usize>,
        connect: impl FnOnce() -> io::Result<Strand>,
    ) -> io::Result<Arc<Connection>> {
        let key = Key { endpoint: endpoint.clone(), version, utf8: chars == CharSet::Utf8, slot };
        {
            let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
            match connections.get(&key) {
                Some(connection) if connection.is_usable() => return Ok(connection.clone()),
                Some(_) => drop(connections.remove(&key)),
                None => {}
            }
        }
        // Others need not wait while this one connects.
        let made = Arc::new(Connection::new(connect()?, version, chars, sizes));
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        match connections.get(&key) {
            Some(connection) if connection.is_usable() => Ok(connection.clone()),
            _ => {
                connections.insert(key, made.clone());
                Ok(made)
            }
        }
    }

    pub(crate) fn close(&self) {
        let connections = std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner));
        connections.values().for_each(|connection| connection.close());
    }
}
