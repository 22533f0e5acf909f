//! A null call allocates nothing on either side, once the buffers are there.
//!
//! Everything is counted that this process allocates, and both sides are in it, so this is a test binary of its own.

use sidestep_orb::{Call, Dispatching, Object, Orb, Servant, SystemException, Threads};
use sidestep_testkit::allocator::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Calls whose buffers and tables grow.
const WARM_UP: usize = 500;

/// Calls that are counted.
const CALLS: usize = 2000;

struct Null;

impl Servant for Null {
    fn type_ids(&self) -> &'static [&'static str] {
        &["IDL:sidestep.test/Null:1.0"]
    }

    fn dispatch(&self, call: &mut Call<'_>) -> Result<(), SystemException> {
        call.arguments(|_| Ok(()))?;
        call.reply(|_| Ok(()))
    }
}

fn call(object: &Object) {
    object.call::<(), SystemException>("null", |_| Ok(()), |_| Ok(())).unwrap();
}

#[test]
fn a_null_call_allocates_nothing() {
    let name = format!("orb-null-{}", std::process::id());
    let path = std::env::temp_dir().join(&name);
    for threads in [Threads::PerConnection, Threads::Dispatcher(Dispatching::default())] {
        let builders = [
            ("tcp", Orb::builder().tcp("127.0.0.1:0")),
            ("unix", Orb::builder().unix(path.to_str().unwrap())),
            ("fabric", Orb::builder().fabric(&format!("shm:{name}"))),
            ("via", Orb::builder().via(&name)),
            ("via-flow", Orb::builder().via_flow(&name)),
        ];
        for (on, builder) in builders {
            let server = builder.threads(threads).build().unwrap();
            let null: Object = server.root_poa().activate(Null).unwrap();
            server.root_poa().manager().activate().unwrap();
            let client = Orb::builder().build().unwrap();
            let object = client.string_to_object(&null.ior().to_string()).unwrap();
            (0..WARM_UP).for_each(|_| call(&object));
            let before = ALLOCATOR.calls();
            (0..CALLS).for_each(|_| call(&object));
            let allocated = ALLOCATOR.calls() - before;
            assert_eq!(allocated, 0, "allocations in {CALLS} calls over {on} with {threads:?}");
            client.shutdown();
            server.shutdown();
            server.run();
        }
    }
}
