//! Real processes that share memory on real cards, two on each: FFT and LU have the results of a run of one process.

use sidestep_testkit::process::{Child, Role, enter};
use sidestep_vmmc::svm::{Join, Kernel};
use sidestep_vmmc::workload::Step;

mod card;

#[test]
fn role() {
    card::enter();
    enter(&[("sharer", sharer)]);
}

fn sharer(role: Role) {
    let number = |at: usize| role.arguments[at].parse::<usize>().unwrap();
    let (name, kernel) = (&role.arguments[0], &role.arguments[1]);
    let (size, rank, count) = (number(2), number(3), number(4));
    let card = format!("{name}-{}", rank / 2);
    let start = card::command(&card, None);
    let join = Join { name, rank, count, homes: Vec::new(), card: &card, start: Some(start) };
    let report = Kernel::named(kernel, size, count).unwrap().run(join).unwrap();
    let fetched = report.steps.iter().filter(|step| matches!(step, Step::Fetch(_))).count();
    role.control.say(&format!("{:x} {fetched}", report.digest));
}

fn run(kernel: &str, size: usize, count: usize) {
    let name = format!("test-svm-{}-{kernel}-{count}", std::process::id());
    let child = |rank: usize| {
        Child::start("sharer", &[&name, kernel, &size.to_string(), &rank.to_string(), &count.to_string()])
    };
    let children: Vec<Child> = (0..count).map(child).collect();
    let (digests, _) = Kernel::named(kernel, size, count).unwrap().run_alone().unwrap();
    for (rank, (mut child, digest)) in children.into_iter().zip(digests).enumerate() {
        let said = child.control.hear().expect("an end with a report");
        let (found, fetched) = said.split_once(' ').expect("a digest and a count");
        assert_eq!(found, format!("{digest:x}"), "{kernel} {size}: process {rank} of {count} has another result");
        assert!(fetched.parse::<usize>().unwrap() > 0, "process {rank} had no page of others");
        child.wait_success();
    }
}

#[test]
fn an_fft_of_two_and_of_four_processes() {
    run("fft", 64, 2);
    run("fft", 128, 4);
}

#[test]
fn an_lu_of_two_and_of_four_processes() {
    run("lu", 8, 2);
    run("lu", 16, 4);
}
