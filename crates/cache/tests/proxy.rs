//! The proxy in front of an origin: what comes out of the cache, what does not, and that no answer is too old.

mod site;

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use sidestep_cache::{Error, Mode, Module, module};
use sidestep_testkit::{
    process::{self, Child, Role},
    seeded::Seeded,
};
use site::{Client, Origin, Running, folder};

#[test]
fn role() {
    process::enter(&[("application", application)]);
}

/// The module, in a process of its own.
fn application(role: Role) {
    let address = role.arguments[1].as_str();
    // The port of the run before may still be in use for a moment.
    let module = loop {
        match Module::bind(Path::new(&role.arguments[0]), address) {
            Err(Error::Listen { .. }) => thread::sleep(Duration::from_millis(1)),
            module => break module.unwrap(),
        }
    };
    role.control.say(&module.address().unwrap().to_string());
    module.serve().unwrap();
}

fn start_application(folder: &Path, address: &str) -> (Child, String) {
    let child = Child::start("application", &[&folder.display().to_string(), address]);
    let address = child.control.hear().unwrap();
    (child, address)
}

/// A module in this process.
fn module_of(folder: &Path) -> String {
    let module = Module::bind(folder, "127.0.0.1:0").unwrap();
    let address = module.address().unwrap().to_string();
    thread::spawn(move || module.serve());
    address
}

#[test]
fn hits_are_checked_and_updates_are_seen_at_once() {
    let folder = folder("hits");
    let (module, origin) = (module_of(&folder), Origin::start(&folder));
    module::update(&module, "/a", b"one").unwrap();
    for mode in [Mode::OneSided, Mode::TwoSided] {
        let proxy = Running::start(&origin.address, Some((mode, &module)));
        let mut client = Client::new(&proxy.address);
        module::update(&module, "/a", b"one").unwrap();
        let before = origin.requests.load(Ordering::SeqCst);
        assert_eq!((client.get("/a").text(), client.get("/a").how()), ("one", "hit"), "{mode:?}");
        assert_eq!(origin.requests.load(Ordering::SeqCst), before + 1, "{mode:?}");
        for round in 0..50 {
            let text = format!("round {round}");
            module::update(&module, "/a", text.as_bytes()).unwrap();
            let answered = client.get("/a");
            assert_eq!((answered.text(), answered.how()), (text.as_str(), "stale"), "{mode:?}");
            assert_eq!(client.get("/a").how(), "hit");
        }
        assert_eq!(proxy.proxy.metrics().hits.value(), 51);
        module::delete(&module, "/a").unwrap();
        assert_eq!(client.get("/a").status, 404);
        assert!(proxy.proxy.metrics().text(proxy.proxy.kept_bytes()).contains("sidestep_cache_hits_total 51\n"));
    }
}

/// An update that is complete is seen by every proxy, whichever was asked before.
#[test]
fn several_proxies_are_coherent() {
    let folder = folder("several");
    let (module, origin) = (module_of(&folder), Origin::start(&folder));
    module::update(&module, "/a", b"first").unwrap();
    let proxies: Vec<Running> =
        (0..3).map(|_| Running::start(&origin.address, Some((Mode::OneSided, &module)))).collect();
    let mut clients: Vec<Client> = proxies.iter().map(|proxy| Client::new(&proxy.address)).collect();
    for round in 0..50 {
        let text = format!("round {round}");
        module::update(&module, "/a", text.as_bytes()).unwrap();
        for client in &mut clients {
            assert_eq!((client.get("/a").text(), client.get("/a").text()), (text.as_str(), text.as_str()));
            assert_eq!(client.get("/a").how(), "hit");
        }
    }
}

#[test]
fn what_may_not_be_kept_is_passed_on() {
    let folder = folder("passed");
    let (module, origin) = (module_of(&folder), Origin::start(&folder));
    for (name, headers) in [
        ("private", "Cache-Control: private\r\n"),
        ("cookie", "Set-Cookie: a=b\r\n"),
        ("any", "Vary: *\r\n"),
        ("over", "Cache-Control: max-age=0\r\n"),
    ] {
        module::update(&module, &format!("/{name}"), b"x").unwrap();
        module::update(&module, &format!("/{name}.headers"), headers.as_bytes()).unwrap();
    }
    module::update(&module, "/plain", b"0123456789").unwrap();
    module::update(&module, "/large", &vec![b'l'; 3 << 20]).unwrap();
    let proxy = Running::start(&origin.address, Some((Mode::OneSided, &module)));
    let mut client = Client::new(&proxy.address);
    for path in ["/private", "/cookie", "/any", "/over", "/large", "/./plain", "/%70lain", "/missing"] {
        for _ in 0..2 {
            let answered = client.get(path);
            assert_ne!(answered.how(), "hit", "{path}");
        }
    }
    assert_eq!(client.get("/large").body.len(), 3 << 20);
    for headers in [("Authorization", "Basic x"), ("Cache-Control", "no-cache"), ("Pragma", "no-cache")] {
        client.get("/plain");
        assert_eq!(client.ask("GET", "/plain", &[headers]).how(), "pass", "{headers:?}");
    }
    assert_eq!(client.get("/plain").how(), "hit");
    assert_eq!(client.ask("GET", "/plain", &[("Range", "bytes=2-4")]).text(), "234");
    assert_eq!(client.ask("GET", "/plain", &[("If-None-Match", "\"10\"")]).status, 304);
    let head = client.ask("HEAD", "/plain", &[]);
    assert_eq!((head.status, head.headers["content-length"].as_str(), head.how()), (200, "10", "hit"));
    // A range or a condition is no reason to keep less than the whole.
    module::update(&module, "/plain", b"abcdefghij").unwrap();
    assert_eq!(client.ask("GET", "/plain", &[("If-None-Match", "\"10\"")]).status, 304);
    assert_eq!((client.get("/plain").text(), client.get("/plain").how()), ("abcdefghij", "hit"));
}

