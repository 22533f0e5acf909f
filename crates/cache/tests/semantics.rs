//! What HTTP says of caches, besides versions: how long an answer lasts, how old it is, what a request demands, and what changes.

mod site;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use sidestep_cache::{Mode, Module};
use sidestep_testkit::{process, seeded::Seeded};
use site::{Client, Running, folder, scripted::Scripted};

const FRESH: &str = "200 OK\nCache-Control: max-age=1000";

fn module_of(folder: &Path) -> String {
    let module = Module::bind(folder, "127.0.0.1:0").unwrap();
    let address = module.address().unwrap().to_string();
    thread::spawn(move || module.serve());
    address
}

/// A proxy in front of an origin, and a client.
fn before(name: &str, origin: &Scripted) -> (Running, Client) {
    let module = module_of(&folder(name));
    let proxy = Running::start(&origin.address, Some((Mode::OneSided, &module)));
    let client = Client::new(&proxy.address);
    (proxy, client)
}

/// Each path's answer is how many times it was changed; everything that changes something says so.
fn counter(refused: &'static str) -> Scripted {
    let changes = Arc::new(AtomicU64::new(0));
    Scripted::start(move |question| {
        if question.method == "GET" {
            return Some((FRESH.into(), changes.load(Ordering::SeqCst).to_string()));
        }
        if question.path.starts_with(refused) {
            return Some(("405 Method Not Allowed".into(), String::new()));
        }
        changes.fetch_add(1, Ordering::SeqCst);
        match question.path.as_str() {
            "/breaks" => None,
            "/moved" => Some(("303 See Other\nLocation: /a\nContent-Location: http://site/b".into(), String::new())),
            "/abroad" => Some(("303 See Other\nLocation: http://elsewhere/a".into(), String::new())),
            _ => Some(("204 No Content".into(), String::new())),
        }
    })
}

#[test]
fn what_a_request_has_changed_is_fetched_again() {
    let origin = counter("/none");
    let (_proxy, mut client) = before("changed", &origin);
    let mut expected = 0;
    for method in ["POST", "PUT", "PATCH", "DELETE", "MOVE"] {
        for path in ["/a", "/%61", "/x/../a", "//a"] {
            client.get("/a");
            let kept = client.get("/a");
            assert_eq!((kept.how(), kept.text()), ("hit", expected.to_string().as_str()));
            assert_eq!(client.ask(method, path, &[("Content-Length", "0")]).status, 204);
            expected += 1;
            let next = client.get("/a");
            assert_eq!((next.how(), next.text()), ("miss", expected.to_string().as_str()), "{method} {path}");
        }
    }
    // What an answer names is out of date, too, but not on other hosts; nor is anything else.
    let kept = ["/a", "/b", "/c"];
    for (path, given_up) in [("/moved", &["/a", "/b"][..]), ("/abroad", &[]), ("/d", &[])] {
        kept.iter().for_each(|path| _ = client.get(path));
        client.ask("POST", path, &[("Content-Length", "0")]);
        for path in kept {
            let how = if given_up.contains(&path) { "miss" } else { "hit" };
            assert_eq!(client.get(path).how(), how, "{path}");
        }
    }
}

#[test]
fn what_was_refused_has_changed_nothing_and_what_was_broken_off_may_have() {
    let origin = counter("/a");
    let (_proxy, mut client) = before("refused-change", &origin);
    client.get("/a");
    assert_eq!(client.ask("DELETE", "/a", &[]).status, 405);
    assert_eq!((client.get("/a").how(), client.get("/a").text()), ("hit", "0"));
    client.get("/breaks");
    assert_eq!(client.get("/breaks").how(), "hit");
    assert_eq!(client.ask("PUT", "/breaks", &[("Content-Length", "0")]).status, 502);
    assert_eq!((client.get("/breaks").how(), client.get("/breaks").text()), ("miss", "1"));
}

