//! Layouts of shared structures: one list of fields makes the constants that the code uses and the table that the documents
//! show (`fabric/tests/documented.rs`).

/// A field of a structure that two processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Where it lies, from the beginning of the structure.
    pub offset: usize,
    /// What it holds.
    pub what: &'static str,
    /// Who stores it.
    pub writer: &'static str,
}

/// Declares a constant for the offset of each field, and one for all of them. Fields are in the order of their offsets.
#[macro_export]
macro_rules! layout {
    ($(#[$about:meta])* $table:ident { $($visibility:vis $name:ident = $offset:expr, $what:literal, $writer:literal;)* }) => {
        $(#[doc = concat!("Where it lies: ", $what)] $visibility const $name: usize = $offset;)*
        $(#[$about])*
        pub const $table: &[$crate::layout::Field] =
            &[$($crate::layout::Field { offset: $name, what: $what, writer: $writer }),*];
        const _: () = {
            let mut index = 1;
            while index < $table.len() {
                assert!($table[index - 1].offset < $table[index].offset);
                index += 1;
            }
        };
    };
}
