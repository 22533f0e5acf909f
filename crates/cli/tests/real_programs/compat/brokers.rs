//! mosquitto: messages to several readers, with every quality of service.

use std::{fs, path::PathBuf, process::Stdio};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::{
    super::kit::{Stage, free_port, program, serve, start, wait_until},
    report::Report,
};

/// Messages of one run.
const MESSAGES: usize = 2000;

/// One writer and three readers for each quality of service: each reader gets all messages, in their order.
pub fn mosquitto(report: &mut Report) {
    let [broker, write, read] =
        ["mosquitto", "mosquitto_pub", "mosquitto_sub"].map(|name| program(name).expect("mosquitto"));
    let (stage, port) = (Stage::new("mosquitto"), free_port());
    let config = format!("listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nuser root\n");
    let config = stage.file("mosquitto.conf", config);
    let _broker = serve(stage.run(&broker).arg("-c").arg(config), port);
    let lines: String =
        (0..MESSAGES).map(|number| format!("message {number} {}\n", "x".repeat(number % 700))).collect();
    let (from, number) = (stage.file("lines", &lines), port.to_string());
    for quality in ["0", "1", "2"] {
        report.check(&format!("quality {quality}"), || {
            let at = ["-h", "127.0.0.1", "-p", &number, "-q", quality];
            // A message that is kept for readers that come: one that has it is known to listen.
            let begin = ["-t", "begin", "-r", "-m", "begin"];
            Bounded::start(stage.run(&write).args(at).args(begin), PATIENCE).wait().expect("mosquitto_pub");
            let count = (MESSAGES + 1).to_string();
            let readers: Vec<(Bounded, PathBuf)> = (0..3)
                .map(|reader| {
                    let got = stage.files.join(format!("got-{quality}-{reader}"));
                    let mut command = stage.run("sh");
                    command.args(["-c", "exec \"$@\" > \"$0\""]).arg(&got).arg(&read).args(at);
                    let mut reader = start(command.args(["-t", "lines", "-t", "begin", "-C", &count]));
                    wait_until(&mut reader, || fs::metadata(&got).is_ok_and(|file| file.len() > 0));
                    (reader, got)
                })
                .collect();
            let input = Stdio::from(fs::File::open(&from).expect("a file"));
            let mut writer = stage.run(&write);
            Bounded::fed(writer.args(at).args(["-t", "lines", "-l"]), PATIENCE, input).wait().expect("mosquitto_pub");
            for (reader, got) in readers {
                reader.wait().expect("mosquitto_sub");
                assert!(fs::read_to_string(got).expect("a file") == format!("begin\n{lines}"), "other messages");
            }
        });
    }
}
