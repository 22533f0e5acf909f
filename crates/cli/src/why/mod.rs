//! `sidestep why`: one sentence that says why a connection or a program is accelerated or not, then the facts, and what would
//! change it.

mod subject;
mod verdict;

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    net::{IpAddr, SocketAddr},
    process,
};

use anyhow::{Result, bail};
use sidestep_sockets::{config::config, reason::Reason, registry::Traffic};

use crate::{
    census::{
        Census, Sighting, owner, process as of_process,
        tables::{Row, State, Tables},
    },
    options::Why,
    run::program::Program,
};

use subject::Subject;
use verdict::Verdict;

/// Answers the question.
pub fn run(options: &Why) -> Result<()> {
    let subject = Subject::parse(&options.subject).map_err(anyhow::Error::msg)?;
    let (verdicts, all) = match (subject, options.fd) {
        (Subject::Process(pid), Some(fd)) => (vec![descriptor(pid, fd)?], 1),
        (_, Some(_)) => {
            bail!("{} is not a process id: `sidestep why PID FD` takes one before a descriptor", options.subject)
        }
        (Subject::Process(pid), None) => processes(&[pid])?,
        (Subject::Port(port), None) => connections(&[], port, &options.subject)?,
        (Subject::At(addresses, port), None) => connections(&addresses, port, &options.subject)?,
        (Subject::Program(name), None) => program(&name)?,
    };
    let texts: Vec<String> = verdicts.iter().map(ToString::to_string).collect();
    println!("{}", texts.join("\n"));
    if all > verdicts.len() {
        println!("... and {} more: `sidestep stat` lists them all", all - verdicts.len());
    }
    Ok(())
}

/// More than this nobody reads, so no more is found out.
const MOST: usize = 20;

/// Answers, and how many there are with those that are not shown.
type Answers = (Vec<Verdict>, usize);

/// One descriptor of a process.
fn descriptor(pid: u32, fd: u32) -> Result<Verdict> {
    let Some(name) = of_process::program(pid) else { bail!(no_process(pid)) };
    let link = match fs::read_link(format!("/proc/{pid}/fd/{fd}")) {
        Ok(link) => link.to_string_lossy().into_owned(),
        Err(_) => match verdict::hindrance(pid) {
            Some(hindrance) => bail!("process {pid} ({name}) {hindrance}"),
            None => bail!("process {pid} ({name}) has no descriptor {fd}"),
        },
    };
    let who = format!("descriptor {fd} of {name} ({pid})");
    let Some(inode) = of_process::inode(&link) else {
        return Ok(Verdict::new(who, Reason::SocketType).fact("it is", link));
    };
    let mut tables = Tables::default();
    let table = tables.of_process(pid);
    let Some(row) = table.with_inode(inode) else {
        return Ok(Verdict::new(who, Reason::SocketType)
            .fact("it is", "a socket, but none of TCP, or one that is not connected"));
    };
    if row.state == State::Listening {
        return Ok(listener(who, row, pid));
    }
    Ok(of_row(&Census::take_with(&mut tables), pid, who, row, &mut tables))
}

/// A listening socket: what it accepts may be accelerated.
fn listener(who: String, row: &Row, pid: u32) -> Verdict {
    let verdict = Verdict::of_process(who, pid).fact("listens at", row.local);
    verdict.fact("", "a listening socket stays with the kernel; the connections it accepts are what is accelerated")
}

/// A connection of a process.
fn of_row(census: &Census, pid: u32, who: String, row: &Row, tables: &mut Tables) -> Verdict {
    let is_it = |socket: &&Sighting| {
        let key = &socket.record.key;
        socket.record.pid == pid && (key.local, key.remote) == (row.local, row.remote)
    };
    match census.sockets.iter().find(is_it) {
        Some(socket) => sighted(census, socket, tables),
        None => Verdict::of_process(who, pid).fact("between", format!("{} and {}", row.local, row.remote)),
    }
}

/// A connection of a process that runs under Sidestep.
fn sighted(census: &Census, socket: &Sighting, tables: &mut Tables) -> Verdict {
    let record = &socket.record;
    let who = format!(
        "{} ({}) descriptor {}, {} to {}",
        census.program(record.pid),
        record.pid,
        record.fd,
        record.key.local,
        record.key.remote
    );
    let mut verdict = Verdict::new(who, record.reason).sentence(socket.why());
    if record.reason == Reason::WrongOption
        && let Some(wrong) = of_process::settings(record.pid).wrong
    {
        verdict = verdict.fact("wrong is", wrong);
    }
    verdict = verdict.fact("path", format!("reads from {}, writes to {}", socket.reads_from(), socket.writes_to()));
    if socket.is_counted() {
        let (read, written) = (&record.read, &record.written);
        verdict = verdict
            .fact("read", moved(read))
            .fact("written", moved(written))
            .fact("promoted", format!("{}, counting each direction", times(record.promotions)));
    }
    verdict.fact("other end", other_end(census, socket, tables))
}

/// What went one way.
fn moved(traffic: &Traffic) -> String {
    format!("{} bytes over carriers, {} over TCP", grouped(traffic.carried), grouped(traffic.tcp))
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{} times", grouped(count)),
    }
}

