//! The text of traces.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use sidestep_fabric::{
    Access, Mode, Node, RdmaQueue, Region, Rights, Tripwire,
    link::{
        AnyLink,
        traced::{Trace, TracedLink},
    },
};
use sidestep_testkit::{
    conformance::{
        fixture,
        nodes::{connect_to, drive},
    },
    links::sim::SimOptions,
};

/// Two nodes on a simulated network without delay, the first one traced.
fn traced(maps: bool, wrap: impl Fn(TracedLink) -> TracedLink) -> (Node, Node, Arc<Trace>) {
    let mut made = fixture::sim(2, SimOptions { maps, ..SimOptions::default() });
    let trace = Trace::new(1000);
    let b = Node::with_links(vec![made.links.remove(1)]).unwrap();
    let link = wrap(TracedLink::new(made.links.remove(0), trace.clone()));
    (Node::with_links(vec![AnyLink::from(link)]).unwrap(), b, trace)
}

fn lines(trace: &Trace) -> Vec<String> {
    trace.take().iter().map(|record| record.event.to_string()).collect()
}

#[test]
fn a_connection_reads_like_a_packet_dump() {
    let (a, b, trace) = traced(true, |link| link);
    let listener = b.listen("sim:echo").unwrap();
    let (to_b, to_a) = connect_to(&a, &b, &listener, "sim:echo");
    to_b.post(b"hello").unwrap();
    let region = Region::new(&b, 4096).unwrap();
    let aperture = sidestep_fabric::Aperture::begin(&to_b, &region.cookie(Rights::ALL)).unwrap();
    drive(&[&a, &b], "an aperture", || aperture.is_open().unwrap().then_some(()));
    let tripwire = Tripwire::new(&region, 64, Access::Write, Mode::Once).unwrap();
    tripwire.arm();
    aperture.store32(64, 1).unwrap();
    to_a.close();
    drive(&[&a, &b], "an end", || to_b.closed());
    let expected = [
        "> p1 connect echo",
        "> p1 post 15 B",
        "< p1 post 17 B",
        "> p1 post 14 B",
        "> p1 map r0 t0",
        "< t0 mapped 4352 B",
        "> p1 fire r0+0x40 write",
        "< p1 post 9 B",
    ];
    assert_eq!(lines(&trace), expected);
}

#[test]
fn requests_of_both_sides_are_told_with_their_outcome() {
    let (a, b, trace) = traced(false, |link| link);
    let listener = b.listen("sim:echo").unwrap();
    let (to_b, to_a) = connect_to(&a, &b, &listener, "sim:echo");
    let mut ours = Region::new(&a, 4096).unwrap();
    let theirs = Region::new(&b, 4096).unwrap();
    let both = [&a, &b];
    let open = |end, cookie| {
        let aperture = sidestep_fabric::Aperture::begin(end, cookie).unwrap();
        drive(&both, "an aperture", || aperture.is_open().unwrap().then_some(()));
        aperture
    };
    let (out, back) = (open(&to_b, &theirs.cookie(Rights::ALL)), open(&to_a, &ours.cookie(Rights::ALL)));
    trace.take();
    let (queue, peers) = (RdmaQueue::new(&a, 8), RdmaQueue::new(&b, 8));
    let run = |queue: &RdmaQueue, id| drive(&both, "an outcome", || (queue.test(id) != Ok(false)).then_some(()));
    run(&queue, queue.write(&ours.slice(0, 64).unwrap(), &out, 0x40).unwrap());
    run(&queue, queue.read(&out, 0x80, &ours.slice(0, 32).unwrap()).unwrap());
    run(&queue, queue.compare_swap(&out, 8, 0, 5, &ours.slice(0, 8).unwrap()).unwrap());
    run(&queue, queue.fetch_add(&out, 8, 2, &ours.slice(0, 8).unwrap()).unwrap());
    run(&peers, peers.fetch_add(&back, 16, 9, &theirs.slice(0, 8).unwrap()).unwrap());
    ours.revoke().unwrap();
    run(&peers, peers.immediate(&back, 16, 9).unwrap());
    let expected = [
        "> p1 put r0+0x40 64 B t1",
        "< t1 done",
        "> p1 get r0+0x80 32 B t2",
        "< t2 32 B",
        "> p1 swap r0+0x8 0 for 5 t3",
        "< t3 = 0",
        "> p1 add r0+0x8 2 t4",
        "< t4 = 5",
        "< p1 add r0+0x10 9 = 0",
        "< p1 put r0+0x10 4 B ! it was revoked by its owner",
    ];
    assert_eq!(lines(&trace), expected);
}

#[test]
fn failures_are_told() {
    let (a, b, trace) = traced(false, |link| link);
    assert!(a.connect("sim:nobody", b"", Some(0)).is_err());
    let _listener = a.listen("sim:mine").unwrap();
    assert!(a.listen("sim:mine").is_err());
    let mut told = lines(&trace);
    assert!(told.remove(2).starts_with("> listen mine ! the name \"mine\" is taken"));
    let nobody = "> connect nobody ! nobody listens under the name \"nobody\"; start the other side first";
    assert_eq!(told, [nobody, "> listen mine"]);
    drop(b);
}

#[test]
fn a_trace_that_sees_all_sees_every_store() {
    for sees_all in [false, true] {
        let (a, b, trace) = traced(true, |link| if sees_all { link.see_all() } else { link });
        let listener = b.listen("sim:echo").unwrap();
        let (to_b, to_a) = connect_to(&a, &b, &listener, "sim:echo");
        let (ours, theirs) = (Region::new(&a, 4096).unwrap(), Region::new(&b, 4096).unwrap());
        let cookies = [ours.cookie(Rights::ALL), theirs.cookie(Rights::ALL)];
        for (end, cookie) in [(&to_a, &cookies[0]), (&to_b, &cookies[1])] {
            let aperture = sidestep_fabric::Aperture::begin(end, cookie).unwrap();
            drive(&[&a, &b], "an aperture", || aperture.is_open().unwrap().then_some(()));
            assert_eq!(aperture.is_mapped(), !sees_all);
            aperture.write(16, b"seen").unwrap();
            drive(&[&a, &b], "a store", || aperture.flush(Some(0)).ok());
        }
        let puts: Vec<_> = lines(&trace).into_iter().filter(|line| line.contains("put")).collect();
        let expected = ["< p1 put r0+0x10 4 B", "> p1 put r0+0x10 4 B t1"];
        assert_eq!(puts, if sees_all { &expected[..] } else { &[] });
    }
}

#[test]
fn a_trace_keeps_the_last_records_and_hands_out_each() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let trace = Trace::with(3, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let link = fixture::sim(1, SimOptions::default()).links.remove(0);
    let node = Node::with_links(vec![TracedLink::new(link, trace.clone()).into()]).unwrap();
    let names = ["sim:a", "sim:b", "sim:c", "sim:d", "sim:e"];
    let _listeners: Vec<_> = names.iter().map(|name| node.listen(name).unwrap()).collect();
    let kept: Vec<_> = trace.records().iter().map(|record| record.event.to_string()).collect();
    assert_eq!(kept, ["> listen c", "> listen d", "> listen e"]);
    assert_eq!((trace.dropped(), seen.load(Ordering::Relaxed)), (2, 5));
    assert!(trace.records().is_sorted_by_key(|record| record.time));
    assert_eq!(trace.take().len(), 3);
    assert!(trace.records().is_empty());
}
