//! Requests for the same document at the same time: the origin is asked once, and nobody is left waiting.

mod site;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use sidestep_cache::{Mode, Module};
use site::{Answered, Client, Running, folder, scripted::Scripted};

const CLIENTS: usize = 8;
const KEPT: &str = "200 OK\nCache-Control: max-age=1000";

fn module_of(folder: &Path) -> String {
    let module = Module::bind(folder, "127.0.0.1:0").unwrap();
    let address = module.address().unwrap().to_string();
    thread::spawn(move || module.serve());
    address
}

fn proxy_of(name: &str, origin: &Scripted) -> Running {
    let module = module_of(&folder(name));
    Running::start(&origin.address, Some((Mode::OneSided, &module)))
}

/// An origin that answers its first question when it is let, and all others at once.
fn holding(answer: impl Fn(usize) -> Option<String> + Send + Sync + 'static) -> (Scripted, Arc<AtomicBool>) {
    let let_go = Arc::new(AtomicBool::new(false));
    let (goes_on, asked) = (let_go.clone(), AtomicUsize::new(0));
    let origin = Scripted::start(move |_| {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        while number == 0 && !goes_on.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        answer(number).map(|headers| (headers, number.to_string()))
    });
    (origin, let_go)
}

fn until(what: impl Fn() -> bool) {
    while !what() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Asks from many clients, the first one some time before the others.
fn ask_together(proxy: &Running, origin: &Scripted, let_go: &AtomicBool) -> Vec<Answered> {
    let ask = || Client::new(&proxy.address).get("/a");
    thread::scope(|scope| {
        let first = scope.spawn(ask);
        until(|| origin.under_way() == 1);
        let others: Vec<_> = (1..CLIENTS).map(|_| scope.spawn(ask)).collect();
        until(|| proxy.proxy.metrics().waited.value() == CLIENTS as u64 - 1);
        let_go.store(true, Ordering::SeqCst);
        std::iter::once(first).chain(others).map(|client| client.join().unwrap()).collect()
    })
}

#[test]
fn a_document_is_fetched_once_for_all() {
    let (origin, let_go) = holding(|_| Some(KEPT.into()));
    let proxy = proxy_of("once", &origin);
    let answers = ask_together(&proxy, &origin, &let_go);
    assert_eq!(origin.count("/a"), 1);
    assert!(answers.iter().all(|answered| answered.text() == "0"));
    assert_eq!(answers.iter().map(Answered::how).filter(|how| *how == "hit").count(), CLIENTS - 1);
    assert_eq!(proxy.proxy.metrics().misses.value(), 1);
}

/// A page that may not be kept is each one's own; and the next time nobody waits for it.
#[test]
fn what_is_not_kept_is_fetched_for_each() {
    let (origin, let_go) = holding(|_| Some("200 OK\nCache-Control: private".into()));
    let proxy = proxy_of("each", &origin);
    let mut texts: Vec<String> =
        ask_together(&proxy, &origin, &let_go).iter().map(|answered| answered.text().to_string()).collect();
    texts.sort();
    assert_eq!(texts, (0..CLIENTS).map(|number| number.to_string()).collect::<Vec<_>>());
    let waited = proxy.proxy.metrics().waited.value();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| Client::new(&proxy.address).get("/a"));
        }
    });
    assert_eq!(origin.count("/a"), 2 * CLIENTS);
    assert_eq!(proxy.proxy.metrics().waited.value(), waited);
}

#[test]
fn a_fetch_that_fails_fails_for_all() {
    let (origin, let_go) = holding(|number| (number > 0).then(|| KEPT.into()));
    let proxy = proxy_of("fails", &origin);
    let answers = ask_together(&proxy, &origin, &let_go);
    assert!(answers.iter().all(|answered| answered.status == 502), "{answers:?}");
    assert_eq!(origin.count("/a"), 1);
    assert_eq!(Client::new(&proxy.address).get("/a").status, 200, "the next one is a new try");
}

/// The client whose request is fetched goes away: one of the others takes its place.
#[test]
fn a_client_that_leaves_leaves_nobody_behind() {
    let (origin, let_go) = holding(|_| Some(KEPT.into()));
    let proxy = proxy_of("leaves", &origin);
    let mut leaving = Client::new(&proxy.address);
    leaving.say(b"GET /a HTTP/1.1\r\nHost: site\r\n\r\n");
    until(|| origin.under_way() == 1);
    let waited = || proxy.proxy.metrics().waited.value();
    thread::scope(|scope| {
        let others: Vec<_> = (1..CLIENTS).map(|_| scope.spawn(|| Client::new(&proxy.address).get("/a"))).collect();
        until(|| waited() == CLIENTS as u64 - 1);
        drop(leaving);
        for other in others {
            assert_eq!(other.join().unwrap().text(), "1");
        }
    });
    assert_eq!(origin.count("/a"), 2);
    let_go.store(true, Ordering::SeqCst);
}
