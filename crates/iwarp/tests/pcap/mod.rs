//! Capture files: TCP connections over IPv4, without a link layer.

/// A capture file under construction.
pub struct Capture {
    bytes: Vec<u8>,
    packets: u32,
}

/// One TCP connection in it.
pub struct Stream<'a> {
    capture: &'a mut Capture,
    port: u16,
    /// The next sequence numbers, of the responder and of the initiator.
    next: [u32; 2],
}

impl Capture {
    pub fn new() -> Self {
        let mut bytes = Vec::new();
        bytes.extend(0xa1b2_c3d4_u32.to_le_bytes());
        bytes.extend([2, 0, 4, 0]);
        bytes.extend([0; 8]);
        bytes.extend(65535_u32.to_le_bytes());
        bytes.extend(RAW_IP.to_le_bytes());
        Self { bytes, packets: 0 }
    }

    /// A connection to `port`, with its three-way handshake.
    pub fn stream(&mut self, port: u16) -> Stream<'_> {
        let mut stream = Stream { capture: self, port, next: [1000, 2000] };
        stream.packet(true, SYN, &[]);
        stream.packet(false, SYN | ACK, &[]);
        stream.packet(true, ACK, &[]);
        stream
    }

    /// The bytes of the file.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

impl Stream<'_> {
    /// One segment with these bytes.
    pub fn segment(&mut self, forth: bool, bytes: &[u8]) {
        self.packet(forth, PSH | ACK, bytes);
    }

    fn packet(&mut self, forth: bool, flags: u8, payload: &[u8]) {
        let client = 40000 + self.port;
        let (from, to) = if forth { (client, self.port) } else { (self.port, client) };
        let (own, other) = if forth { (1, 2) } else { (2, 1) };
        let mut packet = vec![0x45, 0];
        packet.extend(((IP_LEN + TCP_LEN + payload.len()) as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, own, 10, 0, 0, other]);
        let sum = !checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(from.to_be_bytes());
        packet.extend(to.to_be_bytes());
        packet.extend(self.next[usize::from(forth)].to_be_bytes());
        let acknowledged = if flags & ACK == 0 { 0 } else { self.next[usize::from(!forth)] };
        packet.extend(acknowledged.to_be_bytes());
        packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(payload);

        let Capture { bytes, packets } = &mut *self.capture;
        *packets += 1;
        bytes.extend((*packets / 1000).to_le_bytes());
        bytes.extend((*packets % 1000 * 1000).to_le_bytes());
        for _ in 0..2 {
            bytes.extend((packet.len() as u32).to_le_bytes());
        }
        bytes.extend(packet);
        self.next[usize::from(forth)] += payload.len() as u32 + u32::from(flags & SYN != 0);
    }
}

fn checksum(header: &[u8]) -> u16 {
    let sum = header.chunks(2).fold(0u32, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    ((sum & 0xffff) + (sum >> 16)) as u16
}

const RAW_IP: u32 = 101;
const IP_LEN: usize = 20;
const TCP_LEN: usize = 20;
const TCP: u8 = 6;
const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
