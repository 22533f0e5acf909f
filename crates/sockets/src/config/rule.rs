//! Rules that include connections or exclude them.

use std::net::IpAddr;

use crate::kernel::address::Key;

/// One `--rule`: the first that fits decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Whether it includes what fits.
    pub allow: bool,
    port: Option<u16>,
    network: Option<(IpAddr, u8)>,
}

impl Rule {
    /// Reads rules with commas between them. The error names the one that is none.
    pub fn parse_all(text: &str) -> Result<Vec<Rule>, String> {
        text.split(',').filter(|rule| !rule.is_empty()).map(Rule::parse).collect()
    }

    /// Reads `allow:port=6379`, `deny:addr=10.0.0.0/8`, `deny:all`; several conditions are joined by `;`.
    pub fn parse(text: &str) -> Result<Rule, String> {
        let (verb, conditions) =
            text.trim().split_once(':').ok_or_else(|| format!("{text}: a rule has a verdict and a colon"))?;
        let allow = match verb {
            "allow" => true,
            "deny" => false,
            _ => return Err(format!("{verb}: a verdict is allow or deny")),
        };
        let mut rule = Rule { allow, port: None, network: None };
        for condition in conditions.split(';').filter(|condition| *condition != "all") {
            match condition.split_once('=') {
                Some(("port", port)) => {
                    rule.port = Some(port.parse().map_err(|_| format!("{port}: a port is a number below 65536"))?);
                }
                Some(("addr", network)) => rule.network = Some(self::network(network)?),
                _ => return Err(format!("{condition}: a condition is port=N, addr=A[/BITS] or all")),
            }
        }
        Ok(rule)
    }

    /// Whether all its conditions hold for a connection.
    pub fn fits(&self, key: &Key) -> bool {
        let port = self.port.is_none_or(|port| key.local.port() == port || key.remote.port() == port);
        let network =
            self.network.is_none_or(|network| contains(network, key.local.ip()) || contains(network, key.remote.ip()));
        port && network
    }
}

fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let (ip, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
    let ip: IpAddr = ip.parse().map_err(|_| format!("{ip}: not an IP address"))?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok()).filter(|bits| *bits <= most);
    bits.map(|bits| (ip, bits)).ok_or_else(|| format!("{text}: the bits of this network are 0 to {most}"))
}

fn contains((network, bits): (IpAddr, u8), ip: IpAddr) -> bool {
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            let shift = 32 - u32::from(bits.min(32));
            u32::from(network).checked_shr(shift) == u32::from(ip).checked_shr(shift)
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => {
            let shift = 128 - u32::from(bits.min(128));
            u128::from(network).checked_shr(shift) == u128::from(ip).checked_shr(shift)
        }
        _ => false,
    }
}
