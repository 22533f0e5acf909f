//! An implementation of `types.idl`, and calls of everything in it, for any broker's object.

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

pub mod elsewhere;
pub mod foreign;
#[path = "../generated/types.rs"]
mod generated;

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use sidestep_orb::cdr::{Any, Fixed, TypeCode, Typed, WChar, WString};
use sidestep_orb::{Completion, Kind, Object, Orb, Stub, SystemException};

pub use generated::types::*;

/// The servant of this side.
pub struct Own {
    calls: AtomicI32,
    label: Mutex<String>,
    heard: Mutex<String>,
    /// `sleep` waits for it instead of for time.
    pub gate: Arc<Gate>,
}

/// Where `sleep` waits.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    waiting: AtomicI32,
}

impl Gate {
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    pub fn waiting(&self) -> i32 {
        self.waiting.load(Ordering::SeqCst)
    }

    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.changed.wait(open).unwrap();
        }
    }
}

impl Own {
    pub fn new() -> Self {
        let (label, heard) = (Mutex::new("own".to_owned()), Mutex::default());
        Self { calls: AtomicI32::new(0), label, heard, gate: Arc::default() }
    }
}

/// A broker that serves an [`Own`], and its reference.
pub fn serve(orb: &Orb) -> (Peer, Arc<Gate>) {
    let own = Own::new();
    let gate = own.gate.clone();
    let peer = orb.root_poa().activate(PeerSkeleton(own)).unwrap();
    orb.root_poa().manager().activate().unwrap();
    (peer, gate)
}

/// The same object seen by another broker, so that calls go over the wire.
pub fn seen_by(orb: &Orb, peer: &Peer) -> Peer {
    let object = orb.string_to_object(&peer.object().ior().to_string()).unwrap();
    object.narrow().unwrap().expect("a Peer")
}

