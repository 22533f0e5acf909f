//! The description of a data centre: its sites, its nodes, and when servers move.

use serde::Deserialize;

use crate::{Error, Result};

/// All of it; the same file for every node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The sites, by name.
    pub sites: Vec<String>,
    /// When servers move.
    #[serde(default)]
    pub rules: Rules,
    /// The nodes.
    pub node: Vec<Node>,
}

/// When servers move.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// A site with a mean load above this wants a server.
    pub high: u64,
    /// A server with at most this load may be taken.
    pub low: u64,
    /// S: milliseconds between two looks.
    pub sensitivity_ms: u64,
    /// T: milliseconds that a load must stay high.
    pub history_ms: u64,
    /// Milliseconds after which a lock that nobody has given back may be taken over.
    pub lease_ms: u64,
}

/// A node: a server, a controller of a site, or both.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Where the other nodes find it.
    pub address: String,
    /// For a server: the site that it begins with.
    pub site: Option<String>,
    /// For a server: a command of the shell that prints its load, a whole number. Without one it is the load of the machine, in per cent.
    pub load: Option<String>,
    /// For a server: a command of the shell that is run when it has changed sites. `SITE` and `NODE` are in its environment.
    pub convert: Option<String>,
    /// For a controller: its site.
    pub controls: Option<String>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { high: 80, low: 30, sensitivity_ms: 200, history_ms: 2000, lease_ms: 2000 }
    }
}

impl Config {
    /// Reads a description, and says what is wrong with it.
    pub fn parse(text: &str) -> Result<Config> {
        let config: Config = toml::from_str(text).map_err(|error| Error::Config(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// The number of a site.
    pub fn site(&self, name: &str) -> Result<u16> {
        let at = self.sites.iter().position(|site| site == name);
        at.map(|at| at as u16).ok_or_else(|| Error::Config(format!("no site is named {name:?}")))
    }

    /// The number of a node.
    pub fn node(&self, name: &str) -> Result<usize> {
        let at = self.node.iter().position(|node| node.name == name);
        at.ok_or_else(|| Error::Config(format!("no node is named {name:?}")))
    }

    fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Config(what));
        if self.sites.is_empty() || self.sites.len() >= usize::from(u16::MAX) || self.node.len() > MOST_NODES {
            return wrong(format!("there must be a site, and at most {MOST_NODES} nodes"));
        }
        if self.sites.len() > self.node.len() {
            return wrong("there must be at least as many nodes as sites: each has a site's lock in its memory".into());
        }
        for (at, node) in self.node.iter().enumerate() {
            for site in node.site.iter().chain(&node.controls) {
                self.site(site)?;
            }
            if node.site.is_none() && node.controls.is_none() {
                return wrong(format!(
                    "node {:?} is neither a server (`site`) nor a controller (`controls`)",
                    node.name
                ));
            }
            if self.node[..at].iter().any(|other| other.name == node.name) {
                return wrong(format!("two nodes are named {:?}", node.name));
            }
        }
        Ok(())
    }
}

/// Each controller has a line to each node, and two processes have at most 32.
const MOST_NODES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        sites = ["shop", "news"]
        rules = { high = 70 }
        node = [
            { name = "a", address = "127.0.0.1:1", site = "shop" },
            { name = "b", address = "127.0.0.1:2", controls = "news" },
        ]"#;

    #[test]
    fn a_description_is_read_and_checked() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!((config.rules.high, config.rules.low), (70, 30));
        assert_eq!((config.site("news").unwrap(), config.node("b").unwrap()), (1, 1));
        for (from, to) in [
            ("\"b\"", "\"a\""),
            ("controls = \"news\"", "controls = \"other\""),
            (", site = \"shop\"", ""),
            ("high", "hihg"),
            ("\"news\"]", "\"news\", \"third\"]"),
        ] {
            let error = Config::parse(&GOOD.replace(from, to)).unwrap_err();
            assert!(!error.to_string().is_empty(), "{from} {to}");
        }
    }
}
