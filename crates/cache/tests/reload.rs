//! A proxy whose settings are changed while it serves: connections stay, and what was asked is answered.

mod site;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use sidestep_cache::{Checker, Current, Mode, Module, Order, Proxy, Settings, Store};
use site::{Client, folder, scripted::Scripted};
use tokio::sync::watch;

fn origin(name: &'static str) -> Scripted {
    Scripted::start(move |_| Some(("200 OK\nCache-Control: max-age=1000".into(), name.into())))
}

/// A proxy that runs until it is dropped, and can be replaced.
struct Running {
    current: Arc<Current>,
    address: String,
    orders: watch::Sender<Order>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Running {
    fn start(settings: &Settings) -> Running {
        let (mode, module) = settings.checked.clone().unwrap();
        let cache = Some((Store::new(settings.memory), Checker::new(mode, &module)));
        let current = Current::new(Arc::new(Proxy::new(&settings.origin, cache, settings.largest).unwrap()));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (orders, told) = watch::channel(Order::Serve);
        let serving = current.clone().serve(listener, told);
        let thread = Some(thread::spawn(move || runtime.block_on(serving)));
        Running { current, address, orders, thread }
    }

    fn change(&self, settings: &Settings) {
        self.current.replace(self.current.proxy().with_settings(settings).unwrap());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orders.send_replace(Order::Stop);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn settings(name: &str, origin: &Scripted) -> Settings {
    let module = Module::bind(&folder(name), "127.0.0.1:0").unwrap();
    let address = module.address().unwrap().to_string();
    thread::spawn(move || module.serve());
    let checked = Some((Mode::OneSided, address));
    Settings { origin: origin.address.clone(), checked, memory: 16 << 20, largest: 1 << 20 }
}

#[test]
fn a_connection_that_stays_has_the_new_settings() {
    let (one, two) = (origin("one"), origin("two"));
    let first = settings("reload", &one);
    let proxy = Running::start(&first);
    let mut client = Client::new(&proxy.address);
    for (at, origin, name) in [(1, &two, "two"), (2, &one, "one"), (3, &one, "one")] {
        client.get("/a");
        assert_eq!(client.get("/a").how(), "hit");
        proxy.change(&Settings { origin: origin.address.clone(), ..first.clone() });
        let next = client.get("/a");
        assert_eq!((next.how(), next.text()), ("miss", name), "what was kept is gone");
        assert_eq!(client.get("/a").how(), "hit");
        // What was counted before counts.
        assert_eq!(proxy.current.proxy().metrics().misses.value(), at + 1);
    }
    // Without a cache, and with one again, on the same connection.
    proxy.change(&Settings { checked: None, ..first.clone() });
    assert_eq!([client.get("/a"), client.get("/a")].map(|answered| answered.how().to_string()), ["pass", "pass"]);
    proxy.change(&Settings { checked: first.checked.clone().map(|(_, at)| (Mode::TwoSided, at)), ..first.clone() });
    assert_eq!([client.get("/a"), client.get("/a")].map(|answered| answered.how().to_string()), ["miss", "hit"]);
    // What is larger is not kept.
    proxy.change(&Settings { largest: 2, ..first });
    assert_eq!([client.get("/a"), client.get("/a")].map(|answered| answered.how().to_string()), ["miss", "miss"]);
}

#[test]
fn what_was_asked_before_is_answered_by_the_old_origin() {
    let (asked, released) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (has_come, goes_on) = (asked.clone(), released.clone());
    let slow = Scripted::start(move |_| {
        has_come.store(true, Ordering::SeqCst);
        while !goes_on.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        Some(("200 OK\nCache-Control: max-age=1000".into(), "slow".into()))
    });
    let two = origin("two");
    let first = settings("reload-slow", &slow);
    let proxy = Running::start(&first);
    let address = proxy.address.clone();
    let waiting = thread::spawn(move || {
        let mut client = Client::new(&address);
        [client.get("/a"), client.get("/a")].map(|answered| answered.text().to_string())
    });
    while !asked.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
    proxy.change(&Settings { origin: two.address.clone(), ..first });
    assert_eq!(Client::new(&proxy.address).get("/a").text(), "two");
    released.store(true, Ordering::SeqCst);
    assert_eq!(waiting.join().unwrap(), ["slow", "two"]);
}
