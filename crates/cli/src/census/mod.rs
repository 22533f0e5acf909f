//! Every connection of every process of this user that runs under `sidestep run`, at one moment; for root, of every user.
//! Those that have had a second exchange are in the registry, which is attached for reading; the others are the kernel's alone
//! so far. Processes come and go meanwhile, and may write anything into their records: nothing here waits for one or trusts one.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::SocketAddr,
};

use sidestep_sockets::{
    config::config,
    reason::Reason,
    registry::{CarrierName, ProcessRecord, Registry, SocketRecord, Totals, View},
};
use sidestep_sys::clock;

mod diag;
pub mod memories;
pub mod owner;
pub mod process;
pub mod tables;
mod unlisted;

use tables::{State, Tables};

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct Census {
    /// When, in nanoseconds of the monotonic clock.
    pub at: u64,
    /// The connections, by process and descriptor.
    pub sockets: Vec<Sighting>,
    /// The processes that have some, by number.
    pub processes: BTreeMap<u32, Program>,
}

/// One connection, and what its other end says of it.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// What its process says.
    pub record: SocketRecord,
    /// The other end, if that runs under Sidestep, too.
    pub peer: Option<SocketRecord>,
}

/// One process.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The name of its program.
    pub name: String,
    /// What its sockets did that have ended.
    pub ended: Totals,
}

impl Census {
    /// Looks at everything now.
    pub fn take() -> Census {
        Census::take_with(&mut Tables::default())
    }

    /// The same, for who has asked the kernel already, or will.
    pub fn take_with(tables: &mut Tables) -> Census {
        let registries = Registry::look_at_all(&config().directory);
        let mut records: Vec<SocketRecord> = registries.iter().flat_map(View::sockets).collect();
        // The records of a process that was killed stay until another one needs them.
        let mut living = HashMap::new();
        records.retain(|record| *living.entry(record.pid).or_insert_with(|| lives(&registries, record.pid)));
        unlisted::add(&mut records, tables);
        explain(&mut records, tables);
        let ends = ends(&records);
        let peer = |record: &SocketRecord| ends.get(&(record.key.remote, record.key.local)).copied();
        let mut sockets: Vec<Sighting> =
            records.iter().map(|record| Sighting { record: *record, peer: peer(record) }).collect();
        let mut processes = BTreeMap::new();
        sockets.retain(|socket| {
            let pid = socket.record.pid;
            if !processes.contains_key(&pid)
                && let Some(name) = process::program(pid)
            {
                let ended = said(&registries, pid).map(|said| said.ended).unwrap_or_default();
                processes.insert(pid, Program { name, ended });
            }
            processes.contains_key(&pid)
        });
        sockets.sort_by_key(|socket| (socket.record.pid, socket.record.fd));
        Census { at: clock::now(), sockets, processes }
    }

    /// The name of a process's program.
    pub fn program(&self, pid: u32) -> &str {
        self.processes.get(&pid).map_or("", |program| &program.name)
    }

    /// What the sockets of each process that is shown have done, those that have ended included.
    pub fn totals(&self) -> BTreeMap<u32, Totals> {
        let mut totals = BTreeMap::new();
        for Sighting { record, .. } in &self.sockets {
            let ended = || self.processes.get(&record.pid).map(|program| program.ended).unwrap_or_default();
            let sum: &mut Totals = totals.entry(record.pid).or_insert_with(ended);
            let more = [
                (&mut sum.sockets, u64::from(record.since != 0)),
                (&mut sum.promoted, u64::from(record.promoted_at != 0)),
                (&mut sum.carried, record.read.carried.saturating_add(record.written.carried)),
                (&mut sum.tcp, record.read.tcp.saturating_add(record.written.tcp)),
                (&mut sum.messages, record.read.messages.saturating_add(record.written.messages)),
                (&mut sum.sleeps, record.waits.sleeps),
                (&mut sum.doorbells, record.waits.doorbells),
                (&mut sum.promotions, record.promotions),
                (&mut sum.looks, record.waits.looks),
            ];
            more.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        totals
    }
}

impl Sighting {
    /// Where it reads from.
    pub fn reads_from(&self) -> &'static str {
        self.path(self.record.on_carrier.0)
    }

