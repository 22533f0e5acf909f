//! What a request that changes something makes out of date (RFC 9111 §4.4): what is kept of its target, and of the places that its answer names.

use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    header::{self, HeaderName},
};

use crate::{
    freshness::text,
    store::{Key, Store},
};

/// Gives up documents when it is dropped: also when whoever asked for a change has gone before the answer, since it may have been made.
#[derive(Debug)]
pub(crate) struct Invalidation<'a> {
    store: &'a Store,
    host: Vec<u8>,
    paths: Vec<String>,
}

/// Headers of an answer that name other places which have changed.
const PLACES: [HeaderName; 2] = [header::LOCATION, header::CONTENT_LOCATION];

/// Whether a request with this method may change something: one that nobody knows may.
pub(crate) fn may_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

impl<'a> Invalidation<'a> {
    /// Of the target of a request.
    pub(crate) fn of<B>(request: &Request<B>, store: &'a Store) -> Invalidation<'a> {
        let path = path_of(request.uri());
        let plain = plain_path(&path);
        let mut paths = vec![path];
        paths.extend(plain.filter(|plain| *plain != paths[0]));
        Invalidation { store, host: host_of(request), paths }
    }

    /// The origin has answered: what the answer says has changed is given up, too. Where it refused nothing has.
    pub(crate) fn heed(mut self, status: StatusCode, headers: &HeaderMap) {
        if status.is_client_error() {
            self.paths.clear();
            return;
        }
        for uri in PLACES.iter().filter_map(|name| text(headers, name.clone())?.parse::<Uri>().ok()) {
            // Of other hosts it has no say.
            if uri.authority().is_none_or(|authority| authority.as_str().as_bytes() == self.host) {
                self.paths.push(path_of(&uri));
            }
        }
    }
}

impl Drop for Invalidation<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            self.store.invalidate(&Key::new(&self.host, path));
        }
    }
}

/// The host of a request, as it is part of a key.
pub(crate) fn host_of<B>(request: &Request<B>) -> Vec<u8> {
    request.headers().get(header::HOST).map_or(Vec::new(), |host| host.as_bytes().to_vec())
}

/// The path of a request with its query, as it is part of a key.
pub(crate) fn path_of(uri: &Uri) -> String {
    uri.path_and_query().map_or("/", |path| path.as_str()).to_string()
}

/// The plain name of a document that a path names in another way: `/%61//b/../c` is `/a/c`. `None`: it has none.
fn plain_path(path: &str) -> Option<String> {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut bytes = path.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    let decoded = String::from_utf8(decoded).ok()?;
    let mut parts: Vec<&str> = Vec::new();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let mut plain = format!("/{}", parts.join("/"));
    if !parts.is_empty() && ["/", "/.", "/.."].iter().any(|end| decoded.ends_with(end)) {
        plain.push('/');
    }
    Some(query.map_or(plain.clone(), |query| format!("{plain}?{query}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_nobody_knows_may_change_something() {
        for method in ["POST", "PUT", "PATCH", "DELETE", "MOVE", "get"] {
            assert!(may_change(&method.parse().unwrap()), "{method}");
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            assert!(!may_change(&method.parse().unwrap()), "{method}");
        }
    }

    #[test]
    fn a_document_is_found_under_its_plain_name() {
        for (path, plain) in [
            ("/a/c", Some("/a/c")),
            ("/%61//b/../c", Some("/a/c")),
            ("/a/", Some("/a/")),
            ("/a/b/..", Some("/a/")),
            ("/../..", Some("/")),
            ("/%61?b=%61", Some("/a?b=%61")),
            ("/%", None),
            ("/%6", None),
            ("/%zz", None),
            ("/%ff", None),
        ] {
            assert_eq!(plain_path(path).as_deref(), plain, "{path}");
        }
    }
}
