//! Random programs of operations in both directions, against a model of memory and of the queues.

mod pair;

use pair::*;
use proptest::prelude::*;
use sidestep_iwarp::*;
use std::collections::VecDeque;

/// One step of a program. `side` is who acts: the initiator if it is true.
#[derive(Debug, Clone)]
enum Step {
    Write { side: bool, at: usize, len: usize },
    Send { side: bool, len: usize, solicited: bool },
    Immediate { side: bool, data: u64 },
    Read { side: bool, at: usize, len: usize },
    Atomic { side: bool, word: usize, operation: Operation },
    Move { steps: usize },
}

const REGION: usize = 6000;
const BASE: u64 = 0xffff_0000;
const WORDS: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    let range = (0..REGION).prop_flat_map(|at| (Just(at), 0..=REGION - at));
    let operation = prop_oneof![
        any::<(u64, u64)>().prop_map(|(add, mask)| Operation::FetchAdd { add, mask }),
        // Small numbers, so that comparisons succeed now and then.
        (0u64..3, 0u64..3).prop_map(|(compare, swap)| Operation::CompareSwap {
            swap,
            swap_mask: u64::MAX,
            compare,
            compare_mask: 3,
        }),
    ];
    prop_oneof![
        (any::<bool>(), range.clone()).prop_map(|(side, (at, len))| Step::Write { side, at, len }),
        (any::<bool>(), 0..4000usize, any::<bool>())
            .prop_map(|(side, len, solicited)| { Step::Send { side, len, solicited } }),
        (any::<bool>(), any::<u64>()).prop_map(|(side, data)| Step::Immediate { side, data }),
        (any::<bool>(), range).prop_map(|(side, (at, len))| Step::Read { side, at, len }),
        (any::<bool>(), 0..WORDS, operation).prop_map(|(side, word, operation)| Step::Atomic { side, word, operation }),
        (0..6usize).prop_map(|steps| Step::Move { steps }),
    ]
}

prop_compose! {
    fn side()(
        crc: bool,
        markers in proptest::option::of((4u32..600).prop_map(|n| Interval::new(n * 4).unwrap())),
        segment_size in 100usize..8000,
        ird in 1u16..6,
        ord in 1u16..6,
    ) -> Config {
        Config { crc, markers, segment_size, ird, ord, queue_limit: 10_000, ..config() }
    }
}

/// What one side's memory and queues must come to.
struct Model {
    written: Vec<u8>,
    words: [u64; WORDS],
    /// Outcomes of this side's requests, in order.
    requests: Vec<(WorkId, Outcome)>,
    /// Messages for this side's receives, in order.
    receives: VecDeque<(WorkId, Outcome, Vec<u8>)>,
    /// Reads of this side: its own buffer, and what must be in it.
    reads: Vec<(Stag, Vec<u8>)>,
}

/// The regions of one side that the other may use.
struct Regions {
    writable: Stag,
    readable: Stag,
    words: Stag,
}

