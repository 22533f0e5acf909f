use super::component::{CodeSetChoice, Component};
use super::*;
use crate::cdr::CharSet;
use crate::giop::Version;

#[test]
fn text_comes_back() {
    let profile = iiop::Repr {
        version: Version::V1_2,
        host: "127.0.0.1".to_owned(),
        port: 4321,
        object_key: vec![0, 1, 2],
        components: vec![
            Component::CodeSets {
                chars: CodeSetChoice { native: CharSet::Utf8.id(), conversion: vec![CharSet::Latin1.id()] },
                wide: CodeSetChoice::default(),
            },
            Component::Alternate { host: "::1".to_owned(), port: 1 },
            Component::Unix { host: "here".to_owned(), path: "/tmp/socket".to_owned() },
            Component::Fabric { host: "here".to_owned(), name: "shm:orb".to_owned() },
            Component::Other { tag: 77, data: vec![1] },
        ],
    };
    let ior = Ior { type_id: "IDL:Echo:1.0".to_owned(), profiles: vec![profile.emit().unwrap()] };
    let again: Ior = ior.to_string().parse().unwrap();
    assert_eq!(again, ior);
    assert_eq!(iiop::Repr::parse(&again.profiles[0]), Ok(profile));
}

#[test]
fn what_is_not_a_reference_is_refused() {
    assert!(matches!("".parse::<Ior>(), Err(Error::Scheme { .. })));
    assert_eq!("IOR:0".parse::<Ior>(), Err(Error::Hex { at: 6 }));
    assert_eq!("IOR:0g".parse::<Ior>(), Err(Error::Hex { at: 6 }));
    assert!(matches!("IOR:00".parse::<Ior>(), Err(Error::Cdr(_))));
    assert!("IOR:é".parse::<Ior>().is_err());
}

#[test]
fn a_server_that_knows_utf_8_is_spoken_to_in_it() {
    let knows = |native: u32, conversion: &[u32]| CodeSetChoice { native, conversion: conversion.to_vec() }.chosen();
    let (latin1, utf8) = (CharSet::Latin1.id(), CharSet::Utf8.id());
    assert_eq!(knows(latin1, &[utf8]), CharSet::Utf8);
    assert_eq!(knows(latin1, &[]), CharSet::Latin1);
    assert_eq!(knows(0x0001_0002, &[]), CharSet::Utf8);
}
