//! How old an answer is, and how old it may get (RFC 9111 §4.2).
//!
//! What is kept is looked at before each use, but only documents whose application tells of changes have a version that ever changes. So every
//! answer has an end, too: the one that it names itself, or else one that follows from its last change. An answer that names neither was
//! made for its request, as far as anybody can see, and is not kept.

use std::time::{Duration, Instant, SystemTime};

use hyper::{
    HeaderMap,
    header::{self, HeaderName},
};

use crate::rules::directives;

/// The age of an answer, and its end.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    received: Instant,
    /// How old it was when it was received.
    initial_age: Duration,
    lifetime: Duration,
}

/// When an answer was asked for and received.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Before the origin was asked.
    pub asked: Instant,
    /// When the head of its answer had come.
    pub received: Instant,
    /// The same by the calendar.
    pub date: SystemTime,
}

/// What a request says of the answers that it takes out of a cache (RFC 9111 §5.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demands {
    oldest: Duration,
    /// For so long it must last.
    lasting: Duration,
    /// It wants no other answer.
    pub only_if_cached: bool,
}

/// Of the time since the last change, an answer without an end lasts this part (RFC 9111 §4.2.2), but at least and at most so long. What
/// was changed just now is most likely a file with a version.
const PART: u32 = 10;
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Life {
    /// Of an answer with these headers; `queried`: its request had a query. `None`: it has no life to be kept for.
    pub fn of(headers: &HeaderMap, queried: bool, arrival: Arrival) -> Option<Life> {
        let date = date(headers, header::DATE).unwrap_or(arrival.date);
        let lifetime = match named_lifetime(headers, date) {
            Some(lifetime) => lifetime,
            None if queried => return None,
            None => {
                let changed = self::date(headers, header::LAST_MODIFIED)?;
                (date.duration_since(changed).unwrap_or_default() / PART).clamp(SHORTEST, LONGEST)
            }
        };
        let apparent = arrival.date.duration_since(date).unwrap_or_default();
        let told = text(headers, header::AGE).and_then(seconds).unwrap_or_default();
        let told = told.saturating_add(arrival.received.duration_since(arrival.asked));
        let life = Life { received: arrival.received, initial_age: apparent.max(told), lifetime };
        life.is_fresh(arrival.received).then_some(life)
    }

    /// One that begins now, for tests.
    #[cfg(test)]
    pub(crate) fn of_an_hour() -> Life {
        Life { received: Instant::now(), initial_age: Duration::ZERO, lifetime: Duration::from_secs(3600) }
    }

    /// How old it is.
    pub fn age(&self, now: Instant) -> Duration {
        self.initial_age.saturating_add(now.saturating_duration_since(self.received))
    }

    /// Whether it has not come to its end.
    pub fn is_fresh(&self, now: Instant) -> bool {
        self.age(now) < self.lifetime
    }

    /// Whether it is what a request demands.
    pub fn meets(&self, demands: &Demands, now: Instant) -> bool {
        let age = self.age(now);
        // Ages are told in whole seconds.
        age.as_secs() <= demands.oldest.as_secs() && self.lifetime.saturating_sub(age) >= demands.lasting
    }
}

impl Demands {
    /// Of a request with these headers.
    pub fn of(headers: &HeaderMap) -> Demands {
        let mut demands = Demands { oldest: Duration::MAX, lasting: Duration::ZERO, only_if_cached: false };
        if !headers.contains_key(header::CACHE_CONTROL) {
            return demands;
        }
        for (name, value) in directives(headers) {
            let value = value.as_deref().and_then(seconds);
            match name.as_str() {
                // One that cannot be read takes nothing that is kept.
                "max-age" => demands.oldest = demands.oldest.min(value.unwrap_or_default()),
                "min-fresh" => demands.lasting = demands.lasting.max(value.unwrap_or(Duration::MAX)),
                "only-if-cached" => demands.only_if_cached = true,
                _ => {}
            }
        }
        demands
    }
}

/// The lifetime that an answer of this date names itself. One that cannot be read is over.
fn named_lifetime(headers: &HeaderMap, date: SystemTime) -> Option<Duration> {
    let named = |wanted: &str| {
        let values = directives(headers).filter(|(name, _)| name == wanted);
        // Of several the shortest.
        values.map(|(_, value)| value.as_deref().and_then(seconds).unwrap_or_default()).min()
    };
    let expires = || {
        let value = headers.get(header::EXPIRES)?;
        let end = value.to_str().ok().and_then(|text| httpdate::parse_http_date(text).ok());
        Some(end.and_then(|end| end.duration_since(date).ok()).unwrap_or_default())
    };
    named("s-maxage").or_else(|| named("max-age")).or_else(expires)
}

