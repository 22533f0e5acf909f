use super::*;

fn written(write: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out, 4096)).unwrap();
    out
}

/// RFC 4506 §4, item by item.
#[test]
fn items_have_their_golden_bytes() {
    assert_eq!(written(|w| w.i32(-2)), [0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(written(|w| w.u32(0x0102_0304)), [1, 2, 3, 4]);
    assert_eq!(written(|w| w.i64(-2)), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(written(|w| w.u64(0x0102_0304_0506_0708)), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(written(|w| w.f32(-1.5)), [0xbf, 0xc0, 0, 0]);
    assert_eq!(written(|w| w.f64(1.0)), [0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(written(|w| w.bool(true)), [0, 0, 0, 1]);
    assert_eq!(written(|w| w.fixed(&[1, 2, 3, 4, 5])), [1, 2, 3, 4, 5, 0, 0, 0]);
    assert_eq!(written(|w| w.string("sillyprog", 255)), *b"\0\0\0\x09sillyprog\0\0\0");
    assert_eq!(written(|w| w.array(&[7, 8], 2, |w, v| w.u32(*v))), [0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 8]);
    assert_eq!(written(|w| w.optional(Some(&9), |w, v| w.u32(*v))), [0, 0, 0, 1, 0, 0, 0, 9]);
    assert_eq!(written(|w| w.optional(None::<&u32>, |w, v| w.u32(*v))), [0, 0, 0, 0]);
    assert_eq!(written(|w| w.list(&[5], |w, v| w.u32(*v))), [0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0]);
}

#[test]
fn what_was_written_is_read() {
    let bytes = written(|w| {
        w.i32(i32::MIN)?;
        w.u64(u64::MAX)?;
        w.f64(std::f64::consts::PI)?;
        w.string("gruß", 5)?;
        w.items(&[1, 2, 3], |w, v| w.u32(*v))?;
        w.list(&[4, 5], |w, v| w.u32(*v))
    });
    let mut input = Reader::new(&bytes);
    assert_eq!(input.i32(), Ok(i32::MIN));
    assert_eq!(input.u64(), Ok(u64::MAX));
    assert_eq!(input.f64(), Ok(std::f64::consts::PI));
    assert_eq!(input.string(5), Ok("gruß"));
    assert_eq!(input.finish(), Err(Error::Trailing { count: 32 }));
    assert_eq!(input.items(Reader::u32), Ok([1, 2, 3]));
    assert_eq!(input.list(2, Reader::u32), Ok(vec![4, 5]));
    assert_eq!(input.finish(), Ok(()));
}

#[test]
fn lengths_are_limited_by_their_type_and_by_the_message() {
    let long = [0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4];
    assert_eq!(Reader::new(&long).opaque(100), Err(Error::Length { length: u32::MAX as usize, limit: 100 }));
    assert_eq!(Reader::new(&long).opaque(UNBOUNDED), Err(Error::Truncated { needed: u32::MAX as usize, have: 4 }));
    let error = Reader::new(&long).array(UNBOUNDED, Reader::u32).unwrap_err();
    assert!(matches!(error, Error::Truncated { have: 4, .. }), "{error}");
    let list = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
    assert_eq!(Reader::new(&list).list(1, Reader::u32), Err(Error::Length { length: 2, limit: 1 }));
    // The fill counts.
    assert_eq!(Reader::new(&[0, 0, 0, 1, 9]).opaque(8), Err(Error::Truncated { needed: 4, have: 1 }));
    assert_eq!(Reader::new(&list[..8]).items::<_, 3>(Reader::u32), Err(Error::Truncated { needed: 12, have: 8 }));
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 8);
    assert_eq!(writer.string("four", 3), Err(Error::Length { length: 4, limit: 3 }));
    assert_eq!(writer.u64(1), Ok(()));
    assert_eq!(writer.u32(1), Err(Error::Full { limit: 8 }));
}

#[test]
fn values_that_do_not_exist_are_refused() {
    assert_eq!(Reader::new(&[0, 0, 0, 2]).bool(), Err(Error::Bool { found: 2 }));
    assert_eq!(Reader::new(&[0, 0, 0, 2, b'a', 0xff, 0, 0]).string(9), Err(Error::Utf8 { valid: 1 }));
}

#[test]
fn nesting_ends_before_the_stack_does() {
    fn deep(input: &mut Reader<'_>) -> Result<u32, Error> {
        Ok(input.optional(deep)?.map_or(0, |depth| depth + 1))
    }
    let mut bytes = [0, 0, 0, 1].repeat(MAX_DEPTH as usize);
    bytes.extend([0; 4]);
    assert_eq!(deep(&mut Reader::new(&bytes)), Ok(MAX_DEPTH));
    let endless = [0, 0, 0, 1].repeat(100_000);
    assert_eq!(deep(&mut Reader::new(&endless)), Err(Error::Depth { limit: MAX_DEPTH }));
}

/// The wider a level, the fewer of them; what is left of the message does not count.
#[test]
#[cfg_attr(miri, ignore = "the stack of Miri has no addresses")]
fn wide_levels_end_before_the_stack_does() {
    fn wide(input: &mut Reader<'_>) -> Result<u32, Error> {
        let numbers: [u64; 2000] = input.items(|input| Ok(u64::from(input.u32()?)))?;
        let below = input.optional(wide)?;
        Ok(below.map_or(numbers[0] as u32, |depth| depth + 1))
    }
    fn written(out: &mut Writer<'_>, levels: u32) -> Result<(), Error> {
        let numbers = std::hint::black_box([levels; 2000]);
        out.optional(Some(&numbers).filter(|numbers| numbers[0] > 0), |out, numbers| written(out, numbers[0] - 1))
    }
    let level = [[0, 0, 0, 0].repeat(2000), vec![0, 0, 0, 1]].concat();
    let message = level.repeat(MAX_DEPTH as usize);
    assert_eq!(wide(&mut Reader::new(&message)), Err(Error::Stack { limit: MAX_STACK }));
    let mut out = Vec::new();
    assert_eq!(written(&mut Writer::new(&mut out, 1 << 20), 400), Err(Error::Stack { limit: MAX_STACK }));
    assert_eq!(written(&mut Writer::new(&mut out, 1 << 20), 2), Ok(()));
}

/// Four bytes of a message that are 400 in memory.
#[test]
fn values_take_no_more_memory_than_their_message_may() {
    fn wide(input: &mut Reader<'_>) -> Result<Option<[u32; 100]>, Error> {
        input.optional(|input| input.items(Reader::u32))
    }
    let array = |count: u32| [&count.to_be_bytes()[..], &vec![0; 4 * count as usize]].concat();
    let few = array(2000);
    assert_eq!(Reader::new(&few).array(UNBOUNDED, wide).map(|items| items.len()), Ok(2000));
    let many = array(100_000);
    let limit = memory_limit(many.len());
    assert_eq!(Reader::new(&many).array(UNBOUNDED, wide), Err(Error::Memory { limit }));
    // The same in pieces, and as a list.
    let pieces = [&20_u32.to_be_bytes()[..], &array(5000).repeat(20)].concat();
    let error = Reader::new(&pieces).array(UNBOUNDED, |input| input.array(UNBOUNDED, wide)).unwrap_err();
    assert_eq!(error, Error::Memory { limit: memory_limit(pieces.len()) });
    let list = [[0, 0, 0, 1, 0, 0, 0, 0].repeat(100_000), vec![0; 4]].concat();
    let error = Reader::new(&list).list(UNBOUNDED, wide).unwrap_err();
    assert_eq!(error, Error::Memory { limit: memory_limit(list.len()) });
    // What is as large in the message as in memory has no limit.
    let plain = array(1_000_000);
    assert_eq!(Reader::new(&plain).array(UNBOUNDED, Reader::u32).map(|items| items.len()), Ok(1_000_000));
}

/// Takes so many bytes, and no more.
struct Shelf {
    bytes: Vec<u8>,
    space: usize,
}

impl Place for Shelf {
    fn put(&mut self, parts: [&[u8]; 2]) -> bool {
        let fits = self.bytes.len() + parts[0].len() + parts[1].len() <= self.space;
        if fits {
            parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        }
        fits
    }

    fn take_back(&mut self, into: &mut Vec<u8>) -> bool {
        into.append(&mut self.bytes);
        true
    }
}

/// Wherever the bytes go, the message is the same.
#[test]
fn long_items_go_to_their_place_or_come_back_from_it() {
    let write = |out: &mut Writer<'_>| {
        out.u32(7)?;
        out.opaque(&[1; 2001], UNBOUNDED)?;
        out.opaque(&[2; 30], UNBOUNDED)?;
        out.opaque(&[3; 3000], UNBOUNDED)?;
        out.u32(8)
    };
    let mut whole = Vec::new();
    write(&mut Writer::new(&mut whole, 6000)).unwrap();
    for (space, placed) in [(0, 0), (2008, 0), (2009, 0), (5044, 0), (5052, 5052), (9000, 5052)] {
        let (mut shelf, mut out) = (Shelf { bytes: Vec::new(), space }, Vec::new());
        let mut writer = Writer::with_place(&mut out, 6000, Some(&mut shelf));
        write(&mut writer).unwrap();
        assert_eq!(writer.placed(), placed, "space for {space}");
        assert_eq!(shelf.bytes.len(), placed);
        assert!([shelf.bytes, out].concat() == whole, "space for {space}");
    }
    let (mut shelf, mut out) = (Shelf { bytes: Vec::new(), space: 9000 }, Vec::new());
    let mut writer = Writer::with_place(&mut out, 5000, Some(&mut shelf));
    assert_eq!(write(&mut writer), Err(Error::Full { limit: 5000 }));
}
