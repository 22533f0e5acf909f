//! Versions of documents, in memory that proxies read by themselves.
//!
//! A table of words of 64 bits. A document's word is found by a hash of its path, so that a proxy needs nothing but the path; two
//! documents may share one, and then an update of either makes both count as changed, which costs a fetch and is never
//! wrong.
//!
//! | bits of a word | what |
//! |---|---|
//! | 0 to 47 | the version: how many updates were completed |
//! | 48 to 63 | how many updates are being done |
//!
//! Who changes a document raises the upper part before and the version after it. Who has a copy compares the whole word with the one
//! that it read *before* it fetched the copy: equal means that no update was completed or begun since.

use std::sync::atomic::Ordering;

use sidestep_extended::{Error, Region, Result, Rights, Stack};

/// The versions of an application's documents.
#[derive(Debug)]
pub struct VersionTable {
    region: Region,
}

/// What a document's word holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub u64);

/// Words of a table: half a mebibyte. With 10,000 documents one in seven shares its word with another.
pub const SLOTS: usize = 1 << 16;
const WORD: usize = 8;
const UPDATING: u64 = 1 << 48;

impl Version {
    /// Whether an update is being done: nothing that is fetched now may be kept.
    pub fn is_changing(self) -> bool {
        self.0 >= UPDATING
    }
}

impl VersionTable {
    /// Every document is at version 0.
    pub fn new(stack: &Stack) -> Result<VersionTable> {
        Ok(VersionTable { region: stack.register(SLOTS * WORD, Rights::READ)? })
    }

    /// The memory, to be exported for reading.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The version of a document.
    pub fn version(&self, path: &str) -> Result<Version> {
        // Pairs with the Release of `begin` and `end`.
        Ok(Version(self.region.word64(Slot::of(path).offset())?.load(Ordering::Acquire)))
    }

    /// An update of a document begins.
    pub fn begin(&self, path: &str) -> Result<()> {
        self.add(path, UPDATING)
    }

    /// It has been done.
    pub fn end(&self, path: &str) -> Result<()> {
        self.add(path, 1u64.wrapping_sub(UPDATING))
    }

    fn add(&self, path: &str, value: u64) -> Result<(), Error> {
        // Everything that was stored before is visible to who sees the new word.
        self.region.word64(Slot::of(path).offset())?.fetch_add(value, Ordering::AcqRel);
        Ok(())
    }
}

/// Where the word of a document lies in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    offset: usize,
}

impl Slot {
    /// Of the document of this path.
    pub fn of(path: &str) -> Slot {
        // FNV-1a, 64 bits: proxies and applications of different builds must agree.
        let hash = path
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        // The lower bits of FNV are the weaker ones.
        Slot { offset: ((hash ^ hash >> 32) as usize % SLOTS) * WORD }
    }

    /// In bytes from the table's beginning.
    pub fn offset(self) -> usize {
        self.offset
    }
}

/// Whether a path names a document in one way only. Others may be the same document under another name, and have another word:
/// they are not kept.
pub fn is_plain(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains(['%', '\\', ';'])
        && !path.contains("//")
        && !path.split('/').any(|part| part == "." || part == "..")
}

/// The documents that an update of one changes: itself, and the folder, whose index or listing it may be in.
pub fn changed_by(path: &str) -> Vec<String> {
    let folder = path.rfind('/').map(|at| path[..=at].to_string()).filter(|folder| folder != path);
    std::iter::once(path.to_string()).chain(folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_updates_and_tell_of_those_under_way() {
        let table = VersionTable::new(&Stack::new().unwrap()).unwrap();
        assert_eq!(table.version("/a").unwrap(), Version(0));
        table.begin("/a").unwrap();
        table.begin("/a").unwrap();
        assert!(table.version("/a").unwrap().is_changing());
        table.end("/a").unwrap();
        assert!(table.version("/a").unwrap().is_changing(), "one of two is done");
        table.end("/a").unwrap();
        assert_eq!(table.version("/a").unwrap(), Version(2));
        assert_eq!(table.version("/b").unwrap(), Version(0));
    }

    #[test]
    fn offsets_are_words_of_the_table_and_stay() {
        for path in ["/", "/a", "/index.html", "/a/very/long/path/with/parts"] {
            assert!(Slot::of(path).offset() < SLOTS * WORD && Slot::of(path).offset() % WORD == 0);
        }
        assert_eq!(Slot::of("/index.html").offset(), 320_856);
        let distinct: std::collections::HashSet<_> =
            (0..10_000).map(|at| Slot::of(&format!("/file-{at}")).offset()).collect();
        assert!(distinct.len() > 9_000, "{}", distinct.len());
    }

    #[test]
    fn paths_with_several_names_are_told_apart() {
        for path in ["/", "/a", "/a/", "/a/b.html", "/.well-known/x"] {
            assert!(is_plain(path), "{path}");
        }
        for path in ["", "a", "/%61", "//a", "/a//b", "/./a", "/a/../b", "/a/..", "/a\\b", "/a;b"] {
            assert!(!is_plain(path), "{path}");
        }
        assert_eq!(changed_by("/a/index.html"), ["/a/index.html", "/a/"]);
        assert_eq!(changed_by("/x"), ["/x", "/"]);
        assert_eq!(changed_by("/"), ["/"]);
    }
}
