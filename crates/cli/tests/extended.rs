//! `sidestep stat --extended` shows the regions and operations of extended sockets, without their process's doing.

use std::{
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    process::Command,
    thread,
};

use serde_json::Value;
use sidestep_extended::{CompletionQueue, Rights, Socket, Stack, in_milliseconds};
use sidestep_testkit::process::PATIENCE;

/// What the program says of this process.
fn stat(arguments: &[&str]) -> String {
    let pid = std::process::id().to_string();
    let program = env!("CARGO_BIN_EXE_sidestep");
    let output = Command::new(program).args(["stat", "--extended"]).args(arguments).arg(&pid).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn rows() -> Vec<Value> {
    stat(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn enabled(stream: &TcpStream) -> (Stack, CompletionQueue, Socket) {
    let stack = Stack::new().unwrap();
    let queue = stack.completion_queue().unwrap();
    let socket = stack.enable(stream.as_fd(), &queue, soon()).unwrap();
    (stack, queue, socket)
}

fn soon() -> u64 {
    in_milliseconds(PATIENCE.as_millis() as u64)
}

#[test]
fn operations_and_regions_are_shown() {
    assert!(stat(&[]).starts_with("no extended sockets of process"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near_stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far_stream = listener.accept().unwrap().0;
    let (near, far) = thread::scope(|scope| {
        let far = scope.spawn(|| enabled(&far_stream));
        (enabled(&near_stream), far.join().unwrap())
    });
    let region = far.0.register(4096, Rights::ALL).unwrap();
    far.2.export(&region, Rights::ALL, 1).unwrap();
    let remote = near.2.import(Some(soon())).unwrap();
    for _ in 0..3 {
        near.2.get(&remote, 0, &mut [0; 8]).unwrap();
    }
    near.2.put(&remote, 0, b"12").unwrap();
    near.2.fetch_add(&remote, 0, 1).unwrap();
    near.2.notify(1).unwrap();
    far.1.wait(&mut Vec::new(), 1, Some(soon())).unwrap();
    let rows = rows();
    assert_eq!(rows.len(), 2);
    let of = |address: String| rows.iter().find(|row| row["local"] == address.as_str()).expect("a row");
    let near_row = of(near_stream.local_addr().unwrap().to_string());
    let far_row = of(far_stream.local_addr().unwrap().to_string());
    for (name, count) in
        [("gets", 3), ("puts", 1), ("atomics", 1), ("imports", 1), ("imported_bytes", 4096), ("exports", 0)]
    {
        assert_eq!(near_row[name], count, "{name}: {near_row}");
    }
    for (name, count) in [("exports", 1), ("exported_bytes", 4096), ("notices", 1), ("gets", 0)] {
        assert_eq!(far_row[name], count, "{name}: {far_row}");
    }
    assert_eq!((&near_row["over"], &near_row["pid"]), (&"shm".into(), &std::process::id().into()));
    let table = stat(&[]);
    assert!(table.lines().count() == 3 && table.contains("ATOMICS") && table.contains("4.0 KiB"), "{table}");
    drop((near, far));
    assert!(stat(&[]).starts_with("no extended sockets of process"));
}
