//! What the front leaves over: requests that are answered by hyper's side of the proxy, out of the cache, by a fetch for all who want the same
//! document, or by the origin alone.

use std::time::{Instant, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Version,
    body::{Body, Incoming},
    header::{self, HeaderName, HeaderValue},
};

use crate::{
    answer::{HOW, answer},
    checker::Checked,
    flights::{Flight, Landing, PATIENCE, Turn},
    freshness::{Arrival, Demands, Life},
    invalidation::{Invalidation, host_of, may_change, path_of},
    origin::Fetched,
    proxy::{Cache, Proxy},
    rules,
    store::{Entry, Key},
    versions::{Slot, is_plain},
};

pub(crate) type Answer = Response<Either<Full<Bytes>, Fetched>>;

/// Headers of a request that ask for less than the whole document.
const CONDITIONS: [HeaderName; 5] =
    [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_MATCH, header::IF_UNMODIFIED_SINCE, header::IF_RANGE];
/// What waits for a fetch that failed is told the same.
const NO_ORIGIN: &str = "the origin does not answer";

impl Proxy {
    /// The answer to a request of any kind.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let Some(cache) = &self.cache else { return self.pass(request, "pass").await };
        if may_change(request.method()) {
            let invalidation = Invalidation::of(&request, &cache.store);
            let answer = self.pass(request, "pass").await;
            invalidation.heed(answer.status(), answer.headers());
            return answer;
        }
        let demands = Demands::of(request.headers());
        let asks = rules::may_ask_cache(request.method(), request.headers()) && is_plain(request.uri().path());
        match asks {
            true => self.answer_from(cache, request, &demands).await,
            false if demands.only_if_cached => not_kept(),
            false => self.pass(request, "pass").await,
        }
    }

    /// Out of the cache, if it is there or somebody is fetching it, and else by a fetch.
    async fn answer_from(&self, cache: &Cache, request: Request<Incoming>, demands: &Demands) -> Answer {
        let key = Key::new(&host_of(&request), &path_of(request.uri()));
        let partial = request.headers().contains_key(header::RANGE) || *request.method() == Method::HEAD;
        let (mut how, mut has_waited) = ("miss", false);
        let flight = loop {
            match self.kept(cache, &key, &request, demands).await {
                Kept::Current(answer) => return *answer,
                Kept::Gone => how = "stale",
                Kept::No => {}
            }
            if demands.only_if_cached {
                return not_kept();
            }
            if partial {
                return self.pass(request, how).await;
            }
            match cache.flights.turn(&key) {
                Turn::Lead(flight) => break Some(flight),
                Turn::Alone => break None,
                Turn::Wait(_) if has_waited => break None,
                Turn::Wait(waiting) => {
                    self.metrics.waited.add(1);
                    match waiting.landing(PATIENCE).await {
                        Landing::Failed => return bad_gateway(NO_ORIGIN),
                        // Somebody else, perhaps this one, fetches it now.
                        Landing::Abandoned => {}
                        _ => has_waited = true,
                    }
                }
            }
        };
        // Before it is fetched: what is changed meanwhile has another version afterwards.
        let path = request.uri().path();
        let before = cache.checker.check(path).await.filter(|checked| !checked.version.is_changing());
        let Some(before) = before else {
            self.metrics.unknown.add(1);
            land(flight, Landing::Changed);
            return self.pass(request, how).await;
        };
        self.fetch(cache, request, Wanted { key, flight, before, how }).await
    }

    /// What is kept for a request.
    async fn kept(&self, cache: &Cache, key: &Key, request: &Request<Incoming>, demands: &Demands) -> Kept {
        let found = cache.store.find(key.as_bytes());
        let Some(entry) = found.filter(|entry| rules::fits(&entry.varying, request.headers())) else { return Kept::No };
        let current = cache.checker.check(request.uri().path()).await;
        let now = Instant::now();
        if !entry.is_good(current, now) {
            cache.store.forget(key, &entry);
            self.metrics.stale.add(1);
            return Kept::Gone;
        }
        if !entry.life.meets(demands, now) {
            return Kept::No;
        }
        self.metrics.hits.add(1);
        let answer = answer(&entry, request.method(), request.headers(), ("hit", Some(entry.life.age(now))));
        Kept::Current(Box::new(answer.map(|body| Either::Left(Full::new(body)))))
    }

    /// Fetches a document, keeps it if it may be kept, and answers.
    async fn fetch(&self, cache: &Cache, request: Request<Incoming>, wanted: Wanted<'_>) -> Answer {
        let Wanted { key, flight, before, how } = wanted;
        let (method, uri, asked) = (request.method().clone(), request.uri().clone(), request.headers().clone());
        let (epoch, since) = (cache.store.epoch(&key), Instant::now());
        let response = match self.ask_origin(request, true).await {
            Ok(response) => response,
            Err(answer) => {
                land(flight, Landing::Failed);
                return *answer;
            }
        };
        self.metrics.misses.add(1);
        let arrival = Arrival { asked: since, received: Instant::now(), date: SystemTime::now() };
        let is_small = response.body().size_hint().exact().is_some_and(|length| length <= self.largest as u64);
        let keeps = is_small && rules::may_keep(response.status(), response.headers());
        let varying = rules::varying(&asked, response.headers()).filter(|_| keeps);
        let Some((varying, life)) = varying.zip(Life::of(response.headers(), uri.query().is_some(), arrival)) else {
            cache.flights.note(&key, false);
            land(flight, Landing::Unkept);
            return streamed(response, how);
        };
        cache.flights.note(&key, true);
        let (parts, body) = response.into_parts();
        let Ok(body) = body.collect().await else {
            land(flight, Landing::Failed);
            return bad_gateway("the origin broke off in the middle of an answer");
        };
        let entry = Entry::new(
            headers_of(parts.headers, arrival.date),
            body.to_bytes(),
            Slot::of(uri.path()),
            before,
            varying,
            life,
        );
        let kept = cache.checker.check(uri.path()).await == Some(before) && cache.store.keep(key, entry.clone(), epoch);
        land(flight, if kept { Landing::Kept } else { Landing::Changed });
        let age = Some(life.age(Instant::now())).filter(|age| age.as_secs() > 0);
        answer(&entry, &method, &asked, (how, age)).map(|body| Either::Left(Full::new(body)))
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
        let from = request.version();
        *request.version_mut() = Version::HTTP_11;
        rules::remove_hop_by_hop(request.headers_mut());
        rules::add_via(request.headers_mut(), from);
        if whole {
            CONDITIONS.iter().for_each(|name| _ = request.headers_mut().remove(name));
        }
        match self.origin().ask(request).await {
            Some(mut response) => {
                let from = response.version();
                rules::remove_hop_by_hop(response.headers_mut());
                rules::add_via(response.headers_mut(), from);
                // The origin's is that of its own connection.
                *response.version_mut() = Version::HTTP_11;
                Ok(response)
            }
            None => {
                self.metrics.failed.add(1);
                Err(Box::new(bad_gateway(NO_ORIGIN)))
            }
        }
    }
}

