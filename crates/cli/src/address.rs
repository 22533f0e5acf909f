//! Addresses that people type: numbers, or the name of a host, with a port.

use std::net::{SocketAddr, ToSocketAddrs};

/// Every address of `ADDRESS:PORT` or `HOST:PORT`, those of IPv4 first; or what is wrong with it.
pub fn resolve(text: &str) -> Result<Vec<SocketAddr>, String> {
    let wanted = "it is ADDRESS:PORT or HOST:PORT, such as 127.0.0.1:9464, [::1]:9464 or localhost:9464";
    let Some((host, port)) = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()) else {
        return Err(format!("{text} is no address with a port: {wanted}"));
    };
    let Ok(port) = port.parse::<u16>() else {
        return Err(format!("{text} has no port: {wanted}, with a number from 0 to 65535"));
    };
    if let Ok(address) = text.parse() {
        return Ok(vec![address]);
    }
    let found = (host, port).to_socket_addrs().map_err(|error| format!("no host is called {host} ({error})"))?;
    let mut addresses: Vec<SocketAddr> = found.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.dedup();
    if addresses.is_empty() { Err(format!("the host {host} has no address")) } else { Ok(addresses) }
}

/// The first of them.
pub fn first(text: &str) -> Result<SocketAddr, String> {
    resolve(text).map(|addresses| addresses[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_addresses() {
        assert_eq!(first("127.0.0.1:9464"), Ok(SocketAddr::from(([127, 0, 0, 1], 9464))));
        assert_eq!(first("[::1]:0").map(|address| address.to_string()), Ok("[::1]:0".to_owned()));
        assert!(first("localhost:9464").is_ok_and(|address| address.ip().is_loopback() && address.port() == 9464));
        for wrong in ["", "9464", ":9464", "localhost", "localhost:", "localhost:http", "127.0.0.1:65536"] {
            let said = first(wrong).expect_err(wrong);
            assert!(said.contains("HOST:PORT"), "{wrong}: {said}");
        }
        assert!(first("no host at all:80").is_err_and(|said| said.contains("no host is called")));
    }
}
