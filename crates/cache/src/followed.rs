//! The body of an answer, which tells when hyper has no more need of it.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body, Frame, SizeHint};

use crate::front::Ended;

/// A body, and whom to tell of its end.
#[derive(Debug)]
pub struct Followed<B> {
    body: B,
    ended: Ended,
}

impl<B> Followed<B> {
    /// Tells when this body is dropped.
    pub fn new(body: B, ended: Ended) -> Followed<B> {
        Followed { body, ended }
    }
}

impl<B> Drop for Followed<B> {
    fn drop(&mut self) {
        self.ended.tell();
    }
}

impl<B: Body + Unpin> Body for Followed<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