/// What is kept for a request.
enum Kept {
    /// An answer.
    Current(Box<Answer>),
    /// One that is out of date, and was given up.
    Gone,
    /// Nothing that can be used.
    No,
}

/// A document that is to be fetched.
struct Wanted<'a> {
    key: Key,
    /// For all who wait; `None`: for one request.
    flight: Option<Flight<'a>>,
    /// What it was before.
    before: Checked,
    how: &'static str,
}

fn land(flight: Option<Flight<'_>>, landing: Landing) {
    if let Some(flight) = flight {
        flight.land(landing);
    }
}

/// The headers that are kept of an answer that came at this time.
fn headers_of(mut headers: HeaderMap, date: SystemTime) -> HeaderMap {
    // Every answer gets its own.
    headers.remove(header::AGE);
    if !headers.contains_key(header::DATE) {
        // When it was received (RFC 9110 §6.6.1).
        let date = HeaderValue::from_str(&httpdate::fmt_http_date(date));
        headers.insert(header::DATE, date.expect("letters and digits"));
    }
    headers
}

fn streamed(response: Response<Fetched>, how: &'static str) -> Answer {
    let mut response = response.map(Either::Right);
    response.headers_mut().insert(HOW, HeaderValue::from_static(how));
    response
}

fn bad_gateway(why: &'static str) -> Answer {
    own_answer(StatusCode::BAD_GATEWAY, why)
}

/// The answer to `only-if-cached` (RFC 9111 §5.2.1.7).
fn not_kept() -> Answer {
    own_answer(StatusCode::GATEWAY_TIMEOUT, "this is not kept, and the request does not want it fetched")
}

fn own_answer(status: StatusCode, why: &'static str) -> Answer {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from_static(why.as_bytes()))));
    *response.status_mut() = status;
    *response.headers_mut() = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"))]);
    response
}
