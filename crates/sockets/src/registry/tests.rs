use super::{records::PROBES, *};

/// Of a socket.
const COOKIE: u64 = 4711;

fn key(port: u16) -> Key {
    Key { namespace: 1, local: format!("127.0.0.1:{port}").parse().unwrap(), remote: "127.0.0.1:80".parse().unwrap() }
}

fn registry(name: &str) -> (Registry, String) {
    let directory = format!("{}/sidestep-registry-{}-{name}", std::env::temp_dir().display(), kernel_id());
    (Registry::open(&directory).unwrap(), directory)
}

fn sockets(registry: &Registry) -> Vec<SocketRecord> {
    registry.records.sockets(kernel::pid_namespace()).collect()
}

/// No process has this number.
const NOBODY: u32 = u32::MAX >> 1;

fn kernel_id() -> u32 {
    kernel::process()
}

/// What a process leaves behind stays as long as the one lives that wants to read it.
#[test]
fn a_record_that_is_awaited_is_not_used_again() {
    let (registry, directory) = registry("awaited");
    let identity = |number: u64| Identity([7, u64::from(kernel_id()) << 8 | number]);
    for (watcher, kept) in [(Some(kernel_id()), true), (Some(NOBODY), false), (None, false)] {
        let ended = registry.claim(identity(1), NOBODY - 1, watcher).unwrap();
        registry.process_word(ended.index, ProcessField::EndedCarried).store(4711, Relaxed);
        registry.withdraw(ended);
        let next = registry.claim(identity(2), NOBODY, None).unwrap();
        assert_eq!(next.index != ended.index, kept, "{watcher:?}");
        let read = registry.records.of_process(ended.index, ProcessField::EndedCarried);
        assert_eq!(read, if kept { 4711 } else { 0 });
        registry.withdraw(next);
        registry.process_word(ended.index, ProcessField::Watcher).store(0, Relaxed);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// Who is turned off, and for whose sake a connection is.
#[test]
fn orders_concern_both_ends() {
    let (registry, directory) = registry("orders");
    let identity = |number: u64| Identity([7, u64::from(kernel_id()) << 8 | number]);
    let [own, peer] = [1, 2].map(|at| registry.claim(identity(at), NOBODY - at as u32, None).unwrap());
    registry.add(own, &key(4000), COOKIE, 5).unwrap();
    registry.add(peer, &key(4000).reversed(), COOKIE, 5).unwrap();
    let off = || {
        [(own, key(4000)), (peer, key(4000).reversed()), (own, key(4001))].map(|(of, key)| registry.is_off(of, &key))
    };
    assert_eq!((off(), registry.has_off()), ([false; 3], false));
    let before = registry.orders().load(Relaxed);
    for (subject, expected) in [
        (Subject::Process(NOBODY - 1), [true; 3]),
        (Subject::Process(NOBODY - 2), [true, true, false]),
        (Subject::Port(4000), [true, true, false]),
        (Subject::Port(80), [true; 3]),
    ] {
        // Nobody listens, so nobody is rung.
        assert_eq!(registry.turn(subject, true), Turned::Ordered(0));
        assert_eq!((off(), registry.has_off()), (expected, true), "{subject:?}");
        assert_eq!(registry.turn(subject, false), Turned::Ordered(0));
        assert_eq!((off(), registry.has_off()), ([false; 3], false), "{subject:?}");
    }
    assert_eq!(registry.orders().load(Relaxed), before + 8);
    assert_eq!(registry.turn(Subject::Process(NOBODY), true), Turned::Unknown);
    let turned = (1..=layout::PORTS as u16 + 1).map(|port| registry.turn(Subject::Port(port), true));
    assert_eq!(turned.filter(|turned| *turned == Turned::TooMany).count(), 1);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn what_is_offered_is_found_until_it_is_removed() {
    let (registry, directory) = registry("find");
    let me = Identity([7, kernel_id().into()]);
    let alive = Rendezvous::listen(&me.name()).unwrap();
    let process = registry.enter(me, NOBODY).unwrap();
    let entry = registry.add(process, &key(4000), COOKIE, 5).unwrap();
    assert_eq!(registry.find(&key(4000)), None);
    registry.set_willing(entry, true);
    assert_eq!(registry.find(&key(4000)), Some(me));
    assert_eq!(registry.find(&key(4001)), None);
    registry.set_state(entry, true, false, Reason::Promoted);
    let all = sockets(&registry);
    assert_eq!((all.len(), all[0].pid, all[0].on_carrier, all[0].fd), (1, NOBODY, (true, false), 5));
    // Whoever lives stays; the dead are swept.
    assert_eq!(registry.sweep(), 0);
    drop(alive);
    assert_eq!(registry.sweep(), 1);
    assert_eq!(registry.find(&key(4000)), None);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn who_has_no_engine_is_excused_while_it_lives() {
    let (registry, directory) = registry("excuse");
    let me = kernel_id();
    registry.excuse(me, Reason::Resources);
    let excuse = |pid| {
        let of_pid = registry.records.processes().filter(|record| record.pid == pid);
        of_pid.max_by_key(|record| record.since).and_then(|record| record.excuse)
    };
    assert_eq!(excuse(me), Some(Reason::Resources));
    assert_eq!(excuse(me + 1), None);
    assert_eq!(registry.sweep(), 0);
    registry.excuse(NOBODY, Reason::Resources);
    assert_eq!(registry.sweep(), 1);
    assert_eq!(excuse(me), Some(Reason::Resources));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn garbage_in_the_file_finds_nothing_and_harms_nobody() {
    let (registry, directory) = registry("garbage");
    for at in 2..LEN / 8 {
        registry.records.words.word(at).store((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Relaxed);
    }
    assert_eq!(registry.find(&key(4000)), None);
    sockets(&registry);
    registry.records.processes().for_each(drop);
    // Whoever is there seems to be of another network namespace, so there is no room.
    assert_eq!(registry.enter(Identity([1, 1]), 1), None);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn processes_of_other_network_namespaces_are_not_judged() {
    let (registry, directory) = registry("namespaces");
    let there = registry.enter(Identity([7, 7]), NOBODY).unwrap();
    registry.process_word(there.index, ProcessField::Network).fetch_add(1, Relaxed);
    assert_eq!(registry.sweep(), 0);
    registry.sweep_one(Identity([7, 7]));
    assert!(registry.process_word(there.index, ProcessField::Claim).load(Relaxed) & IN_USE != 0);
    registry.process_word(there.index, ProcessField::Network).fetch_add(u64::MAX, Relaxed);
    registry.sweep_one(Identity([7, 7]));
    assert!(registry.process_word(there.index, ProcessField::Claim).load(Relaxed) & IN_USE == 0);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn who_sweeps_late_takes_nothing_from_the_next_process() {
    let (registry, directory) = registry("late");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let name = |serial: u64| Identity([7, u64::from(kernel_id()) << 32 | serial]);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    registry.sweep();
                }
            });
        }
        for serial in 1..300 {
            // One that is gone, and one that lives and comes to its place as soon as it is free.
            registry.enter(name(2 * serial), NOBODY).expect("room");
            let me = name(2 * serial + 1);
            let alive = Rendezvous::listen(&me.name()).expect("a name of its own");
            let process = registry.enter(me, NOBODY).expect("room");
            let entry = registry.add(process, &key(4000), COOKIE, 5).expect("room");
            registry.set_willing(entry, true);
            for _ in 0..20 {
                let found = registry.find(&key(4000));
                if found != Some(me) {
                    stop.store(true, Relaxed);
                }
                assert_eq!(found, Some(me), "process {serial} lives");
            }
            registry.remove(entry);
            registry.withdraw(process);
            drop(alive);
        }
        stop.store(true, Relaxed);
    });
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn what_a_dead_sweeper_has_left_is_used_again() {
    let (registry, directory) = registry("left");
    for round in 0..2 * PROBES {
        let process = registry.enter(Identity([7, 7]), NOBODY).expect("room");
        registry.add(process, &key(4000), COOKIE, 5).unwrap_or_else(|| panic!("no room in round {round}"));
        // The place of the process is free, and that of its socket is not.
        let claim = registry.process_word(process.index, ProcessField::Claim);
        claim.store(claim.load(Relaxed) & !IN_USE, Relaxed);
        assert!(sockets(&registry).is_empty(), "nobody owns it");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// More sockets than the first level has records for: all of them are found, and go with their process.
#[test]
fn it_grows() {
    let (registry, directory) = registry("grows");
    let view = Registry::look(&directory).unwrap();
    let process = registry.enter(Identity([7, 7]), NOBODY).unwrap();
    let count = 2 * LEVELS[0];
    let key = |number: usize| key(2000 + number as u16);
    assert_eq!(view.records.levels(), 1);
    let added = |number: &usize| registry.add(process, &key(*number), *number as u64 + 1, 5).is_some();
    assert_eq!((0..count).filter(added).count(), count);
    assert_eq!(view.records.levels(), 2);
    assert!((0..count).all(|number| registry.records.index_of(&key(number)).is_some()));
    assert_eq!(view.sockets().len(), count);
    registry.withdraw(process);
    assert!((0..count).all(|number| registry.records.of_socket(number, Field::Claim) == 0));
    // What the word for the levels says is not believed beyond what there is.
    registry.records.words.word(HeadField::Levels as usize).store(u64::MAX, Relaxed);
    assert_eq!(registry.records.levels(), LEVELS.len());
    assert!(sockets(&registry).is_empty());
    std::fs::remove_dir_all(directory).unwrap();
}

/// Records that change hands while they are looked at are never a mixture of two sockets.
#[test]
fn a_view_shows_whole_records_while_they_come_and_go() {
    let (registry, directory) = registry("whole");
    let view = Registry::look(&directory).unwrap();
    let process = registry.enter(Identity([7, 7]), NOBODY).unwrap();
    // Two sockets that have the same record by turns, each time with another cookie, as the kernel gives them.
    let record = |port: u16| records::probes(&key(port).to_words(), 0..1).next();
    let other = (4001..u16::MAX).find(|port| record(*port) == record(4000)).expect("fewer records than ports");
    let work = || {
        for turn in 0..100_000 {
            let port = [4000, other][turn % 2];
            let entry = registry.add(process, &key(port), turn as u64 + 1, i32::from(port)).unwrap();
            let fields = [Field::ReadRing, Field::WrittenRing, Field::Sleeps, Field::Capacity];
            fields.iter().for_each(|field| registry.field(entry, *field).store(u64::from(port), Relaxed));
            registry.remove(entry);
        }
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(work);
        while !writer.is_finished() {
            for socket in view.sockets() {
                let port = socket.key.local.port();
                assert_eq!((socket.fd, socket.cookie % 2 == 1), (u32::from(port), port == 4000), "{socket:?}");
                let counts = [socket.read.carried, socket.written.carried, socket.waits.sleeps, socket.capacity];
                let possible = |count: &u64| [0, u64::from(port)].contains(count);
                assert!(counts.iter().all(possible), "{socket:?}");
            }
        }
    });
    std::fs::remove_dir_all(directory).unwrap();
}