    /// Where it writes to.
    pub fn writes_to(&self) -> &'static str {
        self.path(self.record.on_carrier.1)
    }

    fn path(&self, on_carrier: bool) -> &'static str {
        self.record.carrier.filter(|_| on_carrier).map_or("tcp", CarrierName::name)
    }

    /// Both, as one word if they are one.
    pub fn paths(&self) -> String {
        let [reads, writes] = [self.reads_from(), self.writes_to()];
        if reads == writes { reads.to_owned() } else { format!("{reads}/{writes}") }
    }

    /// Why it is there, in words.
    pub fn why(&self) -> &'static str {
        match (self.record.reason, self.record.on_carrier) {
            (Reason::Promoted, (false, false)) => "agreed, and leaves TCP with the next bytes",
            (Reason::Promoted, (false, true)) => "promoted; nothing was read yet",
            (Reason::Promoted, (true, false)) => "promoted; nothing was written yet",
            (reason, _) => reason.sentence(),
        }
    }

    /// Whether anything is counted: of a connection that is not in the registry nothing is.
    pub fn is_counted(&self) -> bool {
        self.record.since != 0
    }

    /// Nanoseconds since it came into the registry.
    pub fn age(&self, now: u64) -> Option<u64> {
        self.is_counted().then(|| now.saturating_sub(self.record.since))
    }

    /// Bytes that the other end has put into the carrier and that this one has not read.
    pub fn unread(&self) -> Option<u64> {
        let peer = self.peer.filter(|peer| peer.since != 0 && self.record.carrier.is_some())?;
        Some(peer.written.carried.saturating_sub(self.record.read.carried))
    }

    /// Bytes that this end has put into the carrier and that the other one has not read.
    pub fn unsent(&self) -> Option<u64> {
        let peer = self.peer.filter(|peer| peer.since != 0 && self.record.carrier.is_some())?;
        Some(self.record.written.carried.saturating_sub(peer.read.carried))
    }
}

/// Whether the process that wrote the records under this number still has it.
fn lives(registries: &[View], pid: u32) -> bool {
    said(registries, pid).is_some_and(|said| process::is_still(pid, said.since))
}

/// What the process with this number has said of itself last.
fn said(registries: &[View], pid: u32) -> Option<ProcessRecord> {
    registries.iter().filter_map(|registry| registry.process(pid)).max_by_key(|said| said.since)
}

/// Each end of a connection. Of one that several processes hold, what its user says counts, who comes first.
fn ends(records: &[SocketRecord]) -> HashMap<(SocketAddr, SocketAddr), SocketRecord> {
    let mut ends = HashMap::new();
    for record in records {
        ends.entry((record.key.local, record.key.remote)).or_insert(*record);
    }
    ends
}

/// An end that has not found its peer does not know why. Here both are known, or the kernel knows.
fn explain(records: &mut [SocketRecord], tables: &mut Tables) {
    let ends = ends(records);
    let mut shared = HashSet::new();
    for record in records.iter() {
        let end = (record.key.local, record.key.remote);
        if ends[&end].pid != record.pid {
            shared.insert(end);
        }
    }
    let is_undecided = |record: &&mut SocketRecord| [Reason::Young, Reason::PeerUnknown].contains(&record.reason);
    for record in records.iter_mut().filter(is_undecided) {
        let peer = ends.get(&(record.key.remote, record.key.local)).map(|peer| peer.reason);
        record.reason = match (record.reason, peer) {
            _ if shared.contains(&(record.key.local, record.key.remote)) => Reason::OtherHolder,
            (Reason::Young, _) => Reason::Young,
            (_, Some(Reason::Young | Reason::PeerUnknown)) => Reason::Searching,
            (_, Some(_)) => Reason::PeerStays,
            (_, None) => by_kernel(record, &tables.of_process(record.pid)),
        };
    }
}

