//! TCP segments in IP packets, made up for bytes that went without either.

use std::net::{IpAddr, SocketAddr};

/// Flags of a segment.
pub const FIN: u8 = 1;
/// As above.
pub const SYN: u8 = 2;
/// As above.
pub const PSH: u8 = 8;
/// As above.
pub const ACK: u8 = 16;

const TCP: u8 = 6;
/// Larger than what any carrier holds, with the scale that the first segments say: 1 GiB.
const WINDOW: u16 = u16::MAX;
/// Options of the first segments: as long segments as IPv4 has, and the largest window scale that there is (RFC 7323).
const OPTIONS: [u8; 8] = [2, 4, 0xff, 0xd7, 1, 3, 3, 14];

/// A segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// Who has sent it.
    pub from: SocketAddr,
    /// Who gets it.
    pub to: SocketAddr,
    /// Number of its first byte.
    pub sequence: u32,
    /// Number of the next byte that is expected.
    pub acknowledged: u32,
    /// Its flags.
    pub flags: u8,
    /// Its bytes, as far as they were kept.
    pub payload: &'a [u8],
    /// How many they were.
    pub len: usize,
}

impl Segment<'_> {
    /// The packet, and how long it would be with all its bytes. Checksums are right if all are there.
    pub fn packet(&self) -> (Vec<u8>, usize) {
        let options: &[u8] = if self.flags & SYN != 0 { &OPTIONS } else { &[] };
        let mut tcp = Vec::with_capacity(20 + options.len() + self.payload.len());
        tcp.extend(self.from.port().to_be_bytes());
        tcp.extend(self.to.port().to_be_bytes());
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledged.to_be_bytes());
        tcp.extend([((20 + options.len()) as u8 / 4) << 4, self.flags]);
        tcp.extend(WINDOW.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(self.payload);
        let len = 20 + options.len() + self.len;
        let addresses = [bytes(self.from.ip()), bytes(self.to.ip())].concat();
        let pseudo = [&addresses[..], &(len as u32).to_be_bytes(), &u32::from(TCP).to_be_bytes()].concat();
        let sum = checksum(&[&pseudo, &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut packet = match addresses.len() {
            8 => {
                let total = (20 + len) as u16;
                let mut head =
                    [&[0x45, 0][..], &total.to_be_bytes(), &[0, 0, 0x40, 0, 64, TCP, 0, 0], &addresses].concat();
                let sum = checksum(&[&head]);
                head[10..12].copy_from_slice(&sum.to_be_bytes());
                head
            }
            _ => [&[0x60, 0, 0, 0][..], &(len as u16).to_be_bytes(), &[TCP, 64], &addresses].concat(),
        };
        let whole = packet.len() + len;
        packet.extend(tcp);
        (packet, whole)
    }
}

fn bytes(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// The Internet checksum (RFC 1071) of parts of which all but the last have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 = words.map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0))).sum();
    let folded = (0..4).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16));
    !(folded as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_a_whole_packet_come_out_right() {
        for (from, to, head) in [("127.0.0.1:80", "10.0.0.9:4000", 20), ("[::1]:80", "[fe80::2]:4000", 40)] {
            let (from, to) = (from.parse::<SocketAddr>().unwrap(), to.parse::<SocketAddr>().unwrap());
            let segment =
                Segment { from, to, sequence: 7, acknowledged: 9, flags: ACK | PSH, payload: b"hello", len: 5 };
            let (packet, len) = segment.packet();
            assert_eq!((packet.len(), len), (head + 25, head + 25));
            if head == 20 {
                assert_eq!(checksum(&[&packet[..20]]), 0);
            }
            let addresses = [bytes(from.ip()), bytes(to.ip())].concat();
            let pseudo = [&addresses[..], &25u32.to_be_bytes(), &u32::from(TCP).to_be_bytes()].concat();
            assert_eq!(checksum(&[&pseudo, &packet[head..]]), 0);
        }
    }
}
