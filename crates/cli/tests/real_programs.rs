//! Programs that people run, unmodified, on both ends: the answers are right, and once a connection is promoted at least 90 % of
//! its bytes go over the ring, or half of them over VIA, as both ends' control blocks say.
//!
//! A program that is not installed is said to be left out; `./test packages` installs them all.

mod real_programs {
    mod bench;
    mod compat;
    mod database;
    mod kit;
    mod mail;
    mod middleware;
    mod over_via;
    mod proxy;
    mod successors;
    mod tally;
    mod transfer;
    mod users;
    mod way;
    mod web;
}
