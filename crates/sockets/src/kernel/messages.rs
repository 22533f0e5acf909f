//! Control messages of a receiving call: what the kernel gave, or what a promoted stream has to say itself.

/// The caller's room for control messages, and what was put there.
#[derive(Debug)]
pub struct Control<'a> {
    room: &'a mut [u8],
    used: usize,
    flags: i32,
}

impl<'a> Control<'a> {
    /// Room for messages, mostly none.
    pub fn new(room: &'a mut [u8]) -> Control<'a> {
        Control { room, used: 0, flags: 0 }
    }

    /// Bytes of the room that hold messages now: `msg_controllen`.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Flags that tell of the messages (MSG_CTRUNC), as part of `msg_flags`.
    pub fn flags(&self) -> i32 {
        self.flags
    }

    /// Before a call: the room is as the caller gave it.
    pub(crate) fn clear(&mut self) {
        (self.used, self.flags) = (0, 0);
    }

    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.room
    }

    /// The kernel has received, and put its own messages here.
    pub(crate) fn filled_by_kernel(&mut self, used: usize, flags: i32) {
        (self.used, self.flags) = (used.min(self.room.len()), flags);
    }

    /// Adds a message, cut off as the kernel would where there is not enough room.
    fn put(&mut self, level: i32, kind: i32, data: &[u8]) {
        let room = &mut self.room[self.used..];
        if room.len() < HEADER {
            self.flags |= libc::MSG_CTRUNC;
            return;
        }
        let whole = HEADER + data.len();
        let len = whole.min(room.len());
        if len < whole {
            self.flags |= libc::MSG_CTRUNC;
        }
        room[..8].copy_from_slice(&(len as u64).to_ne_bytes());
        room[8..12].copy_from_slice(&level.to_ne_bytes());
        room[12..16].copy_from_slice(&kind.to_ne_bytes());
        room[HEADER..len].copy_from_slice(&data[..len - HEADER]);
        self.used += whole.next_multiple_of(size_of::<usize>()).min(room.len());
    }

    /// Puts the number of unread bytes in the place of what the kernel has told of them, or behind everything else.
    pub(crate) fn set_unread(&mut self, unread: i32) {
        let mut at = 0;
        while let Some(header) = self.room[..self.used].get(at..at + HEADER) {
            let len = usize::from_ne_bytes(header[..8].try_into().expect("eight bytes"));
            let of_unread = [libc::IPPROTO_TCP.to_ne_bytes(), libc::TCP_CM_INQ.to_ne_bytes()].concat();
            if header[8..] == of_unread {
                let end = (at + len).min(self.used);
                let shown = end.saturating_sub(at + HEADER).min(4);
                self.room[at + HEADER..at + HEADER + shown].copy_from_slice(&unread.to_ne_bytes()[..shown]);
                return;
            }
            at += len.max(HEADER).next_multiple_of(size_of::<usize>());
        }
        self.put(libc::IPPROTO_TCP, libc::TCP_CM_INQ, &unread.to_ne_bytes());
    }
}

/// Bytes of a `cmsghdr`.
const HEADER: usize = size_of::<libc::cmsghdr>();
const _: () = assert!(HEADER == 16 && std::mem::offset_of!(libc::cmsghdr, cmsg_type) == 12);

#[cfg(test)]
mod tests {
    use super::*;

    /// What `put_cmsg` of the kernel makes of rooms of all sizes.
    #[test]
    fn messages_are_cut_off_as_the_kernel_does() {
        for len in 0..60 {
            let mut room = vec![0xee; len];
            let mut control = Control::new(&mut room);
            control.put(libc::IPPROTO_TCP, libc::TCP_CM_INQ, &7i32.to_ne_bytes());
            let (used, flags) = (control.used(), control.flags());
            match len {
                0..16 => assert_eq!((used, flags), (0, libc::MSG_CTRUNC)),
                16..20 => assert_eq!((used, flags), (len, libc::MSG_CTRUNC)),
                20..24 => assert_eq!((used, flags), (len, 0)),
                _ => assert_eq!((used, flags), (24, 0)),
            }
            if len >= 20 {
                assert_eq!(room[16..20], 7i32.to_ne_bytes());
            }
            let mut control = Control::new(&mut room);
            control.put(libc::SOL_SOCKET, libc::SCM_TIMESTAMP, &[0; 1]);
            control.put(libc::IPPROTO_TCP, libc::TCP_CM_INQ, &7i32.to_ne_bytes());
            let (used, flags) = (control.used(), control.flags());
            control.set_unread(9);
            assert_eq!((control.used(), control.flags()), (used, flags), "it takes the kernel's place");
        }
    }
}
