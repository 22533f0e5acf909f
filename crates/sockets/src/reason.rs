//! Why a socket is where it is: one code per reason, with its sentence.

/// Why a stream is on its present path. The codes are kept in shared memory and never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// Not decided yet.
    Young = 0,
    /// On the ring.
    Promoted = 1,
    /// The registry knows no process at the other end.
    PeerUnknown = 2,
    /// The process at the other end belongs to another user.
    OtherUser = 3,
    /// Another process holds this socket, too.
    OtherHolder = 4,
    /// Someone used the descriptor behind the library's back.
    ForeignBytes = 5,
    /// The process has put itself into a sandbox.
    Sandboxed = 6,
    /// Not a TCP connection.
    SocketType = 7,
    /// A rule excludes it.
    Rule = 8,
    /// No memory, no descriptors, or no room in the registry.
    Resources = 9,
    /// The other end runs another version of Sidestep.
    Version = 10,
    /// An option or a call that only the kernel can carry out.
    Option = 11,
    /// `sidestep off`, or a demotion by the program.
    Demoted = 12,
    /// The ring was full and its reader did not move.
    Overflow = 13,
    /// The descriptor was passed to another process, or is kept over `exec`.
    Passed = 14,
    /// The peer said no.
    Refused = 15,
    /// The connection with the other process broke.
    LinkLost = 16,
    /// The process may wait for it by calls that pass the library by.
    UnseenWaits = 17,
    /// The limits of the process, of its control group or of the machine leave no memory for a carrier.
    Memory = 18,
    /// The other end runs under Sidestep, and stays on TCP for a reason of its own.
    PeerStays = 19,
    /// Both ends run under Sidestep, and have not met yet.
    Searching = 20,
    /// The other end has not proven that it holds the connection, or this host does not let it.
    Unproven = 21,
}

impl Reason {
    /// All of them, in the order of their codes.
    pub const ALL: [Reason; 22] = [
        Reason::Young,
        Reason::Promoted,
        Reason::PeerUnknown,
        Reason::OtherUser,
        Reason::OtherHolder,
        Reason::ForeignBytes,
        Reason::Sandboxed,
        Reason::SocketType,
        Reason::Rule,
        Reason::Resources,
        Reason::Version,
        Reason::Option,
        Reason::Demoted,
        Reason::Overflow,
        Reason::Passed,
        Reason::Refused,
        Reason::LinkLost,
        Reason::UnseenWaits,
        Reason::Memory,
        Reason::PeerStays,
        Reason::Searching,
        Reason::Unproven,
    ];

    /// The reason behind a code found in shared memory.
    pub fn from_code(code: u8) -> Reason {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Reason::Young)
    }

    /// In words.
    pub fn sentence(self) -> &'static str {
        match self {
            Reason::Young => "too young: it is promoted on the second exchange, or after 64 KiB in one direction",
            Reason::Promoted => "promoted",
            Reason::PeerUnknown => "the program at the other end does not run under Sidestep",
            Reason::OtherUser => "the program at the other end belongs to another user",
            Reason::OtherHolder => "another process holds this socket, too",
            Reason::ForeignBytes => "the descriptor was used by calls that Sidestep does not see",
            Reason::Sandboxed => "the program has put itself into a sandbox",
            Reason::SocketType => "not a TCP connection",
            Reason::Rule => "excluded by a rule",
            Reason::Resources => "no memory, descriptors or registry space for it",
            Reason::Version => "the other end runs another version of Sidestep",
            Reason::Option => "an option or call was used that only the kernel can carry out",
            Reason::Demoted => "moved back to TCP on request",
            Reason::Overflow => "the ring was full and its reader did not move",
            Reason::Passed => "passed from or to another process, or kept over exec",
            Reason::Refused => "the program at the other end refused",
            Reason::LinkLost => "the connection with the other process broke",
            Reason::UnseenWaits => "the program has an io_uring, which may wait for it unseen",
            Reason::Memory => "memory: the limits of the process, its control group or the machine leave none for it",
            Reason::PeerStays => "the other end stays on TCP, for a reason of its own",
            Reason::Searching => "the two ends look for each other at their next calls",
            Reason::Unproven => "the process that answered did not prove that it holds the other end",
        }
    }
}
