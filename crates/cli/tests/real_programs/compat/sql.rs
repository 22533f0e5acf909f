//! MariaDB: a script whose answers are the same in all ways, and many clients at a time.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::{
    super::kit::{Stage, free_port, is_root, program, serve},
    report::Report,
};

/// As it comes it reads and writes its files by an io_uring, and so stays on TCP.
pub fn mariadb(report: &mut Report) {
    questions(report, &[]);
}

/// Without, it leaves TCP.
pub fn mariadb_without_ring(report: &mut Report) {
    questions(report, &["--skip-innodb-use-native-aio"]);
}

/// Questions and answers over TCP; results of many megabytes; 20 clients at a time.
fn questions(report: &mut Report, options: &[&str]) {
    let [server, install, client, load] =
        ["mariadbd", "mariadb-install-db", "mariadb", "mariadb-slap"].map(|name| program(name).expect("MariaDB"));
    let (stage, port) = (Stage::new("mariadb"), free_port());
    let (data, number) = (stage.files.join("data"), port.to_string());
    let mut command = Command::new(install);
    command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    own_folder(&mut command, &data).current_dir(&stage.files);
    Bounded::start(&mut command, PATIENCE).wait().expect("mariadb-install-db");
    let mut command = stage.run(&server);
    own_folder(command.arg("--no-defaults"), &data);
    command.args(["--bind-address=127.0.0.1", "--port", &number, "--max-allowed-packet=64M", "--skip-name-resolve"]);
    command.arg("--socket").arg(stage.files.join("socket")).args(options);
    let _server = serve(&mut command, port);

    let at = ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=root", "--port", &number];
    let ask = |script: &str| {
        let input = Stdio::from(File::open(stage.file("script.sql", script)).expect("a file"));
        let mut command = stage.run(&client);
        command.args(at).args(["--batch", "--max-allowed-packet=64M"]);
        Bounded::fed(&mut command, PATIENCE, input).wait().expect("mariadb")
    };
    report.answer("a script", || ask(SCRIPT));
    report.check("many rows", || {
        let rows = ask("use mysql; select seq from seq_1_to_200000;");
        assert!(rows.lines().skip(1).map(|line| line.parse().unwrap_or(0)).eq(1..=200_000), "other rows");
    });
    report.check("a large value there and back", || {
        let value = "0123456789abcdef".repeat(1 << 20);
        let got =
            ask(&format!("select md5('{value}') = md5(repeat('0123456789abcdef', 1 << 20)), '{value}' as value;"));
        assert!(got.lines().nth(1) == Some(&format!("1\t{value}")), "another value: {} bytes", got.len());
    });
    report.check("20 clients", || {
        let mut command = stage.run(&load);
        command.args(at).args(["--concurrency=20", "--number-of-queries=2000", "--auto-generate-sql"]);
        let said = Bounded::start(command.arg("--auto-generate-sql-load-type=mixed"), PATIENCE).wait();
        let said = said.expect("mariadb-slap");
        assert!(said.contains("Number of clients running queries: 20"), "{said}");
    });
}

fn own_folder<'a>(command: &'a mut Command, data: &Path) -> &'a mut Command {
    command.arg(format!("--datadir={}", data.display()));
    if is_root() {
        command.arg("--user=root");
    }
    command
}

const SCRIPT: &str = "
create database shop;
use shop;
create table article (id int primary key, name varchar(40) not null, price decimal(8, 2), key (name));
insert into article select seq, concat('article ', seq), seq % 997 + 0.25 from seq_1_to_20000;
select count(*), sum(price), min(name), max(name) from article;
select id % 7 as kind, count(*), avg(price) from article group by kind order by kind;
begin;
update article set price = price * 2 where id % 10 = 3;
select sum(price) from article;
rollback;
select sum(price) from article;
prepare question from 'select name, price from article where id between ? and ? order by id';
set @first = 400, @last = 460;
execute question using @first, @last;
create procedure total(in least int) select sum(price) as total from article where id >= least;
call total(19000);
select a.id, b.name from article a join article b on b.id = a.id + 5000 where a.price < 2 order by a.id limit 30;
delete from article where id > 100;
select id, name, price from article order by price, id;
drop database shop;
";
