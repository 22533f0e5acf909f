//! A null call allocates nothing on either side, once the buffers are there.
//!
//! Everything is counted that this process allocates, and both sides are in it, so this is a test binary of its own.

use sidestep_orb::{Call, Dispatching, Object, Orb, Servant, SystemException, Threads};
use sidestep_testkit::allocator::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

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
            (0..200).for_each(|_| call(&object));
            // What else the process does now and then, such as looking for connections, is not of the calls: a call that
            // allocates leaves no round quiet.
            let is_quiet = |_: &u32| {
                let before = ALLOCATOR.calls();
                (0..5).for_each(|_| call(&object));
                ALLOCATOR.calls() == before
            };
            let quiet = (0..40).filter(is_quiet).count();
            assert!(quiet >= 4, "{quiet} of 40 rounds over {on} with {threads:?}");
            client.shutdown();
            server.shutdown();
            server.run();
        }
    }
}
