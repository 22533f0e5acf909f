//! The same programs, with their connections over VIA.

use super::{bench, database, mail, middleware, proxy, transfer, way, web};

macro_rules! over_via {
    ($($module:ident::$name:ident)*) => { $(#[test] fn $name() { way::over_via($module::$name); })* };
}

over_via! {
    bench::iperf3 bench::redis bench::memcached database::postgresql mail::postfix
    middleware::onc_rpc middleware::omniorb middleware::grpc_python middleware::grpc_cpp
    proxy::nginx_and_nginx proxy::nginx_and_php transfer::vsftpd_and_lftp web::curl_and_nginx web::curl_and_python
}
