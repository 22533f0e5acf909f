//! vsftpd and lftp.

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
