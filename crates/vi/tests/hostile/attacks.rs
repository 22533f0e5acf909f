//! What a hostile process does to a victim. Each attack goes on until its time is over.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use sidestep_fabric::{
    Aperture, Node,
    queue::{self, Kind, QueueSpec},
};
use sidestep_shm::Memory;
use sidestep_testkit::seeded::Seeded;
use sidestep_testkit::shared::shared_memories;
use sidestep_vi::{Descriptor, MemAttributes, NetAddress, Nic, Reliability, ViAttributes, clock};

use super::point_of;

/// Uses the library as any program, while a thread writes random values into every shared word the process can reach.
pub fn scribble_beside_traffic(point: &str, seed: u64, until: u64) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Seeded::new(seed);
            while !stop.load(Ordering::Relaxed) {
                for memory in shared_memories() {
                    scribble(&memory, random.below(40), &mut random);
                }
            }
        });
        let mut random = Seeded::new(!seed);
        while clock::now() < until {
            // Ends by an error sooner or later: whatever the library says is fine, as long as it says something.
            let _ = talk(point, &mut random, until);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

fn talk(point: &str, random: &mut Seeded, until: u64) -> sidestep_vi::Result<()> {
    let nic = Nic::open("nic0")?;
    let ptag = nic.create_ptag()?;
    let reliability =
        [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception][random.below(3) as usize];
    let vi = nic.create_vi(&ViAttributes { reliability, ..ViAttributes::new(ptag) }, None, None)?;
    let buffer = nic.allocate(64 << 10, &MemAttributes::new(ptag))?;
    vi.connect(&NetAddress::default(), &point_of(point), Some(clock::now() + 200_000_000))?;
    while clock::now() < until {
        let soon = Some(clock::now() + 2_000_000);
        vi.post_receive(&Descriptor::new(1, &[buffer.segment(0, 1024)]))?;
        let len = [4, 64, 700, 9000][random.below(4) as usize];
        vi.post_send(&Descriptor::new(2, &[buffer.segment(2048, len)]))?;
        vi.wait_send(soon)?;
        if vi.wait_receive(soon)?.status.is_error() {
            break;
        }
    }
    Ok(())
}

/// Connects by the library's own protocol, and then sends entries of its own making over the trunk.
pub fn entries(point: &str, seed: u64, until: u64) {
    let mut random = Seeded::new(seed);
    while clock::now() < until {
        let Ok(node) = Node::new() else { continue };
        let _ = send_entries(&node, point, &mut random);
    }
}

fn send_entries(node: &Node, point: &str, random: &mut Seeded) -> sidestep_fabric::Result<()> {
    let deadline = Some(clock::now() + 500_000_000);
    let mut block = None;
    let endpoint = node.begin_connect_with(&name_of(point), |peer| {
        let lent = node.lend_block(peer, 32 << 10, Kind::Stream)?;
        let bytes = greeting(&lent.block().spec(), random.below(3) as u16);
        block = Some(lent);
        Ok(bytes)
    })?;
    endpoint.wait_connected(deadline)?;
    let theirs = endpoint.private();
    let line = u32::from_le_bytes(theirs.get(24..28).map_or([0; 4], |bytes| bytes.try_into().expect("four bytes")));
    let spec = QueueSpec::from_bytes(theirs.get(28..28 + QueueSpec::WIRE_LEN).unwrap_or(&[]))?;
    let aperture = Aperture::open(&endpoint, &spec.cookie, deadline)?;
    let block = block.expect("lent before the request was sent");
    let (mut sender, _receiver) = queue::attach(&endpoint, block.block(), &aperture, &spec)?;
    for _ in 0..random.below(300) {
        let entry = entry(line, random);
        sender.send(&entry, Some(clock::now() + 20_000_000))?;
        node.progress();
        endpoint.is_connected()?;
    }
    Ok(())
}

/// An entry that is right in most respects.
fn entry(line: u32, random: &mut Seeded) -> Vec<u8> {
    let kind = random.below(15) as u8;
    let extended = matches!(kind, 2 | 3) || random.chance(300);
    let len = match random.below(6) {
        0 => 0,
        1 => random.below(64) as u32,
        2 => random.below(20_000) as u32,
        3 => [16, 24, 48, 72, 256][random.below(5) as usize],
        4 => random.next_u64() as u32,
        _ => random.below(300) as u32,
    };
    let flags = random.below(8) as u8 | if extended { 8 } else { 0 } | (random.below(4) as u8) << 4;
    let mut bytes = vec![kind, flags];
    bytes.extend((random.below(6) as u16).to_le_bytes());
    bytes.extend(if random.chance(900) { line } else { random.next_u64() as u32 }.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend((random.below(2000) as u32).to_le_bytes());
    if extended {
        bytes.extend(random.next_u64().to_le_bytes());
        bytes.extend((random.next_u64() as u32).to_le_bytes());
        let total = if random.chance(500) { len } else { random.next_u64() as u32 };
        bytes.extend(total.to_le_bytes());
    }
    let body = (len as usize).min(20_000);
    bytes.extend((0..body).map(|_| random.next_u64() as u8));
    let padded = bytes.len().next_multiple_of(16) + (flags >> 4) as usize * 16;
    bytes.resize(padded, 0);
    bytes
}

/// Greetings that are cut or changed.
pub fn greetings(point: &str, seed: u64, until: u64) {
    let mut random = Seeded::new(seed);
    while clock::now() < until {
        let Ok(node) = Node::new() else { continue };
        for _ in 0..20 {
            let mut block = None;
            let asked = node.begin_connect_with(&name_of(point), |peer| {
                let lent = node.lend_block(peer, 4096, Kind::Stream)?;
                let mut bytes = greeting(&lent.block().spec(), random.below(3) as u16);
                for _ in 0..random.below(6) {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = random.next_u64() as u8;
                }
                bytes.truncate(bytes.len() - if random.chance(300) { random.below(100) as usize } else { 0 });
                block = Some(lent);
                Ok(bytes)
            });
            if let Ok(endpoint) = asked {
                let _ = endpoint.wait_connected(Some(clock::now() + 5_000_000));
            }
        }
    }
}

/// A greeting as the library writes it (`line.rs`).
fn greeting(trunk: &QueueSpec, level: u16) -> Vec<u8> {
    let mut bytes = b"via2".to_vec();
    bytes.extend((1u16 << level).to_le_bytes());
    bytes.extend([3, 0]);
    bytes.extend(65536u64.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(7u32.to_le_bytes());
    bytes.extend(trunk.to_bytes());
    bytes
}

/// The name that the library gives a point (`address.rs`).
fn name_of(point: &str) -> String {
    assert!(point.len() > 24, "long names are hashed");
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = point.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    format!("shm:via-h{hash:032x}")
}

fn scribble(memory: &Memory, count: u64, random: &mut Seeded) {
    let words = memory.len() as u64 / 8;
    for _ in 0..count {
        let at = match random.below(4) {
            // Positions and the first entries of a ring.
            0 | 1 => random.below(words.min(96)),
            2 => random.below(words.min(4096)),
            _ => random.below(words),
        };
        let Ok(word) = memory.word64(at as usize * 8) else { continue };
        let now = word.load(Ordering::Relaxed);
        let value = match random.below(6) {
            0 => now.wrapping_add(random.below(257).wrapping_sub(128)),
            1 => random.next_u64(),
            2 => 0,
            3 => u64::MAX,
            4 => now ^ 1 << random.below(64),
            _ => random.below(1 << 20),
        };
        word.store(value, Ordering::Relaxed);
    }
}