/// A document that was being fetched when it was changed is not kept: it may be the old one.
#[test]
fn a_fetch_that_a_change_overtakes_is_not_kept() {
    let (held, released) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (holds, goes_on) = (held.clone(), released.clone());
    let origin = Scripted::start(move |question| {
        if question.method == "GET" && holds.fetch_add(1, Ordering::SeqCst) == 0 {
            while goes_on.load(Ordering::SeqCst) == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            return Some((FRESH.into(), "old".into()));
        }
        Some((FRESH.into(), "new".into()))
    });
    let (proxy, mut client) = before("overtaken", &origin);
    let address = proxy.address.clone();
    let slow = thread::spawn(move || Client::new(&address).get("/a"));
    while held.load(Ordering::SeqCst) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(client.ask("PUT", "/a", &[("Content-Length", "0")]).status, 200);
    released.store(1, Ordering::SeqCst);
    assert_eq!(slow.join().unwrap().text(), "old", "it was asked for before");
    let next = client.get("/a");
    assert_eq!((next.how(), next.text()), ("miss", "new"));
    assert_eq!(client.get("/a").how(), "hit");
}

#[test]
fn pages_that_say_nothing_of_their_life_are_not_kept() {
    const FILE: &str = "200 OK\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
    let origin = Scripted::start(|question| {
        let headers = match question.path.split('?').next().unwrap() {
            "/page" => "200 OK",
            "/tagged" => "200 OK\nETag: W/\"a\"",
            "/expired" => "200 OK\nExpires: 0\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
            "/old" => "200 OK\nCache-Control: max-age=100\nAge: 100",
            "/endless" => "200 OK\nCache-Control: max-age=18446744073709551615",
            "/expires" => "200 OK\nExpires: Sat, 06 Nov 2094 08:49:37 GMT",
            "/lasts" => FRESH,
            _ => FILE,
        };
        Some((headers.into(), "x".into()))
    });
    let (_proxy, mut client) = before("life", &origin);
    for (path, how) in [
        ("/page", "miss"),
        ("/tagged", "miss"),
        ("/expired", "miss"),
        ("/old", "miss"),
        ("/file?for=me", "miss"),
        ("/file", "hit"),
        ("/lasts", "hit"),
        ("/lasts?for=me", "hit"),
        ("/expires", "hit"),
        ("/endless", "hit"),
    ] {
        client.get(path);
        assert_eq!(client.get(path).how(), how, "{path}");
    }
}

