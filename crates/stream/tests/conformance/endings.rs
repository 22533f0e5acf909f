//! The line of the contract about carriers that are ended by one word.

use std::io::IoSlice;

use sidestep_stream::{
    carrier::{Fault, Inbound, Outbound, Reading, Watch},
    path::End,
};

use super::{
    contract::pattern,
    fixture::{self, Pair},
};

/// Receives what one call has sent.
fn expect_whole(pair: &mut Pair, bytes: &[u8]) {
    let got = pair.until("what was sent", |pair| Some(pair.ends[1].receive(1000)).filter(|got| !got.is_empty()));
    assert!(got == bytes, "bytes were lost, added or changed");
}

/// C4.
pub fn an_ended_carrier_gives_each_byte_once(mut pair: Pair) {
    let (writer, reader) = pair.both();
    if !reader.capabilities().freezes {
        assert_eq!(reader.inward.want(), None);
        assert!(!reader.inward.is_over() && !reader.inward.is_taken());
        assert_eq!(writer.out.is_frozen(), Ok(false));
        return;
    }
    assert_eq!(writer.send(&pattern(0, 3000)), 3000);
    assert_eq!(reader.receive(1000), pattern(0, 1000));
    assert_eq!(reader.inward.want(), Some(Ok(true)));
    assert_eq!(writer.out.send(&[IoSlice::new(b"late")], true), Err(Fault::Frozen));
    assert_eq!(writer.out.send(&[IoSlice::new(b"very"), IoSlice::new(b"late")], true), Err(Fault::Frozen));
    assert_eq!(writer.out.is_frozen(), Ok(true));
    assert!(!reader.inward.is_taken() && reader.inward.is_wanted());
    assert_eq!(reader.inward.want(), Some(Ok(true)), "once more");
    assert_eq!(writer.out.take_back(), Ok(pattern(1000, 2000)));
    assert_eq!(reader.inward.want(), Some(Ok(false)), "what was taken is not wanted again");
    assert_eq!((writer.out.position(), writer.out.take_back()), (1000, Ok(Vec::new())));
    assert!(reader.inward.is_taken() && reader.inward.is_over());
    assert_eq!(reader.inward.withdraw(), Ok(()));
    assert!(reader.inward.is_taken(), "one of the two has won");
    assert_eq!(reader.receive(1000), b"");
    // The other direction: wanted, and wanted no more.
    let (reader, writer) = pair.both();
    assert_eq!(writer.send(&pattern(0, 500)), 500);
    assert_eq!(reader.inward.want(), Some(Ok(true)));
    assert_eq!(reader.inward.withdraw(), Ok(()));
    assert_eq!(writer.out.take_back(), Ok(Vec::new()));
    assert_eq!(writer.out.send(&[IoSlice::new(b"late")], true), Err(Fault::Frozen));
    assert!(!reader.inward.is_over());
    assert_eq!(reader.receive(1000), pattern(0, 500));
    assert!(reader.inward.is_over());
}

/// C4, by the writer, and in the other direction by the reader.
pub fn either_end_ends_it_by_one_word(mut pair: Pair) {
    for by_writer in [true, false] {
        let (writer, reader) = pair.both();
        assert_eq!((writer.out.end(), reader.inward.has_end()), (Ok(End::Open), false));
        assert!(!reader.carrier.watch().is_frozen());
        if !writer.capabilities().freezes {
            assert_eq!((writer.out.freeze(), reader.inward.freeze()), (None, None));
            assert_eq!((writer.out.end(), reader.inward.has_end()), (Ok(End::Open), false));
            assert_eq!(reader.inward.withdraw(), Ok(()));
            assert!(!reader.inward.is_over());
            assert_eq!(writer.send(&pattern(0, 300)), 300);
            expect_whole(&mut pair, &pattern(0, 300));
        } else {
            assert_eq!(writer.send(&pattern(0, 300)), 300);
            assert_eq!(reader.receive(100), pattern(0, 100));
            assert_eq!(if by_writer { writer.out.freeze() } else { reader.inward.freeze() }, Some(Ok(())));
            // Twice, and by both, is as good as once.
            assert_eq!((writer.out.freeze(), reader.inward.freeze()), (Some(Ok(())), Some(Ok(()))));
            assert_eq!((writer.out.end(), writer.out.is_frozen()), (Ok(End::Frozen), Ok(true)));
            assert!(reader.inward.has_end() && !reader.inward.is_over() && !reader.inward.is_taken());
            assert!(reader.carrier.watch().is_frozen());
            assert_eq!(writer.out.send(&[IoSlice::new(b"late")], true), Err(Fault::Frozen));
            assert_eq!((writer.out.take_back(), writer.out.position()), (Ok(Vec::new()), 300));
            assert_eq!(reader.receive(1000), pattern(100, 200));
            assert!(reader.inward.is_over());
        }
        pair.ends.reverse();
    }
}