#[test]
fn answers_vary_with_what_they_depend_on() {
    let folder = folder("vary");
    let (module, origin) = (module_of(&folder), Origin::start(&folder));
    module::update(&module, "/v", b"x").unwrap();
    module::update(&module, "/v.headers", b"Vary: Accept-Language\r\n").unwrap();
    let proxy = Running::start(&origin.address, Some((Mode::OneSided, &module)));
    let mut client = Client::new(&proxy.address);
    let mut how = |language| client.ask("GET", "/v", &[("Accept-Language", language)]).how().to_string();
    assert_eq!([how("de"), how("de"), how("fr"), how("fr"), how("de")], ["miss", "hit", "miss", "hit", "miss"]);
}

/// Without the application nobody knows a version, and nothing comes out of the cache; with the next one everything is fetched anew.
#[test]
fn a_dead_application_takes_the_cache_with_it() {
    let folder = folder("dead");
    let origin = Origin::start(&folder);
    let (mut child, address) = start_application(&folder, "127.0.0.1:0");
    module::update(&address, "/a", b"one").unwrap();
    let proxy = Running::start(&origin.address, Some((Mode::OneSided, &address)));
    let mut client = Client::new(&proxy.address);
    client.get("/a");
    assert_eq!(client.get("/a").how(), "hit");
    child.kill();
    child.wait();
    fs::write(folder.join("a"), b"two").unwrap();
    // At most what the proxy has read before it looks at the fabric.
    let mut old = 0;
    while client.get("/a").text() != "two" {
        old += 1;
        assert!(old < 10_000, "a dead application's versions are believed");
    }
    assert_ne!(client.get("/a").how(), "hit");
    let (_child, _) = start_application(&folder, &address);
    while client.get("/a").how() != "hit" {}
    assert_eq!(client.get("/a").text(), "two");
}

#[test]
fn the_module_refuses_what_is_no_file() {
    let folder = folder("refused");
    let module = module_of(&folder);
    for path in ["/../x", "/a/", "relative", "/%2e%2e/x", "/.sidestep-1-1"] {
        assert!(matches!(module::update(&module, path, b"x"), Err(Error::Refused(_))), "{path}");
    }
    assert!(module::update(&module, "/no/folder", b"x").is_err());
    assert!(module::delete(&module, "/missing").is_err());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left behind");
}

/// No answer is older than the last update that was complete before its request began: under random updates, and with the
/// application killed and started again and again.
#[test]
fn no_answer_is_older_than_the_last_complete_update() {
    const DOCUMENTS: usize = 4;
    let (kills, seed) = (if process::full() { 200 } else { 6 }, process::seed_or(1));
    println!("SIDESTEP_SEED={seed}");
    for mode in [Mode::OneSided, Mode::TwoSided] {
        let folder = folder(&format!("linear-{mode:?}"));
        let origin = Origin::start(&folder);
        let (mut child, address) = start_application(&folder, "127.0.0.1:0");
        for document in 0..DOCUMENTS {
            module::update(&address, &format!("/{document}"), b"0").unwrap();
        }
        let proxy = Running::start(&origin.address, Some((mode, &address)));
        let complete: Vec<AtomicU64> = (0..DOCUMENTS).map(|_| AtomicU64::new(0)).collect();
        let over = AtomicBool::new(false);
        let answers = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Seeded::new(seed);
                for number in 1.. {
                    let document = random.below(DOCUMENTS as u64) as usize;
                    let done = module::update(&address, &format!("/{document}"), number.to_string().as_bytes());
                    // One that was broken off may have been done, or not.
                    if done.is_ok() {
                        complete[document].fetch_max(number, Ordering::SeqCst);
                    }
                    if over.load(Ordering::SeqCst) {
                        return;
                    }
                    thread::sleep(Duration::from_micros(random.below(500)));
                }
            });
            for reader in 0..2 {
                let (complete, over, proxy, answers) = (&complete, &over, &proxy, &answers);
                scope.spawn(move || {
                    let mut random = Seeded::new(seed ^ (reader + 7));
                    let mut client = Client::new(&proxy.address);
                    while !over.load(Ordering::SeqCst) {
                        let document = random.below(DOCUMENTS as u64) as usize;
                        let least = complete[document].load(Ordering::SeqCst);
                        let answered = client.get(&format!("/{document}"));
                        let found: u64 = answered.text().parse().unwrap();
                        assert!(found >= least, "{mode:?}: {found} after {least}, by a {}", answered.how());
                        answers.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let metrics = proxy.proxy.metrics();
            let mut random = Seeded::new(seed ^ 99);
            for _ in 0..kills {
                // Work is waited for, not time: some hits in each life.
                let wanted = metrics.hits.value() + 100 + random.below(200);
                while metrics.hits.value() < wanted && !over.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
                child.kill();
                child.wait();
                child = start_application(&folder, &address).0;
            }
            over.store(true, Ordering::SeqCst);
        });
        let metrics = proxy.proxy.metrics();
        println!("{mode:?}: {} answers, {}", answers.load(Ordering::SeqCst), metrics.text(0));
        assert!(metrics.stale.value() > 0 && metrics.hits.value() > 100 * kills);
    }
}
