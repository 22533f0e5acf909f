//! The connections to the origin. One that has been used is kept for the next request, as soon as all of its answer has been read.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::{
    Request, Response, Uri,
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1::{self, SendRequest},
    header::{self, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::{Error, Result};

/// The server that documents are fetched from.
#[derive(Debug)]
pub struct Origin {
    /// HOST:PORT.
    address: String,
    host: HeaderValue,
    /// The one that was used last is at the end.
    idle: Mutex<Vec<SendRequest<Incoming>>>,
}

/// The body of an answer, whose connection is free again when it has been read.
#[derive(Debug)]
pub struct Fetched {
    body: Incoming,
    has_ended: bool,
    /// Always there, until it is given back.
    connection: Option<SendRequest<Incoming>>,
    origin: Arc<Origin>,
}

/// Connections that are kept while there is nothing to ask.
const MOST_IDLE: usize = 128;

impl Origin {
    /// At HOST:PORT.
    pub fn new(address: &str) -> Result<Arc<Origin>> {
        let wrong = || Error::Origin(address.to_string());
        let uri: Uri = format!("http://{address}/").parse().map_err(|_| wrong())?;
        uri.port().ok_or_else(wrong)?;
        let host = HeaderValue::from_str(address).map_err(|_| wrong())?;
        Ok(Arc::new(Origin { address: address.to_string(), host, idle: Mutex::default() }))
    }

    /// HOST:PORT.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Asks it. `None`: it does not answer.
    pub async fn ask(self: &Arc<Self>, mut request: Request<Incoming>) -> Option<Response<Fetched>> {
        if request.uri().authority().is_some() {
            // A request in the form that is meant for proxies.
            let path = request.uri().path_and_query().cloned();
            *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
        }
        request.headers_mut().entry(header::HOST).or_insert_with(|| self.host.clone());
        loop {
            let known = self.idle_connection().await;
            let is_new = known.is_none();
            let mut connection = match known {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            match connection.try_send_request(request).await {
                Ok(response) => {
                    let connection = Some(connection);
                    return Some(response.map(|body| Fetched {
                        has_ended: body.is_end_stream(),
                        body,
                        connection,
                        origin: self.clone(),
                    }));
                }
                // The origin had closed the connection before anything of the request was sent.
                Err(mut error) if !is_new => request = error.take_message()?,
                Err(_) => return None,
            }
        }
    }

    async fn idle_connection(&self) -> Option<SendRequest<Incoming>> {
        loop {
            let mut connection = self.idle().pop()?;
            // It is closed, or ready at once: its last answer has been read.
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Option<SendRequest<Incoming>> {
        let stream = TcpStream::connect(&self.address).await.ok()?;
        stream.set_nodelay(true).ok()?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        // Whoever asked is told of errors.
        tokio::spawn(async move { _ = connection.await });
        Some(sender)
    }

    fn keep(&self, connection: SendRequest<Incoming>) {
        let mut idle = self.idle();
        if idle.len() == MOST_IDLE {
            idle.retain(|connection| !connection.is_closed());
        }
        if idle.len() < MOST_IDLE {
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<SendRequest<Incoming>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // One that was not read to its end takes its connection with it.
        if let Some(connection) = self.connection.take().filter(|_| self.has_ended) {
            self.origin.keep(connection);
        }
    }
}

impl Body for Fetched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, hyper::Error>>> {
        let fetched = self.get_mut();
        let polled = Pin::new(&mut fetched.body).poll_frame(cx);
        fetched.has_ended = matches!(polled, Poll::Ready(None)) || fetched.body.is_end_stream();
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