fn run(initiator: Config, responder: Config, chunk: usize, window: u64, program: &[Step]) {
    let mut pair = Pair::opened(initiator, responder);
    pair.chunk = chunk;
    for end in [&mut pair.initiator, &mut pair.responder] {
        end.window = window;
        end.budget = window.min(20_000);
    }
    let source = pattern(REGION, 77);
    let mut regions = Vec::new();
    let mut models = Vec::new();
    for end in [&mut pair.responder, &mut pair.initiator] {
        regions.push(Regions {
            writable: end.region(vec![0; REGION], BASE, Rights::WRITE),
            readable: end.region(source.clone(), BASE, Rights::READ),
            words: end.region(vec![0; 8 * WORDS], BASE, Rights::ATOMIC),
        });
        models.push(Model {
            written: vec![0; REGION],
            words: [0; WORDS],
            requests: Vec::new(),
            receives: VecDeque::new(),
            reads: Vec::new(),
        });
    }
    // Index 0 is the responder, 1 the initiator, so that `side as usize` is who acts.
    for (count, step) in program.iter().enumerate() {
        let seed = count as u8;
        let Pair { initiator, responder, .. } = &mut pair;
        match *step {
            Step::Move { steps } => {
                for _ in 0..steps {
                    pair.step();
                }
            }
            Step::Write { side, at, len } => {
                let (actor, _) = sides(initiator, responder, side);
                let data = pattern(len, seed);
                let sink = regions[usize::from(!side)].writable;
                let work = actor.write(&data, sink, BASE + at as u64);
                models[usize::from(!side)].written[at..at + len].copy_from_slice(&data);
                models[usize::from(side)].requests.push((work, Outcome::Sent));
            }
            Step::Send { side, len, solicited } => {
                let (actor, other) = sides(initiator, responder, side);
                let receive = other.post_receive(4000);
                let data = pattern(len, seed);
                let work = actor.send(&data, SendKind { solicited, invalidate: None });
                let outcome = Outcome::Received { len: len as u32, solicited, invalidated: None };
                models[usize::from(!side)].receives.push_back((receive, outcome, data));
                models[usize::from(side)].requests.push((work, Outcome::Sent));
            }
            Step::Immediate { side, data } => {
                let (actor, other) = sides(initiator, responder, side);
                let receive = other.post_receive(0);
                let work = actor.immediate(data);
                let outcome = Outcome::ReceivedImmediate { data, solicited: false };
                models[usize::from(!side)].receives.push_back((receive, outcome, Vec::new()));
                models[usize::from(side)].requests.push((work, Outcome::Sent));
            }
            Step::Read { side, at, len } => {
                let (actor, _) = sides(initiator, responder, side);
                let sink = actor.region(vec![0; len], 0, Rights::NONE);
                let from = (regions[usize::from(!side)].readable, BASE + at as u64);
                let work = actor.read((sink, 0), from, len as u32);
                let model = &mut models[usize::from(side)];
                model.reads.push((sink, source[at..at + len].to_vec()));
                model.requests.push((work, Outcome::Read));
            }
            Step::Atomic { side, word, operation } => {
                let (actor, _) = sides(initiator, responder, side);
                let stag = regions[usize::from(!side)].words;
                let work = actor.atomic(stag, BASE + 8 * word as u64, operation);
                let value = &mut models[usize::from(!side)].words[word];
                let original = std::mem::replace(value, operation.apply(*value));
                models[usize::from(side)].requests.push((work, Outcome::Atomic { original }));
            }
        }
    }
    pair.drive();

    for (side, end) in [&pair.responder, &pair.initiator].into_iter().enumerate() {
        assert_eq!(end.fault(), None);
        let (model, regions) = (&models[side], &regions[side]);
        assert!(end.memory.regions[&regions.writable] == model.written, "written memory differs");
        assert!(end.memory.regions[&regions.readable] == source, "memory that is only read differs");
        let words: Vec<u64> = end.memory.regions[&regions.words]
            .chunks(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, model.words);
        for (stag, expected) in &model.reads {
            assert!(end.memory.regions[stag] == *expected, "what was read differs");
            assert!(!end.connection.holds(*stag));
        }
        for (work, _, data) in &model.receives {
            assert!(end.memory.receives[work][..data.len()] == data[..], "a message differs");
        }
        // Requests complete in order, and so do receives.
        let requests: Vec<(WorkId, Outcome)> = model.requests.iter().map(|(work, outcome)| (*work, *outcome)).collect();
        let receives: Vec<(WorkId, Outcome)> =
            model.receives.iter().map(|(work, outcome, _)| (*work, *outcome)).collect();
        let (got_receives, got_requests): (Vec<_>, Vec<_>) = end
            .completions
            .iter()
            .map(|done| (done.work, done.outcome))
            .partition(|(work, _)| end.memory.receives.contains_key(work));
        assert_eq!(got_requests, requests);
        assert_eq!(got_receives, receives);
    }
}

fn sides<'a>(initiator: &'a mut End, responder: &'a mut End, side: bool) -> (&'a mut End, &'a mut End) {
    if side { (initiator, responder) } else { (responder, initiator) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_agree_with_the_model(
        initiator in side(),
        responder in side(),
        chunk in prop_oneof![1usize..2000, Just(usize::MAX)],
        window in prop_oneof![1u64..3000, Just(u64::MAX)],
        program in proptest::collection::vec(step(), 1..60),
    ) {
        run(initiator, responder, chunk, window, &program);
    }
}