/// What the kernel's table says of the other end of a connection that nobody under Sidestep has.
fn by_kernel(record: &SocketRecord, table: &tables::Table) -> Reason {
    let [own, other] = [(record.key.local, record.key.remote), (record.key.remote, record.key.local)]
        .map(|(local, remote)| table.between(local, remote));
    match (own, other) {
        (Some(own), Some(other)) if other.inode != 0 && own.inode != 0 && own.user != other.user => Reason::OtherUser,
        (Some(own), None) if own.state == State::Connected => Reason::OtherHost,
        _ => Reason::PeerUnknown,
    }
}

#[cfg(test)]
mod tests {
    use sidestep_sockets::address::Key;

    use super::*;

    /// The other end of a connection whose process found nobody, as the kernel's table has it.
    #[test]
    fn the_kernel_tells_of_users_and_hosts() {
        let line = |local: &str, remote: &str, state: &str, user: u32, inode: u32| {
            format!("   3: {local} {remote} {state} 0:0 00:0 00000000 {user} 0 {inode} 1 0\n")
        };
        let (own, other) = ("0100007F:1F90", "0100007F:C350");
        let key =
            Key { namespace: 0, local: "127.0.0.1:8080".parse().unwrap(), remote: "127.0.0.1:50000".parse().unwrap() };
        let record = SocketRecord::unlisted(4711, 5, key, Reason::PeerUnknown);
        let reason =
            |lines: &[String]| by_kernel(&record, &tables::Table::of_texts(&["head\n".to_owned() + &lines.concat()]));
        let mine = line(own, other, "01", 1000, 7);
        assert_eq!(reason(&[mine.clone(), line(other, own, "01", 1000, 8)]), Reason::PeerUnknown);
        assert_eq!(reason(&[mine.clone(), line(other, own, "01", 1001, 8)]), Reason::OtherUser);
        assert_eq!(reason(std::slice::from_ref(&mine)), Reason::OtherHost);
        // Nobody has the other end open any more; then the table says nothing of its user, and then nothing at all.
        assert_eq!(reason(&[mine, line(other, own, "05", 0, 0)]), Reason::PeerUnknown);
        assert_eq!(reason(&[line(own, other, "08", 1000, 7)]), Reason::PeerUnknown);
        assert_eq!(reason(&[]), Reason::PeerUnknown);
    }

    /// Where both ends are known, each explains the other.
    #[test]
    fn ends_explain_each_other() {
        let key =
            Key { namespace: 0, local: "127.0.0.1:8080".parse().unwrap(), remote: "127.0.0.1:50000".parse().unwrap() };
        let nobody = u32::MAX >> 1;
        for (peer, expected) in [
            (Reason::Young, Reason::Searching),
            (Reason::PeerUnknown, Reason::Searching),
            (Reason::Rule, Reason::PeerStays),
            (Reason::OtherHolder, Reason::PeerStays),
        ] {
            let mut records = [
                SocketRecord::unlisted(nobody, 5, key, Reason::PeerUnknown),
                SocketRecord::unlisted(nobody, 6, key.reversed(), peer),
            ];
            explain(&mut records, &mut Tables::default());
            assert_eq!(records[0].reason, expected, "{peer:?}");
        }
        // A child has a copy of one end.
        let mut records = [
            SocketRecord::unlisted(nobody, 5, key, Reason::PeerUnknown),
            SocketRecord::unlisted(nobody, 6, key.reversed(), Reason::Promoted),
            SocketRecord::unlisted(nobody - 1, 5, key, Reason::Young),
        ];
        explain(&mut records, &mut Tables::default());
        assert_eq!(records.map(|record| record.reason), [Reason::OtherHolder, Reason::Promoted, Reason::OtherHolder]);
    }
}
