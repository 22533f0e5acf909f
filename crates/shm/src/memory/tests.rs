use std::{
    os::fd::{AsFd, OwnedFd},
    sync::atomic::Ordering,
};

use super::*;

#[test]
fn ranges_are_checked() {
    let memory = Memory::heap(128).unwrap();
    assert!(memory.word64(120).is_ok());
    assert!(matches!(memory.word64(121), Err(Error::Range { .. })));
    assert!(matches!(memory.word64(4), Err(Error::Range { .. })));
    assert!(matches!(memory.word64(128), Err(Error::Range { .. })));
    assert!(matches!(memory.span(usize::MAX, 2), Err(Error::Range { .. })));
    assert!(memory.span(128, 0).is_ok());
    let span = memory.span(64, 64).unwrap();
    assert!(span.copy_in(60, &[1; 5]).is_err());
    assert!(span.copy_out(usize::MAX, &mut [0; 2]).is_err());
    assert!(span.copy_in(64, &[]).is_ok());
}

#[test]
fn two_mappings_share_bytes() {
    let ours = Memory::create("test", 8192).unwrap();
    let descriptor = ours.descriptor().unwrap().try_clone().unwrap();
    let theirs = Memory::attach(descriptor, 8192).unwrap();
    ours.span(0, 8192).unwrap().copy_in(4090, b"across pages").unwrap();
    let mut seen = [0; 12];
    theirs.span(4090, 12).unwrap().copy_out(0, &mut seen).unwrap();
    assert_eq!(&seen, b"across pages");
    theirs.word64(8).unwrap().store(7, Ordering::Release);
    assert_eq!(ours.word64(8).unwrap().load(Ordering::Acquire), 7);
}

#[test]
fn renewed_pages_keep_address_and_content_and_leave_the_peer_behind() {
    let ours = Memory::create("test", 8192).unwrap();
    let theirs = Memory::attach(ours.descriptor().unwrap().try_clone().unwrap(), 8192).unwrap();
    let word = ours.word64(4096).unwrap();
    word.store(1, Ordering::Relaxed);
    let base = ours.base();
    ours.renew("test").unwrap();
    assert_eq!(ours.base(), base);
    assert_eq!(word.load(Ordering::Relaxed), 1);
    theirs.word64(4096).unwrap().store(99, Ordering::Relaxed);
    assert_eq!(word.load(Ordering::Relaxed), 1);
    word.store(2, Ordering::Relaxed);
    assert_eq!(theirs.word64(4096).unwrap().load(Ordering::Relaxed), 99);
    let late = Memory::attach(ours.descriptor().unwrap().try_clone().unwrap(), 8192).unwrap();
    assert_eq!(late.word64(4096).unwrap().load(Ordering::Relaxed), 2);
}

#[test]
fn a_received_descriptor_of_another_size_is_refused() {
    let ours = Memory::create("test", 8192).unwrap();
    let descriptor: OwnedFd = ours.descriptor().unwrap().as_fd().try_clone_to_owned().unwrap();
    assert!(matches!(Memory::attach(descriptor, 4096), Err(Error::Foreign(_))));
}
