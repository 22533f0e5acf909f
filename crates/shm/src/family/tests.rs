//! With real processes. A test that forks first starts the test program again for itself alone: its children
//! would else inherit the sockets of whatever other tests run, and keep them open. A forked child does
//! system calls and atomics only, and leaves by `_exit` or SIGKILL.

use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use super::*;

/// Words shared with forked children.
struct Shared(*mut u32);

impl Shared {
    fn new() -> Shared {
        let flags = MapFlags::SHARED;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping harms nobody.
        let page = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), PAGE, protection, flags) };
        Shared(page.unwrap().cast())
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        assert!(index < PAGE / 4);
        // SAFETY: within the page, which is never unmapped.
        unsafe { AtomicU32::from_ptr(self.0.wrapping_add(index)) }
    }

    fn lock(&self) -> &AtomicU32 {
        self.word(0)
    }

    fn wait_for(&self, index: usize, value: u32) -> bool {
        let start = Instant::now();
        while self.word(index).load(SeqCst) != value {
            if start.elapsed() > Duration::from_secs(300) {
                return false;
            }
            rustix::thread::sched_yield();
        }
        true
    }
}

/// Whether this is the process for `test` alone. If not, runs that process to its end.
fn alone(test: &str) -> bool {
    const MARK: &str = "SIDESTEP_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let module = module_path!().split_once("::").map_or("", |(_, rest)| rest);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}"), "--test-threads=1", "--nocapture"])
        .env(MARK, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{test} was not found: {text}");
    println!("{text}");
    false
}

struct Child(Pid);

impl Child {
    /// Runs `work` in a forked child, which exits with its result.
    fn fork(work: impl FnOnce() -> bool) -> Child {
        // SAFETY: the child keeps to what the head of this file says.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = i32::from(!work());
            // SAFETY: ends this process without running anything of the test runner.
            unsafe { libc::_exit(code) }
        }
        Child(Pid::from_raw(pid).expect("fork"))
    }

    fn kill(self) {
        rustix::process::kill_process(self.0, Signal::KILL).unwrap();
        assert_eq!(self.status().terminating_signal(), Some(9));
    }

    fn finish(self) {
        assert_eq!(self.status().exit_status(), Some(0));
    }

    fn status(self) -> rustix::process::WaitStatus {
        waitpid(Some(self.0), WaitOptions::empty()).unwrap().unwrap().1
    }
}

#[test]
fn one_process_locks_and_unlocks() {
    let family = Family::create().unwrap();
    let word = AtomicU32::new(0);
    let guard = family.lock(&word).unwrap();
    assert!(!guard.taken_over());
    assert_ne!(word.load(SeqCst), 0);
    assert!(family.try_lock(&word).unwrap().is_none(), "held by this process");
    drop(guard);
    assert_eq!(word.load(SeqCst), 0);
    assert!(family.try_lock(&word).unwrap().is_some());
}

#[test]
fn threads_of_one_process_exclude_each_other() {
    let family = Family::create().unwrap();
    let (word, count) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let guard = family.lock(&word).unwrap();
                    assert!(!guard.taken_over());
                    count.store(count.load(Relaxed) + 1, Relaxed);
                }
            });
        }
    });
    assert_eq!(count.load(SeqCst), 60_000);
}

#[test]
fn owner_killed_inside_is_followed() {
    if !alone("owner_killed_inside_is_followed") {
        return;
    }
    let family = Family::create().unwrap();
    let shared = Shared::new();
    for round in 1..=20 {
        let child = Child::fork(|| {
            let Ok(_guard) = family.lock(shared.lock()) else {
                return false;
            };
            shared.word(1).store(round, SeqCst);
            loop {
                rustix::thread::sched_yield();
            }
        });
        assert!(shared.wait_for(1, round));
        assert!(family.try_lock(shared.lock()).unwrap().is_none(), "the owner lives");
        child.kill();
        let guard = if round % 2 == 0 {
            family.lock(shared.lock()).unwrap()
        } else {
            family.try_lock(shared.lock()).unwrap().expect("the owner is dead")
        };
        assert!(guard.taken_over());
        drop(guard);
        assert!(!family.lock(shared.lock()).unwrap().taken_over(), "said once");
    }
}

