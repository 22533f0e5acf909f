//! Values of a message of GIOP 1.1 in fragments, which are aligned in each fragment by itself.

use sidestep_wire::cdr::{ByteOrder, CharSet, Decoder, Error, Format};

const FORMAT: Format = Format { order: ByteOrder::Big, minor: 1, chars: CharSet::Latin1 };

/// Writes a fragment: what is aligned, and where, counts from the header that stands before it.
#[derive(Default)]
struct Fragment(Vec<u8>);

impl Fragment {
    fn value(mut self, bytes: &[u8]) -> Self {
        while !(12 + self.0.len()).is_multiple_of(bytes.len()) {
            self.0.push(0xee);
        }
        self.0.extend_from_slice(bytes);
        self
    }

    fn octet(self, octet: u8) -> Self {
        self.value(&[octet])
    }

    fn double(self, value: f64) -> Self {
        self.value(&value.to_be_bytes())
    }

    fn padding(mut self, count: usize) -> Self {
        self.0.extend(vec![0xee; count]);
        self
    }
}

fn decoder<'a>(bytes: &'a [u8], joints: &'a [usize]) -> Decoder<'a> {
    let mut decoder = Decoder::new(bytes, FORMAT).with_joints(joints);
    decoder.raw(12).unwrap();
    decoder
}

#[test]
fn values_are_aligned_in_their_fragments() {
    // As omniORB does it: what would not fit is aligned at the end of one fragment, and again in the next one.
    let first = Fragment::default().octet(1).double(0.5).octet(2).padding(7);
    let second = Fragment::default().double(1.5).octet(3);
    // Others may end a fragment anywhere, and one may be so short that nothing is aligned in it.
    let third = Fragment::default().octet(4);
    let last = Fragment::default().double(2.5).value(&7u32.to_be_bytes());
    let mut bytes = vec![0; 12];
    let mut joints = Vec::new();
    for fragment in [&first, &second, &third, &last] {
        joints.push(bytes.len());
        bytes.extend(&fragment.0);
    }
    let joints = &joints[1..];
    let mut whole = decoder(&bytes, joints);
    assert_eq!((whole.u8(), whole.f64(), whole.u8()), (Ok(1), Ok(0.5), Ok(2)));
    assert_eq!((whole.f64(), whole.u8(), whole.u8()), (Ok(1.5), Ok(3), Ok(4)));
    assert_eq!((whole.f64(), whole.u32(), whole.remaining()), (Ok(2.5), Ok(7), 0));
    assert!(matches!(whole.clone().f64(), Err(Error::Truncated { .. })));
    // Octets go on from one fragment to the next.
    let mut octets = decoder(&bytes, joints);
    assert_eq!(octets.raw(bytes.len() - 12).unwrap(), &bytes[12..]);
    // Cut anywhere, and with fragments that begin anywhere, nothing panics.
    for end in 12..bytes.len() {
        for joint in 12..=end {
            let joints = [joint, joint, end];
            let mut cut = decoder(&bytes[..end], &joints);
            while cut.u8().is_ok() && cut.f64().is_ok() {}
        }
    }
}
