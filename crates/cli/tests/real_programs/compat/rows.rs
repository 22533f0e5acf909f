//! The programs and suites that are compared, in the order of the table. Those that other tests run, too, are one check each.

use super::{
    super::{bench, database, mail, middleware, proxy, successors, transfer, users, web},
    Row, brokers, cpython, front, languages, sql, suites,
};

pub const ROWS: &[Row] = &[
    Row {
        name: "Redis, its client and its load",
        version: "redis-server --version",
        run: |report| report.check("all", bench::redis),
    },
    Row { name: "memcached", version: "memcached --version", run: |report| report.check("all", bench::memcached) },
    Row {
        name: "nginx, also as a proxy and replaced while it runs",
        version: "nginx -v && curl --version >/dev/null",
        run: |report| {
            report.check("two workers", web::curl_and_nginx);
            report.check("as a proxy", proxy::nginx_and_nginx);
            report.check("replaced", successors::nginx_is_replaced);
        },
    },
    Row {
        name: "PHP-FPM behind nginx",
        version: "nginx -v >&2 && dpkg-query --show php-fpm",
        run: |report| report.check("all", proxy::nginx_and_php),
    },
    Row { name: "HAProxy", version: "haproxy -v", run: front::haproxy },
    Row { name: "Apache, prefork", version: "apache2 -v", run: front::apache_prefork },
    Row { name: "Apache, event", version: "apache2 -v", run: front::apache_event },
    Row {
        name: "gunicorn with gevent",
        version: "/usr/bin/python3 -c 'import gevent' && gunicorn --version",
        run: front::gunicorn,
    },
    Row {
        name: "PostgreSQL, psql and pgbench",
        version: "$(ls /usr/lib/postgresql/*/bin/postgres | tail -n 1) --version",
        run: |report| report.check("all", database::postgresql),
    },
    Row { name: "MariaDB as it comes", version: "mariadbd --version", run: sql::mariadb },
    Row { name: "MariaDB without io_uring", version: "mariadbd --version", run: sql::mariadb_without_ring },
    Row { name: "mosquitto", version: "dpkg-query --show mosquitto", run: brokers::mosquitto },
    Row { name: "OpenSSH", version: "ssh -V", run: |report| report.check("all", users::sshd_and_scp) },
    Row {
        name: "rsync, its daemon and clients",
        version: "rsync --version",
        run: |report| report.check("all", transfer::rsync_daemon_and_clients),
    },
    Row {
        name: "vsftpd and lftp",
        version: "dpkg-query --show vsftpd",
        run: |report| {
            report.check("without its sandbox", transfer::vsftpd_and_lftp);
            report.check("as it comes", users::vsftpd_as_it_comes);
        },
    },
    Row { name: "Postfix", version: "postconf mail_version", run: |report| report.check("all", mail::postfix) },
    Row {
        name: "gRPC, in Python and C++",
        version: "dpkg-query --show libgrpc++-dev",
        run: |report| {
            report.check("Python", middleware::grpc_python);
            report.check("C++", middleware::grpc_cpp);
        },
    },
    Row { name: "Java, HTTP server and client", version: "java -version", run: languages::java },
    Row { name: "Go, static, HTTP server and client", version: "go version", run: languages::go },
    Row { name: "CPython's tests: socket, socketserver", version: cpython::VERSION, run: cpython::socket },
    Row {
        name: "CPython's tests: select, selectors, poll, epoll, asyncore",
        version: cpython::VERSION,
        run: cpython::waiting,
    },
    Row { name: "CPython's tests: asyncio", version: cpython::VERSION, run: cpython::asyncio },
    Row { name: "CPython's tests: ssl", version: cpython::VERSION, run: cpython::ssl },
    Row {
        name: "CPython's tests: HTTP, FTP, SMTP, POP, IMAP, XML-RPC, logging",
        version: cpython::VERSION,
        run: cpython::protocols,
    },
    Row { name: "CPython's tests: multiprocessing", version: cpython::VERSION, run: cpython::multiprocessing },
    Row { name: "Redis' suite: commands and clients", version: REDIS, run: suites::redis_commands },
    Row { name: "Redis' suite: saving, and its programs", version: REDIS, run: suites::redis_saving },
    Row { name: "Redis' suite: replication", version: REDIS, run: suites::redis_replication },
    Row {
        name: "PostgreSQL's regression tests, over TCP",
        version: "ls $SOURCES/postgresql/src/test/regress /usr/include/postgresql/*/server >&2 && $(ls /usr/lib/postgresql/*/bin/postgres | tail -n 1) --version",
        run: suites::postgresql,
    },
    Row {
        name: "libuv's tests",
        version: "ls $SOURCES/libuv/test /usr/include/uv.h >&2 && dpkg-query --show libuv1-dev",
        run: suites::libuv,
    },
    Row { name: "Node's tests: net", version: NODE, run: suites::node_net },
    Row { name: "Node's tests: http client and server", version: NODE, run: suites::node_http },
];

/// Its suite is written in Tcl.
const REDIS: &str = "ls $SOURCES/redis/tests >&2 && tclsh </dev/null && redis-server --version";

const NODE: &str = "ls $SOURCES/node/test >&2 && node --version";
