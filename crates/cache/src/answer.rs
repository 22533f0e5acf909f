//! Answers out of the cache: the whole document, a range of it, or the word that it has not changed (RFC 9110 §13 and §14).

use std::{ops::Range, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    header::{self, HeaderName, HeaderValue},
};

use crate::{
    freshness::{date, text},
    store::Entry,
};

/// How an answer came about, for the header `X-Cache`.
pub const HOW: HeaderName = HeaderName::from_static("x-cache");

/// The head of the answer to a request that asks for a whole document and nothing else.
pub fn head_of(headers: &HeaderMap, length: usize, age: u64) -> Vec<u8> {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    let mut add = |name: &HeaderName, value: &[u8]| {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    };
    let others = headers.iter().filter(|(name, _)| **name != header::CONTENT_LENGTH && **name != HOW);
    others.for_each(|(name, value)| add(name, value.as_bytes()));
    add(&header::CONTENT_LENGTH, length.to_string().as_bytes());
    add(&header::AGE, age.to_string().as_bytes());
    add(&HOW, b"hit");
    head.extend_from_slice(b"\r\n");
    head
}

/// The answer to a request for a document that is kept: how it came about, and how old it is, if that is to be told.
pub fn answer(
    entry: &Entry,
    method: &Method,
    asked: &HeaderMap,
    (how, age): (&'static str, Option<Duration>),
) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.headers_mut() = entry.headers.clone();
    response.headers_mut().insert(HOW, HeaderValue::from_static(how));
    if let Some(age) = age {
        response.headers_mut().insert(header::AGE, HeaderValue::from(age.as_secs()));
    }
    let length = entry.body.len();
    if is_unchanged(entry, asked) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(header::CONTENT_LENGTH);
        return response;
    }
    let part = match range(entry, asked) {
        None => 0..length,
        Some(Some(part)) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            set(&mut response, header::CONTENT_RANGE, format!("bytes {}-{}/{length}", part.start, part.end - 1));
            part
        }
        Some(None) => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            set(&mut response, header::CONTENT_RANGE, format!("bytes */{length}"));
            0..0
        }
    };
    set(&mut response, header::CONTENT_LENGTH, part.len().to_string());
    if *method == Method::GET {
        *response.body_mut() = entry.body.slice(part);
    }
    response
}

fn set(response: &mut Response<Bytes>, name: HeaderName, value: String) {
    let value = HeaderValue::from_str(&value).expect("digits and signs");
    response.headers_mut().insert(name, value);
}

/// Whether the client has this document already.
fn is_unchanged(entry: &Entry, asked: &HeaderMap) -> bool {
    if asked.contains_key(header::IF_NONE_MATCH) {
        let Some(own) = text(&entry.headers, header::ETAG) else { return false };
        let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        return known.flat_map(|list| list.split(',')).map(str::trim).any(|tag| tag == "*" || bare(tag) == bare(own));
    }
    let since = date(asked, header::IF_MODIFIED_SINCE);
    let changed = date(&entry.headers, header::LAST_MODIFIED);
    since.zip(changed).is_some_and(|(since, changed)| changed <= since)
}

