//! A call whose reply is not here yet.

use std::fmt;
use std::time::Instant;

use super::{Client, results};
use crate::Error;
use crate::xdr::{self, Reader};

/// A call that was sent. Dropping it gives the call up; the server may still execute it.
pub struct Pending<T> {
    client: Client,
    slot: usize,
    deadline: Instant,
    decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
}

impl<T> Pending<T> {
    pub(super) fn new(
        client: Client,
        slot: usize,
        deadline: Instant,
        decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
    ) -> Self {
        Self { client, slot, deadline, decode }
    }

    /// Waits for the reply and gives the results.
    pub fn wait(self) -> Result<T, Error> {
        let message = self.client.inner.wait(self.slot, self.deadline)?;
        let value = results(&message).and_then(|results| {
            let mut input = Reader::new(results);
            let value = (self.decode)(&mut input).map_err(Error::Reply)?;
            input.finish().map_err(Error::Reply)?;
            Ok(value)
        });
        self.client.inner.calls().keep_reply(self.slot, message);
        value
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.client.inner.calls().end(self.slot);
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("client", &self.client).finish_non_exhaustive()
    }
}
