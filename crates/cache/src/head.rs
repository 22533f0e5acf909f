//! The head of a request, as far as it takes to see that it asks for a whole document and nothing else.
//!
//! What is seen here is answered without hyper ([`front`](crate::front)); what is in doubt is hyper's to judge. So nothing is refused
//! here, and what hyper would refuse is not understood.

use std::mem::MaybeUninit;

use hyper::header::HeaderName;

use crate::rules::Varying;

/// What the bytes of a connection begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    /// The head is not complete.
    Part,
    /// A request for a whole document.
    Plain {
        /// Bytes of the request, which has no body.
        length: usize,
    },
    /// Another request.
    Other {
        /// Bytes of its head and its body. `None`: its end is hyper's to find, and so are all requests behind it.
        length: Option<u64>,
    },
}

/// The host, path and other headers of a request, in the bytes of its connection.
#[derive(Debug)]
pub struct Head<'headers, 'bytes> {
    headers: &'headers [httparse::Header<'bytes>],
    host: &'bytes [u8],
    /// With its query.
    path: &'bytes str,
}

/// Room for the headers of a request: as many as hyper takes.
pub type Room<'bytes> = [MaybeUninit<httparse::Header<'bytes>>; 100];

/// Room that nothing has been written to, which takes no time to make.
pub const EMPTY_ROOM: Room<'static> = [const { MaybeUninit::uninit() }; 100];

/// Headers that make a request another one than for a whole document, or one that the cache may not answer.
const SPECIAL: [&str; 13] = [
    "authorization",
    "cache-control",
    "content-length",
    "expect",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "pragma",
    "range",
    "transfer-encoding",
    "upgrade",
];

impl<'headers, 'bytes> Head<'headers, 'bytes> {
    /// Looks at the bytes of a connection, of a plain request also at what it asks for.
    pub fn see(bytes: &'bytes [u8], room: &'headers mut Room<'bytes>) -> (Seen, Option<Head<'headers, 'bytes>>) {
        let mut request = httparse::Request::new(&mut []);
        let length = match request.parse_with_uninit_headers(bytes, room) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return (Seen::Part, None),
            Err(_) => return (Seen::Other { length: None }, None),
        };
        let (method, path, version) = (request.method, request.path.unwrap_or(""), request.version);
        let headers: &'headers [httparse::Header<'bytes>] = request.headers;
        let (mut host, mut is_plain) = (None, method == Some("GET") && path.starts_with('/'));
        for header in headers {
            if header.name.eq_ignore_ascii_case("host") {
                is_plain &= host.replace(header.value).is_none();
            } else if header.name.eq_ignore_ascii_case("connection") {
                if !header.value.eq_ignore_ascii_case(b"keep-alive") {
                    return (Seen::Other { length: None }, None);
                }
            } else {
                is_plain &= !SPECIAL.iter().any(|name| header.name.eq_ignore_ascii_case(name));
            }
        }
        match host.filter(|_| is_plain && version == Some(1)) {
            Some(host) => (Seen::Plain { length }, Some(Head { headers, host, path })),
            None if version == Some(1) => (Seen::Other { length: whole_length(length, method, headers) }, None),
            None => (Seen::Other { length: None }, None),
        }
    }

    /// The host that is asked.
    pub fn host(&self) -> &'bytes [u8] {
        self.host
    }

    /// The path and the query.
    pub fn path(&self) -> &'bytes str {
        self.path
    }

    /// Whether an answer that depends on these is one for this request.
    pub fn fits(&self, varying: &Varying) -> bool {
        varying.iter().all(|(name, wanted)| {
            let mut values = self.values(name);
            let first = values.next();
            values.next().is_none() && first == wanted.as_ref().map(|value| value.as_bytes())
        })
    }

    fn values(&self, name: &HeaderName) -> impl Iterator<Item = &'bytes [u8]> {
        let wanted = move |header: &&httparse::Header<'bytes>| header.name.eq_ignore_ascii_case(name.as_str());
        self.headers.iter().filter(wanted).map(|header| header.value)
    }
}

