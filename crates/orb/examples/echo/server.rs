//! Implements the interface, prints a reference to the object, and serves.

use std::error::Error;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use sidestep_orb::{Orb, Stub, SystemException};

use crate::echo::example::{Echo, EchoSayError, EchoServant, EchoSkeleton, Silence};

#[derive(Default)]
struct Counting {
    count: AtomicU32,
}

impl EchoServant for Counting {
    fn say(&self, text: String) -> Result<String, EchoSayError> {
        if text.is_empty() {
            return Err(Silence { why: "nothing was said".to_owned() }.into());
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(text)
    }

    fn count(&self) -> Result<u32, SystemException> {
        Ok(self.count.load(Ordering::Relaxed))
    }
}

pub fn run() -> Result<(), Box<dyn Error>> {
    let channel = format!("shm:echo-{}", std::process::id());
    let orb = Orb::builder().tcp("127.0.0.1:0").fabric(&channel).build()?;
    let echo: Echo = orb.root_poa().activate(EchoSkeleton(Counting::default()))?;
    println!("{}", echo.object().ior());
    std::io::stdout().flush()?;
    orb.root_poa().manager().activate()?;
    orb.run();
    Ok(())
}
