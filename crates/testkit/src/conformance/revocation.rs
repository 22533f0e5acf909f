//! Revocation against peers that ask without pause: when it has returned, nothing of theirs arrives any more.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use sidestep_fabric::{
    Cookie, Node, Refusal, Region, Rights,
    link::{AnyLink, Request},
};
use sidestep_sys::clock;

use super::{
    fixture::Fixture,
    nodes::{PATIENCE_NS, contents, name_on, while_serving},
    stranger::{Ending, Heard, Stranger},
};
use crate::process::full;

/// What owner and stranger tell each other.
struct Shared {
    /// The round and its cookie.
    cookie: Mutex<(u64, Cookie)>,
    /// The last round whose cookie was honoured.
    honoured: AtomicU64,
    /// The last round whose cookie was refused.
    refused: AtomicU64,
    over: AtomicBool,
}

const THEIRS: u8 = 0x55;
const OURS: u8 = 0xaa;

/// A put that was admitted before the revocation does not land after it.
pub fn no_put_lands_after_a_revocation(fixture: Fixture) {
    let links = fixture(2).links;
    let len = links[0].as_link().capabilities().max_transfer;
    let bytes = vec![THEIRS; len];
    against(links, len, if full() { 300 } else { 100 }, Request::Put { offset: 0, bytes: &bytes });
}

/// Pages that are granted while the region is revoked are the old ones: what is written there is not seen.
pub fn no_fresh_pages_are_granted_for_an_old_cookie(fixture: Fixture) {
    let links = fixture(2).links;
    if links[0].as_link().maps().is_some() {
        against(links, 64, 500, Request::Map);
    }
}

/// Each round the stranger asks until it is refused; the owner revokes in between and then writes. The owner's bytes must
/// stay.
fn against(mut links: Vec<AnyLink>, len: usize, rounds: u64, request: Request<'_>) {
    let node = Node::with_links(vec![links.remove(1)]).expect("a node");
    let name = name_on(&node);
    let _listener = node.listen(&name).expect("a name that is free");
    let stranger = Stranger::reach(links.remove(0), name.split_once(':').expect("a scheme").1);
    let mut region = Region::new(&node, len).expect("memory");
    let shared = Shared {
        cookie: Mutex::new((0, region.cookie(Rights::ALL))),
        honoured: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        over: AtomicBool::new(false),
    };
    while_serving(&node, || {
        std::thread::scope(|scope| {
            scope.spawn(|| keep_asking(stranger, &shared, request));
            let _over = Over(&shared.over);
            for round in 1..=rounds {
                revoke_once(&shared, &mut region, round);
            }
        });
    });
}

/// Ends the stranger's thread, also when the owner's panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Asks with the latest cookie, a few requests at a time, and writes into whatever pages come.
fn keep_asking(mut stranger: Stranger, shared: &Shared, request: Request<'_>) {
    let mut asked = HashMap::new();
    while !shared.over.load(Ordering::Acquire) {
        let (round, cookie) = *shared.cookie.lock().expect("no panic while a cookie is read");
        if asked.len() < 4
            && let Ok(ticket) = stranger.ask(&cookie, request)
        {
            asked.insert(ticket, round);
        }
        if !stranger.poll() {
            std::thread::yield_now();
        }
        for heard in stranger.ear.take() {
            let Heard::Completed(ticket, ending) = heard else { continue };
            if let Some(pages) = stranger.ear.pages() {
                let word = pages.word64(0).expect("a region of 64 bytes");
                word.store(u64::from_le_bytes([THEIRS; 8]), Ordering::Release);
            }
            let round = asked.remove(&ticket).expect("a request of this stranger");
            match ending {
                Ending::Refused(Refusal::Revoked) => shared.refused.fetch_max(round, Ordering::AcqRel),
                _ => shared.honoured.fetch_max(round, Ordering::AcqRel),
            };
        }
    }
}

fn revoke_once(shared: &Shared, region: &mut Region, round: u64) {
    *shared.cookie.lock().expect("no panic while a cookie is read") = (round, region.cookie(Rights::ALL));
    wait("a request that is honoured", || shared.honoured.load(Ordering::Acquire) >= round);
    region.revoke().expect("a revocation");
    region.write(0, &vec![OURS; region.len()]).expect("the whole region");
    wait("a refusal", || shared.refused.load(Ordering::Acquire) >= round);
    let theirs = contents(region).iter().filter(|byte| **byte != OURS).count();
    assert_eq!(theirs, 0, "round {round}: bytes of a revoked peer arrived after the revocation");
}

fn wait(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = clock::now() + PATIENCE_NS;
    while !happened() {
        assert!(clock::now() < deadline, "this never happened: {what}");
        std::thread::yield_now();
    }
}
