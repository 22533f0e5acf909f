//! The same group with its middle in processes, over every transport, and with all in one process.

mod kit;

use std::net::Ipv4Addr;

use kit::{apart, expected, line, run};
use sidestep_filters::{HostSpec, Place, Schedule, Transport};

#[test]
fn role() {
    kit::role();
}

fn every_schedule(transport: Transport) {
    for (schedule, copies) in [(Schedule::RoundRobin, 1), (Schedule::Demand, 2), (Schedule::Keyed, 2)] {
        let found = run(apart(copies, 100, schedule, transport), 3);
        assert_eq!(found.len(), 3);
        assert!(found.values().all(|values| *values == expected(100)), "{transport:?} {schedule:?}");
    }
}

#[test]
fn channels_join_processes() {
    every_schedule(Transport::Channel);
}

#[test]
fn sockets_join_processes() {
    every_schedule(Transport::Tcp);
}

#[test]
fn vis_join_processes() {
    every_schedule(Transport::Vi);
}

/// Copies of one filter in this process and in another, two filters in one process, memory and transports mixed.
#[test]
fn processes_and_threads_mix() {
    for transport in [Transport::Channel, Transport::Tcp, Transport::Vi] {
        let places = [Place::Shared("a".into()), Place::Shared("a".into()), Place::Thread];
        let mut graph = line([2, 2, 1], places, 100, Schedule::Demand).over(transport);
        graph.filters[1].place = Place::Process;
        let found = run(graph.clone(), 2);
        assert!(found.values().all(|values| *values == expected(100)), "{transport:?}");
        graph.filters[1].place = Place::Shared("a".into());
        let found = run(graph, 2);
        assert!(found.values().all(|values| *values == expected(100)), "{transport:?}");
    }
}

/// Two addresses of this machine stand for two hosts: iWARP between them, and TCP.
#[test]
fn hosts_are_joined_by_iwarp_and_by_sockets() {
    let id = std::process::id();
    let address = |last: u8| Ipv4Addr::new(127, (16 + id % 200) as u8, (1 + id / 200 % 200) as u8, last).into();
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let words = [&program, "role", "--exact", "--nocapture", "--test-threads=1"];
    let command = words.iter().map(|word| word.to_string()).collect();
    let hosts = vec![
        HostSpec { name: "here".into(), address: address(1), command: Vec::new(), line: 0 },
        HostSpec { name: "b".into(), address: address(2), command, line: 0 },
    ];
    for transport in [Transport::Channel, Transport::Tcp] {
        let mut graph = apart(2, 100, Schedule::Demand, transport);
        graph.hosts = hosts.clone();
        graph.filters[1].host = Some("b".into());
        let found = run(graph, 2);
        assert!(found.values().all(|values| *values == expected(100)) && found.len() == 2, "{transport:?}");
    }
}
