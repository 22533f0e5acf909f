//! Postfix: a master that listens, smtpd that accepts as another user, and others that it talks to over UNIX sockets until a mail
//! lies in a folder. Spool, configuration and port are the test's own.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::kit::{Stage, free_port, is_root, serve};

/// Its programs, where Debian has them.
const MASTER: &str = "/usr/lib/postfix/sbin/master";
const MAILS: usize = 60;

/// The same dialogue plain and under Sidestep, and the same mails; the connection is promoted, since smtpd alone holds it.
#[test]
pub fn postfix() {
    // That of the system: another one may be the user's alone.
    let python = Path::new("/usr/bin/python3");
    if ![python, Path::new(MASTER)].iter().all(|file| file.is_file()) {
        eprintln!("left out: postfix, or python3 of the system, is not installed");
        return;
    }
    if !is_root() {
        eprintln!("left out: postfix wants to be started by root");
        return;
    }
    let plain = {
        let (stage, port) = (Stage::new("postfix-plain"), free_port());
        let own = configure(&stage, port);
        let _master = serve(Command::new(MASTER).arg("-c").arg(own).arg("-d"), port);
        let mut client = Command::new(python);
        let said = Bounded::start(client.arg(script(&stage)).arg(port.to_string()), PATIENCE).wait().expect("plain");
        (said, mails(&stage))
    };
    assert!(plain.1.len() == MAILS, "{} plain mails", plain.1.len());

    let mut stage = Stage::new("postfix");
    let (port, sidestep) = (free_port(), stage.copies());
    // The client is of the user that smtpd becomes, and `stat`, which is root's, is told of all.
    stage.ask(&[&sidestep]);
    let own = configure(&stage, port);
    let mut master = stage.run_by(&sidestep, MASTER);
    let _master = serve(master.arg("-c").arg(own).arg("-d"), port);
    let mut client = stage.run_as("postfix", &sidestep, python);
    client.arg(script(&stage)).arg(port.to_string());
    let (ended, sockets) = stage.watch(Bounded::start(&mut client, PATIENCE));
    assert_eq!(ended.expect("the client"), plain.0);
    assert!(mails(&stage) == plain.1, "other mails than plain");
    sockets.expect_promoted("postfix");
}

/// Writes the configuration, and returns its folder.
fn configure(stage: &Stage, port: u16) -> PathBuf {
    stage.open_to_all();
    let [own, spool, data, mail] = ["etc", "spool", "data", "mail"].map(|name| stage.files.join(name));
    for folder in [&own, &spool, &data, &mail] {
        fs::create_dir(folder).expect("a folder");
    }
    let (nobody, owner) = (65_534, user("postfix"));
    chown(&mail, Some(nobody), None).expect("an owner");
    chown(&data, Some(owner), None).expect("an owner");
    let at = stage.files.display();
    // Its programs get none of the environment that is not named there.
    let main = format!(
        "compatibility_level = 3.6\nqueue_directory = {at}/spool\ndata_directory = {at}/data\ncommand_directory = /usr/sbin\n\
         daemon_directory = /usr/lib/postfix/sbin\nmeta_directory = /etc/postfix\nmail_owner = postfix\nsetgid_group = postdrop\n\
         inet_interfaces = 127.0.0.1\ninet_protocols = ipv4\nmyhostname = mail.test\nmydestination =\nmynetworks = 127.0.0.0/8\n\
         maillog_file = {at}/log\nmaillog_file_prefixes = {at}\nalias_maps =\n\
         import_environment = MAIL_CONFIG LD_PRELOAD SIDESTEP_DIR SIDESTEP_CARRIER SIDESTEP_NIC SIDESTEP_PROFILE SIDESTEP_PROMOTE\n\
         virtual_mailbox_domains = box.test\nvirtual_mailbox_base = {at}/mail\nvirtual_mailbox_maps = static:box/\n\
         virtual_uid_maps = static:{nobody}\nvirtual_gid_maps = static:{nobody}\n\
         smtpd_recipient_restrictions = permit_mynetworks, reject\n"
    );
    fs::write(own.join("main.cf"), main).expect("a file");
    let services = format!(
        "127.0.0.1:{port} inet n - n - - smtpd\npickup unix n - n 60 1 pickup\ncleanup unix n - n - 0 cleanup\n\
         qmgr unix n - n 300 1 qmgr\nrewrite unix - - n - - trivial-rewrite\nbounce unix - - n - 0 bounce\n\
         defer unix - - n - 0 bounce\ntrace unix - - n - 0 bounce\nproxymap unix - - n - - proxymap\n\
         virtual unix - n n - - virtual\nerror unix - - n - - error\nretry unix - - n - - error\nanvil unix - - n - 1 anvil\n\
         postlog unix-dgram n - n - 1 postlogd\n"
    );
    fs::write(own.join("master.cf"), services).expect("a file");
    // It makes what is missing in the spool.
    let checked = Command::new("/usr/sbin/postfix").arg("-c").arg(&own).arg("check").output().expect("it starts");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    own
}

/// The mails that were delivered, without their headers, to which Postfix adds; waits for all of them.
fn mails(stage: &Stage) -> BTreeSet<String> {
    let (folder, end) = (stage.files.join("mail/box/new"), Instant::now() + PATIENCE);
    while fs::read_dir(&folder).map_or(0, Iterator::count) < MAILS && Instant::now() < end {
        sleep(Duration::from_millis(20));
    }
    let entries = fs::read_dir(&folder).expect("mails").map(|entry| entry.expect("an entry").path());
    let text = |path: PathBuf| fs::read_to_string(path).expect("a mail");
    let body = |text: String| text.split_once("\n\n").map(|(_, body)| body.to_string()).expect("a body");
    entries.map(text).map(body).collect()
}

fn user(name: &str) -> u32 {
    let list = fs::read_to_string("/etc/passwd").expect("a list of users");
    let line = list.lines().find(|line| line.split(':').next() == Some(name)).expect("a user of that name");
    line.split(':').nth(2).and_then(|number| number.parse().ok()).expect("a number")
}

fn script(stage: &Stage) -> PathBuf {
    stage.file("client.py", CLIENT.replace("MAILS", &MAILS.to_string()))
}

const CLIENT: &str = "
import smtplib, sys
with smtplib.SMTP('127.0.0.1', int(sys.argv[1]), timeout=500) as server:
    print(server.ehlo('client.test')[0])
    for number in range(MAILS):
        print(server.mail('from@box.test'), server.rcpt('to@box.test'))
        body = ''.join('line %d of mail %d\\r\\n' % (line, number) for line in range(1000))
        print(server.data('Subject: %d\\r\\n\\r\\n%s' % (number, body))[0])
    print(server.rcpt('to@elsewhere.test'))
";