/// A count with a comma before every three digits.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Who has the other end, as far as this user may know.
fn other_end(census: &Census, socket: &Sighting, tables: &mut Tables) -> String {
    if let Some(peer) = socket.peer {
        let (name, why) = (census.program(peer.pid), peer.reason.sentence());
        return format!("{name} ({}) descriptor {}, under Sidestep: {why}", peer.pid, peer.fd);
    }
    let key = &socket.record.key;
    let Some(row) = tables.of_process(socket.record.pid).between(key.remote, key.local).copied() else {
        return format!("{}, which is not in this network namespace", key.remote);
    };
    match tables.holder(row.inode) {
        Some(pid) => {
            let name = of_process::program(pid).unwrap_or_default();
            let settings = of_process::settings(pid);
            match of_process::has_library(pid) {
                Some(true) if settings.directory != config().directory => {
                    format!("{name} ({pid}), under Sidestep with another directory: {}", settings.directory)
                }
                Some(true) => format!("{name} ({pid}), under Sidestep; it has not entered the connection yet"),
                _ => format!("{name} ({pid}), which does not run under Sidestep"),
            }
        }
        None if row.inode == 0 => "nobody: it is closed, or not accepted yet".to_owned(),
        None => format!("a process of user {}, which cannot be looked into from here", owner::shown(row.user)),
    }
}

/// Connections from and to one of these addresses, or any if there are none; or who listens there.
fn connections(addresses: &[IpAddr], port: u16, shown: &str) -> Result<Answers> {
    let mut tables = Tables::default();
    let census = Census::take_with(&mut tables);
    let fits = |end: SocketAddr| {
        let ip = end.ip();
        end.port() == port && (addresses.is_empty() || addresses.contains(&ip) || ip.is_unspecified())
    };
    let here = |socket: &&Sighting| fits(socket.record.key.local) || fits(socket.record.key.remote);
    let sockets: Vec<&Sighting> = census.sockets.iter().filter(here).collect();
    if !sockets.is_empty() {
        let shown = sockets.iter().take(MOST).map(|socket| sighted(&census, socket, &mut tables)).collect();
        return Ok((shown, sockets.len()));
    }
    let table = tables.of_process(process::id());
    let mut rows: Vec<&Row> = table.rows().filter(|row| fits(row.local) || fits(row.remote)).collect();
    rows.sort_by_key(|row| (row.state != State::Connected, row.local, row.remote));
    if rows.is_empty() {
        bail!("nothing listens at {shown} or is connected there, in this network namespace");
    }
    // One answer for all connections of a process, which may have very many.
    let mut known = HashMap::new();
    let mut verdict = |row: &&Row| {
        let who = |name: &str| match row.state {
            State::Listening => format!("{name}, which listens at {}", row.local),
            _ => format!("{name}, {} to {}", row.local, row.remote),
        };
        match tables.holder(row.inode) {
            Some(pid) => {
                let found = || {
                    let name = of_process::program(pid).unwrap_or_default();
                    (format!("{name} ({pid})"), Verdict::of_process(String::new(), pid))
                };
                let (name, verdict) = known.entry(pid).or_insert_with(found);
                verdict.clone().of(who(name))
            }
            None if row.inode == 0 => Verdict::of_nobody(who("a connection"), row),
            None => Verdict::of_nobody(who(&format!("a process of user {}", owner::shown(row.user))), row),
        }
    };
    Ok((rows.iter().take(MOST).map(&mut verdict).collect(), rows.len()))
}

/// Whole processes.
fn processes(pids: &[u32]) -> Result<Answers> {
    let mut tables = Tables::default();
    let (census, mut verdicts, mut all) = (Census::take_with(&mut tables), Vec::new(), 0);
    for pid in pids {
        // One of several may have ended since they were listed.
        let Some(name) = of_process::program(*pid) else { continue };
        let own: Vec<&Sighting> = census.sockets.iter().filter(|socket| socket.record.pid == *pid).collect();
        if own.is_empty() {
            verdicts.push(Verdict::of_process(format!("{name} ({pid})"), *pid));
        }
        all += own.len().max(1);
        let room = MOST.saturating_sub(verdicts.len());
        verdicts.extend(own.into_iter().take(room).map(|socket| sighted(&census, socket, &mut tables)));
    }
    if let ([pid], true) = (pids, verdicts.is_empty()) {
        bail!(no_process(*pid));
    }
    Ok((verdicts, all))
}

/// That there is none, and what may have been meant.
fn no_process(pid: u32) -> String {
    let table = Tables::default().of_process(process::id());
    let has_port = |row: &Row| [row.local, row.remote].iter().any(|end| u32::from(end.port()) == pid);
    match table.rows().any(has_port) {
        true => format!("there is no process {pid}; for the port {pid}, ask `sidestep why :{pid}`"),
        false => format!("there is no process {pid} (a port is written :{pid})"),
    }
}

/// A program: its processes, or what would become of it.
fn program(name: &str) -> Result<Answers> {
    let file = name.rsplit('/').next().unwrap_or(name);
    // The kernel keeps 15 letters of a name.
    let kept: String = file.chars().take(15).collect();
    let own = process::id();
    let pids: Vec<u32> =
        of_process::all().filter(|pid| *pid != own && of_process::program(*pid).as_deref() == Some(&kept)).collect();
    if !pids.is_empty() {
        return processes(&pids);
    }
    let found = Program::find(OsStr::new(name));
    let Ok(found) = found else {
        bail!("no process runs {name}, and no program has this name (an address is written ADDRESS:PORT, a port :PORT)")
    };
    let who = format!("{file}, which does not run now,");
    let verdict = match found.loading().why_not() {
        Some(why) => Verdict::new(who, Reason::NotLoadable).fact("it", why),
        None => {
            Verdict::new(who, Reason::NotLoaded).sentence("could be accelerated").fact("file", found.path.display())
        }
    };
    Ok((vec![verdict], 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        let shown = [0, 999, 1000, 12_345, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!([1, 2, 4000].map(times), ["once", "2 times", "4,000 times"]);
    }
}