/// Bytes of a request whose head is so long, where its headers leave no doubt.
fn whole_length(head: usize, method: Option<&str>, headers: &[httparse::Header<'_>]) -> Option<u64> {
    let named = |name: &'static str| headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    let unsure = ["transfer-encoding", "upgrade", "expect"].iter().any(|name| named(name).next().is_some());
    if unsure || method == Some("CONNECT") {
        return None;
    }
    let mut lengths = named("content-length");
    let body = match (lengths.next(), lengths.next()) {
        (None, _) => 0,
        (Some(length), None) if length.value.iter().all(u8::is_ascii_digit) => {
            std::str::from_utf8(length.value).ok()?.parse().ok()?
        }
        _ => return None,
    };
    (head as u64).checked_add(body)
}

#[cfg(test)]
mod tests {
    use hyper::header::{self, HeaderValue};

    use super::*;

    fn see(text: &str) -> Seen {
        Head::see(text.as_bytes(), &mut { EMPTY_ROOM }).0
    }

    fn asks(headers: &str) -> Seen {
        see(&format!("GET /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n"))
    }

    #[test]
    fn plain_requests_are_seen_as_such() {
        for headers in ["", "Accept: */*\r\nUser-Agent: x\r\n", "connection: Keep-Alive\r\n", "Cookie: a=b\r\n"] {
            assert!(matches!(asks(headers), Seen::Plain { .. }), "{headers:?}");
        }
        let two = "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\nGET /c HTTP/1.1\r\n";
        let mut room = EMPTY_ROOM;
        let (seen, head) = Head::see(two.as_bytes(), &mut room);
        let head = head.unwrap();
        assert_eq!((seen, head.host(), head.path()), (Seen::Plain { length: 30 }, &b"h"[..], "/a?b"));
        assert_eq!(see(&two[..29]), Seen::Part);
        assert_eq!(see(""), Seen::Part);
    }

    #[test]
    fn what_is_in_doubt_is_not_plain() {
        for name in SPECIAL {
            assert!(matches!(asks(&format!("{name}: 0\r\n")), Seen::Other { .. }), "{name}");
        }
        for text in [
            "GET /a HTTP/1.0\r\nHost: h\r\n\r\n",
            "GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /a HTTP/1.1\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
            "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            "nonsense\r\n\r\n",
        ] {
            assert!(matches!(see(text), Seen::Other { .. }), "{text:?}");
        }
    }

    #[test]
    fn the_end_of_another_request_is_found_or_left_to_hyper() {
        let length = |headers: &str| match asks(headers) {
            Seen::Other { length } => length,
            seen => panic!("{headers:?}: {seen:?}"),
        };
        let head = |headers: &str| (28 + headers.len()) as u64;
        assert_eq!(length("Range: bytes=0-1\r\n"), Some(head("Range: bytes=0-1\r\n")));
        assert_eq!(length("Content-Length: 7\r\n"), Some(head("Content-Length: 7\r\n") + 7));
        for headers in [
            "Content-Length: 7\r\nContent-Length: 7\r\n",
            "Content-Length: +7\r\n",
            "Content-Length: 18446744073709551615\r\n",
            "Content-Length:\r\n",
            "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Expect: 100-continue\r\n",
            "Upgrade: x\r\n",
            "Connection: upgrade\r\n",
        ] {
            assert_eq!(length(headers), None, "{headers:?}");
        }
        assert_eq!(see("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n"), Seen::Other { length: None });
    }

    #[test]
    fn answers_fit_requests_with_the_same_headers() {
        let varying = vec![(header::ACCEPT_LANGUAGE, Some(HeaderValue::from_static("de"))), (header::COOKIE, None)];
        let fits = |headers: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
            let mut room = EMPTY_ROOM;
            Head::see(text.as_bytes(), &mut room).1.unwrap().fits(&varying)
        };
        assert!(fits("accept-language: de\r\n") && fits("Accept-Language:  de \r\nAccept: x\r\n"));
        for headers in ["", "Accept-Language: fr\r\n", "Accept-Language: de\r\nAccept-Language: de\r\n"] {
            assert!(!fits(headers), "{headers:?}");
        }
        assert!(!fits("Accept-Language: de\r\nCookie: a\r\n"));
    }
}
