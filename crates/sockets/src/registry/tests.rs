use super::*;

fn key(port: u16) -> Key {
    Key { namespace: 1, local: format!("127.0.0.1:{port}").parse().unwrap(), remote: "127.0.0.1:80".parse().unwrap() }
}

fn registry(name: &str) -> (Registry, String) {
    let directory = format!("{}/sidestep-registry-{}-{name}", std::env::temp_dir().display(), kernel_id());
    (Registry::open(&directory).unwrap(), directory)
}

/// No process has this number.
const NOBODY: u32 = u32::MAX >> 1;

fn kernel_id() -> u32 {
    kernel::process()
}

#[test]
fn what_is_offered_is_found_until_it_is_removed() {
    let (registry, directory) = registry("find");
    let me = Identity([7, kernel_id().into()]);
    let alive = Rendezvous::listen(&me.name()).unwrap();
    let process = registry.enter(me, NOBODY).unwrap();
    let entry = registry.add(process, &key(4000)).unwrap();
    assert_eq!(registry.find(&key(4000)), None);
    registry.set_willing(entry, true);
    assert_eq!(registry.find(&key(4000)), Some(me));
    assert_eq!(registry.find(&key(4001)), None);
    registry.set_state(entry, true, false, Reason::Promoted);
    let all = registry.snapshot();
    assert_eq!((all.len(), all[0].process, all[0].on_ring), (1, NOBODY, (true, false)));
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
    assert_eq!(registry.excuse_of(me), Some(Reason::Resources));
    assert_eq!(registry.excuse_of(me + 1), None);
    assert_eq!(registry.sweep(), 0);
    registry.excuse(NOBODY, Reason::Resources);
    assert_eq!(registry.sweep(), 1);
    assert_eq!(registry.excuse_of(me), Some(Reason::Resources));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn garbage_in_the_file_finds_nothing_and_harms_nobody() {
    let (registry, directory) = registry("garbage");
    for at in 2..LEN / 8 {
        registry.words.word(at).store((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Relaxed);
    }
    assert_eq!(registry.find(&key(4000)), None);
    registry.snapshot();
    // Whoever is there seems to be of another network namespace, so there is no room.
    assert_eq!(registry.enter(Identity([1, 1]), 1), None);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn processes_of_other_network_namespaces_are_not_judged() {
    let (registry, directory) = registry("namespaces");
    let there = registry.enter(Identity([7, 7]), NOBODY).unwrap();
    registry.process_word(there.index, NETWORK).fetch_add(1, Relaxed);
    assert_eq!(registry.sweep(), 0);
    registry.sweep_one(Identity([7, 7]));
    assert!(registry.process_word(there.index, 0).load(Relaxed) & IN_USE != 0);
    registry.process_word(there.index, NETWORK).fetch_add(u64::MAX, Relaxed);
    registry.sweep_one(Identity([7, 7]));
    assert!(registry.process_word(there.index, 0).load(Relaxed) & IN_USE == 0);
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
            let entry = registry.add(process, &key(4000)).expect("room");
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
        registry.add(process, &key(4000)).unwrap_or_else(|| panic!("no room in round {round}"));
        // The place of the process is free, and that of its socket is not.
        let claim = registry.process_word(process.index, 0);
        claim.store(claim.load(Relaxed) & !IN_USE, Relaxed);
        assert!(registry.snapshot().is_empty(), "nobody owns it");
    }
    std::fs::remove_dir_all(directory).unwrap();
}
