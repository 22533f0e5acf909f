//! What is asked about.

use std::net::IpAddr;

use crate::address;

/// One question.
#[derive(Debug, PartialEq, Eq)]
pub enum Subject {
    /// A process.
    Process(u32),
    /// A port of any address.
    Port(u16),
    /// A port of one of these addresses.
    At(Vec<IpAddr>, u16),
    /// A program, by name or path.
    Program(String),
}

impl Subject {
    /// Reads a process id, `:PORT`, `ADDRESS:PORT` or the name of a program; or says what it wants.
    pub fn parse(text: &str) -> Result<Subject, String> {
        if let Ok(pid) = text.parse() {
            return Ok(Subject::Process(pid));
        }
        if text.parse::<IpAddr>().is_ok() {
            return Err(format!(
                "{text} has no port: an address is written {}",
                if text.contains(':') { "[ADDRESS]:PORT" } else { "ADDRESS:PORT" }
            ));
        }
        if let Some(port) = text.strip_prefix(':') {
            let port = port.parse().ok().filter(|port| *port != 0).map(Subject::Port);
            return port
                .ok_or_else(|| format!("{text} is no port: it is written :PORT, with a number from 1 to 65535"));
        }
        // A path may have anything in it.
        if !text.contains(':') || text.contains('/') {
            return Ok(Subject::Program(text.to_owned()));
        }
        let ends = address::resolve(text)?;
        let port = ends.first().map_or(0, std::net::SocketAddr::port);
        Ok(Subject::At(ends.iter().map(|end| end.ip().to_canonical()).collect(), port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read() {
        let at = |ip: &str, port| Subject::At(vec![ip.parse().unwrap()], port);
        for (text, subject) in [
            ("4711", Subject::Process(4711)),
            (":6379", Subject::Port(6379)),
            ("127.0.0.1:6379", at("127.0.0.1", 6379)),
            ("[::1]:80", at("::1", 80)),
            ("[::ffff:10.0.0.1]:80", at("10.0.0.1", 80)),
            ("redis-server", Subject::Program("redis-server".into())),
            ("/opt/a:1/redis", Subject::Program("/opt/a:1/redis".into())),
        ] {
            assert_eq!(Subject::parse(text), Ok(subject), "{text}");
        }
        for (wrong, part) in [
            (":", ":PORT"),
            (":0", "1 to 65535"),
            (":70000", "1 to 65535"),
            ("127.0.0.1", "ADDRESS:PORT"),
            ("::1", "[ADDRESS]:PORT"),
            ("localhost:http", "a number"),
        ] {
            let said = Subject::parse(wrong).expect_err(wrong);
            assert!(said.contains(part), "{wrong}: {said}");
        }
    }
}
