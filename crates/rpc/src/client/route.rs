//! How a call gets to its server, and who reads the replies.

use std::sync::Arc;

use sidestep_sys::lock::Guard;

use super::calls::Calls;
use super::{Connection, Inner};

/// The connection over which a call goes, as far as there is one.
pub(super) enum Route<'a> {
    None,
    Over(Arc<Connection>),
    /// The caller is the one who reads there, too.
    Reading(Reading<'a>),
}

/// The one who reads. If code of the program panics meanwhile, somebody else must.
pub(super) struct Reading<'a> {
    inner: &'a Inner,
    /// There until this ends.
    connection: Option<Arc<Connection>>,
}

impl Route<'_> {
    #[inline]
    pub fn connection(&self) -> Option<&Connection> {
        match self {
            Route::None => None,
            Route::Over(connection) => Some(connection),
            Route::Reading(reading) => reading.connection(),
        }
    }
}

impl<'a> Reading<'a> {
    #[inline]
    pub fn new(inner: &'a Inner, connection: Arc<Connection>) -> Self {
        Self { inner, connection: Some(connection) }
    }

    #[inline]
    pub fn connection(&self) -> Option<&Connection> {
        self.connection.as_deref()
    }

    pub fn shared_connection(&self) -> Option<Arc<Connection>> {
        self.connection.clone()
    }

    /// Reads no more. The caller must see to it that somebody does, if somebody must.
    #[inline(always)]
    pub fn end(mut self) -> Guard<'a, Calls> {
        let mut calls = self.inner.calls();
        if let Some(connection) = self.connection.take() {
            calls.read_end(connection);
        }
        // Nothing is left to drop, and the compiler would call the drop to find that out.
        std::mem::forget(self);
        calls
    }
}

impl Drop for Reading<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            let mut calls = self.inner.calls();
            calls.read_end(connection);
            calls.hand_over();
        }
    }
}
