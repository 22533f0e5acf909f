//! The bytes of a call.

use std::ops::Deref;

use sidestep_wire::oncrpc::{Auth, Xid, call};

use super::{Encode, Procedure};
use crate::record::{self, ROOM};
use crate::xdr::{self, Place, Writer};

/// A marked frame. Its bytes are kept for the next call: if that calls the same procedure, its header differs in the xid alone.
#[derive(Default)]
pub(super) struct Frame {
    bytes: Vec<u8>,
    /// The length of room and header, if the bytes begin with them, and whose header it is.
    header: usize,
    procedure: Procedure,
}

impl Frame {
    /// Puts a call of at most `limit` bytes together. `true`: all of it but its end lies in the place. The credential is the
    /// same every time.
    #[inline]
    pub fn fill(
        &mut self,
        (xid, procedure, credential): (Xid, Procedure, Auth<'_>),
        limit: usize,
        place: Option<&mut dyn Place>,
        encode: &mut Encode<'_>,
    ) -> Result<bool, xdr::Error> {
        if self.header == 0 || self.procedure != procedure {
            self.write_header(procedure, credential, limit)?;
        }
        // A call that cannot be put together, or not here, leaves no header.
        let header = std::mem::take(&mut self.header);
        self.bytes.truncate(header);
        if let Some(number) = self.bytes.get_mut(ROOM..ROOM + size_of::<Xid>()) {
            number.copy_from_slice(&xid.0.to_be_bytes());
        }
        let place = place.map(|place| place as &mut dyn Place);
        let mut out = Writer::with_place(&mut self.bytes, ROOM + limit, place);
        encode(&mut out)?;
        let is_placed = out.placed() > 0;
        if !is_placed {
            record::mark(&mut self.bytes);
            self.header = header;
        }
        Ok(is_placed)
    }

    #[inline(never)]
    fn write_header(&mut self, of: Procedure, credential: Auth<'_>, limit: usize) -> Result<(), xdr::Error> {
        let Procedure { program, version, procedure } = of;
        let header = call::Repr { xid: Xid(0), program, version, procedure, credential, verifier: Auth::NONE };
        self.header = 0;
        self.bytes.clear();
        self.bytes.extend_from_slice(&[0; ROOM]);
        header.emit(&mut Writer::new(&mut self.bytes, ROOM + limit))?;
        (self.header, self.procedure) = (self.bytes.len(), of);
        Ok(())
    }

    /// What is behind a beginning that lies elsewhere.
    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Lets somebody send the bytes, who may keep them and leave none.
    #[inline]
    pub fn give<T>(&mut self, send: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let sent = send(&mut self.bytes);
        if self.bytes.len() < self.header {
            self.header = 0;
        }
        sent
    }

    /// Keeps no more memory than this.
    #[inline]
    pub fn shrink(&mut self, most: usize) {
        if self.bytes.capacity() > most {
            *self = Frame::default();
        }
    }
}

impl Deref for Frame {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place for as many bytes as it says.
    struct Room(usize);

    impl Place for Room {
        fn put(&mut self, parts: [&[u8]; 2]) -> bool {
            parts[0].len() + parts[1].len() <= self.0
        }

        fn take_back(&mut self, _: &mut Vec<u8>) -> bool {
            false
        }
    }

    #[test]
    fn a_frame_that_was_used_before_is_what_a_new_one_would_be() {
        let name = |number| Procedure { program: 7, version: 1, procedure: number };
        let credential = Auth { flavor: Auth::AUTH_SYS, body: b"somebody" };
        let long = vec![9; 2000];
        let arguments: [&[u8]; 4] = [b"", b"arguments", b"less", &long];
        let fill = |frame: &mut Frame, xid: u32, number: u32, arguments: &[u8], place: Option<&mut dyn Place>| {
            frame.fill((Xid(xid), name(number), credential), 1 << 20, place, &mut |out| out.fixed(arguments))
        };
        let mut used = Frame::default();
        for (xid, before) in (1..).zip(arguments) {
            for (number, now) in [0, 0, 1].into_iter().zip(arguments) {
                assert_eq!(fill(&mut used, xid, 0, before, None), Ok(false));
                assert_eq!(fill(&mut used, xid + 100, number, now, None), Ok(false));
                let mut new = Frame::default();
                assert_eq!(fill(&mut new, xid + 100, number, now, None), Ok(false));
                assert_eq!(*used, *new);
            }
            // One that went elsewhere, and two that could not be put together.
            assert_eq!(fill(&mut used, 1, 0, &long, Some(&mut Room(1 << 20))), Ok(true));
            assert!(used.fill((Xid(1), name(0), credential), 40, None, &mut |out| out.fixed(b"too much")).is_err());
            assert!(used.fill((Xid(1), name(0), credential), 100, None, &mut |out| out.fixed(&long)).is_err());
        }
    }
}