/// C4, where the one that has ended it goes.
pub fn an_end_outlives_who_made_it(mut pair: Pair) {
    let (writer, reader) = pair.both();
    if !writer.capabilities().freezes {
        // What was sent before the try is not lost by it.
        assert_eq!(writer.send(&pattern(0, 300)), 300);
        assert_eq!((writer.out.freeze(), reader.inward.want()), (None, None));
        expect_whole(&mut pair, &pattern(0, 300));
        return;
    }
    assert_eq!(writer.send(&pattern(0, 300)), 300);
    assert_eq!(reader.send(&pattern(0, 200)), 200);
    assert_eq!(writer.out.freeze(), Some(Ok(())));
    assert_eq!(writer.inward.want(), Some(Ok(true)));
    assert_eq!(reader.out.end(), Ok(End::Wanted));
    drop(pair.ends.remove(0));
    let end = &mut pair.ends[0];
    assert!(end.inward.has_end());
    assert_eq!(end.receive(1000), pattern(0, 300));
    assert!(end.inward.is_over());
    assert_eq!(end.out.end(), Ok(End::Wanted));
    assert_eq!(end.out.take_back(), Ok(pattern(0, 200)));
}

/// C14.
pub fn what_is_given_back_comes_to_one_of_the_two(mut pair: Pair) {
    let say = |end: &mut fixture::End, wanted, given| {
        end.inward.set_note(Reading { wanted, given, ..Reading::default() }.to_note()).expect("the peer is there");
    };
    for is_given in [false, true] {
        let (writer, reader) = pair.both();
        let begins = writer.out.position();
        assert_eq!(writer.send(&pattern(0, 3000)), 3000);
        if !reader.capabilities().packets {
            assert_eq!(reader.inward.give(), None);
            assert!(writer.out.may_leave() && writer.out.refuse());
            return;
        }
        let first = pair.until("bytes", |pair| Some(pair.ends[1].receive(1000)).filter(|got| got.len() == 1000));
        assert!(first == pattern(0, 1000));
        say(&mut pair.ends[1], true, false);
        assert_eq!(pair.ends[1].inward.give(), None, "nobody has answered");
        assert_eq!(pair.ends[1].receive(1000), b"", "what is given back is read");
        // What came in between is given back, too.
        let more = pair.ends[0].send(&pattern(3000, 500)) as u64;
        let given = pair.until("an answer", |pair| {
            assert!(pair.ends[0].carrier.asked() == 0 || !pair.ends[0].out.may_leave(), "it is left too early");
            pair.ends[1].inward.give()
        });
        assert!(given == 2000 + more || given == 2000 && pair.ends[0].out.holds());
        assert!(!pair.ends[0].out.may_leave() && !pair.ends[0].out.refuse(), "the reader has not decided");
        say(&mut pair.ends[1], is_given, is_given);
        if !is_given {
            pair.ends[1].inward.keep();
        }
        pair.until("the decision", |pair| pair.ends[0].out.may_leave().then_some(()));
        let back = pair.ends[0].out.take_back().expect("the peer is there");
        let expected = pattern(1000, 2000 + more as usize);
        if is_given {
            assert!(back == expected, "{} bytes of {}", back.len(), expected.len());
            assert_eq!(pair.ends[0].out.position(), begins + 1000);
            assert_eq!(pair.ends[1].receive(1000), b"");
            assert_eq!(pair.ends[1].inward.position(), begins + 1000);
        } else {
            assert!(back.is_empty() || more == 500 && back == pattern(3000, 500));
            let kept = expected.len() - back.len();
            let mut got = Vec::new();
            pair.until("what was kept", |pair| {
                got.extend(pair.ends[1].receive(10_000));
                (got.len() >= kept).then_some(())
            });
            assert!(got == expected[..kept], "bytes were lost, added or changed");
        }
        // A direction that was given back is not used again.
        pair.ends.reverse();
    }
}
