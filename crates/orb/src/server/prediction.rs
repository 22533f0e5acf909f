//! What the next request of a connection is taken to be: the same operation of the same object as the last one.
//!
//! Programs call one operation many times. Then the header of a request is that of the one before, but for its id. To compare
//! the two is much less work than to read the header, and to find the adapter, the object and its servant once more.

use std::sync::Arc;

use sidestep_wire::giop::{header, request};

use crate::assembler::Message;
use crate::cdr::{ByteOrder, CharSet};
use crate::poa::{Entry, ObjectKey, Serving};

#[derive(Default)]
pub(super) struct Prediction {
    /// The last request, up to where its header ends.
    bytes: Vec<u8>,
    pub(super) operation: String,
    /// What it wanted; `None` if there is nothing to be predicted.
    response: Option<request::Response>,
    /// The object, while no request is in it.
    entry: Option<Arc<Entry>>,
}

/// A request that is what was predicted.
pub(super) struct Predicted<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) request_id: u32,
    pub(super) response: request::Response,
    /// Where the body begins.
    pub(super) body: usize,
}

/// Where the size of a message ends, and then its id.
const ID_AT: usize = header::LEN;
const BEHIND_ID: usize = ID_AT + 4;

/// The longest header that is kept.
const LONGEST: usize = 512;

impl Prediction {
    /// The message that `bytes` begin with, if it is whole and what was predicted.
    #[inline]
    pub(super) fn fits<'a>(&self, bytes: &'a [u8]) -> Option<Predicted<'a>> {
        let (response, ends) = (self.response?, self.bytes.len());
        let head = bytes.first_chunk::<BEHIND_ID>()?;
        let (begin, words) = head.split_first_chunk::<{ header::SIZE_AT }>()?;
        let word = |at: usize| u32::from_ne_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
        let (size, request_id) = (word(0), word(4));
        let bytes = bytes.get(..header::LEN + size as usize)?;
        let is_alike =
            begin == self.bytes.first_chunk()? && bytes.get(BEHIND_ID..ends)? == self.bytes.get(BEHIND_ID..)?;
        // The body may be missing, and its padding with it.
        let body = if bytes.len() > ends { (ends + 7) & !7 } else { ends };
        is_alike.then_some(Predicted { bytes, request_id, response, body })
    }

    /// Leads a request that fits to the servant, if its object still serves requests.
    #[inline]
    pub(super) fn serve(&mut self) -> Option<Serving> {
        Serving::again(self.entry.take()?)
    }

    /// The object has served the request, and may serve the next one.
    #[inline]
    pub(super) fn served(&mut self, entry: Option<Arc<Entry>>) {
        self.entry = entry;
    }

    /// Takes a request that an active object has served for what comes next.
    pub(super) fn learn(
        &mut self,
        message: &Message<'_>,
        request: &request::Repr<'_>,
        operation: &str,
        entry: Arc<Entry>,
    ) {
        self.response = None;
        // What a key that people can write stands for may change.
        let is_own = request.target.key().is_ok_and(|key| ObjectKey::parse(key).is_some());
        if !is_own || message.header.order != ByteOrder::NATIVE {
            return;
        }
        let ends = request::plain_end(message.header.version, &message.decoder(CharSet::Latin1));
        if let Some(bytes) = ends.and_then(|ends| message.bytes.get(..ends)).filter(|bytes| bytes.len() <= LONGEST) {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.operation.clear();
            self.operation.push_str(operation);
            (self.response, self.entry) = (Some(request.response), Some(entry));
        }
    }
}
