//! vsftpd and lftp, and rsync, whose daemon forks for each client and whose processes share a connection.

use std::{fs, path::Path};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::{
    kit::{Stage, free_port, is_root, program, serve},
    web::expect_equal,
};

#[test]
pub fn vsftpd_and_lftp() {
    let (Some(vsftpd), Some(lftp)) = (program("vsftpd"), program("lftp")) else { return };
    if !is_root() {
        eprintln!("left out: vsftpd wants to be started by root");
        return;
    }
    let (stage, port) = (Stage::new("vsftpd"), free_port());
    let at = stage.files.join("served");
    std::fs::create_dir(&at).expect("a folder");
    let file = stage.large_file("served/large", 160 << 20);
    // It keeps its user, since processes of one user find each other: so it does not change its root either. And it does
    // without the filter of system calls, after which nothing is promoted.
    let config = format!(
        "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\nrun_as_launching_user=YES\n\
         anonymous_enable=YES\nno_anon_password=YES\nanon_root={}\nlocal_enable=NO\nwrite_enable=YES\n\
         anon_upload_enable=YES\nseccomp_sandbox=NO\nisolate=NO\nisolate_network=NO\nxferlog_enable=NO\n\
         pasv_enable=YES\npasv_address=127.0.0.1\n",
        at.display()
    );
    let config = stage.file("vsftpd.conf", config);
    let _server = serve(stage.run(&vsftpd).arg(config), port);
    let mut client = stage.run(&lftp);
    // Long enough that each transfer has most of its bytes after its first second.
    let script = format!(
        "set net:limit-rate 60M; set net:max-retries 1; set net:timeout 300; open ftp://127.0.0.1:{port}; \
         get large -o got; put got -o back; bye"
    );
    let (ended, sockets) = stage.watch(Bounded::start(client.args(["-c", &script]), PATIENCE));
    ended.expect("lftp");
    expect_equal(&file, &stage.files.join("got"));
    expect_equal(&file, &at.join("back"));
    sockets.expect_promoted("vsftpd");
}

#[test]
pub fn rsync_daemon_and_clients() {
    let Some(rsync) = program("rsync") else { return };
    let (stage, port) = (Stage::new("rsync"), free_port());
    let [source, served, got] = ["source", "served", "got"].map(|name| stage.files.join(name));
    for folder in [&source, &served] {
        fs::create_dir(folder).expect("a folder");
    }
    stage.large_file("source/large", 20 << 20);
    for number in 1..40 {
        stage.large_file(&format!("source/{number}"), number * 8 * 1009);
    }
    let mut config = format!(
        "port = {port}\naddress = 127.0.0.1\nuse chroot = no\n[files]\npath = {}\nread only = no\n",
        served.display()
    );
    if is_root() {
        // It would become somebody else otherwise.
        config = format!("uid = root\ngid = root\n{config}");
    }
    let config = stage.file("rsyncd.conf", config);
    let mut daemon = stage.run(&rsync);
    let _daemon = serve(daemon.args(["--daemon", "--no-detach", "--config"]).arg(config), port);
    let at = format!("rsync://127.0.0.1:{port}/files/");
    let copy = |from: String, to: String| {
        Bounded::start(stage.run(&rsync).arg("-a").args([from, to]), PATIENCE).wait().expect("rsync");
    };
    for _ in 0..3 {
        copy(format!("{}/", source.display()), at.clone());
        copy(at.clone(), format!("{}/", got.display()));
        expect_same_files(&source, &served);
        expect_same_files(&source, &got);
        for folder in [&served, &got] {
            fs::remove_dir_all(folder).expect("a folder");
        }
        fs::create_dir(&served).expect("a folder");
    }
}

fn expect_same_files(one: &Path, other: &Path) {
    let names = |folder: &Path| -> Vec<_> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(one), names(other));
    names(one).iter().for_each(|name| expect_equal(&one.join(name), &other.join(name)));
}

/// A server that executes a program for each client, with the connection as its input and output, and goes on with it after:
/// by subprocess, which uses vfork, and by fork. The client says something more before the program has read anything.
#[test]
pub fn python_and_its_programs() {
    let Some(python) = program("python3") else { return };
    let (stage, port) = (Stage::new("python-programs"), free_port());
    let script = stage.file("server.py", SERVER.replace("PORT", &port.to_string()));
    let mut server = serve(stage.run(&python).arg(script), port);
    let script = stage.file("client.py", CLIENT.replace("PORT", &port.to_string()));
    let ended = Bounded::start(stage.run(&python).arg(script), PATIENCE).wait();
    assert!(ended.success() && ended.stdout.trim() == "12 answers", "{}{}", ended.stdout, ended.stderr);
    assert!(server.is_working(), "the server has ended");
}

const SERVER: &str = "
import os, socket, subprocess, sys
listener = socket.create_server(('127.0.0.1', PORT))
turn = 0
while True:
    connection, _ = listener.accept()
    with connection:
        for _ in range(20):
            word = connection.recv(64)
            if not word:
                break
            connection.sendall(word)
        else:
            # What follows is the program's.
            turn += 1
            command = ['head', '-c', '5000']
            if turn % 2:
                subprocess.run(command, stdin=connection, stdout=connection, check=True)
            else:
                child = os.fork()
                if child == 0:
                    os.dup2(connection.fileno(), 0)
                    os.dup2(connection.fileno(), 1)
                    os.execvp(command[0], command)
                os.waitpid(child, 0)
            connection.sendall(connection.recv(64))
";

const CLIENT: &str = "
import socket
answers = 0
for turn in range(12):
    with socket.create_connection(('127.0.0.1', PORT)) as connection:
        for number in range(20):
            connection.sendall(b'word %d' % number)
            assert connection.recv(64) == b'word %d' % number
        text = bytes(number * turn % 251 for number in range(5000))
        connection.sendall(text)
        got = b''
        while len(got) < len(text):
            piece = connection.recv(65536)
            assert piece, (turn, len(got))
            got += piece
        assert got == text, turn
        connection.sendall(b'more')
        assert connection.recv(64) == b'more', turn
        answers += 1
print(answers, 'answers')
";
