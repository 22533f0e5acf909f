//! A null call allocates nothing on either side, once the buffers are there.
//!
//! Each thread counts what it allocates, and the servant looks at the count of the thread that serves it. Other threads of the
//! server, such as the one that looks for connections, may allocate meanwhile.

use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::Duration;

use sidestep_orb::{Call, Dispatching, Object, Orb, Servant, SystemException, Threads};
use sidestep_testkit::allocator::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Calls in which buffers and tables grow: rounds of so many, until nothing is allocated in a whole one.
const WARM_UP: usize = 300;
const MOST_ROUNDS: usize = 20;

/// How long a caller waits for the last reply of a round. It goes to sleep, and takes in what its peers have sent beside the calls,
/// such as larger rings.
const PAUSE: Duration = Duration::from_millis(20);

/// Calls that are counted.
const CALLS: usize = 500;

/// Remembers the first and the last count of each thread that served it.
struct Null(&'static Mutex<Vec<Serving>>);

struct Serving {
    thread: ThreadId,
    first: u64,
    last: u64,
    calls: usize,
}

impl Servant for Null {
    fn type_ids(&self) -> &'static [&'static str] {
        &["IDL:sidestep.test/Null:1.0"]
    }

    fn dispatch(&self, call: &mut Call<'_>) -> Result<(), SystemException> {
        let (thread, count) = (std::thread::current().id(), ALLOCATOR.own_calls());
        let mut serving = self.0.lock().unwrap();
        match serving.iter_mut().find(|each| each.thread == thread) {
            Some(each) => (each.last, each.calls) = (count, each.calls + 1),
            None => serving.push(Serving { thread, first: count, last: count, calls: 1 }),
        }
        drop(serving);
        if call.operation() == "pause" {
            std::thread::sleep(PAUSE);
        }
        call.arguments(|_| Ok(()))?;
        call.reply(|_| Ok(()))
    }
}

fn call(object: &Object, operation: &str) {
    object.call::<(), SystemException>(operation, |_| Ok(()), |_| Ok(())).unwrap();
}

fn warm_up(object: &Object) {
    for _ in 0..MOST_ROUNDS {
        let before = ALLOCATOR.calls();
        (0..WARM_UP).for_each(|_| call(object, "null"));
        call(object, "pause");
        if ALLOCATOR.calls() == before {
            return;
        }
    }
}

#[test]
fn a_null_call_allocates_nothing() {
    let name = format!("orb-null-{}", std::process::id());
    let path = std::env::temp_dir().join(&name);
    // A dispatcher that is never stalled starts no other thread.
    let dispatching = Dispatching { stall: Duration::from_secs(600), ..Dispatching::default() };
    for threads in [Threads::PerConnection, Threads::Dispatcher(dispatching)] {
        let builders = [
            ("tcp", Orb::builder().tcp("127.0.0.1:0")),
            ("unix", Orb::builder().unix(path.to_str().unwrap())),
            ("fabric", Orb::builder().fabric(&format!("shm:{name}"))),
            ("via", Orb::builder().via(&name)),
            ("via-flow", Orb::builder().via_flow(&name)),
        ];
        for (on, builder) in builders {
            let server = builder.threads(threads).build().unwrap();
            let serving: &Mutex<Vec<Serving>> = Box::leak(Box::default());
            let null: Object = server.root_poa().activate(Null(serving)).unwrap();
            server.root_poa().manager().activate().unwrap();
            let client = Orb::builder().build().unwrap();
            let object = client.string_to_object(&null.ior().to_string()).unwrap();
            warm_up(&object);
            // From here on the list has room, and nothing of it is of the warm-up.
            serving.lock().unwrap().clear();
            let before = ALLOCATOR.own_calls();
            (0..CALLS).for_each(|_| call(&object, "null"));
            let caller = ALLOCATOR.own_calls() - before;
            assert_eq!(caller, 0, "the caller, over {on} with {threads:?}");
            let serving = serving.lock().unwrap();
            assert_eq!(serving.iter().map(|each| each.calls).sum::<usize>(), CALLS);
            let server_side = serving.iter().map(|each| each.last - each.first).sum::<u64>();
            assert_eq!(server_side, 0, "the server, over {on} with {threads:?}");
            client.shutdown();
            server.shutdown();
            server.run();
        }
    }
}
