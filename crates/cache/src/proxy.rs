//! The reverse proxy: answers out of the cache what is current there, and fetches the rest.
//!
//! ```text
//!   request ─▶ kept? ── no ──▶ being fetched? wait : version ─▶ fetch ─▶ version: the same? keep it ─▶ answer
//!                │ yes                                                      └ else only answer
//!                ▼
//!             version: as when it was fetched? ── yes ─▶ answer
//!                └ no: give it up, and go on as if it had not been kept
//! ```
//!
//! The version is read after the request has come, so no answer is older than the last update that was complete by then.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{
    Result,
    checker::{Checked, Checker},
    flights::Flights,
    followed::Followed,
    front::{Front, REQUEST_TIMEOUT},
    head::Head,
    input::LONGEST_HEAD,
    metrics::Metrics,
    origin::Origin,
    store::{Entry, Prepared, Store},
};

/// A reverse proxy for one origin.
#[derive(Debug)]
pub struct Proxy {
    origin: Arc<Origin>,
    /// `None`: nothing is kept, every request is fetched.
    pub(crate) cache: Option<Cache>,
    pub(crate) largest: usize,
    pub(crate) metrics: Metrics,
}

/// What a proxy keeps, and how it knows that it is current.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) store: Store,
    pub(crate) checker: Arc<Checker>,
    pub(crate) flights: Flights,
}

/// Whether a request can be answered out of the cache.
pub(crate) enum Hit {
    /// No, or not as it is.
    No,
    /// With this.
    Yes(Prepared),
    /// The application is asked.
    Asked(Asked),
}

/// What the answer is when the application has been asked.
pub(crate) type Asked = Pin<Box<dyn Future<Output = Option<Prepared>> + Send>>;

/// What a proxy is asked to do while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Go on.
    Serve,
    /// Take no more connections, answer what was asked, and end.
    Stop,
}

/// How long a proxy that stops waits for requests under way.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

impl Proxy {
    /// A proxy in front of `origin` (HOST:PORT). Bodies of more than `largest` bytes are passed on and not kept.
    pub fn new(origin: &str, cache: Option<(Store, Arc<Checker>)>, largest: usize) -> Result<Proxy> {
        let cache = cache.map(|(store, checker)| Cache { store, checker, flights: Flights::new() });
        Ok(Proxy { origin: Origin::new(origin)?, cache, largest, metrics: Metrics::default() })
    }

    /// Where documents are fetched from.
    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// What it has done so far.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Gives up what is kept.
    pub fn clear(&self) {
        if let Some(cache) = &self.cache {
            cache.store.clear();
        }
    }

    /// Bytes that are kept.
    pub fn kept_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| cache.store.bytes())
    }

    /// Serves connections until it is told to stop.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, mut orders: watch::Receiver<Order>) {
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                order = orders.wait_for(|order| *order == Order::Stop) => {
                    // Whoever gave orders is gone: so is the proxy.
                    drop(order);
                    break;
                }
            };
            let Ok((stream, _)) = accepted else {
                // Too many connections: some end.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            self.clone().attend(stream, &graceful);
        }
        drop(listener);
        let _ = tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await;
    }

    fn attend(self: Arc<Self>, stream: TcpStream, graceful: &GracefulShutdown) {
        let _ = stream.set_nodelay(true);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).max_buf_size(LONGEST_HEAD);
        if self.cache.is_none() {
            let service = service_fn(move |request| {
                let proxy = self.clone();
                async move { Ok::<_, Infallible>(proxy.answer(request).await) }
            });
            builder.header_read_timeout(REQUEST_TIMEOUT);
            let watched = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
            // A client that breaks off is no matter of this proxy's.
            tokio::spawn(async move { _ = watched.await });
            return;
        }
        let (front, ended) = Front::new(stream, self.clone());
        let service = service_fn(move |request| {
            let (proxy, ended) = (self.clone(), ended.clone());
            async move { Ok::<_, Infallible>(proxy.answer(request).await.map(|body| Followed::new(body, ended))) }
        });
        // The front looks after the time that requests take.
        builder.header_read_timeout(None);
        let watched = graceful.watch(builder.serve_connection(front, service));
        tokio::spawn(async move { _ = watched.await });
    }

    /// The answer to a request for a whole document, if it is kept and current.
    pub(crate) fn hit(self: &Arc<Self>, key: &[u8], head: &Head<'_, '_>) -> Hit {
        let Some(Cache { store, checker, .. }) = &self.cache else { return Hit::No };
        let Some(entry) = store.find(key).filter(|entry| head.fits(&entry.varying)) else { return Hit::No };
        if !checker.asks() {
            let current = checker.check_at(entry.slot);
            return self.whole(&entry, current).map_or(Hit::No, Hit::Yes);
        }
        let (proxy, checker) = (self.clone(), checker.clone());
        let path = head.path().split('?').next().unwrap_or_default().to_string();
        Hit::Asked(Box::pin(async move {
            let current = checker.check(&path).await;
            proxy.whole(&entry, current)
        }))
    }

    /// The whole answer, if this is what its document is now.
    fn whole(&self, entry: &Entry, current: Option<Checked>) -> Option<Prepared> {
        let now = Instant::now();
        entry.is_good(current, now).then(|| {
            self.metrics.hits.add(1);
            entry.whole(now)
        })
    }
}
