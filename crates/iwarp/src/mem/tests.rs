use super::*;

const ME: StreamIdentity = StreamIdentity { domain: DomainId(1), stream: StreamId(7) };

fn region(rights: Rights) -> Region {
    Region { base: TaggedOffset(100), length: 50, rights, domain: DomainId(1), stream: Some(StreamId(7)) }
}

fn table(region: Region) -> (MemoryTable, Stag) {
    let mut table = MemoryTable::new();
    let stag = table.register(region, || 0xcafe).unwrap();
    (table, stag)
}

#[test]
fn bounds_are_exact() {
    let (table, stag) = table(region(Rights::WRITE));
    let check = |offset, len| table.check(Access::RemoteWrite, ME, stag, TaggedOffset(offset), len);
    assert_eq!(check(100, 50), Ok(0));
    assert_eq!(check(149, 1), Ok(49));
    assert_eq!(check(150, 0), Ok(50));
    assert_eq!(check(99, 1), Err(MemoryFault::Bounds));
    assert_eq!(check(149, 2), Err(MemoryFault::Bounds));
    assert_eq!(check(100, 51), Err(MemoryFault::Bounds));
    assert_eq!(check(u64::MAX, 1), Err(MemoryFault::Wrap));
    assert_eq!(check(101, u64::MAX), Err(MemoryFault::Wrap));
}

#[test]
fn rights_are_per_access() {
    let (table, stag) = table(region(Rights::READ));
    let check = |access| table.check(access, ME, stag, TaggedOffset(100), 1);
    assert_eq!(check(Access::RemoteRead), Ok(0));
    assert_eq!(check(Access::ReadSink), Ok(0));
    assert_eq!(check(Access::RemoteWrite), Err(MemoryFault::Rights));
    assert_eq!(check(Access::RemoteAtomic), Err(MemoryFault::Rights));
}

#[test]
fn tags_belong_to_a_domain_or_a_stream() {
    let (table, stag) = table(region(Rights::READ));
    let check = |who| table.check(Access::RemoteRead, who, stag, TaggedOffset(100), 1);
    let other_domain = StreamIdentity { domain: DomainId(2), ..ME };
    let other_stream = StreamIdentity { stream: StreamId(8), ..ME };
    assert_eq!(check(other_domain), Err(MemoryFault::NotAssociated));
    assert_eq!(check(other_stream), Err(MemoryFault::NotAssociated));
    let shared = Region { stream: None, ..region(Rights::READ) };
    let (table, stag) = self::table(shared);
    let check = |who| table.check(Access::RemoteRead, who, stag, TaggedOffset(100), 1);
    assert_eq!(check(other_stream), Ok(0));
    assert_eq!(check(other_domain), Err(MemoryFault::NotAssociated));
}

#[test]
fn an_invalid_tag_stays_invalid() {
    let (mut table, stag) = table(region(Rights::READ));
    assert!(table.invalidate(stag));
    assert!(!table.invalidate(stag));
    assert_eq!(table.check(Access::RemoteRead, ME, stag, TaggedOffset(100), 1), Err(MemoryFault::InvalidStag));
    // The number stays taken, so that it is not given to another region by chance.
    assert_eq!(table.register(region(Rights::READ), || stag.0), Err(Error::NoFreeStag { tries: STAG_TRIES }));
    assert!(table.deregister(stag).is_some());
    assert_eq!(table.register(region(Rights::READ), || stag.0), Ok(stag));
}

#[test]
fn a_peer_invalidates_only_what_is_its_own() {
    let all = Rights::WRITE | Rights::INVALIDATE;
    let (own, stag) = table(region(all));
    assert_eq!(own.check_invalidate(ME, stag), Ok(()));
    assert_eq!(own.check_invalidate(ME, Stag(1)), Err(InvalidateFault::NotAllowed));
    let other = StreamIdentity { stream: StreamId(8), ..ME };
    assert_eq!(own.check_invalidate(other, stag), Err(InvalidateFault::NotAssociated));
    let (shared, stag) = table(Region { stream: None, ..region(all) });
    assert_eq!(shared.check_invalidate(ME, stag), Err(InvalidateFault::NotAllowed));
    let (kept, stag) = table(region(Rights::WRITE));
    assert_eq!(kept.check_invalidate(ME, stag), Err(InvalidateFault::NotAllowed));
}

#[test]
fn what_cannot_be_registered() {
    let mut table = MemoryTable::new();
    let wraps = Region { base: TaggedOffset(u64::MAX), length: 2, ..region(Rights::NONE) };
    assert!(matches!(table.register(wraps, || 1), Err(Error::RegionWraps { .. })));
    let mut numbers = [0, 5].into_iter();
    assert_eq!(table.register(region(Rights::NONE), || numbers.next().unwrap()), Ok(Stag(5)));
    assert_eq!(format!("{:?}", Rights::READ | Rights::INVALIDATE), "{read, invalidate}");
}
