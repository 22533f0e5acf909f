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

use std::{pin::Pin, sync::Arc, time::Instant};

use tokio::{net::TcpListener, sync::watch};

use crate::{
    Result,
    checker::{Checked, Checker},
    current::Current,
    flights::Flights,
    head::Head,
    metrics::Metrics,
    origin::Origin,
    settings::Settings,
    store::{Entry, Prepared, Store},
};

/// A reverse proxy for one origin.
#[derive(Debug)]
pub struct Proxy {
    origin: Arc<Origin>,
    /// `None`: nothing is kept, every request is fetched.
    pub(crate) cache: Option<Cache>,
    pub(crate) largest: usize,
    pub(crate) metrics: Arc<Metrics>,
}

/// What a proxy keeps, and how it knows that it is current.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) store: Store,
    pub(crate) checker: Arc<Checker>,
    pub(crate) flights: Flights,
}

impl Cache {
    fn new(store: Store, checker: Arc<Checker>) -> Cache {
        Cache { store, checker, flights: Flights::new() }
    }
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

impl Proxy {
    /// A proxy in front of `origin` (HOST:PORT). Bodies of more than `largest` bytes are passed on and not kept.
    pub fn new(origin: &str, cache: Option<(Store, Arc<Checker>)>, largest: usize) -> Result<Proxy> {
        let cache = cache.map(|(store, checker)| Cache::new(store, checker));
        Ok(Proxy { origin: Origin::new(origin)?, cache, largest, metrics: Arc::default() })
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
    pub async fn serve(self: Arc<Self>, listener: TcpListener, orders: watch::Receiver<Order>) {
        Current::new(self).serve(listener, orders).await;
    }

    /// A proxy with other settings, which goes on with what is the same: the counts, the connections to the origin, the way to the
    /// application. Nothing that is kept goes over.
    pub fn with_settings(&self, settings: &Settings) -> Result<Proxy> {
        let origin = match self.origin.address() == settings.origin {
            true => self.origin.clone(),
            false => Origin::new(&settings.origin)?,
        };
        let known = self.cache.as_ref().map(|cache| &cache.checker);
        let cache = settings.checked.as_ref().map(|(mode, module)| {
            let checker = known.filter(|checker| checker.is_for(*mode, module)).cloned();
            Cache::new(Store::new(settings.memory), checker.unwrap_or_else(|| Checker::new(*mode, module)))
        });
        Ok(Proxy { origin, cache, largest: settings.largest, metrics: self.metrics.clone() })
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
