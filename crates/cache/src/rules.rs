//! What may be kept, by the headers of a request and of its answer (RFC 9111). What is in doubt is not kept.

use hyper::{
    HeaderMap, Method, StatusCode, Version,
    header::{self, HeaderName, HeaderValue},
};

/// Headers of a request whose value an answer depends on (`Vary`), with their values.
pub type Varying = Vec<(HeaderName, Option<HeaderValue>)>;

/// Whether the answer to a request may come out of the cache, or be kept there.
pub fn may_ask_cache(method: &Method, headers: &HeaderMap) -> bool {
    let wanted = matches!(*method, Method::GET | Method::HEAD);
    let whole = !headers.contains_key(header::AUTHORIZATION) && !headers.contains_key(header::UPGRADE);
    let bodiless = !headers.contains_key(header::TRANSFER_ENCODING)
        && headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0");
    wanted && whole && bodiless && !has_directive(headers, &["no-store", "no-cache"]) && !is_pragma(headers)
}

/// Whether an answer may be kept, as long as it lives ([`freshness`](crate::freshness)).
pub fn may_keep(status: StatusCode, headers: &HeaderMap) -> bool {
    let forbidden = ["no-store", "no-cache", "private"];
    status == StatusCode::OK
        && !headers.contains_key(header::SET_COOKIE)
        && !headers.contains_key(header::CONTENT_RANGE)
        && !has_directive(headers, &forbidden)
}

/// The headers that an answer to this request depends on. `None`: on things that nobody knows.
pub fn varying(request: &HeaderMap, answer: &HeaderMap) -> Option<Varying> {
    let mut varying = Vec::new();
    for value in answer.get_all(header::VARY) {
        for name in value.to_str().ok()?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            // Not a name: `*`.
            let name = HeaderName::from_bytes(name.as_bytes()).ok().filter(|_| name != "*")?;
            let asked = request.get(&name).cloned();
            varying.push((name, asked));
        }
    }
    Some(varying)
}

/// Whether an answer that depends on these is one for this request.
pub fn fits(varying: &Varying, request: &HeaderMap) -> bool {
    varying.iter().all(|(name, value)| request.get(name) == value.as_ref() && request.get_all(name).iter().count() < 2)
}

/// Headers between two neighbours only.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Takes out what is between two neighbours only (RFC 9110 §7.6.1).
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(header::CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
            .collect();
        named.iter().for_each(|name| _ = headers.remove(name));
    }
    // Most have few headers, and none of these.
    if headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        HOP_BY_HOP.iter().for_each(|name| _ = headers.remove(name));
    }
}

/// Says that a message went through here (RFC 9110 §7.6.3); `received` is the version of HTTP that it came in.
pub fn add_via(headers: &mut HeaderMap, received: Version) {
    let via = match received {
        Version::HTTP_10 => HeaderValue::from_static("1.0 sidestep"),
        _ => HeaderValue::from_static("1.1 sidestep"),
    };
    headers.append(header::VIA, via);
}

fn is_pragma(headers: &HeaderMap) -> bool {
    headers.get(header::PRAGMA).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"no-cache"))
}

fn has_directive(headers: &HeaderMap, wanted: &[&str]) -> bool {
    headers.contains_key(header::CACHE_CONTROL) && directives(headers).any(|(name, _)| wanted.contains(&name.as_str()))
}

/// The directives of `Cache-Control`, in lower case. One that is not text is `no-store`.
pub(crate) fn directives(headers: &HeaderMap) -> impl Iterator<Item = (String, Option<String>)> {
    headers.get_all(header::CACHE_CONTROL).iter().flat_map(|value| {
        let text = value.to_str().unwrap_or("no-store").to_ascii_lowercase();
        let parts: Vec<_> = text
            .split(',')
            .map(|part| match part.split_once('=') {
                Some((name, value)) => (name.trim().to_string(), Some(value.trim().trim_matches('"').to_string())),
                None => (part.trim().to_string(), None),
            })
            .collect();
        parts
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn requests_that_want_the_origin_get_it() {
        let asks = |pairs: &[(&str, &str)]| may_ask_cache(&Method::GET, &headers(pairs));
        assert!(asks(&[]) && asks(&[("accept-encoding", "gzip")]) && asks(&[("cache-control", "max-age=0")]));
        assert!(!asks(&[("cache-control", "No-Cache")]) && !asks(&[("cache-control", "a, no-store")]));
        assert!(!asks(&[("authorization", "Basic x")]) && !asks(&[("pragma", "no-cache")]));
        assert!(!asks(&[("content-length", "5")]) && !asks(&[("upgrade", "websocket")]));
        assert!(!may_ask_cache(&Method::POST, &headers(&[])) && may_ask_cache(&Method::HEAD, &headers(&[])));
    }

    #[test]
    fn answers_that_are_somebodys_own_are_not_kept() {
        let keeps = |pairs: &[(&str, &str)]| may_keep(StatusCode::OK, &headers(pairs));
        assert!(keeps(&[]) && keeps(&[("cache-control", "public, max-age=60")]));
        for value in ["private", "no-store", "No-Cache", "a, no-store"] {
            assert!(!keeps(&[("cache-control", value)]), "{value}");
        }
        assert!(!keeps(&[("set-cookie", "a=b")]) && !keeps(&[("content-range", "bytes 0-1/2")]));
        assert!(
            !may_keep(StatusCode::NOT_FOUND, &headers(&[])) && !may_keep(StatusCode::PARTIAL_CONTENT, &headers(&[]))
        );
    }

    #[test]
    fn varying_headers_must_be_the_same() {
        let asked = headers(&[("accept-encoding", "gzip")]);
        let known = varying(&asked, &headers(&[("vary", "Accept-Encoding, x-part")])).unwrap();
        assert!(fits(&known, &asked));
        assert!(!fits(&known, &headers(&[])) && !fits(&known, &headers(&[("accept-encoding", "br")])));
        assert!(!fits(&known, &headers(&[("accept-encoding", "gzip"), ("x-part", "1")])));
        assert!(varying(&asked, &headers(&[("vary", "*")])).is_none());
        assert!(fits(&varying(&asked, &headers(&[])).unwrap(), &headers(&[("cookie", "a")])));
    }

    #[test]
    fn headers_for_the_neighbour_stay_there() {
        let mut all = headers(&[("connection", "close, x-own"), ("x-own", "1"), ("te", "trailers"), ("etag", "\"a\"")]);
        remove_hop_by_hop(&mut all);
        assert_eq!(all, headers(&[("etag", "\"a\"")]));
    }
}