/// A number of seconds; one that is too large for a number is large.
fn seconds(text: &str) -> Option<Duration> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// A header as text.
pub(crate) fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// A header as a date.
pub(crate) fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, name)?).ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:50:00 GMT";

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    /// Seconds that an answer lasts which was asked for at its date, and came after so long.
    fn lasts_after(pairs: &[(&str, &str)], delay: u64) -> Option<u64> {
        let (asked, delay) = (Instant::now(), Duration::from_secs(delay));
        let date = httpdate::parse_http_date(DATE).unwrap() + delay;
        let arrival = Arrival { asked, received: asked + delay, date };
        let mut all = headers(pairs);
        all.insert(header::DATE, HeaderValue::from_static(DATE));
        let life = Life::of(&all, false, arrival)?;
        assert!(life.age(arrival.received) >= delay);
        (0..).find(|second| !life.is_fresh(arrival.received + Duration::from_secs(*second)))
    }

    fn lasts(pairs: &[(&str, &str)]) -> Option<u64> {
        lasts_after(pairs, 0)
    }

    #[test]
    fn answers_last_as_long_as_they_say() {
        let control = |value: &'static str| lasts(&[("cache-control", value)]);
        assert_eq!(control("public, max-age=60"), Some(60));
        assert_eq!(control("max-age=60, s-maxage=5"), Some(5));
        assert_eq!(control("max-age=60, max-age=7"), Some(7), "the shortest of two");
        for over in ["max-age=0", "max-age=x", "max-age", "max-age=-1", "s-maxage=0, max-age=60"] {
            assert_eq!(control(over), None, "{over}");
        }
        let later = "Sun, 06 Nov 1994 08:50:30 GMT";
        assert_eq!(lasts(&[("expires", later)]), Some(30));
        assert_eq!(lasts(&[("expires", later), ("cache-control", "max-age=4")]), Some(4));
        for over in [DATE, "Sun, 06 Nov 1994 08:49:00 GMT", "0", "soon"] {
            assert_eq!(lasts(&[("expires", over), ("last-modified", DATE)]), None, "{over}");
        }
    }

    #[test]
    fn an_age_that_an_answer_has_already_counts() {
        assert_eq!(lasts(&[("cache-control", "max-age=60"), ("age", "20")]), Some(40));
        assert_eq!(lasts(&[("cache-control", "max-age=60"), ("age", "60")]), None);
        assert_eq!(lasts(&[("cache-control", "max-age=60"), ("age", "old")]), Some(60));
        assert_eq!(lasts_after(&[("cache-control", "max-age=60")], 15), Some(45));
        assert_eq!(lasts_after(&[("cache-control", "max-age=60"), ("age", "20")], 15), Some(25));
    }

    #[test]
    fn without_a_word_of_it_the_last_change_says_how_long() {
        for (changed, seconds) in [
            (DATE, Some(60)),
            ("Sun, 06 Nov 1994 09:50:00 GMT", Some(60)),
            ("Sun, 06 Nov 1994 05:50:00 GMT", Some(1080)),
            ("Wed, 06 Nov 1974 05:50:00 GMT", Some(24 * 3600)),
            ("Monday", None),
        ] {
            assert_eq!(lasts(&[("last-modified", changed)]), seconds, "{changed}");
        }
        assert_eq!(lasts(&[]), None);
        assert_eq!(lasts(&[("etag", "\"a\"")]), None, "a tag may be one of a page that is made anew for everybody");
        let now = Instant::now();
        let arrival = Arrival { asked: now, received: now, date: SystemTime::now() };
        assert!(Life::of(&headers(&[("last-modified", DATE)]), true, arrival).is_none(), "with a query");
        assert!(Life::of(&headers(&[("cache-control", "max-age=1")]), true, arrival).is_some());
    }

    #[test]
    fn no_number_is_too_large() {
        let huge = "max-age=99999999999999999999999";
        let now = Instant::now();
        let arrival = Arrival { asked: now, received: now, date: SystemTime::now() };
        let life = Life::of(&headers(&[("cache-control", huge), ("age", "18446744073709551615")]), false, arrival);
        assert!(life.is_none(), "as old as it may get");
        let life = Life::of(&headers(&[("cache-control", huge)]), false, arrival).unwrap();
        assert!(life.is_fresh(now + LONGEST) && life.age(now + LONGEST) >= LONGEST);
        let demands = Demands::of(&headers(&[("cache-control", "max-age=99999999999999999999999, min-fresh=1")]));
        assert!(life.meets(&demands, now + LONGEST));
    }

    #[test]
    fn requests_say_how_old_answers_may_be() {
        let now = Instant::now();
        let arrival = Arrival { asked: now, received: now, date: SystemTime::now() };
        let life = Life::of(&headers(&[("cache-control", "max-age=60")]), false, arrival).unwrap();
        let meets = |value: &str, after: u64| {
            life.meets(&Demands::of(&headers(&[("cache-control", value)])), now + Duration::from_secs(after))
        };
        assert!(meets("max-age=10", 10) && !meets("max-age=10", 11));
        assert!(meets("max-age=0", 0) && !meets("max-age=0", 1) && !meets("max-age=soon", 1));
        assert!(meets("min-fresh=50", 10) && !meets("min-fresh=50", 11) && !meets("min-fresh", 0));
        assert!(meets("max-stale", 30) && meets("only-if-cached", 30));
        assert!(Demands::of(&headers(&[("cache-control", "Only-If-Cached")])).only_if_cached);
        assert!(!Demands::of(&headers(&[])).only_if_cached);
    }
}