/// A tag without the sign that it is a weak one.
fn bare(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// The range that is asked for. `None`: all of it; `Some(None)`: one that is not there.
fn range(entry: &Entry, asked: &HeaderMap) -> Option<Option<Range<usize>>> {
    let wanted = text(asked, header::RANGE)?.strip_prefix("bytes=")?;
    if !is_range_meant(entry, asked) || asked.get_all(header::RANGE).iter().count() > 1 || wanted.contains(',') {
        return None;
    }
    let length = entry.body.len();
    let (first, last) = wanted.trim().split_once('-')?;
    let part = if first.is_empty() {
        let count = last.parse::<usize>().ok()?.min(length);
        length - count..length
    } else {
        let first = first.parse::<usize>().ok()?;
        let last = if last.is_empty() { usize::MAX } else { last.parse::<usize>().ok()? };
        if last < first {
            return None;
        }
        first.min(length)..last.saturating_add(1).min(length)
    };
    Some((!part.is_empty()).then_some(part))
}

/// Whether a range is wanted of this very document (`If-Range`).
fn is_range_meant(entry: &Entry, asked: &HeaderMap) -> bool {
    let Some(condition) = text(asked, header::IF_RANGE) else { return !asked.contains_key(header::IF_RANGE) };
    let tag = text(&entry.headers, header::ETAG).is_some_and(|own| own == condition && !own.starts_with("W/"));
    let time = httpdate::parse_http_date(condition).ok();
    tag || time.is_some() && time == date(&entry.headers, header::LAST_MODIFIED)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{
        checker::Checked,
        freshness::Life,
        store::Prepared,
        versions::{Slot, Version},
    };

    fn ask(pairs: &[(&'static str, &str)]) -> (u16, String, Option<String>) {
        let time = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        let headers = [(header::ETAG, HeaderValue::from_static("\"tag\"")), (header::LAST_MODIFIED, time)];
        let checked = Checked { instance: 0, version: Version(0) };
        let entry = Entry::new(
            HeaderMap::from_iter(headers),
            Bytes::from_static(b"0123456789"),
            Slot::of("/"),
            checked,
            Vec::new(),
            Life::of_an_hour(),
        );
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let asked: HeaderMap = pairs.iter().map(pair).collect();
        let now = Instant::now();
        let response = answer(&entry, &Method::GET, &asked, ("hit", Some(entry.life.age(now))));
        if pairs.is_empty() {
            let made = (response.headers().clone(), response.body().to_vec());
            assert_eq!(read(&entry.whole(now)), made, "what is prepared is what would be made");
        }
        let range = text(response.headers(), header::CONTENT_RANGE).map(str::to_string);
        (response.status().as_u16(), String::from_utf8(response.body().to_vec()).unwrap(), range)
    }

    /// The headers and the body of a prepared answer, as a client reads them.
    fn read(prepared: &Prepared) -> (HeaderMap, Vec<u8>) {
        let mut room = [httparse::EMPTY_HEADER; 16];
        let mut response = httparse::Response::new(&mut room);
        let whole = [&prepared.head[..], &prepared.body].concat();
        let length = response.parse(&whole).unwrap().unwrap();
        assert_eq!(response.code, Some(200));
        let pair = |header: &httparse::Header<'_>| {
            (HeaderName::from_bytes(header.name.as_bytes()).unwrap(), HeaderValue::from_bytes(header.value).unwrap())
        };
        (response.headers.iter().map(pair).collect(), whole[length..].to_vec())
    }

    #[test]
    fn ranges_are_cut_out() {
        let part = |from: &str, range: &str| (206, from.to_string(), Some(range.to_string()));
        assert_eq!(ask(&[("range", "bytes=2-4")]), part("234", "bytes 2-4/10"));
        assert_eq!(ask(&[("range", "bytes=7-")]), part("789", "bytes 7-9/10"));
        assert_eq!(ask(&[("range", "bytes=-3")]), part("789", "bytes 7-9/10"));
        assert_eq!(ask(&[("range", "bytes=8-99")]), part("89", "bytes 8-9/10"));
        assert_eq!(ask(&[("range", "bytes=10-")]), (416, String::new(), Some("bytes */10".to_string())));
        for whole in ["bytes=4-2", "bytes=a-", "bytes=0-1,3-4", "lines=1-2", "bytes=-", "bytes=--1"] {
            assert_eq!(ask(&[("range", whole)]).0, 200, "{whole}");
        }
        assert_eq!(ask(&[("range", "bytes=2-4"), ("if-range", "\"tag\"")]).0, 206);
        assert_eq!(ask(&[("range", "bytes=2-4"), ("if-range", "\"old\"")]).0, 200);
        assert_eq!(ask(&[("range", "bytes=2-4"), ("if-range", "Sun, 06 Nov 1994 08:49:37 GMT")]).0, 206);
    }

    #[test]
    fn whole_documents_are_prepared() {
        assert_eq!(ask(&[]), (200, "0123456789".to_string(), None));
        assert_eq!(ask(&[("accept", "*/*")]).0, 200);
    }

    #[test]
    fn a_client_that_has_it_is_told_so() {
        for tags in ["\"tag\"", "\"a\", W/\"tag\"", "*"] {
            assert_eq!(ask(&[("if-none-match", tags)]).0, 304, "{tags}");
        }
        assert_eq!(ask(&[("if-none-match", "\"other\"")]).0, 200);
        assert_eq!(ask(&[("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")]).0, 304);
        assert_eq!(ask(&[("if-modified-since", "Sun, 06 Nov 1994 08:49:36 GMT")]).0, 200);
        let both = [("if-none-match", "\"other\""), ("if-modified-since", "Sun, 06 Nov 2094 08:49:37 GMT")];
        assert_eq!(ask(&both).0, 200, "the tag decides");
    }
}
