//! Functions that buffers are exported with, and what calls them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use sidestep_sys::clock;
use sidestep_testkit::process::PATIENCE_NS;
use sidestep_vmmc::process::{Attach, Notice, Process, Remote};
use sidestep_vmmc::{Address, Error, Export, PAGE, Rights};

mod card;

#[test]
fn role() {
    card::enter();
}

const MEMORY: usize = 16 * PAGE;

/// Two processes of one card.
fn pair() -> (Process, Process) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("handlers-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let attach =
        || Process::attach(Attach { name: &name, memory: MEMORY, start: Some(card::command(&name, None)) }).unwrap();
    (attach(), attach())
}

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

fn export(at: u64) -> Export {
    Export { address: Address(at), len: PAGE as u64, rights: Rights::ALL, notify: false }
}

/// What a function was told, for the test to see.
type Told = Arc<Mutex<Vec<Notice>>>;

fn note(told: &Told) -> impl FnMut(&mut Process, Notice) + Send + 'static {
    let told = told.clone();
    move |_, notice| told.lock().unwrap().push(notice)
}

fn places(told: &Told) -> Vec<u64> {
    told.lock().unwrap().iter().map(|notice| notice.at).collect()
}

#[test]
fn each_buffer_has_its_own_function() {
    let (mut one, mut two) = pair();
    let (first, second) = (Told::default(), Told::default());
    let buffers = [
        two.export_with(export(0), note(&first)).unwrap(),
        two.export_with(export(PAGE as u64), note(&second)).unwrap(),
        two.export(Export { notify: true, ..export(2 * PAGE as u64) }).unwrap(),
    ];
    let [to_first, to_second, to_third] = buffers.each_ref().map(|buffer| one.import(buffer.handle()).unwrap());
    let mut send = |to: &Remote, at: u64, notify: bool| one.send(Address(0), 40, to, at, notify);
    for at in 0..20 {
        send(&to_first, at, true).unwrap();
        // Who is not to be told is not, and what is refused tells nobody.
        send(&to_first, 100 + at, false).unwrap();
        send(&to_first, PAGE as u64, true).unwrap_err();
        send(&to_second, 200 + at, true).unwrap();
        send(&to_third, 300 + at, true).unwrap();
    }
    assert_eq!(places(&first), [0; 0], "a function is called by a call of its process alone");
    for at in 0..20 {
        let notice = two.wait_notice(soon()).unwrap();
        assert_eq!((notice.buffer, notice.at), (buffers[2].id(), 300 + at));
    }
    // What came before the last notification was told of before it.
    assert_eq!(places(&first), (0..20).collect::<Vec<_>>());
    assert_eq!(places(&second), (200..220).collect::<Vec<_>>());
    let buffers = buffers.map(|buffer| buffer.id());
    assert!(first.lock().unwrap().iter().all(|notice| (notice.buffer, notice.len) == (buffers[0], 40)));
    assert!(matches!(two.handle_notices(Some(clock::now())), Err(Error::TimedOut)));
}

/// Functions of both sides send to each other: one process waits for completions, the other for nothing but notifications.
#[test]
fn a_function_may_use_the_process() {
    const TURNS: u64 = 50;
    let (mut one, mut two) = pair();
    let (forth, back): (Arc<Mutex<Option<Remote>>>, _) = (Arc::default(), Told::default());
    let answer_to = forth.clone();
    let answering = move |process: &mut Process, notice: Notice| {
        let to = answer_to.lock().unwrap().expect("the other side");
        process.send(Address(notice.at), notice.len, &to, notice.at, true).unwrap();
        assert_eq!(process.handle_notices(soon()).unwrap(), 0, "functions are called one after the other");
    };
    let buffer = two.export_with(export(0), answering).unwrap();
    let own = one.export_with(export(PAGE as u64), note(&back)).unwrap();
    *forth.lock().unwrap() = Some(two.import(own.handle()).unwrap());
    let to = one.import(buffer.handle()).unwrap();
    let serving = std::thread::spawn(move || {
        let mut called = 0;
        while called < TURNS as usize {
            called += two.handle_notices(soon()).unwrap();
        }
        (called, two)
    });
    for turn in 0..TURNS {
        one.write(Address(0), &[turn as u8; 50]).unwrap();
        one.send(Address(0), 50, &to, turn, true).unwrap();
        while places(&back).len() <= turn as usize {
            one.handle_notices(soon()).unwrap();
        }
        let mut there = [0; 50];
        one.read(Address(PAGE as u64 + turn), &mut there).unwrap();
        assert_eq!(there, [turn as u8; 50]);
    }
    assert_eq!(serving.join().unwrap().0 as u64, TURNS);
    assert_eq!(places(&back), (0..TURNS).collect::<Vec<_>>());
}

#[test]
fn a_function_ends_with_its_buffer() {
    let (mut one, mut two) = pair();
    let told = Told::default();
    let buffer = two.export_with(export(0), note(&told)).unwrap();
    let to = one.import(buffer.handle()).unwrap();
    one.send(Address(0), 4, &to, 8, true).unwrap();
    two.deregister(buffer).unwrap();
    assert_eq!(places(&told), [8], "what was sent before the end is told");
    assert_eq!(Arc::strong_count(&told), 1, "the function is gone");
    one.send(Address(0), 4, &to, 8, true).unwrap_err();
    // A function may end its own export; what comes after that in the queue is for nobody.
    let (own, count) = (Arc::new(Mutex::new(None)), Told::default());
    let (to_end, counted) = (own.clone(), count.clone());
    let ending = move |process: &mut Process, notice: Notice| {
        counted.lock().unwrap().push(notice);
        let buffer = to_end.lock().unwrap().take().expect("it is called once");
        process.deregister(buffer).unwrap();
    };
    let buffer = two.export_with(export(0), ending).unwrap();
    let to = one.import(buffer.handle()).unwrap();
    *own.lock().unwrap() = Some(buffer);
    one.send(Address(0), 4, &to, 1, true).unwrap();
    one.send(Address(0), 4, &to, 2, true).unwrap();
    assert_eq!(two.handle_notices(soon()).unwrap(), 1);
    assert_eq!(places(&count), [1]);
}
