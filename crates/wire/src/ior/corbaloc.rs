//! References that people can write (CORBA 3.3 part 2 §7.6.10).
//!
//! ```text
//! corbaloc:iiop:1.2@host:port,:other:port/key        an object key at one of these addresses
//! corbaloc:rir:/NameService                           an initial reference of this broker
//! corbaname::host:port/key#path/of/names              what a naming service has under a name
//! ```

use std::fmt;
use std::str::FromStr;

use super::{Error, Ior, iiop};
use crate::giop::Version;

/// The port of an address that names none.
pub const DEFAULT_PORT: u16 = 2809;

/// A `corbaloc:` or a `corbaname:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The addresses, in the order in which they are to be tried.
    pub addresses: Vec<Address>,
    /// The object key, or the name of an initial reference.
    pub key: Vec<u8>,
    /// What stands behind `#` in a `corbaname:`; `None` for a `corbaloc:`.
    pub name: Option<String>,
}

/// Where to look for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The initial references of this broker.
    Initial,
    /// A TCP address.
    Iiop {
        /// The version of GIOP that may be spoken.
        version: Version,
        /// A host name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A UNIX socket, as omniORB writes it.
    Unix {
        /// The path of the socket.
        path: String,
    },
}

impl Location {
    /// A reference with a profile for each TCP address. Its type is not known.
    pub fn to_ior(&self) -> Result<Ior, Error> {
        let profiles = self.addresses.iter().filter_map(|address| match address {
            Address::Iiop { version, host, port } => Some(iiop::Repr {
                version: *version,
                host: host.clone(),
                port: *port,
                object_key: self.key.clone(),
                components: Vec::new(),
            }),
            Address::Unix { path } => Some(iiop::Repr {
                version: Version::V1_2,
                host: String::new(),
                port: 0,
                object_key: self.key.clone(),
                components: vec![super::component::Component::Unix { host: String::new(), path: path.clone() }],
            }),
            Address::Initial => None,
        });
        let profiles = profiles.map(|profile| profile.emit()).collect::<Result<_, _>>()?;
        Ok(Ior { type_id: String::new(), profiles })
    }
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let scheme = |scheme: &str| {
            text.get(..scheme.len()).filter(|found| found.eq_ignore_ascii_case(scheme)).map(|_| &text[scheme.len()..])
        };
        let (rest, names) = match (scheme("corbaloc:"), scheme("corbaname:")) {
            (Some(rest), _) => (rest, false),
            (_, Some(rest)) => (rest, true),
            _ => return Err(Error::Scheme { found: text.chars().take(10).collect() }),
        };
        let (rest, name) = match rest.split_once('#') {
            Some((rest, name)) if names => (rest, Some(text_of(name)?)),
            _ => (rest, names.then(String::new)),
        };
        let (addresses, key) = split_key(rest);
        let key = match key {
            Some(key) if !key.is_empty() => unescape(key)?,
            // A naming service is called so unless the reference says otherwise.
            _ if names || addresses == "rir:" => b"NameService".to_vec(),
            _ => Vec::new(),
        };
        let addresses = addresses.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { addresses, key, name })
    }
}

/// Separates the addresses from the key. The path of a UNIX socket has slashes too; it ends at a colon.
fn split_key(rest: &str) -> (&str, Option<&str>) {
    let from = match rest.strip_prefix("omniunix:") {
        Some(path) => path.find(':').map_or(rest.len(), |colon| rest.len() - path.len() + colon),
        None => 0,
    };
    match rest[from..].find('/') {
        Some(slash) => (&rest[..from + slash], Some(&rest[from + slash + 1..])),
        None => (rest, None),
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |expected| Error::Address { address: text.to_owned(), expected };
        if text == "rir:" {
            return Ok(Address::Initial);
        }
        if let Some(path) = text.strip_prefix("omniunix:") {
            return Ok(Address::Unix { path: path.trim_end_matches(':').to_owned() });
        }
        let rest = text.strip_prefix("iiop:").or_else(|| text.strip_prefix(':'));
        let rest = rest.ok_or_else(|| wrong("an address begins with iiop:, a colon or rir:"))?;
        let (version, rest) = match rest.split_once('@') {
            Some((version, rest)) => {
                let minor = version.strip_prefix("1.").and_then(|minor| minor.parse().ok());
                (Version::from_minor(minor.ok_or_else(|| wrong("a version is 1.0, 1.1 or 1.2"))?), rest)
            }
            None => (Version::V1_0, rest),
        };
        // An IPv6 address stands in brackets, since it has colons of its own.
        let (host, colons, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, true, None),
            Some((host, port)) => {
                (host, true, Some(port.strip_prefix(':').ok_or_else(|| wrong("a port comes behind a colon"))?))
            }
            None => rest.rsplit_once(':').map_or((rest, false, None), |(host, port)| (host, false, Some(port))),
        };
        let port = match port {
            None | Some("") => DEFAULT_PORT,
            Some(port) => port.parse().map_err(|_| wrong("a port is a number up to 65535"))?,
        };
        if host.is_empty() {
            return Err(wrong("a host is missing"));
        }
        let is_foreign = |letter: char| letter.is_control() || letter.is_whitespace() || "[]@/,#".contains(letter);
        if host.contains(is_foreign) || host.contains(':') && !colons {
            return Err(wrong("a host is a name, an IPv4 address, or an IPv6 address in brackets"));
        }
        Ok(Address::Iiop { version, host: host.to_owned(), port })
    }
}

