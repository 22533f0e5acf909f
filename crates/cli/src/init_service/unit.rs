//! The settings of a service, as systemd puts them together from its file and the drop-ins beside that.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::drop_in;

/// A service.
#[derive(Debug)]
pub struct Unit {
    /// Its name, with `.service`.
    pub name: String,
    /// The settings of its section `Service`, in order.
    settings: Vec<(String, String)>,
}

impl Unit {
    /// The service with this name, in the first of these folders that has it.
    pub fn find(name: &str, folders: &[PathBuf]) -> Option<Unit> {
        let mut names = vec![format!("{name}.service"), format!("{name}-server.service"), format!("{name}d.service")];
        // Of an instance the template tells.
        if let Some((template, _)) = name.split_once('@') {
            names.push(format!("{template}@.service"));
        }
        for file_name in &names {
            let Some(file) = folders.iter().map(|folder| folder.join(file_name)).find(|file| file.is_file()) else {
                continue;
            };
            let is_template = file_name.ends_with("@.service");
            // Some are known by a second name, which is a link to the first.
            let first = file.canonicalize().ok().and_then(|file| Some(file.file_name()?.to_str()?.to_owned()));
            let unit = match first.filter(|first| first.ends_with(".service") && !is_template) {
                Some(first) => first,
                None if is_template => format!("{name}.service"),
                None => file_name.clone(),
            };
            let mut texts = vec![fs::read_to_string(&file).ok()?];
            texts.extend(drop_ins(&unit, folders));
            return Some(Unit::new(&unit, &texts));
        }
        None
    }

    /// A service with these texts, the unit first.
    pub fn new(name: &str, texts: &[String]) -> Unit {
        Unit { name: name.to_owned(), settings: texts.iter().flat_map(|text| settings(text)).collect() }
    }

    /// The value of a setting, where the last one counts.
    pub fn last(&self, key: &str) -> Option<&str> {
        self.values(key).last()
    }

    /// Whether a setting is switched on.
    pub fn is_on(&self, key: &str) -> bool {
        self.last(key).is_some_and(|value| matches!(value, "true" | "yes" | "1" | "on" | "t" | "y"))
    }

    /// The words of a setting that may be given again: an empty one takes back those before it.
    pub fn words(&self, key: &str) -> Vec<String> {
        let mut all = Vec::new();
        for value in self.values(key) {
            match value {
                "" => all.clear(),
                value => all.extend(words(value)),
            }
        }
        all
    }

    /// The value of a variable of its environment.
    pub fn variable(&self, name: &str) -> Option<String> {
        let assignments = self.words("Environment");
        let mut values = assignments.iter().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values.next_back().map(str::to_owned)
    }

    fn values<'a, 'k>(&'a self, key: &'k str) -> impl Iterator<Item = &'a str> + use<'a, 'k> {
        self.settings.iter().filter(move |(own, _)| own == key).map(|(_, value)| value.as_str())
    }
}

/// The texts of the drop-ins, in the order of their names; one in a more important folder stands for those of the same name.
fn drop_ins(unit: &str, folders: &[PathBuf]) -> Vec<String> {
    let mut files = BTreeMap::new();
    for folder in folders {
        for entry in fs::read_dir(folder.join(format!("{unit}.d"))).into_iter().flatten().flatten() {
            files.entry(entry.file_name()).or_insert(entry.path());
        }
    }
    let is_foreign = |file: &&PathBuf| {
        file.extension().is_some_and(|extension| extension == "conf") && !file.ends_with(Path::new(drop_in::FILE))
    };
    files.values().filter(is_foreign).filter_map(|file| fs::read_to_string(file).ok()).collect()
}

/// The settings of the section `Service` in a text.
fn settings(text: &str) -> Vec<(String, String)> {
    // A backslash at the end continues a line.
    let joined = text.replace("\\\n", " ");
    let (mut is_of_service, mut settings) = (false, Vec::new());
    for line in joined.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if line.starts_with('[') {
            is_of_service = line == "[Service]";
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_of_service) {
            settings.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    settings
}

/// Words with blanks between them, except within quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in text.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            (_, None) if letter.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_systemd_reads_them() {
        let text = "[Unit]\nUser=nobody\n[Service]\nUser=redis\n#DynamicUser=yes\nPrivateUsers = true\nPrivateUsers=no\n\
                    InaccessiblePaths=/a\nInaccessiblePaths=\nInaccessiblePaths=-/b \\\n /c\nEnvironment='A=1 2' B=3\n";
        let unit = Unit::new("redis.service", &[text.to_owned(), "[Service]\nEnvironment=B=4\n".to_owned()]);
        assert_eq!(unit.last("User"), Some("redis"));
        assert!(!unit.is_on("DynamicUser") && !unit.is_on("PrivateUsers"));
        assert_eq!(unit.words("InaccessiblePaths"), ["-/b", "/c"]);
        assert_eq!(["A", "B", "C"].map(|name| unit.variable(name)), [Some("1 2".into()), Some("4".into()), None]);
    }

    #[test]
    fn units_are_found_under_their_usual_names() {
        let folder = std::env::temp_dir().join(format!("sidestep-units-{}", std::process::id()));
        fs::create_dir_all(folder.join("redis-server.service.d")).expect("a folder");
        fs::write(folder.join("redis-server.service"), "[Service]\nUser=redis\n").expect("a unit");
        fs::write(folder.join("redis-server.service.d/more.conf"), "[Service]\nUser=other\n").expect("a drop-in");
        fs::write(folder.join("redis-server.service.d/sidestep.conf"), "[Service]\nUser=own\n").expect("a drop-in");
        fs::write(folder.join("kin@.service"), "[Service]\nUser=kin\n").expect("a template");
        let folders = [folder.clone()];
        let found = |name| Unit::find(name, &folders).map(|unit| (unit.last("User").unwrap().to_owned(), unit.name));
        let expected = Some(("other".to_owned(), "redis-server.service".to_owned()));
        assert_eq!(found("redis"), expected);
        std::os::unix::fs::symlink("redis-server.service", folder.join("cache.service")).expect("a link");
        assert_eq!(found("cache"), expected);
        assert_eq!(found("kin@7"), Some(("kin".to_owned(), "kin@7.service".to_owned())));
        assert_eq!(found("nothing"), None);
        fs::remove_dir_all(folder).expect("it is removed");
    }
}
