//! Nodes at work: servers change sites by load, once for each load, and also when a controller is killed.

use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use sidestep_balance::{Config, News, protocol::Outcome, run};
use sidestep_testkit::process::{self, Child, Role};

#[test]
fn role() {
    process::enter(&[("node", node)]);
}

/// A node in a process of its own, which says what it hears.
fn node(role: Role) {
    let config = Config::parse(&fs::read_to_string(&role.arguments[0]).unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    run(&config, &role.arguments[1], &stop, |news| role.control.say(&format!("{news:?}"))).unwrap();
}

/// Three servers, two of them of `news`, and controllers of `shop`. The load of a server is what its file says; its conversion leaves
/// a file with the site's name.
fn describe(name: &str, controllers: usize) -> (PathBuf, String) {
    let folder = std::env::temp_dir().join(format!("sidestep-balance-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let ports: Vec<TcpListener> = (0..5).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let address = |at: usize| ports[at].local_addr().unwrap();
    let mut text = "sites = [\"shop\", \"news\"]\nrules = { high = 80, low = 30, sensitivity_ms = 5, history_ms = 50, lease_ms = 300 }\n".to_string();
    for (at, (server, site)) in [("a", "shop"), ("b", "news"), ("c", "news")].into_iter().enumerate() {
        fs::write(folder.join(server), "10").unwrap();
        let file = folder.join(server).display().to_string();
        text += &format!(
            "[[node]]\nname = \"{server}\"\naddress = \"{}\"\nsite = \"{site}\"\nload = \"cat {file}\"\nconvert = \"echo $SITE > {file}.site\"\n",
            address(at)
        );
    }
    for at in 0..controllers {
        text += &format!("[[node]]\nname = \"l{at}\"\naddress = \"{}\"\ncontrols = \"shop\"\n", address(3 + at));
    }
    fs::write(folder.join("config"), &text).unwrap();
    (folder, text)
}

/// Two controllers see one load: one server moves, and its command is run.
#[test]
fn a_load_that_stays_moves_one_server() {
    let (folder, text) = describe("moves", 2);
    let config = Config::parse(&text).unwrap();
    let (stop, heard) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for name in ["a", "b", "c", "l0", "l1"] {
            let (config, stop, heard) = (&config, &stop, &heard);
            scope.spawn(move || run(config, name, stop, |news| heard.lock().unwrap().push((name, news))).unwrap());
        }
        let moved = |heard: &[(&str, News)]| heard.iter().any(|(_, news)| matches!(news, News::Serves(_)));
        fs::write(folder.join("a"), "95").unwrap();
        while !moved(&heard.lock().unwrap()) {
            thread::sleep(Duration::from_millis(1));
        }
        // The load is shared from now on.
        fs::write(folder.join("a"), "40").unwrap();
        thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Release);
    });
    let heard = heard.into_inner().unwrap();
    let serves: Vec<_> = heard.iter().filter(|(_, news)| matches!(news, News::Serves(_))).collect();
    assert_eq!(serves.len(), 1, "{heard:?}");
    assert_eq!(serves[0].1, News::Serves("shop".into()));
    let converted = |news: &News| matches!(news, News::Tried { outcome: Outcome::Converted(_), .. });
    assert_eq!(heard.iter().filter(|(_, news)| converted(news)).count(), 1, "{heard:?}");
    let site = fs::read_to_string(folder.join(format!("{}.site", serves[0].0))).unwrap();
    assert_eq!(site, "shop\n");
}

/// Killed again and again at any step, a controller leaves a site whose other controller goes on: its lock is taken over.
#[test]
fn a_killed_controller_holds_up_nobody() {
    let (folder, _) = describe("killed", 2);
    let file = folder.join("config").display().to_string();
    let mut servers: Vec<Child> = ["a", "b", "c"].iter().map(|name| Child::start("node", &[&file, name])).collect();
    fs::write(folder.join("a"), "95").unwrap();
    let kills = if process::full() { 30 } else { 3 };
    for _ in 0..kills {
        let mut first = Child::start("node", &[&file, "l0"]);
        // It is somewhere in its work.
        thread::sleep(Duration::from_millis(60));
        first.kill();
        first.wait();
    }
    let second = Child::start("node", &[&file, "l1"]);
    let has_site = |name: &str| folder.join(format!("{name}.site")).exists();
    while !has_site("b") && !has_site("c") {
        assert!(servers.iter_mut().all(Child::is_alive));
        thread::sleep(Duration::from_millis(1));
    }
    drop(second);
    assert!(!(has_site("b") && has_site("c")), "the last server of news was taken");
}

/// A server whose command fails does not serve its new site, is counted for no site, and tries again until it works.
#[test]
fn a_conversion_that_fails_is_not_done_and_is_tried_again() {
    let (folder, text) = describe("fails", 1);
    // Every server can, and must not, before a file is there.
    let (file, tried) = (folder.join("may").display().to_string(), folder.join("tried").display().to_string());
    let text = text.replace("convert = \"", &format!("convert = \"echo $NODE >> {tried}; test -e {file} && "));
    let config = Config::parse(&text).unwrap();
    let (stop, heard) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let tries = || fs::read_to_string(folder.join("tried")).unwrap_or_default().lines().count();
    let serves = || heard.lock().unwrap().iter().filter(|(_, news)| matches!(news, News::Serves(_))).count();
    let early = thread::scope(|scope| {
        for name in ["a", "b", "c", "l0"] {
            let (config, stop, heard) = (&config, &stop, &heard);
            scope.spawn(move || run(config, name, stop, |news| heard.lock().unwrap().push((name, news))).unwrap());
        }
        fs::write(folder.join("a"), "95").unwrap();
        while tries() < 4 {
            thread::sleep(Duration::from_millis(1));
        }
        let early = serves();
        fs::write(&file, "").unwrap();
        while serves() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Release);
        early
    });
    assert_eq!(early, 0, "it serves a site without its command");
    let heard = heard.into_inner().unwrap();
    let server = fs::read_to_string(folder.join("tried")).unwrap().lines().next().unwrap().to_string();
    let failed = |news: &News| matches!(news, News::Failed(why) if why.contains("ended with"));
    assert!(heard.iter().filter(|(name, news)| *name == server && failed(news)).count() >= 3, "{heard:?}");
    assert_eq!(serves_of(&heard, &server), 1, "{heard:?}");
    // The other one is the last that serves news: nobody has taken it.
    let converted = heard.iter().filter(|(_, news)| matches!(news, News::Tried { outcome: Outcome::Converted(_), .. }));
    assert_eq!(converted.count(), 1, "{heard:?}");
}

fn serves_of(heard: &[(&str, News)], server: &str) -> usize {
    heard.iter().filter(|(name, news)| *name == server && *news == News::Serves("shop".into())).count()
}
