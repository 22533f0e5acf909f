//! What a proxy is made of, where it can be another while it serves: as its command said it, or a file that is read again.

use serde::Deserialize;

use crate::{Error, Result, checker::Mode};

/// The settings of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// HOST:PORT of the server that documents are fetched from.
    pub origin: String,
    /// How hits are checked, and where the application's module is. `None`: nothing is kept.
    pub checked: Option<(Mode, String)>,
    /// Bytes that are kept.
    pub memory: usize,
    /// Bytes of the largest body that is kept.
    pub largest: usize,
}

/// A file of settings: what it does not name stays as the command said.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    origin: Option<String>,
    module: Option<String>,
    check: Option<Check>,
    memory: Option<usize>,
    largest: Option<usize>,
}

/// The words of `--check`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Check {
    OneSided,
    TwoSided,
    None,
}

impl Settings {
    /// These, with what a file names (TOML: `origin`, `module`, `check`, `memory` in mebibytes, `largest`).
    pub fn with_file(&self, text: &str) -> Result<Settings> {
        let file: File = toml::from_str(text).map_err(|error| Error::Settings(error.to_string()))?;
        let mut settings = self.clone();
        if let Some(origin) = file.origin {
            settings.origin = origin;
        }
        match (&mut settings.checked, file.module, file.check) {
            (Some((mode, address)), module, check) => {
                *address = module.unwrap_or_else(|| std::mem::take(address));
                *mode = check.map_or(*mode, Check::mode);
            }
            (None, Some(module), check) => {
                settings.checked = Some((check.map_or(Mode::OneSided, Check::mode), module));
            }
            (None, None, Some(_)) => return Err(Error::Settings("`check` is of no use without `module`".into())),
            (None, None, None) => {}
        }
        if let Some(memory) = file.memory {
            settings.memory =
                memory.checked_mul(1 << 20).ok_or_else(|| Error::Settings("`memory` is too large".into()))?;
        }
        settings.largest = file.largest.unwrap_or(settings.largest);
        Ok(settings)
    }
}

impl Check {
    fn mode(self) -> Mode {
        match self {
            Check::OneSided => Mode::OneSided,
            Check::TwoSided => Mode::TwoSided,
            Check::None => Mode::Unchecked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let checked = Some((Mode::OneSided, "127.0.0.1:2".to_string()));
        Settings { origin: "127.0.0.1:1".into(), checked, memory: 1 << 20, largest: 1000 }
    }

    #[test]
    fn a_file_changes_what_it_names() {
        assert_eq!(settings().with_file("").unwrap(), settings());
        let text = "origin = \"127.0.0.1:9\"\ncheck = \"two-sided\"\nmemory = 3\n";
        let expected = Settings {
            origin: "127.0.0.1:9".into(),
            checked: Some((Mode::TwoSided, "127.0.0.1:2".into())),
            memory: 3 << 20,
            largest: 1000,
        };
        assert_eq!(settings().with_file(text).unwrap(), expected);
        let without = Settings { checked: None, ..settings() };
        let with = without.with_file("module = \"127.0.0.1:7\"").unwrap();
        assert_eq!(with.checked, Some((Mode::OneSided, "127.0.0.1:7".into())));
    }

    #[test]
    fn a_wrong_file_is_told_of() {
        let without = Settings { checked: None, ..settings() };
        for (settings, text) in [
            (settings(), "orgin = \"127.0.0.1:9\""),
            (settings(), "check = \"sometimes\""),
            (settings(), "memory = -1"),
            (settings(), "memory = 9223372036854775807"),
            (without, "check = \"none\""),
        ] {
            assert!(matches!(settings.with_file(text), Err(Error::Settings(why)) if !why.is_empty()), "{text}");
        }
    }
}
