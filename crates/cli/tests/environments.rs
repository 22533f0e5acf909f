//! The behaviours once more, in hostile surroundings (`tests/environments`): little of everything, storms of signals,
//! allocators of their own, other users. Plain and under `sidestep run` they are in the same surroundings, and what they
//! note is the same.
//!
//! A usual run takes some behaviours for each environment, always the same; `./test full` takes all of them.
//! `SIDESTEP_SEED` takes others and other times, and `SIDESTEP_BEHAVIOUR` takes one by name; a failure says both.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use sidestep_testkit::{
    process::{Folder, full, seed_or},
    sockets::{Behaviour, Launch, Promote, enter_program, judge::Random},
};

/// Surroundings, and the behaviours that make no sense in them.
struct Environment {
    name: &'static str,
    /// As `tests/environments/enter.c` and `environment.h` have them; also `allocator`, for a program with one of its own, and
    /// `inside`, for surroundings of the program alone and not of `sidestep run`, too.
    words: &'static str,
    /// Behaviours that are left out, by what they do that these surroundings change on kernel TCP as well.
    without: &'static [(&'static str, &'static [&'static str])],
}

macro_rules! environments {
    ($($name:ident: $words:literal $(, without $reason:literal [$($left:ident)*])*;)*) => {
        $(#[test] fn $name() {
            behave_the_same_in(&Environment {
                name: stringify!($name),
                words: $words,
                without: &[$(($reason, &[$(stringify!($left)),*])),*],
            });
        })*
    };
}

environments! {
    small_stacks: "inside,stack=131072",
        without "keeps more than that in thread-local memory" [bulk];
    storm_on_small_stacks: "inside,storm=restart,stack=131072",
        without "keeps more than that in thread-local memory" [bulk];
    storm_restarting: "storm=restart";
    storm_interrupting: "storm=interrupt";
    forks_in_handlers: "storm=fork";
    jumps_out_of_waits: "jump";
    own_allocator: "allocator",
        without "has one itself" [own_malloc];
    own_allocator_in_a_storm: "allocator,storm=interrupt",
        without "has one itself" [own_malloc];
    own_allocator_and_forks: "allocator,storm=fork",
        without "has one itself" [own_malloc];
    few_descriptors: "descriptors=112:112";
    equal_limits: "descriptors=1024:1024";
    little_address_space: "space=402653184";
    no_queued_signals: "pending=0",
        without "cancels threads, for which libc queues a signal" [cancel cancel_in_kernel],
        without "makes timers, each of which needs a place in the queue" [jump_lists jump_out signals_pending];
    another_user: "user=54321",
        without "is for root alone" [changed_root];
    a_client_of_another_user: "stranger=54322";
    a_full_registry: "shm=size=64k";
    a_registry_without_files: "shm=nr_inodes=1";
    closed_standard_descriptors: "inside,closed",
        without "closes the descriptor of the transcript, too" [close_range],
        without "counts on numbers above those of standard descriptors" [dup],
        without "lets other programs write to standard error" [fork_exec];
}

/// How many behaviours a usual run takes for one environment.
const SAMPLE: usize = 6;
/// The seed of a usual run.
const USUAL: u64 = 1;

fn behave_the_same_in(environment: &Environment) {
    let seed = seed_or(USUAL);
    let enter = enter_program();
    if let Some(reason) = refusal(environment, &enter) {
        eprintln!("left out: {reason}");
        return;
    }
    let mut failures = Vec::new();
    for name in chosen(environment, seed) {
        let told = format!(
            " in {}, SIDESTEP_BEHAVIOUR={name} SIDESTEP_SEED={seed} cargo nextest run -p sidestep-cli --test environments {}",
            environment.name, environment.name
        );
        // Every one is tried: a mechanism that is wrong shows in several.
        let tried = std::panic::catch_unwind(|| behaves_the_same_in(environment, &name, seed, &enter, &told));
        failures.extend(tried.is_err().then_some(name));
    }
    assert!(failures.is_empty(), "{}: {failures:?} behave differently, SIDESTEP_SEED={seed}", environment.name);
}

fn behaves_the_same_in(environment: &Environment, name: &str, seed: u64, enter: &Path, told: &str) {
    let behaviour = match environment.words.starts_with("allocator") {
        true => Behaviour::with_own_allocator(name),
        false => Behaviour::new(name),
    };
    let folder = Folder::new(environment.name);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).expect("permissions");
    let mut random = Random::new(seed ^ hash(&[environment.name, name]));
    let words = format!("{},seed={}", environment.words, random.below(1 << 31));
    for mode in modes(&behaviour, &mut random) {
        let launches = launches(&mut random);
        behaviour.expect_equal(mode, &launches, told, |launch| {
            let mut dressed;
            if words.starts_with("inside") {
                dressed = launch.command(enter);
                dressed.arg(&words).arg(&behaviour.program).arg(mode);
            } else {
                let command = behaviour.command(launch, mode);
                dressed = Command::new(enter);
                dressed.arg(&words).arg(command.get_program()).args(command.get_args());
            }
            // A registry of the test, but where the usual place of it is the one that is short.
            if !words.starts_with("shm=") {
                dressed.env("SIDESTEP_DIR", folder.path());
            }
            dressed
        });
    }
}

/// The behaviours for an environment.
fn chosen(environment: &Environment, seed: u64) -> Vec<String> {
    let left_out = |name: &str| environment.without.iter().any(|(_, names)| names.contains(&name));
    let mut names: Vec<String> = Behaviour::all().into_iter().filter(|name| !left_out(name)).collect();
    if let Ok(only) = env::var("SIDESTEP_BEHAVIOUR") {
        return vec![only];
    }
    if !full() {
        names.sort_by_key(|name| hash(&[environment.name, name, &seed.to_string()]));
        names.truncate(SAMPLE);
    }
    names
}

/// Both ends in one process or in two; in a full run both ways.
fn modes(behaviour: &Behaviour, random: &mut Random) -> Vec<&'static str> {
    if full() {
        behaviour.modes.to_vec()
    } else {
        vec![behaviour.modes[random.below(behaviour.modes.len() as u64) as usize]]
    }
}

/// One way to be carried by a ring and one to be carried by a VI.
fn launches(random: &mut Random) -> [Launch; 2] {
    let sidestep = Path::new(env!("CARGO_BIN_EXE_sidestep"));
    let mut promote = || match random.below(3) {
        0 => Promote::Default,
        1 => Promote::Eager,
        _ => Promote::Random(random.below(1 << 40)),
    };
    [Launch::Sidestep(sidestep.to_owned(), promote()), Launch::Via(sidestep.to_owned(), promote())]
}

/// Why these surroundings cannot be made here.
fn refusal(environment: &Environment, enter: &Path) -> Option<String> {
    let Output { status, stderr, .. } =
        Command::new(enter).args([environment.words, "true"]).output().expect("the program that makes them");
    let needs_root = environment.words.contains("stranger") && !rustix::process::geteuid().is_root();
    let refused = status.code() == Some(77) || needs_root;
    refused.then(|| format!("this user may not make {}: {}", environment.name, String::from_utf8_lossy(&stderr)))
}

/// FNV-1a, the same in every run.
fn hash(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
