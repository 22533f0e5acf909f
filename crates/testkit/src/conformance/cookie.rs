//! Cookies are capabilities: what is not genuine, current and sufficient is refused with the reason, and changes nothing.

use sidestep_fabric::{
    Cookie, Node, Refusal, Region, Rights,
    link::{Atomic, Request},
};
use sidestep_sys::clock;

use super::{
    fixture::Fixture,
    nodes::{contents, name_on},
    stranger::{Ending, Stranger},
};

/// A region of a node, and someone who asks for it with any cookie.
struct Owner {
    region: Region,
    stranger: Stranger,
    node: Node,
    before: Vec<u8>,
    _listener: sidestep_fabric::Listener,
}

const LEN: usize = 4096;

/// A cookie that the owner issued works, for each of its rights.
pub fn a_genuine_cookie_is_honoured(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::ALL);
    assert_eq!(owner.ask(&cookie, Request::Put { offset: 8, bytes: &[7; 8] }), Ending::Done);
    assert_eq!(owner.ask(&cookie, Request::Get { offset: 8, len: 2 }), Ending::Bytes(vec![7; 2]));
    let held = u64::from_le_bytes([7; 8]);
    assert_eq!(owner.ask(&cookie, Request::Atomic { offset: 8, atomic: Atomic::FetchAdd(1) }), Ending::Value(held));
    let mapped = owner.ask(&cookie, Request::Map);
    assert!(matches!(mapped, Ending::Mapped | Ending::Proxied), "{mapped:?}");
    assert_eq!(owner.region.word64(8).unwrap().load(std::sync::atomic::Ordering::Acquire), held + 1);
}

/// The same rights give the same cookie until the next revocation; other rights, and other regions, give others.
pub fn cookies_are_the_same_until_revoked(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::READ);
    assert_eq!(owner.region.cookie(Rights::READ), cookie);
    assert_ne!(owner.region.cookie(Rights::ALL), cookie);
    let other = Region::new(&owner.node, LEN).expect("memory");
    assert_ne!(other.cookie(Rights::READ), cookie);
    owner.region.revoke().expect("a revocation");
    assert_ne!(owner.region.cookie(Rights::READ), cookie);
}

/// The form that travels is 48 bytes and comes back as it was.
pub fn a_cookie_survives_the_wire(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::ALL);
    let copy = Cookie::from_bytes(&cookie.to_bytes()).expect("a well-formed cookie");
    assert_eq!(copy, cookie);
    assert_eq!(owner.ask(&copy, Request::Put { offset: 0, bytes: b"x" }), Ending::Done);
}

/// A cookie with another key is refused as forged.
pub fn another_key_is_forged(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::ALL);
    for bit in [0, 1, 63, 64, 127] {
        let forged = changed(&cookie, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        owner.refused(&forged, Refusal::Forged);
    }
    let zero = changed(&cookie, |bytes| bytes[..16].fill(0));
    owner.refused(&zero, Refusal::Forged);
}

/// A cookie with more, fewer or other rights than it was issued with is refused as forged.
pub fn other_rights_are_forged(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::READ);
    for rights in [0, 2, 3, 4, 5, 6, 7] {
        let forged = changed(&cookie, |bytes| bytes[32] = rights);
        owner.refused(&forged, Refusal::Forged);
    }
}

/// A cookie that claims another length is refused as forged.
pub fn another_length_is_forged(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::ALL);
    for len in [0, LEN as u64 - 1, LEN as u64 + 1, u64::MAX] {
        let forged = changed(&cookie, |bytes| bytes[24..32].copy_from_slice(&len.to_le_bytes()));
        owner.refused(&forged, Refusal::Forged);
    }
}

/// A cookie of a generation to come is refused as forged, one of an earlier generation as revoked.
pub fn another_generation_is_refused(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::ALL);
    let with = |generation: u32| changed(&cookie, |bytes| bytes[20..24].copy_from_slice(&generation.to_le_bytes()));
    owner.refused(&with(cookie.generation().wrapping_add(1)), Refusal::Forged);
    owner.refused(&with(cookie.generation().wrapping_sub(1)), Refusal::Revoked);
}

/// A cookie that names no region of the owner is refused as unknown; with the number of another region, as forged.
pub fn another_region_is_refused(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let other = Region::new(&owner.node, LEN).expect("memory");
    let cookie = owner.region.cookie(Rights::ALL);
    let with = |region: u32| changed(&cookie, |bytes| bytes[16..20].copy_from_slice(&region.to_le_bytes()));
    owner.refused(&with(u32::MAX), Refusal::Unknown);
    owner.refused(&with(other.cookie(Rights::ALL).region().0), Refusal::Forged);
    assert_eq!(contents(&other), vec![0; LEN]);
}

/// A revoked cookie is refused as that, also when it was issued before several revocations.
pub fn a_revoked_cookie_is_refused(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookies = [Rights::ALL, Rights::READ].map(|rights| owner.region.cookie(rights));
    for _ in 0..3 {
        owner.region.revoke().expect("a revocation");
        for cookie in &cookies {
            owner.refused(cookie, Refusal::Revoked);
        }
    }
    let fresh = owner.region.cookie(Rights::ALL);
    assert_eq!(owner.ask(&fresh, Request::Put { offset: 0, bytes: b"x" }), Ending::Done);
}

