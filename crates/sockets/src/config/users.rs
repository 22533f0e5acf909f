//! With whose processes this one shares memory.

use std::{fmt, fs, sync::OnceLock};

use sidestep_sys::user;

/// The users whose processes may be at the other end of an accelerated connection, beside this process's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// None.
    Same,
    /// All.
    Any,
    /// Those with these numbers.
    Listed(Vec<u32>),
}

/// What the administrator allows at the most, in the words of `--users`; everything, if it is not there.
pub const HOST: &str = "/etc/sidestep/users";
/// Where names have numbers. Not by the C library, which may ask a server by way of the calls that this library stands in for.
const ACCOUNTS: &str = "/etc/passwd";

impl Users {
    /// Reads `same`, `any`, or a list of names and numbers. Lines that begin with `#` are for readers.
    pub fn parse(text: &str) -> Result<Users, String> {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let words: Vec<&str> = lines.flat_map(|line| line.split([',', ' '])).filter(|word| !word.is_empty()).collect();
        match words[..] {
            ["same"] => Ok(Users::Same),
            ["any"] => Ok(Users::Any),
            [] => Err("nobody is named".to_owned()),
            _ => words.iter().map(|word| number(word)).collect::<Result<_, _>>().map(Users::Listed),
        }
    }

    /// Whether the user with this number is one of them, or this process's own. Who has no number here is nobody.
    pub fn admit(&self, user: u32) -> bool {
        let others = match self {
            Users::Same => false,
            Users::Any => user != user::overflow(),
            Users::Listed(users) => users.contains(&user),
        };
        others || user::is_own(user)
    }

    /// Whether anybody else is.
    pub fn are_others(&self) -> bool {
        *self != Users::Same
    }

    /// What the administrator of this host allows. A file that cannot be understood allows nobody.
    pub fn of_host() -> &'static Users {
        static OF_HOST: OnceLock<Users> = OnceLock::new();
        OF_HOST.get_or_init(|| match Users::told_by_host() {
            Ok(told) => told.unwrap_or(Users::Any),
            Err(_) => Users::Same,
        })
    }

    /// What the file of the administrator says; `None` if it is not there. An error: what cannot be understood of it.
    pub fn told_by_host() -> Result<Option<Users>, String> {
        match fs::read_to_string(HOST) {
            Ok(text) => Users::parse(&text).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// In the words of `--users`, with numbers for names.
impl fmt::Display for Users {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Users::Same => out.write_str("same"),
            Users::Any => out.write_str("any"),
            Users::Listed(users) => {
                let users: Vec<String> = users.iter().map(u32::to_string).collect();
                out.write_str(&users.join(","))
            }
        }
    }
}

fn number(word: &str) -> Result<u32, String> {
    if let Ok(number) = word.parse() {
        return Ok(number);
    }
    let accounts = fs::read_to_string(ACCOUNTS).map_err(|error| format!("{ACCOUNTS} cannot be read: {error}"))?;
    let fields = |line: &str| -> Option<u32> {
        let mut fields = line.split(':');
        (fields.next() == Some(word)).then(|| fields.nth(1)?.parse().ok())?
    };
    accounts.lines().find_map(fields).ok_or_else(|| format!("no user is called {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        assert_eq!(Users::parse("same"), Ok(Users::Same));
        assert_eq!(Users::parse("# for databases\nany\n"), Ok(Users::Any));
        assert_eq!(Users::parse("root,65533, 7"), Ok(Users::Listed(vec![0, 65533, 7])));
        for shown in ["same", "any", "0,65533"] {
            assert_eq!(Users::parse(shown).map(|users| users.to_string()), Ok(shown.to_owned()));
        }
        for wrong in ["", "same,any", "nobody-of-this-name", "-1", "# all\n"] {
            assert!(Users::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_has_no_number_is_nobody() {
        let own = user::own().unwrap_or(0);
        let [stranger, listed] = [own + 1, own + 2];
        let admits = |users: &Users| [own, stranger, listed, user::overflow()].map(|user| users.admit(user));
        assert_eq!(admits(&Users::Same), [true, false, false, false]);
        assert_eq!(admits(&Users::Any), [true, true, true, false]);
        assert_eq!(admits(&Users::Listed(vec![listed])), [true, false, true, false]);
    }
}
