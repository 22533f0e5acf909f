//! Servers that change their users, execute other programs and shut themselves in: sshd, vsftpd as it comes, inetd. What they
//! do is right, whether or not a connection is promoted, and they have as many descriptors as before.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::{
    kit::{Stage, free_port, is_root, program, serve},
    web::expect_equal,
};

#[test]
pub fn sshd_and_scp() {
    let (Some(sshd), Some(scp), Some(_)) = (program("sshd"), program("scp"), program("ssh-keygen")) else { return };
    if !is_root_or_says_so("sshd") {
        return;
    }
    let (stage, port) = (Stage::new("sshd"), free_port());
    stage.open_to_all();
    // It insists on a folder of its own.
    fs::create_dir_all("/run/sshd").expect("a folder");
    for key in ["host", "user"] {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(stage.files.join(key));
        assert!(command.status().is_ok_and(|status| status.success()), "a key");
    }
    let at = stage.files.display().to_string();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nPidFile {at}/pid\nAuthorizedKeysFile {at}/user.pub\n\
         StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n\
         MaxStartups 100\nMatch User nobody\n  ForceCommand internal-sftp\n"
    );
    let config = stage.file("sshd_config", config);
    let file = stage.large_file("large", 48 << 20);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
    let server = serve(stage.run(&sshd).args(["-D", "-e", "-f"]).arg(config), port);
    let given = ["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"];
    let known = format!("UserKnownHostsFile={at}/known");
    let copy = |from: &str, to: &str| {
        let mut client = stage.run(&scp);
        // Slow enough to be looked at: 25 MB/s.
        client.args(given).args([
            "-l",
            "200000",
            "-o",
            &known,
            "-i",
            &format!("{at}/user"),
            "-P",
            &port.to_string(),
            from,
            to,
        ]);
        let (ended, sockets) = stage.watch(Bounded::start(&mut client, PATIENCE));
        ended.expect("scp");
        sockets
    };
    let before = descriptors(server.id());
    // To root, and to one whose part of sshd becomes another user.
    for (user, name) in [("root", "first"), ("nobody", "second"), ("root", "third")] {
        let there = copy(&format!("{at}/large"), &format!("{user}@127.0.0.1:{at}/{name}"));
        expect_equal(&file, &stage.files.join(name));
        let back = copy(&format!("{user}@127.0.0.1:{at}/{name}"), &format!("{at}/{name}-back"));
        expect_equal(&file, &stage.files.join(format!("{name}-back")));
        // A process of its own has root's connection alone, once the one has ended that asked who it is.
        if user == "root" {
            [there, back].iter().for_each(|sockets| sockets.expect_promoted("sshd"));
        }
    }
    stage.wait_for_quiet();
    assert!(descriptors(server.id()) <= before + 2, "{} descriptors, {before} before", descriptors(server.id()));
}

/// For each session vsftpd makes processes in namespaces of their own, changes its user and its root, and filters its system
/// calls.
#[test]
pub fn vsftpd_as_it_comes() {
    let (Some(vsftpd), Some(lftp)) = (program("vsftpd"), program("lftp")) else { return };
    if !is_root_or_says_so("vsftpd") {
        return;
    }
    let (stage, port) = (Stage::new("vsftpd-default"), free_port());
    stage.open_to_all();
    let (at, empty) = (stage.files.join("served"), stage.files.join("empty"));
    for folder in [&at, &empty] {
        fs::create_dir(folder).expect("a folder");
    }
    let incoming = at.join("incoming");
    fs::create_dir(&incoming).expect("a folder");
    fs::set_permissions(&incoming, fs::Permissions::from_mode(0o1777)).expect("a mode");
    let file = stage.large_file("served/large", 12 << 20);
    let config = format!(
        "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\nanonymous_enable=YES\nno_anon_password=YES\n\
         anon_root={}\nsecure_chroot_dir={}\nlocal_enable=NO\nwrite_enable=YES\nanon_upload_enable=YES\nanon_umask=022\n\
         xferlog_enable=NO\npasv_address=127.0.0.1\n",
        at.display(),
        empty.display()
    );
    let config = stage.file("vsftpd.conf", config);
    let server = serve(stage.run(&vsftpd).arg(config), port);
    let before = descriptors(server.id());
    for round in 0..3 {
        let script = format!(
            "set net:max-retries 1; set net:timeout 10; open ftp://127.0.0.1:{port}; \
             get large -o got-{round}; put got-{round} -o incoming/back-{round}; bye"
        );
        Bounded::start(stage.run(&lftp).args(["-c", &script]), PATIENCE).wait().expect("lftp");
        expect_equal(&file, &stage.files.join(format!("got-{round}")));
        expect_equal(&file, &incoming.join(format!("back-{round}")));
    }
    assert!(descriptors(server.id()) <= before + 2, "{} descriptors, {before} before", descriptors(server.id()));
}

/// inetd accepts, makes a process of another user for each connection, and lets it execute a program that reads and writes.
#[test]
fn inetd_and_cat() {
    let (Some(inetd), Some(python)) = (program("inetd"), program("python3")) else { return };
    if !is_root_or_says_so("inetd") {
        return;
    }
    let (stage, port) = (Stage::new("inetd"), free_port());
    stage.open_to_all();
    let config = stage.file("inetd.conf", format!("127.0.0.1:{port} stream tcp nowait nobody /bin/cat cat\n"));
    let server = serve(stage.run(&inetd).args(["-d", "-i"]).arg(config), port);
    let client = "import socket, sys\n\
        def all(connection, count):\n    got = b''\n    while len(got) < count:\n        got += connection.recv(count - len(got))\n    return got\n\
        for connection in [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for i in range(8)]:\n    \
        for i in range(50):\n        line = b'%d\\n' % i * (i + 1)\n        connection.sendall(line)\n        \
        assert all(connection, len(line)) == line\n    \
        connection.shutdown(socket.SHUT_WR)\n    assert connection.recv(1) == b''\n";
    let client = stage.file("client.py", client);
    let before = descriptors(server.id());
    for _ in 0..3 {
        let mut command = stage.run(&python);
        Bounded::start(command.arg(&client).arg(port.to_string()), PATIENCE).wait().expect("the client");
    }
    stage.wait_for_quiet();
    assert!(descriptors(server.id()) <= before + 2, "{} descriptors, {before} before", descriptors(server.id()));
}

fn is_root_or_says_so(server: &str) -> bool {
    if !is_root() {
        eprintln!("left out: {server} changes its user, which only root can");
    }
    is_root()
}

fn descriptors(process: u32) -> usize {
    fs::read_dir(Path::new("/proc").join(process.to_string()).join("fd")).expect("it runs").count()
}