#[test]
fn a_waiting_process_follows_a_killed_owner() {
    if !alone("a_waiting_process_follows_a_killed_owner") {
        return;
    }
    let family = Family::create().unwrap();
    let shared = Shared::new();
    let owner = Child::fork(|| {
        let Ok(_guard) = family.lock(shared.lock()) else {
            return false;
        };
        shared.word(1).store(1, SeqCst);
        loop {
            rustix::thread::sched_yield();
        }
    });
    assert!(shared.wait_for(1, 1));
    let waiters = [0, 1].map(|_| {
        Child::fork(|| {
            shared.word(2).fetch_add(1, SeqCst);
            let Ok(guard) = family.lock(shared.lock()) else {
                return false;
            };
            if guard.taken_over() {
                shared.word(3).fetch_add(1, SeqCst);
            }
            true
        })
    });
    assert!(shared.wait_for(2, 2));
    std::thread::sleep(Duration::from_millis(5));
    owner.kill();
    waiters.into_iter().for_each(Child::finish);
    assert_eq!(shared.word(3).load(SeqCst), 1, "one took over, the other was handed the lock");
}

#[test]
fn a_live_owner_is_never_robbed() {
    if !alone("a_live_owner_is_never_robbed") {
        return;
    }
    let family = Family::create().unwrap();
    let shared = Shared::new();
    let guard = family.lock(shared.lock()).unwrap();
    let child = Child::fork(|| {
        for _ in 0..1000 {
            if !matches!(family.try_lock(shared.lock()), Ok(None)) {
                return false;
            }
        }
        shared.word(1).store(1, SeqCst);
        family.lock(shared.lock()).is_ok_and(|guard| !guard.taken_over())
    });
    assert!(shared.wait_for(1, 1));
    // Neither a stopped owner nor the end of its children makes it dead.
    Child::fork(|| true).finish();
    Child::fork(|| family.after_fork().is_ok()).finish();
    std::thread::sleep(Duration::from_millis(20));
    assert_ne!(shared.lock().load(SeqCst), 0);
    drop(guard);
    child.finish();
}

#[test]
fn a_stopped_owner_is_not_robbed() {
    if !alone("a_stopped_owner_is_not_robbed") {
        return;
    }
    let family = Family::create().unwrap();
    let shared = Shared::new();
    let child = Child::fork(|| {
        let Ok(guard) = family.lock(shared.lock()) else {
            return false;
        };
        shared.word(1).store(1, SeqCst);
        let awaited = shared.wait_for(2, 1);
        drop(guard);
        awaited
    });
    assert!(shared.wait_for(1, 1));
    rustix::process::kill_process(child.0, Signal::STOP).unwrap();
    for _ in 0..100 {
        assert!(family.try_lock(shared.lock()).unwrap().is_none());
    }
    rustix::process::kill_process(child.0, Signal::CONT).unwrap();
    shared.word(2).store(1, SeqCst);
    assert!(!family.lock(shared.lock()).unwrap().taken_over());
    child.finish();
}

#[test]
fn two_processes_lose_no_increment() {
    if !alone("two_processes_lose_no_increment") {
        return;
    }
    const ROUNDS: u32 = 100_000;
    let family = Family::create().unwrap();
    let shared = Shared::new();
    let work = || {
        // Both at once, or there is no contention to speak of.
        shared.word(64).fetch_add(1, SeqCst);
        if !shared.wait_for(64, 2) {
            return false;
        }
        for _ in 0..ROUNDS {
            let Ok(guard) = family.lock(shared.lock()) else {
                return false;
            };
            if guard.taken_over() {
                return false;
            }
            let count = shared.word(32);
            count.store(count.load(Relaxed) + 1, Relaxed);
        }
        true
    };
    let start = Instant::now();
    let child = Child::fork(work);
    assert!(work());
    child.finish();
    println!("2 x {ROUNDS} locks in {:?}", start.elapsed());
    assert_eq!(shared.word(32).load(SeqCst), 2 * ROUNDS);
}