/// A cookie whose time is over is refused as expired; before that it works, and never lets a peer map the pages.
pub fn an_expired_cookie_is_refused(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let long = owner.region.cookie_for(Rights::ALL, u64::MAX);
    assert_eq!(owner.ask(&long, Request::Get { offset: 0, len: 1 }), Ending::Bytes(vec![owner.before[0]]));
    assert_eq!(owner.ask(&long, Request::Map), Ending::Proxied);
    let short = owner.region.cookie_for(Rights::ALL, 1);
    let began = clock::now();
    while clock::now() <= began + 1 {}
    owner.refused(&short, Refusal::Expired);
    assert_eq!(owner.ask(&long, Request::Get { offset: 0, len: 1 }), Ending::Bytes(vec![owner.before[0]]));
}

/// A genuine cookie that does not allow what is asked is refused with what it holds and what was wanted.
pub fn insufficient_rights_are_refused(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let rights = [Rights::NONE, Rights::READ, Rights::WRITE, Rights::ATOMIC, Rights::READ.and(Rights::WRITE)];
    for held in rights {
        let cookie = owner.region.cookie(held);
        for (wanted, request) in requests() {
            if !held.allow(wanted) {
                assert_eq!(owner.ask(&cookie, request), Ending::Refused(Refusal::Rights { held, wanted }));
            }
        }
        // Pages are mapped with all rights, or with the right to read alone: no other mapping can be limited to its rights.
        let reads = held == Rights::READ && owner.stranger.link().maps().is_some();
        let expected = if reads { Ending::MappedReadOnly } else { Ending::Proxied };
        assert_eq!(owner.ask(&cookie, Request::Map), expected);
    }
    owner.unchanged();
}

/// A range outside the region is refused as that.
pub fn a_range_outside_is_refused(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::ALL);
    let len = LEN as u64;
    for offset in [len - 7, len, len + 1, 1 << 40, u64::MAX - 7, u64::MAX] {
        let outside = |len| Ending::Refused(Refusal::Range { offset, len });
        assert_eq!(owner.ask(&cookie, Request::Put { offset, bytes: &[9; 8] }), outside(8));
        assert_eq!(owner.ask(&cookie, Request::Get { offset, len: 8 }), outside(8));
        assert_eq!(owner.ask(&cookie, Request::Atomic { offset, atomic: Atomic::FetchAdd(1) }), outside(8));
    }
    owner.unchanged();
}

/// An atomic operation on a word that is not aligned is refused.
pub fn an_unaligned_atomic_is_refused(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let cookie = owner.region.cookie(Rights::ALL);
    for offset in [1, 4, 12] {
        let request = Request::Atomic { offset, atomic: Atomic::FetchAdd(1) };
        assert_eq!(owner.ask(&cookie, request), Ending::Refused(Refusal::Range { offset, len: 8 }));
    }
    owner.unchanged();
}

/// The cookies of a region that is gone are refused as unknown, or as revoked when its number is used again.
pub fn the_cookie_of_a_dropped_region_is_refused(fixture: Fixture) {
    let mut owner = Owner::new(fixture);
    let dropped = Region::new(&owner.node, LEN).expect("memory");
    let cookie = dropped.cookie(Rights::ALL);
    drop(dropped);
    owner.refused(&cookie, Refusal::Unknown);
    let next = Region::new(&owner.node, LEN).expect("memory");
    assert_eq!(next.cookie(Rights::ALL).region(), cookie.region(), "the number is used again");
    owner.refused(&cookie, Refusal::Revoked);
    assert_eq!(contents(&next), vec![0; LEN]);
}

impl Owner {
    fn new(fixture: Fixture) -> Owner {
        let mut links = fixture(2).links;
        let node = Node::with_links(vec![links.remove(1)]).expect("a node");
        let name = name_on(&node);
        let listener = node.listen(&name).expect("a name that is free");
        let local = name.split_once(':').expect("a scheme").1;
        let stranger = Stranger::reach(links.remove(0), local);
        let region = Region::new(&node, LEN).expect("memory");
        let before = super::nodes::pattern(LEN, 5);
        region.write(0, &before).expect("the whole region");
        Owner { region, stranger, node, before, _listener: listener }
    }

    fn ask(&mut self, cookie: &Cookie, request: Request<'_>) -> Ending {
        self.stranger.ask_node(&self.node, cookie, request)
    }

    /// Everything that can be asked is refused for the same reason, and nothing changes.
    fn refused(&mut self, cookie: &Cookie, refusal: Refusal) {
        let map = (Rights::NONE, Request::Map);
        for (_, request) in requests().into_iter().chain([map]) {
            assert_eq!(self.ask(cookie, request), Ending::Refused(refusal), "{cookie:?} {request:?}");
        }
        self.unchanged();
    }

    fn unchanged(&self) {
        assert!(contents(&self.region) == self.before, "a refused request changed the region");
    }
}

/// One request for each right.
fn requests() -> [(Rights, Request<'static>); 3] {
    [
        (Rights::WRITE, Request::Put { offset: 16, bytes: &[9; 8] }),
        (Rights::READ, Request::Get { offset: 16, len: 8 }),
        (Rights::ATOMIC, Request::Atomic { offset: 16, atomic: Atomic::FetchAdd(1) }),
    ]
}

fn changed(cookie: &Cookie, change: impl FnOnce(&mut [u8; Cookie::WIRE_LEN])) -> Cookie {
    let mut bytes = cookie.to_bytes();
    change(&mut bytes);
    Cookie::from_bytes(&bytes).expect("a well-formed cookie")
}
