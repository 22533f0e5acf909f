//! The reverse proxy: answers out of the cache what is current there, and fetches the rest.
//!
//! ```text
//!   request ─▶ kept? ── no ──▶ version ─▶ fetch ─▶ version: the same? keep it ─▶ answer
//!                │ yes                                  └ else only answer
//!                ▼
//!             version: as when it was fetched? ── yes ─▶ answer
//!                └ no: give it up, and go on as if it had not been kept
//! ```
//!
//! The version is read after the request has come, so no answer is older than the last update that was complete by then.

use std::{
    borrow::Borrow,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Body, Incoming},
    header::{self, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
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
    answer::{HOW, answer, prepare},
    checker::{Checked, Checker},
    followed::Followed,
    front::{Front, REQUEST_TIMEOUT},
    head::Head,
    input::LONGEST_HEAD,
    metrics::Metrics,
    origin::{Fetched, Origin},
    rules,
    store::{Entry, Key, Prepared, Store},
    versions::{Slot, is_plain},
};

/// A reverse proxy for one origin.
#[derive(Debug)]
pub struct Proxy {
    origin: Arc<Origin>,
    /// `None`: nothing is kept, every request is fetched.
    cache: Option<(Store, Arc<Checker>)>,
    largest: usize,
    metrics: Metrics,
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

type Answer = Response<Either<Full<Bytes>, Fetched>>;

/// How long a proxy that stops waits for requests under way.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Headers of a request that ask for less than the whole document.
const CONDITIONS: [HeaderName; 5] =
    [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_MATCH, header::IF_UNMODIFIED_SINCE, header::IF_RANGE];

impl Proxy {
    /// A proxy in front of `origin` (HOST:PORT). Bodies of more than `largest` bytes are passed on and not kept.
    pub fn new(origin: &str, cache: Option<(Store, Arc<Checker>)>, largest: usize) -> Result<Proxy> {
        Ok(Proxy { origin: Origin::new(origin)?, cache, largest, metrics: Metrics::default() })
    }

    /// What it has done so far.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Gives up what is kept.
    pub fn clear(&self) {
        if let Some((store, _)) = &self.cache {
            store.clear();
        }
    }

    /// Bytes that are kept.
    pub fn kept_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, |(store, _)| store.bytes())
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
        let Some((store, checker)) = &self.cache else { return Hit::No };
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
        entry.is_good(current).then(|| {
            self.metrics.hits.add(1);
            entry.whole.clone()
        })
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path();
        let asks = rules::may_ask_cache(request.method(), request.headers()) && is_plain(path);
        let Some((store, checker)) = self.cache.as_ref().filter(|_| asks) else {
            return self.pass(request, "pass").await;
        };
        let key = key_of(&request);
        let mut how = "miss";
        if let Some(entry) = store.find(key.borrow()).filter(|entry| rules::fits(&entry.varying, request.headers())) {
            let current = checker.check(path).await;
            if entry.is_good(current) {
                self.metrics.hits.add(1);
                let answer = answer(&entry, request.method(), request.headers(), "hit");
                return answer.map(|body| Either::Left(Full::new(body)));
            }
            store.forget(&key, &entry);
            self.metrics.stale.add(1);
            how = "stale";
        }
        let partial = request.headers().contains_key(header::RANGE) || *request.method() == Method::HEAD;
        if partial {
            return self.pass(request, how).await;
        }
        // Before it is fetched: what is changed meanwhile has another version afterwards.
        let before = checker.check(path).await.filter(|checked| !checked.version.is_changing());
        match before {
            Some(before) => self.fetch(request, (store, checker), key, (before, how)).await,
            None => {
                self.metrics.unknown.add(1);
                self.pass(request, how).await
            }
        }
    }

    /// Fetches a document, keeps it if it may be kept, and answers.
    async fn fetch(
        &self,
        request: Request<Incoming>,
        (store, checker): (&Store, &Arc<Checker>),
        key: Key,
        (before, how): (Checked, &'static str),
    ) -> Answer {
        let (method, asked, path) =
            (request.method().clone(), request.headers().clone(), request.uri().path().to_string());
        let response = match self.ask_origin(request, true).await {
            Ok(response) => response,
            Err(answer) => return *answer,
        };
        self.metrics.misses.add(1);
        let keeps = rules::may_keep(response.status(), response.headers()) && self.is_small(&response);
        let Some(varying) = rules::varying(&asked, response.headers()).filter(|_| keeps) else {
            return streamed(response, how);
        };
        let (parts, body) = response.into_parts();
        let Ok(body) = body.collect().await else {
            return bad_gateway("the origin broke off in the middle of an answer");
        };
        let expires = rules::lifetime(&parts.headers).map(|lifetime| Instant::now() + lifetime);
        let mut headers = parts.headers;
        if !headers.contains_key(header::DATE) {
            // When it was received (RFC 9110 §6.6.1).
            let date = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now()));
            headers.insert(header::DATE, date.expect("letters and digits"));
        }
        let ((whole, body), slot) = (prepare(&headers, &body.to_bytes()), Slot::of(&path));
        let entry = Arc::new(Entry { headers, whole, body, slot, checked: before, varying, expires });
        if checker.check(&path).await == Some(before) {
            store.keep(key, entry.clone());
        }
        answer(&entry, &method, &asked, how).map(|body| Either::Left(Full::new(body)))
    }

    /// Whether a body is known to be small enough to be kept.
    fn is_small(&self, response: &Response<Fetched>) -> bool {
        response.body().size_hint().exact().is_some_and(|length| length <= self.largest as u64)
    }

    /// Passes a request on, and its answer back, as they are.
    async fn pass(&self, request: Request<Incoming>, how: &'static str) -> Answer {
        self.metrics.passed.add(1);
        match self.ask_origin(request, false).await {
            Ok(response) => streamed(response, how),
            Err(answer) => *answer,
        }
    }

    async fn ask_origin(
        &self,
        mut request: Request<Incoming>,
        whole: bool,
    ) -> std::result::Result<Response<Fetched>, Box<Answer>> {
        *request.version_mut() = hyper::Version::HTTP_11;
        rules::remove_hop_by_hop(request.headers_mut());
        if whole {
            CONDITIONS.iter().for_each(|name| _ = request.headers_mut().remove(name));
        }
        match self.origin.ask(request).await {
            Some(mut response) => {
                rules::remove_hop_by_hop(response.headers_mut());
                // The origin's is that of its own connection.
                *response.version_mut() = hyper::Version::HTTP_11;
                Ok(response)
            }
            None => {
                self.metrics.failed.add(1);
                Err(Box::new(bad_gateway("the origin does not answer")))
            }
        }
    }
}

fn key_of(request: &Request<Incoming>) -> Key {
    let host = request.headers().get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes);
    Key::new(host, request.uri().path_and_query().map_or("/", |path| path.as_str()))
}

fn streamed(response: Response<Fetched>, how: &'static str) -> Answer {
    let mut response = response.map(Either::Right);
    response.headers_mut().insert(HOW, HeaderValue::from_static(how));
    response
}

fn bad_gateway(why: &'static str) -> Answer {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from_static(why.as_bytes()))));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    *response.headers_mut() = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"))]);
    response
}