#[test]
fn processes_that_die_at_random_lose_no_finished_increment() {
    if !alone("processes_that_die_at_random_lose_no_finished_increment") {
        return;
    }
    let family = Family::create().unwrap();
    let shared = Shared::new();
    // word 32: the count; word 33: its new value, valid while non-zero: a two-step update that a taker
    // finishes, as a ring's position is.
    let step = |guard: FamilyGuard<'_>| {
        let (count, intent) = (shared.word(32), shared.word(33));
        if guard.taken_over() && intent.load(Relaxed) != 0 {
            count.store(intent.load(Relaxed), Relaxed);
            intent.store(0, Relaxed);
        }
        intent.store(count.load(Relaxed) + 1, Relaxed);
        count.store(intent.load(Relaxed), Relaxed);
        intent.store(0, Relaxed);
    };
    for round in 0..40_u64 {
        let child = Child::fork(|| {
            loop {
                let Ok(guard) = family.lock(shared.lock()) else {
                    return false;
                };
                step(guard);
            }
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(300 + 37 * round) {
            let before = shared.word(32).load(Relaxed);
            let guard = family.lock(shared.lock()).unwrap();
            assert!(shared.word(32).load(Relaxed) >= before);
            step(guard);
        }
        child.kill();
    }
    step(family.lock(shared.lock()).unwrap());
    assert_eq!((shared.lock().load(SeqCst), shared.word(33).load(SeqCst)), (0, 0));
}

#[test]
fn a_child_has_its_own_number_and_leaves_the_parents_guard_alone() {
    if !alone("a_child_has_its_own_number_and_leaves_the_parents_guard_alone") {
        return;
    }
    let family = Family::create().unwrap();
    let shared = Shared::new();
    let own = family.member().unwrap();
    let guard = family.lock(shared.lock()).unwrap();
    Child::fork(|| {
        let Ok(member) = family.member() else { return false };
        let copied = FamilyGuard { word: guard.word, member: guard.member, taken_over: false };
        drop(copied); // As a child does that unwinds out of the section it was forked in.
        member.number != own.number
            && member.generation != own.generation
            && family.member() == Ok(member)
            && shared.lock().load(SeqCst) == own.number
            // A grandchild, too.
            && Child::fork(|| family.member().is_ok_and(|found| found.number > member.number)).status().exit_status()
                == Some(0)
    })
    .finish();
    assert_eq!(family.member().unwrap(), own);
    assert_eq!(shared.lock().load(SeqCst), own.number);
}

#[test]
fn a_bare_clone_is_noticed() {
    if !alone("a_bare_clone_is_noticed") {
        return;
    }
    let family = Family::create().unwrap();
    let own = family.member().unwrap();
    // SAFETY: as `fork`, but without the handlers of the C library; the child does system calls only.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
    if pid == 0 {
        let changed = family.member().is_ok_and(|member| member.number != own.number);
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(!changed)) }
    }
    Child(Pid::from_raw(pid).unwrap()).finish();
}

#[test]
fn numbers_start_again_and_pass_over_the_living() {
    if !alone("numbers_start_again_and_pass_over_the_living") {
        return;
    }
    let family = Family::create().unwrap();
    let own = family.member().unwrap().number;
    rustix::io::pwrite(&family.lock_file, &(u32::MAX - 1).to_ne_bytes(), 0).unwrap();
    let shared = Shared::new();
    for index in [1, 2] {
        Child::fork(|| {
            let Ok(member) = family.member() else {
                return false;
            };
            shared.word(index).store(member.number, SeqCst);
            true
        })
        .finish();
    }
    assert_eq!(shared.word(1).load(SeqCst), u32::MAX);
    assert_eq!((own, shared.word(2).load(SeqCst)), (1, 2), "neither 0 nor the parent's 1");
}

#[test]
fn another_process_attaches_by_the_descriptor() {
    if !alone("another_process_attaches_by_the_descriptor") {
        return;
    }
    let family = Family::create().unwrap();
    let shared = Shared::new();
    // The child's table is its own, so the number that it inherited is its one descriptor of the file.
    let child = Child::fork(|| {
        // SAFETY: the child owns its copy of the number; the `Family` that it was forked with is not dropped.
        let fd = unsafe { std::os::fd::FromRawFd::from_raw_fd(family.as_fd().as_raw_fd()) };
        let Ok(attached) = Family::attach(fd) else {
            return false;
        };
        let Ok(guard) = attached.lock(shared.lock()) else {
            return false;
        };
        shared.word(1).store(1, SeqCst);
        let seen = shared.wait_for(2, 1);
        drop(guard);
        seen
    });
    assert!(shared.wait_for(1, 1));
    assert!(family.try_lock(shared.lock()).unwrap().is_none());
    shared.word(2).store(1, SeqCst);
    assert!(!family.lock(shared.lock()).unwrap().taken_over());
    child.finish();
}

#[test]
fn a_foreign_file_is_refused() {
    let (pipe, _writer) = rustix::pipe::pipe().unwrap();
    assert!(matches!(Family::attach(pipe), Err(Error::Foreign(_))));
    let longer = memfd::create_sealed("no family", 2 * LOCK_FILE_LEN).unwrap();
    assert!(matches!(Family::attach(longer), Err(Error::Foreign(_))));
}

#[test]
fn cost() {
    const ROUNDS: u32 = 1_000_000;
    let family = Family::create().unwrap();
    let word = AtomicU32::new(0);
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            drop(std::hint::black_box(family.lock(&word).unwrap()));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    println!("lock and unlock, uncontended: {best:.1} ns");
}