#[test]
fn an_answer_ends_by_the_clock_and_has_its_age() {
    let origin = Scripted::start(|question| {
        let headers = match question.path.as_str() {
            "/short" => "200 OK\nCache-Control: max-age=101\nAge: 100",
            _ => "200 OK\nCache-Control: max-age=1000\nAge: 100",
        };
        Some((headers.into(), "x".into()))
    });
    let (_proxy, mut client) = before("age", &origin);
    let age = |client: &mut Client, path: &str, more: &[(&str, &str)]| -> u64 {
        client.ask("GET", path, more).headers["age"].parse().unwrap()
    };
    assert_eq!(age(&mut client, "/short", &[]), 100, "that of the origin");
    assert_eq!(age(&mut client, "/long", &[]), 100);
    // A whole hit, and one that hyper writes; both age.
    for more in [&[][..], &[("Range", "bytes=0-0")]] {
        while age(&mut client, "/long", more) < 101 {
            thread::sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(client.get("/long").how(), "hit");
    assert_eq!(client.get("/short").how(), "stale", "it lasted a second");
    // What a request demands. The first that is not met fetches it anew.
    for (demand, how) in
        [("max-age=500", "hit"), ("min-fresh=9", "hit"), ("max-age=100", "miss"), ("min-fresh=950", "miss")]
    {
        assert_eq!(client.ask("GET", "/long", &[("Cache-Control", demand)]).how(), how, "{demand}");
    }
}

#[test]
fn only_what_is_kept_if_that_is_demanded() {
    let origin = Scripted::start(|_| Some((FRESH.into(), "x".into())));
    let (_proxy, mut client) = before("only", &origin);
    let only = [("Cache-Control", "only-if-cached")];
    assert_eq!(client.ask("GET", "/a", &only).status, 504);
    assert_eq!(client.ask("GET", "/%61", &only).status, 504, "never kept");
    assert_eq!(client.ask("GET", "/a", &[("Cache-Control", "only-if-cached, max-age=5")]).status, 504);
    assert!(origin.questions().is_empty());
    client.get("/a");
    let kept = client.ask("GET", "/a", &only);
    assert_eq!((kept.status, kept.how()), (200, "hit"));
    assert_eq!(origin.count("/a"), 1);
}

/// Both sides are told who stands between them.
#[test]
fn messages_say_that_they_went_through() {
    let origin = Scripted::start(|_| Some((format!("{FRESH}\nVia: 1.1 inner"), "x".into())));
    let (_proxy, mut client) = before("via", &origin);
    for (path, how) in [("/a", "miss"), ("/a", "hit"), ("/%61", "pass")] {
        let answered = client.ask("GET", path, &[("Via", "1.0 outer")]);
        assert_eq!((answered.how(), answered.headers["via"].as_str()), (how, "1.1 sidestep"), "the last of two");
    }
    for question in origin.questions() {
        assert_eq!(question.headers["via"], "1.1 sidestep", "the last of two");
    }
}

/// No answer is older than the last change that was answered before its request began: with changes and requests at once, of which
/// many wait for the same fetch.
#[test]
fn no_answer_is_older_than_the_last_change_through_the_proxy() {
    const DOCUMENTS: usize = 3;
    let seed = process::seed_or(1);
    println!("SIDESTEP_SEED={seed}");
    let values: Arc<Vec<AtomicU64>> = Arc::new((0..DOCUMENTS).map(|_| AtomicU64::new(0)).collect());
    let kept = values.clone();
    let origin = Scripted::start(move |question| {
        let value = &kept[question.path[1..].parse::<usize>().unwrap()];
        match question.method.as_str() {
            "GET" => Some((FRESH.into(), value.load(Ordering::SeqCst).to_string())),
            _ => {
                value.fetch_add(1, Ordering::SeqCst);
                Some(("204 No Content".into(), String::new()))
            }
        }
    });
    let module = module_of(&folder("changes-at-once"));
    let proxy = Running::start(&origin.address, Some((Mode::OneSided, &module)));
    let complete: Vec<AtomicU64> = (0..DOCUMENTS).map(|_| AtomicU64::new(0)).collect();
    let (changes, over) = (if process::full() { 20_000 } else { 300 }, AtomicU64::new(0));
    thread::scope(|scope| {
        // One writer for each document: its count of answers is what must be seen.
        for (document, complete) in complete.iter().enumerate() {
            let (proxy, over) = (&proxy, &over);
            scope.spawn(move || {
                let mut client = Client::new(&proxy.address);
                for _ in 0..changes {
                    let answered = client.ask("POST", &format!("/{document}"), &[("Content-Length", "0")]);
                    assert_eq!(answered.status, 204);
                    complete.fetch_add(1, Ordering::SeqCst);
                }
                over.fetch_add(1, Ordering::SeqCst);
            });
        }
        for reader in 0..3 {
            let (proxy, over, complete) = (&proxy, &over, &complete);
            scope.spawn(move || {
                let mut random = Seeded::new(seed ^ (reader + 11));
                let mut client = Client::new(&proxy.address);
                while over.load(Ordering::SeqCst) < DOCUMENTS as u64 {
                    let document = random.below(DOCUMENTS as u64) as usize;
                    let least = complete[document].load(Ordering::SeqCst);
                    let answered = client.get(&format!("/{document}"));
                    let found: u64 = answered.text().parse().unwrap();
                    assert!(found >= least, "{found} after {least}, by a {}", answered.how());
                }
            });
        }
    });
    let metrics = proxy.proxy.metrics();
    println!("{}", metrics.text(0));
    assert!(metrics.misses.value() > 0);
}
