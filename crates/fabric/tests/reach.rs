//! Memory of the program on shared memory: peers of one host copy into it through the kernel, and need nothing of its owner.

use sidestep_fabric::{Access, Mode, RdmaQueue, Region, Rights, Tripwire};
use sidestep_shm::Memory;
use sidestep_testkit::conformance::{
    fixture,
    nodes::{Pair, contents, soon},
};

#[test]
fn rdma_reaches_memory_of_the_program_without_its_owner() {
    let pair = Pair::new(fixture::shm);
    let region = Region::over(&pair.b, Memory::heap(1 << 20).unwrap()).unwrap();
    let aperture = pair.open(&region.cookie(Rights::ALL)).unwrap();
    pair.until("the owner to tell where the memory lies", || aperture.reads_directly().then_some(()));
    let local = Region::new(&pair.a, 1 << 20).unwrap();
    local.write(0, &vec![7; 1 << 20]).unwrap();
    let queue = RdmaQueue::new(&pair.a, 8);
    // From here on the owner makes no progress.
    queue.write(&local.all(), &aperture, 0).unwrap();
    let last = queue.immediate(&aperture, 64, 9).unwrap();
    queue.wait(last, soon()).unwrap();
    let found = contents(&region);
    assert_eq!((found[0], found[64], found[65], found[(1 << 20) - 1]), (7, 9, 0, 7));
    assert_eq!((queue.totals().reached_bytes, pair.b.counters().served_bytes), ((1 << 20) + 4, 0));

    // Whoever watches the memory is asked for every access.
    let _tripwire = Tripwire::new(&region, 0, Access::Write, Mode::Once).unwrap();
    let id = queue.write(&local.slice(0, 64).unwrap(), &aperture, 0).unwrap();
    assert_eq!(queue.test(id), Ok(false));
    pair.wait(&queue, id).unwrap();
    pair.settle();
    assert!(!aperture.reads_directly());
}
