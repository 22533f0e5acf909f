//! The example behind a proxy: what was posted past the proxy is in its next answer.

mod site;

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use sidestep_cache::Mode;
use site::{Client, Running};

struct Part(Child);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_tells_of_its_own_changes() {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("examples/guestbook");
    let mut child = Command::new(program).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _server = Part(child);
    let words: Vec<&str> = line.split([' ', ',', '\n']).collect();
    let ["pages", "at", pages, "", "versions", "at", versions, ""] = words[..] else { panic!("{line:?}") };
    for mode in [Mode::OneSided, Mode::TwoSided] {
        let proxy = Running::start(pages, Some((mode, versions)));
        let (mut past, mut client) = (Client::new(pages), Client::new(&proxy.address));
        let mut count = client.get("/guests").text().lines().count();
        for guest in ["Ada", "Grace", "Edsger"] {
            let question =
                format!("POST /guests HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{guest}", guest.len());
            past.say(question.as_bytes());
            assert_eq!(past.hear("POST").status, 204);
            count += 1;
            for how in ["stale", "hit"] {
                let answered = client.get("/guests");
                assert_eq!((answered.how(), answered.text().lines().count()), (how, count), "{mode:?}");
                assert!(answered.text().ends_with(&format!("{guest}\n")));
            }
        }
    }
    let refused = sidestep_cache::module::update(versions, "/guests", b"x").unwrap_err();
    assert!(refused.to_string().contains("is no module"), "{refused}");
}
