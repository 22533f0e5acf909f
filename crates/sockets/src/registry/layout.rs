//! Where everything lies in a registry: two tables of records, of each process a word beside them, and the ports that were turned
//! off. The records and their words are named once, here; the table of `docs/sockets.md` is made from this list.
//!
//! ```text
//!   claim of a process   bits 0-31 pid, bit 32 claimed, bit 33 its record is filled in, bits 34-63 generation, also when free
//!   claim of a socket    bits 0-15 index of its process plus 1, bits 16-45 generation of that; 0 when free
//!   state of a socket    bit 0 offered, bit 1 reads from its carrier, bit 2 writes to it, bits 3-5 kind of carrier (VIA, far,
//!                        any), bits 8-15 reason
//! ```

/// Names the words of a record, in their order.
macro_rules! record {
    ($(#[$about:meta])* $name:ident { $($(#[doc = $text:literal])+ $field:ident,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name {
            $($(#[doc = $text])+ $field,)+
        }

        impl $name {
            /// Every word: its name, and what it holds.
            pub const LIST: &[(&str, &str)] = &[$((stringify!($field), concat!($($text),+)),)+];
        }
    };
}

record! {
    /// The words of a registry's head.
    HeadField {
        /// `SIDESTEP`.
        Magic,
        /// Version of the layout.
        Version,
        /// Random number, also in the file that names the segment.
        Nonce,
        /// When the records of dead processes were last given back.
        Swept,
        /// How often a user has ordered something by hand: who finds it changed looks at what.
        Orders,
        /// The segment of a tap, plus 1; 0: there is none.
        TapSegment,
        /// Random number, also in that segment.
        TapNonce,
        /// Bit n: the level n + 1 of the table of sockets has been used.
        Levels,
    }
}

record! {
    /// The words of a process's record.
    ProcessField {
        /// Who has the record; see above.
        Claim,
        /// First half of the name of its rendezvous; 0: it has none, for the reason in the second half.
        IdentityHigh,
        /// Second half of that name; without a rendezvous, the code of the reason plus 1.
        IdentityLow,
        /// Process id, also after its end.
        Pid,
        /// Sockets that have ended after a second exchange.
        EndedSockets,
        /// How many of them were promoted.
        EndedPromoted,
        /// Bytes that they moved over carriers, both ways.
        EndedCarried,
        /// Bytes that they moved over TCP, both ways.
        EndedTcp,
        /// Network namespace.
        Network,
        /// Namespace of process ids.
        Pids,
        /// When the record was filled in, in nanoseconds of the monotonic clock.
        Since,
        /// Calls by which the ended sockets moved something over carriers, both ways.
        EndedMessages,
        /// Sleeps of the ended sockets.
        EndedSleeps,
        /// Doorbells that the ended sockets rang.
        EndedDoorbells,
        /// How often directions of the ended sockets were promoted.
        EndedPromotions,
        /// 1: its connections stay on TCP, by order of its user.
        Off,
        /// Waits of the ended sockets that looked for a while.
        EndedLooks,
        /// The process that will read this record when its owner has ended: it is not used again while that one lives.
        Watcher,
    }
}

record! {
    /// The words of a socket's record.
    Field {
        /// Which process has the record; see above.
        Claim,
        /// SO_NETNS_COOKIE: the network namespace that the addresses belong to.
        Namespace,
        /// Own address, upper half; IPv4 as mapped in IPv6.
        LocalHigh,
        /// Own address, lower half.
        LocalLow,
        /// The peer's address, upper half.
        RemoteHigh,
        /// The peer's address, lower half.
        RemoteLow,
        /// Own port times 65,536, plus the peer's.
        Ports,
        /// Paths, carrier and reason; see above.
        State,
        /// SO_COOKIE. Stored last; 0 while the other words change.
        Cookie,
        /// A descriptor number of the program's.
        Descriptor,
        /// Bytes read over TCP, as of the last report.
        ReadTcp,
        /// Bytes read from carriers.
        ReadRing,
        /// Bytes written over TCP, as of the last report.
        WrittenTcp,
        /// Bytes written to carriers.
        WrittenRing,
        /// Receiving calls that found something on a carrier.
        ReadMessages,
        /// Sending calls that went over a carrier.
        WrittenMessages,
        /// Sleeps while waiting for a carrier.
        Sleeps,
        /// Doorbells rung for the peer.
        Doorbells,
        /// When the socket came into the registry, in nanoseconds of the monotonic clock.
        Since,
        /// When a direction was promoted first; 0 if never.
        Promoted,
        /// Bytes read over TCP when it was a second old.
        ReadTcpYoung,
        /// Bytes written over TCP when it was a second old.
        WrittenTcpYoung,
        /// How often a direction was promoted.
        Promotions,
        /// Bytes of the carrier that it reads from: the size of a ring, or what a link lets be under way.
        Capacity,
        /// Waits for bytes that looked for a while, before they found some or slept.
        ReadLooks,
        /// Waits for space that did.
        WriteLooks,
    }
}

/// The first word of a registry.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SIDESTEP");
/// Raised by every change of the layout.
pub const VERSION: u64 = 7;
/// Records of processes, and words of each: three cache lines.
pub const PROCESSES: usize = 1024;
/// Words of a process's record.
pub const PROCESS_WORDS: usize = 24;
/// Records of sockets, in levels: one is used when nothing was free for a socket in those before. Nobody touches the memory of a
/// level before that.
pub const LEVELS: [usize; 3] = [16_384, 49_152, 196_608];
/// All of them.
pub const SOCKETS: usize = LEVELS[0] + LEVELS[1] + LEVELS[2];
/// Words of a socket's record: four cache lines.
pub const SOCKET_WORDS: usize = 32;
/// Ports that can be turned off at a time.
pub const PORTS: usize = 64;
/// Index of the first of them, in the page of the head: a port, or 0.
pub const FIRST_PORT: usize = 64;
/// Words between the news of two processes: no two share a pair of cache lines.
pub const NEWS_WORDS: usize = 16;
/// Index of the first word of each table.
pub const FIRST_PROCESS: usize = 0x1000 / 8;
/// As above.
pub const FIRST_NEWS: usize = FIRST_PROCESS + PROCESSES * PROCESS_WORDS;
/// As above.
pub const FIRST_SOCKET: usize = FIRST_NEWS + PROCESSES * NEWS_WORDS;
/// Words of a registry.
pub const WORDS: usize = FIRST_SOCKET + SOCKETS * SOCKET_WORDS;

const _: () = assert!(ProcessField::LIST.len() <= PROCESS_WORDS && Field::LIST.len() <= SOCKET_WORDS);
const _: () = assert!(HeadField::LIST.len() <= FIRST_PORT && FIRST_PORT + PORTS <= FIRST_PROCESS);

/// Instead of the first half of an identity: the second is why the process has none.
pub const NO_RENDEZVOUS: u64 = 0;

/// Set in the claim of a process, so that number 0 claims, too.
pub const CLAIMED: u64 = 1 << 32;
/// Set in it once the record is filled in.
pub const READY: u64 = 1 << 33;
/// What is added to it for every use of the record, and the bits below, which are 0 while nobody uses it.
pub const GENERATION: u64 = 1 << 34;
/// As above.
pub const IN_USE: u64 = GENERATION - 1;
/// The bits of a socket's claim that say which process has it.
pub const OWNER: u64 = 0xffff;

/// Bits of a socket's state.
pub const WILLING: u64 = 1;
/// As above.
pub const READS_CARRIER: u64 = 1 << 1;
/// As above.
pub const WRITES_CARRIER: u64 = 1 << 2;
/// As above.
pub const VIA: u64 = 1 << 3;
/// As above.
pub const FAR: u64 = 1 << 4;
/// As above.
pub const CARRIED: u64 = 1 << 5;
/// As above.
pub const CARD: u64 = 1 << 6;
/// Where the reason begins in a socket's state.
pub const REASON_SHIFT: u32 = 8;

/// The layout in words for people, as `docs/sockets.md` has it.
pub fn table() -> String {
    let part = |first: usize, name: &str, list: &[(&str, &str)]| {
        let row =
            |(at, (word, holds)): (usize, &(&str, &str))| format!("| +{:#04x} | {word} | {} |\n", at * 8, holds.trim());
        format!("| {:#x} | **{name}** | |\n", first * 8) + &list.iter().enumerate().map(row).collect::<String>()
    };
    let mut text = String::from("\n| at | word | holds |\n|---|---|---|\n") + &part(0, "head", HeadField::LIST);
    text += &format!(
        "| {:#x} | **ports**, {PORTS} words | ports whose connections stay on TCP by order of the user; 0: none |\n",
        FIRST_PORT * 8
    );
    let processes = format!("process, {PROCESSES} records of {} bytes", PROCESS_WORDS * 8);
    text += &part(FIRST_PROCESS, &processes, ProcessField::LIST);
    text += &format!(
        "| {:#x} | **news**, {PROCESSES} words, {} bytes apart | how often each process has written to the kernel |\n",
        FIRST_NEWS * 8,
        NEWS_WORDS * 8
    );
    let levels = LEVELS.map(|level| level.to_string()).join(", ");
    text + &part(FIRST_SOCKET, &format!("socket, {levels} records of {} bytes", SOCKET_WORDS * 8), Field::LIST)
}