macro_rules! operations {
    ($($name:ident: $type:ty),* $(,)?) => {
        impl BaseServant for Own {
            fn calls(&self) -> Result<i32, SystemException> {
                Ok(self.calls.load(Ordering::SeqCst))
            }

            fn label(&self) -> Result<String, SystemException> {
                Ok(self.label.lock().unwrap().clone())
            }

            fn set_label(&self, value: String) -> Result<(), SystemException> {
                *self.label.lock().unwrap() = value;
                Ok(())
            }

            fn ping(&self) -> Result<(), SystemException> {
                self.calls.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        }

        impl PeerServant for Own {
            $(fn $name(&self, i: $type, io: $type) -> Result<($type, $type, $type), SystemException> {
                Ok((i.clone(), i, io))
            })*

            fn fail(&self, how: i32) -> Result<(), PeerFailError> {
                match how {
                    1 => Err(Plain {}.into()),
                    2 => Err(Detailed { why: "because".to_owned(), code: 42, shade: Color::Blue }.into()),
                    3 => Err(Kind::NoPermission.with_minor(7, Completion::Yes).into()),
                    4 => panic!("a servant that panics"),
                    _ => Ok(()),
                }
            }

            fn tell(&self, text: String) -> Result<(), SystemException> {
                *self.heard.lock().unwrap() = text;
                Ok(())
            }

            fn told(&self) -> Result<String, SystemException> {
                Ok(self.heard.lock().unwrap().clone())
            }

            fn relay(&self, other: Option<Peer>, number: i32) -> Result<i32, SystemException> {
                let other = other.ok_or(Kind::BadParam.raised(Completion::No))?;
                other.a_long(number, 0).map(|(result, _, _)| result)
            }

            fn sleep(&self, _: u32) -> Result<(), SystemException> {
                self.gate.pass();
                Ok(())
            }

            fn leave(&self) -> Result<(), SystemException> {
                Ok(())
            }
        }
    };
}

operations! {
    a_short: i16, a_ushort: u16, a_long: i32, a_ulong: u32, a_longlong: i64, a_ulonglong: u64,
    a_float: f32, a_double: f64, a_boolean: bool, a_char: char, a_wchar: WChar, an_octet: u8,
    a_string: String, a_wstring: WString, a_short_text: ShortText, a_short_wide: ShortWide, a_color: Color,
    some_unions: Unions, a_wide_choice: OfWide, a_small: Small, a_tree: Tree,
    a_choice: Choice, some_labels: Labels, some_octets: Octets, some_longs: Longs, some_strings: Strings,
    some_smalls: Smalls, some_bounded: Bounded, a_grid: Grid, some_money: Money, an_any: Any, some_anys: Anys,
    an_object: Option<Object>, a_peer: Option<Peer>, a_type: TypeCode,
}

macro_rules! check {
    ($peer:ident, $($name:ident($i:expr, $io:expr)),* $(,)?) => {$(
        let (i, io) = ($i, $io);
        let outcome = $peer.$name(i.clone(), io.clone());
        assert_eq!(outcome, Ok((i.clone(), i, io)), stringify!($name));
    )*};
}

macro_rules! check_borrowed {
    ($peer:ident, $($name:ident($i:expr, $io:expr)),* $(,)?) => {$(
        let (i, io) = ($i, $io);
        let outcome = $peer.$name(&i, &io);
        assert_eq!(outcome, Ok((i.clone(), i, io)), stringify!($name));
    )*};
}

fn tree(depth: usize) -> Tree {
    Tree { name: format!("é{depth}"), children: (0..depth).map(tree).collect() }
}

fn small(value: f64) -> Small {
    Small { tag: 7, value, flag: true }
}

/// Every union: `which` of its members, in turns.
fn unions(which: usize) -> Unions {
    let is_even = which.is_multiple_of(2);
    let other = |label| OfChar::Other { label, value: 0.5 };
    Unions {
        of_boolean: if is_even { OfBoolean::Yes(-1) } else { OfBoolean::No("no".to_owned()) },
        of_char: match which % 3 {
            0 => OfChar::Letter { label: 'z', value: 26 },
            1 => other('%'),
            _ => other('0'),
        },
        of_ushort: match which % 3 {
            0 => OfUShort::Most(255),
            1 => OfUShort::Least("least".to_owned()),
            _ => OfUShort::NoMember(1),
        },
        of_long: match which % 3 {
            0 => OfLong::Least(String::new()),
            1 => OfLong::Some(vec![1, -1]),
            _ => OfLong::Other { label: i32::MAX, value: true },
        },
        of_ulong: if is_even { OfULong::Most("most".to_owned()) } else { OfULong::Other { label: 0, value: 7 } },
        of_longlong: match which % 3 {
            0 => OfLongLong::Least(1),
            1 => OfLongLong::One("one".to_owned()),
            _ => OfLongLong::NoMember(i64::MAX),
        },
        of_ulonglong: match is_even {
            true => OfULongLong::Most(-0.5),
            false => OfULongLong::Other { label: u64::MAX - 1, value: small(2.0) },
        },
        deep: match which % 3 {
            0 => Nested::Inner(OfChar::Letter { label: 'a', value: 1 }),
            1 => Nested::Content(Any::new(&OfBoolean::Yes(5)).unwrap()),
            _ => Nested::Chosen { label: Color::Blue, value: Choice::Number(3) },
        },
    }
}

/// Calls every operation on a type, with values at their limits.
pub fn exercise_types(peer: &Peer) {
    check!(
        peer,
        a_short(i16::MIN, i16::MAX),
        a_ushort(u16::MAX, 1),
        a_long(i32::MIN, i32::MAX),
        a_ulong(u32::MAX, 1),
        a_longlong(i64::MIN, i64::MAX),
        a_ulonglong(u64::MAX, 1),
        a_float(1.5, f32::MIN_POSITIVE),
        a_double(-0.0, f64::MAX),
        a_boolean(true, false),
        a_char('a', 'z'),
        an_octet(0, 255),
        a_color(Color::Blue, Color::Red),
        some_money(Fixed::new(-1_234_567).unwrap(), Fixed::new(5).unwrap()),
    );
    check_borrowed!(
        peer,
        a_string("plain".to_owned(), "grüße".to_owned()),
        a_short_text("12345678".try_into().unwrap(), "".try_into().unwrap()),
        a_small(small(1.25), small(-1.0)),
        a_tree(tree(4), tree(0)),
        a_choice(Choice::Number(-1), Choice::Text("text".to_owned())),
        a_choice(Choice::Both { label: Color::Blue, value: small(3.0) }, Choice::Number(0)),
        some_labels(Labels::Some { label: 2, value: "two".to_owned() }, Labels::Other(0.5)),
        some_labels(Labels::NoMember(9), Labels::Some { label: 1, value: String::new() }),
        some_octets((0..=255).collect::<Vec<u8>>(), Vec::new()),
        some_longs(vec![1, -2, 3], Vec::new()),
        some_strings(vec!["a".to_owned(), String::new(), "bcd".to_owned()], Vec::new()),
        some_smalls(vec![small(1.0), small(2.0)], Vec::new()),
        some_bounded(vec![1, 2, 3, 4].try_into().unwrap(), vec![].try_into().unwrap()),
        a_grid([[1, 2, 3], [4, 5, 6]], [[0; 3]; 2]),
        a_type(TypeCode::String(0), Tree::type_code()),
    );
    for which in 0..6 {
        check_borrowed!(peer, some_unions(unions(which), unions(which + 1)));
    }
}

/// Calls with wide text.
pub fn exercise_wide(peer: &Peer) {
    check!(peer, a_wchar(WChar('ß'), WChar('€')));
    check_borrowed!(peer, a_wstring(WString::from("€ und 𝄞"), WString::from("")));
    let short = |text: &str| ShortWide::try_from(WString::from(text)).unwrap();
    check_borrowed!(
        peer,
        a_short_wide(short("achtlang"), short("")),
        a_wide_choice(OfWide::Letter(WChar('€')), OfWide::Other { label: 7, value: "wide".into() }),
    );
    let anys = [
        Any::new(&WString::from("€")).unwrap(),
        Any::new(&WChar('ß')).unwrap(),
        Any::new(&short("€ 1")).unwrap(),
        Any::new(&OfWide::Letter(WChar('€'))).unwrap(),
    ];
    for any in &anys {
        assert_eq!(peer.an_any(any, any).unwrap().0, *any);
    }
}

/// An exception in an `any`, which omniORB encodes without its repository id, unlike the standard.
pub fn exercise_exception_in_any(peer: &Peer) {
    let exception = Detailed { why: "why".to_owned(), code: 1, shade: Color::Red };
    let any = Any::new(&exception).unwrap();
    assert_eq!(peer.an_any(&any, &any).unwrap().0.get(), Ok(Some(exception)));
}

/// Values of many types in an `any`, and references.
pub fn exercise_anys(peer: &Peer) {
    let object = peer.object().clone();
    let values = [
        Any::default(),
        Any::new(&-5i16).unwrap(),
        Any::new(&"grüße".to_owned()).unwrap(),
        Any::new(&small(0.5)).unwrap(),
        Any::new(&tree(3)).unwrap(),
        Any::new(&Choice::Both { label: Color::Blue, value: small(3.0) }).unwrap(),
        Any::new(&Labels::Some { label: 2, value: "two".to_owned() }).unwrap(),
        Any::new(&Color::Green).unwrap(),
        Any::new(&vec![[1u8; 3]; 2]).unwrap(),
        Any::new(&Fixed::<7, 2>::new(-12).unwrap()).unwrap(),
        Any::new(&Tree::type_code()).unwrap(),
        Any::new(&vec![Any::new(&1u64).unwrap(), Any::new(&true).unwrap()]).unwrap(),
        Any::new(&u16::MAX).unwrap(),
        Any::new(&i32::MIN).unwrap(),
        Any::new(&u32::MAX).unwrap(),
        Any::new(&i64::MIN).unwrap(),
        Any::new(&u64::MAX).unwrap(),
        Any::new(&1.5f32).unwrap(),
        Any::new(&f64::MIN_POSITIVE).unwrap(),
        Any::new(&false).unwrap(),
        Any::new(&'~').unwrap(),
        Any::new(&255u8).unwrap(),
        Any::new(&ShortText::try_from("12345678").unwrap()).unwrap(),
        Any::new(&Bounded::try_from(vec![1, 2, 3, 4]).unwrap()).unwrap(),
        Any::new(&vec!["a".to_owned(), String::new()]).unwrap(),
        Any::new(&vec![small(1.0); 3]).unwrap(),
        Any::new(&[[1, 2, 3], [4, 5, 6]]).unwrap(),
        Any::new(&Any::new(&Any::new(&small(1.0)).unwrap()).unwrap()).unwrap(),
        Any::new(&Some(object)).unwrap(),
        Any::new(&None::<Peer>).unwrap(),
        Any::new(&TypeCode::Fixed { digits: 7, scale: 2 }).unwrap(),
        Any::new(&unions(0)).unwrap(),
        Any::new(&unions(1)).unwrap(),
        Any::new(&unions(2)).unwrap(),
        Any::new(&unions(3).of_char).unwrap(),
        Any::new(&unions(5).of_longlong).unwrap(),
        Any::new(&unions(5).of_ulonglong).unwrap(),
    ];
    for value in &values {
        let outcome = peer.an_any(value, &values[1]);
        let (result, io, o) = outcome.unwrap_or_else(|error| panic!("{error} for {value:?}"));
        assert!(result.type_code().equivalent(value.type_code()), "{result:?} is not {value:?}");
        assert_eq!(o.get::<i16>(), Ok(Some(-5)));
        assert_eq!(io, result);
    }
    let (result, _, _) = peer.an_any(&values[4], &values[0]).unwrap();
    assert_eq!(result.get::<Tree>(), Ok(Some(tree(3))));
    let (result, _, _) = peer.an_any(&values[5], &values[0]).unwrap();
    assert_eq!(result.get::<Choice>(), Ok(Some(Choice::Both { label: Color::Blue, value: small(3.0) })));
    let anys = values.to_vec();
    assert_eq!(peer.some_anys(&anys, &[]).unwrap().0.len(), anys.len());
    let object = peer.object();
    let (result, io, o) = peer.an_object(Some(object), None).unwrap();
    assert!(o.is_none());
    for given in [result, io] {
        assert!(given.expect("not nil").is_a("IDL:sidestep.test/Types/Base:1.0").unwrap());
    }
    let (result, _, _) = peer.a_peer(Some(peer), None).unwrap();
    result.expect("not nil").ping().unwrap();
}

/// Exceptions, attributes, inherited operations and oneway.
pub fn exercise_calls(peer: &Peer) {
    assert_eq!(peer.fail(0), Ok(()));
    assert_eq!(peer.fail(1), Err(PeerFailError::Plain(Plain {})));
    let detailed = Detailed { why: "because".to_owned(), code: 42, shade: Color::Blue };
    assert_eq!(peer.fail(2), Err(PeerFailError::Detailed(detailed)));
    assert_eq!(peer.fail(3), Err(PeerFailError::System(Kind::NoPermission.with_minor(7, Completion::Yes))));
    let before = peer.calls().unwrap();
    peer.ping().unwrap();
    assert_eq!(peer.calls(), Ok(before + 1));
    peer.set_label("changed").unwrap();
    assert_eq!(peer.label().as_deref(), Ok("changed"));
    peer.tell("oneway").unwrap();
    // A oneway says nothing, and a broker may serve what comes after it at the same time.
    while peer.told().unwrap() != "oneway" {
        std::thread::yield_now();
    }
    assert_eq!(peer.relay(Some(peer), 5), Ok(5));
    assert_eq!(peer.object().non_existent(), Ok(false));
    assert_eq!(peer.object().is_a("IDL:other:1.0"), Ok(false));
    let unknown: Result<(), SystemException> = peer.object().call("unknown", |_| Ok(()), |_| Ok(()));
    assert_eq!(unknown.unwrap_err().kind, Kind::BadOperation);
    // Longer than any buffer, and than the fragments of those who fragment.
    let long = vec![0x5a; 300_000];
    assert_eq!(peer.some_octets(&long, &[]).unwrap().0, long);
}
