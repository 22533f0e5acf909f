//! Why a socket is where it is: one table with the code of each reason, its sentence, what lies behind it, and what would
//! change it.

/// Makes the reasons of the table.
macro_rules! reasons {
    ($($name:ident = $code:literal: $sentence:literal, $detail:literal, $remedy:literal;)+) => {
        /// Why a stream is on its present path. The codes are kept in shared memory and never change their meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $sentence] $name = $code,)+
        }

        impl Reason {
            /// All of them, in the order of their codes.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// The name in `stat --json`, which never changes.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)+ }
            }

            /// In words.
            pub fn sentence(self) -> &'static str {
                match self { $(Reason::$name => $sentence,)+ }
            }

            /// What lies behind it.
            pub fn detail(self) -> &'static str {
                match self { $(Reason::$name => $detail,)+ }
            }

            /// What would change it.
            pub fn remedy(self) -> &'static str {
                match self { $(Reason::$name => $remedy,)+ }
            }
        }
    };
}

reasons! {
    Young = 0: "too young: it is promoted on the second exchange, or after 64 KiB in one direction",
        "Short connections would lose more by an agreement than they gain by a carrier.",
        "Use the connection for longer, or run both programs with --promote eager.";
    Promoted = 1: "promoted",
        "Both ends have agreed on a carrier; each direction takes it up with its next bytes.",
        "Nothing has to be changed.";
    PeerUnknown = 2: "the program at the other end does not run under Sidestep",
        "No process that runs under Sidestep has entered the other end of this connection.",
        "Start the program at the other end with `sidestep run --`, too; one that runs already must be restarted.";
    OtherUser = 3: "the program at the other end belongs to another user",
        "Either end, or this host, does not let its users share memory; or that program does not run under Sidestep, which only its user and root can see.",
        "Run both programs under Sidestep with --users any, or with each other's users, and see /etc/sidestep/users.";
    OtherHolder = 4: "another process holds this socket, too",
        "After a fork the kernel decides which process gets which byte, so the bytes stay with the kernel.",
        "It is offered again when one process has it alone: let the others close it.";
    ForeignBytes = 5: "the descriptor was used by calls that Sidestep does not see",
        "The kernel has counted other bytes than the library, so positions in the stream cannot be agreed upon.",
        "Use the connection by calls of the C library alone, in programs that run under Sidestep.";
    Sandboxed = 6: "the program has put itself into a sandbox",
        "A filter of system calls (seccomp) may end the program at a call that only the library makes.",
        "Switch the filter off if the program has a setting for it, such as vsftpd's seccomp_sandbox=NO.";
    SocketType = 7: "not a TCP connection",
        "Only TCP over IPv4 and IPv6 is accelerated.",
        "Use TCP, if the program has the choice.";
    Rule = 8: "excluded by a rule",
        "A --rule of `sidestep run` denies it, or --promote never excludes every connection.",
        "Change --rule or --promote (SIDESTEP_RULE, SIDESTEP_PROMOTE) and restart the program.";
    Resources = 9: "no memory, descriptors or registry space for it",
        "The library could not make what a process or a connection needs: descriptors, address space, a place in the registry.",
        "Raise the limits of the program (ulimit -n, -v, -f), and see `sidestep doctor`.";
    Version = 10: "the other end runs another version of Sidestep",
        "The two libraries do not speak the same handshake.",
        "Restart both programs with the same installation.";
    Option = 11: "an option or call was used that only the kernel can carry out",
        "Such are MSG_OOB, packet timestamps, TCP_ULP, socket filters, signals for input (O_ASYNC), an epoll set that was passed on or nested; docs/preload.md lists them.",
        "Do without the option or call, if the program has the choice.";
    Demoted = 12: "moved back to TCP on request",
        "The program forked, passed the socket on or used a call that needs the kernel, or the peer did.",
        "It is promoted again when the cause is gone.";
    Overflow = 13: "the ring was full and its reader did not move",
        "The writer went on over TCP, which has buffers of its own, so that two programs that both write first do not wait for each other.",
        "It comes back by itself once the reader has caught up; --profile throughput makes rings larger.";
    Passed = 14: "passed from or to another process, or kept over exec",
        "Who else waits for such a socket is not known, so it stays with the kernel.",
        "Let one process make or accept the connection and keep it.";
    Refused = 15: "the program at the other end refused",
        "It knows the connection and may not promote it now; it is asked again, ever more rarely.",
        "Ask at the other end: `sidestep why` with its process and descriptor.";
    LinkLost = 16: "the connection with the other process broke",
        "The other process has died, or was ended by the kernel.",
        "Look at what became of the other program.";
    UnseenWaits = 17: "the program has an io_uring, which may wait for it unseen",
        "Input and output by io_uring pass the C library by.",
        "Switch io_uring off if the program has a setting for it.";
    Memory = 18: "memory: the limits of the process, its control group or the machine leave none for it",
        "Rings are made only while enough memory is left beside them; a smaller control group gets smaller rings first.",
        "Raise the limit of the control group (memory.max) or free memory; it tries again by itself.";
    PeerStays = 19: "the other end stays on TCP, for a reason of its own",
        "Both ends run under Sidestep, and the other one has a reason against a carrier.",
        "Ask at the other end: `sidestep why` with its process and descriptor.";
    Searching = 20: "the two ends look for each other at their next calls",
        "Both ends run under Sidestep; each step of the agreement is made by the next call of either.",
        "Wait for the next exchange.";
    Unproven = 21: "the process that answered did not prove that it holds the other end",
        "Each end puts a notice on its own socket, which the other reads through the kernel; that failed.",
        "Allow the programs to look at their own connections (docs/security.md); a container may hide them.";
    OtherHost = 22: "the other end is not on this host, or not in this network namespace",
        "The kernel has no other end of this connection here: it goes to another machine, or to a container with a network of its own.",
        "Let both programs share a host and a network namespace (for containers: --network host, or one pod).";
    WrongOption = 23: "an option in its environment has a value that is not allowed",
        "A SIDESTEP_ variable has a wrong value, so the whole process stays on TCP; it said so when it started.",
        "Mend the variable and restart the program; `sidestep run --help` lists what is allowed.";
    NotLoaded = 24: "the program does not run under Sidestep",
        "The library is not loaded into the process: it was started in another way, or before.",
        "Restart it as `sidestep run -- PROGRAM ARGUMENTS`.";
    NotLoadable = 25: "the library cannot be loaded into the program",
        "It is statically linked, set-user-ID, or made for another C library or processor.",
        "Use a dynamically linked build of it for glibc, without set-user-ID.";
    TurnedOff = 26: "turned off by hand",
        "A user has turned off the process at either end, or one of the two ports, with `sidestep off`.",
        "Turn it on again: `sidestep on` with the process or the port.";
    Standard = 27: "it is a standard descriptor, which the C library reads and writes by itself",
        "Calls such as fgets and printf go from the C library straight to the kernel.",
        "Let the program copy the socket to another number (dup) and close 0, 1 and 2, as sshd does.";
    OtherIpc = 28: "in another IPC namespace, whose registry cannot be seen from here",
        "Programs of one user meet in a registry of their IPC namespace; what is accelerated with programs of other users is shown within it.",
        "Let programs of one user share an IPC namespace (PrivateIPC=no; for containers: one pod, or --ipc), and ask within it.";
}

impl Reason {
    /// The reason behind a code found in shared memory.
    pub fn from_code(code: u8) -> Reason {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Reason::Young)
    }
}

/// The table in words for people, as `docs/operating.md` has it.
pub fn table() -> String {
    let row = |reason: &Reason| {
        let [sentence, detail, remedy] = [reason.sentence(), reason.detail(), reason.remedy()];
        format!("| {} | {} | {sentence} | {detail} | {remedy} |\n", *reason as u8, reason.name())
    };
    let rows: String = Reason::ALL.iter().map(row).collect();
    format!("\n| code | name | sentence | behind it | what would change it |\n|---|---|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_table() {
        for (code, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!((*reason as usize, Reason::from_code(code as u8)), (code, *reason));
        }
        assert_eq!(Reason::from_code(u8::MAX), Reason::Young, "a code that nobody gives");
    }
}
