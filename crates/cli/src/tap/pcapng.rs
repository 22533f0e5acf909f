//! Capture files in the pcapng format: packets that begin with an IP header, times in nanoseconds, and what was lost.

/// LINKTYPE_RAW: the first four bits of a packet say which version of IP it is.
const RAW_IP: u16 = 101;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

const COMMENT: u16 = 1;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const APPLICATION: u16 = 4;
const RECEIVED: u16 = 4;
const DROPPED: u16 = 5;
const NANOSECONDS: u8 = 9;

/// Begins a file: its head, and the one interface that everything was seen on.
pub fn head(snap: u32) -> Vec<u8> {
    let mut section = words(&[BYTE_ORDER, 0x0000_0001, u32::MAX, u32::MAX]);
    option(&mut section, APPLICATION, concat!("sidestep ", env!("CARGO_PKG_VERSION")).as_bytes());
    end_options(&mut section);
    let mut interface = Vec::new();
    interface.extend(RAW_IP.to_le_bytes());
    interface.extend([0; 2]);
    interface.extend(snap.to_le_bytes());
    option(&mut interface, NAME, b"sidestep");
    option(&mut interface, RESOLUTION, &[NANOSECONDS]);
    end_options(&mut interface);
    [block(SECTION, &section), block(INTERFACE, &interface)].concat()
}

/// A packet of `len` bytes, of which these are kept, seen at this time in nanoseconds since 1970.
pub fn packet(time: u64, bytes: &[u8], len: usize, comment: Option<&str>) -> Vec<u8> {
    let mut body = words(&[0, (time >> 32) as u32, time as u32, bytes.len() as u32, len as u32]);
    body.extend(bytes);
    pad(&mut body);
    if let Some(comment) = comment {
        option(&mut body, COMMENT, comment.as_bytes());
        end_options(&mut body);
    }
    block(PACKET, &body)
}

/// How many packets there were until this time, and how many were lost.
pub fn statistics(time: u64, received: u64, dropped: u64) -> Vec<u8> {
    let mut body = words(&[0, (time >> 32) as u32, time as u32]);
    option(&mut body, RECEIVED, &received.to_le_bytes());
    option(&mut body, DROPPED, &dropped.to_le_bytes());
    end_options(&mut body);
    block(STATISTICS, &body)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn end_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() + 12) as u32;
    [&kind.to_le_bytes()[..], &len.to_le_bytes(), body, &len.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_say_their_length_at_both_ends() {
        let all = [head(9), packet(1 << 33, b"abcde", 7, Some("why")), statistics(5, 6, 7)].concat();
        let (mut at, mut kinds) = (0, Vec::new());
        let word = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().unwrap());
        while at < all.len() {
            let len = word(at + 4) as usize;
            assert!(len % 4 == 0 && word(at + len - 4) as usize == len);
            kinds.push(word(at));
            at += len;
        }
        assert_eq!(kinds, [SECTION, INTERFACE, PACKET, STATISTICS]);
    }
}
