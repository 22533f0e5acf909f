//! What a buffer does not cost: memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidestep_filters::{ANY, Graph, Group, Kind, Kinds, Launcher, Place, Settings, function, worker};
use sidestep_testkit::allocator::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Buffers of a unit, and those of them that may still allocate.
const BUFFERS: u64 = 6000;
const WARM: u64 = 4000;

/// Each filter counts what its own thread allocates once it is warm. The one in between sends its count along in the last
/// buffer, because it may be in another process.
fn kinds(allocated: &Arc<AtomicU64>) -> Kinds {
    let (source, sink) = (allocated.clone(), allocated.clone());
    Kinds::new()
        .with(
            "source",
            Kind::new("gives buffers", move |_| {
                let allocated = source.clone();
                Ok(function(move |work| {
                    let mut before = 0;
                    for count in 0..BUFFERS {
                        if count == WARM {
                            before = ALLOCATOR.own_calls();
                        }
                        let mut buffer = work.outputs.reserve()?;
                        buffer.fill(0, 2048, |_, bytes| bytes.fill(count as u8))?;
                        buffer.commit(2048)?;
                    }
                    allocated.fetch_add(ALLOCATOR.own_calls() - before, Ordering::Relaxed);
                    Ok(())
                }))
            })
            .output("out", ANY),
        )
        .with(
            "between",
            Kind::new("hands them on", |_| {
                Ok(function(|work| {
                    let (mut count, mut before) = (0, 0);
                    while let Some(mut buffer) = work.inputs.take()? {
                        if count == WARM {
                            before = ALLOCATOR.own_calls();
                        }
                        count += 1;
                        let mut out = work.outputs.reserve()?;
                        out.copy_from(&mut buffer)?;
                        if count == BUFFERS {
                            out.copy_in(0, &(ALLOCATOR.own_calls() - before).to_le_bytes())?;
                        }
                        out.commit(2048)?;
                    }
                    Ok(())
                }))
            })
            .input("in", ANY)
            .output("out", ANY),
        )
        .with(
            "sink",
            Kind::new("takes them", move |_| {
                let allocated = sink.clone();
                Ok(function(move |work| {
                    let (mut count, mut before, mut last) = (0, 0, 0);
                    while let Some(mut buffer) = work.inputs.take()? {
                        if count == WARM {
                            before = ALLOCATOR.own_calls();
                        }
                        count += 1;
                        last = u64::from_le_bytes(buffer.array(0)?);
                    }
                    assert_eq!(count, BUFFERS);
                    allocated.fetch_add(ALLOCATOR.own_calls() - before + last, Ordering::Relaxed);
                    Ok(())
                }))
            })
            .input("in", ANY),
        )
}

#[test]
fn role() {
    worker::enter(&kinds(&Arc::default()));
}

#[test]
fn buffers_allocate_nothing_once_they_are_warm() {
    let program = std::env::current_exe().unwrap();
    let words = [program.to_str().unwrap(), "role", "--exact", "--nocapture", "--test-threads=1"];
    for place in [Place::Thread, Place::Process] {
        let allocated = Arc::new(AtomicU64::new(0));
        let graph = Graph::new("absence")
            .filter("source", "source", 1, Place::Thread)
            .filter("between", "between", 1, place.clone())
            .filter("sink", "sink", 1, Place::Thread)
            .stream("source.out", "between.in", 2048)
            .stream("between.out", "sink.in", 2048);
        let mut group = Group::start(graph, &kinds(&allocated), Launcher::command(&words)).unwrap();
        for outcome in group.run([Settings::default()]).unwrap() {
            outcome.result.unwrap();
        }
        assert_eq!(allocated.load(Ordering::Relaxed), 0, "with the middle in {place:?}");
    }
}
