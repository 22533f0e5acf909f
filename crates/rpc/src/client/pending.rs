//! A call whose reply is not here yet.

use std::fmt;

use super::route::Route;
use super::{Client, Outstanding};
use crate::Error;
use crate::xdr::{self, Reader};

/// A call that was sent. Dropping it gives the call up; the server may still execute it.
pub struct Pending<T> {
    client: Client,
    /// There until it is waited for.
    call: Option<Box<Outstanding>>,
    decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
}

impl<T> Pending<T> {
    pub(super) fn new(
        client: Client,
        call: Box<Outstanding>,
        decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
    ) -> Self {
        Self { client, call: Some(call), decode }
    }

    /// Waits for the reply and gives the results.
    pub fn wait(mut self) -> Result<T, Error> {
        match self.call.take() {
            Some(call) => {
                let (inner, decode, mut value) = (&self.client.inner, self.decode, None);
                inner.wait(call, Route::None, &mut |results| decode(results).map(|results| value = Some(results)))?;
                value.ok_or_else(|| inner.disconnected())
            }
            None => Err(self.client.inner.disconnected()),
        }
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.client.inner.finish(self.client.inner.calls(), call);
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("client", &self.client).finish_non_exhaustive()
    }
}