/// Octets for text in which `%` and two digits stand for any octet.
fn unescape(text: &str) -> Result<Vec<u8>, Error> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        if octet != b'%' {
            octets.push(octet);
            continue;
        }
        let at = text.len() - rest.len();
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => octets.push((high << 4 | low) as u8),
            _ => return Err(Error::Escape { text: text.to_owned(), at }),
        }
    }
    Ok(octets)
}

fn text_of(text: &str) -> Result<String, Error> {
    String::from_utf8(unescape(text)?).map_err(|_| Error::Escape { text: text.to_owned(), at: 0 })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Initial => f.write_str("rir:"),
            Address::Iiop { version, host, port } if host.contains(':') => write!(f, "iiop:{version}@[{host}]:{port}"),
            Address::Iiop { version, host, port } => write!(f, "iiop:{version}@{host}:{port}"),
            Address::Unix { path } => write!(f, "omniunix:{path}:"),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.name.is_some() { "corbaname:" } else { "corbaloc:" })?;
        for (index, address) in self.addresses.iter().enumerate() {
            write!(f, "{}{address}", if index == 0 { "" } else { "," })?;
        }
        f.write_str("/")?;
        escape(&self.key, f)?;
        if let Some(name) = &self.name {
            f.write_str("#")?;
            escape(name.as_bytes(), f)?;
        }
        Ok(())
    }
}

fn escape(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    octets.iter().try_for_each(|&octet| {
        if octet.is_ascii_alphanumeric() || b";/:?@&=+$,-_.!~*'()".contains(&octet) {
            write!(f, "{}", char::from(octet))
        } else {
            write!(f, "%{octet:02x}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iiop(version: Version, host: &str, port: u16) -> Address {
        Address::Iiop { version, host: host.to_owned(), port }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [":::1:99", ":a:4]:other", ":a b", ":[::1]99", ":[::1][:99", ":1.2\0:5", ":[]:7"] {
            assert!(format!("corbaloc:{text}/key").parse::<Location>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_read_with_what_they_leave_out() {
        let location: Location = "corbaloc:iiop:1.2@host:1234,:other,:[::1]:99/Some%20Key".parse().unwrap();
        let others = [iiop(Version::V1_0, "other", DEFAULT_PORT), iiop(Version::V1_0, "::1", 99)];
        assert_eq!(location.addresses[0], iiop(Version::V1_2, "host", 1234));
        assert_eq!(location.addresses[1..], others);
        assert_eq!(location.key, b"Some Key");
        assert_eq!(
            location.to_string(),
            "corbaloc:iiop:1.2@host:1234,iiop:1.0@other:2809,iiop:1.0@[::1]:99/Some%20Key"
        );
        let unix: Location = "corbaloc:omniunix:/tmp/a/b:/key".parse().unwrap();
        assert_eq!((unix.addresses, unix.key), (vec![Address::Unix { path: "/tmp/a/b".into() }], b"key".to_vec()));
    }

    #[test]
    fn names_are_read() {
        let location: Location = "corbaname::host:1#a.b/c%20d".parse().unwrap();
        assert_eq!((location.key.as_slice(), location.name.as_deref()), (&b"NameService"[..], Some("a.b/c d")));
        let location: Location = "corbaname:rir:#a".parse().unwrap();
        assert_eq!((location.addresses.as_slice(), location.name.as_deref()), (&[Address::Initial][..], Some("a")));
        let location: Location = "corbaloc:rir:/RootPOA".parse().unwrap();
        assert_eq!(location.key, b"RootPOA");
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for text in [
            "http://x",
            "corbaloc:x:1",
            "corbaloc::h:99999/k",
            "corbaloc:iiop:2.0@h/k",
            "corbaloc::h/%2",
            "corbaloc::/k",
        ] {
            let error = text.parse::<Location>().unwrap_err();
            assert!(!error.to_string().is_empty());
        }
    }
}
