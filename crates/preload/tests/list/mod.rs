//! The list of intercepted calls as a table: the same file that the library is made of, read by another macro.

/// One call of the list.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Its section.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Other names with the same wrapper.
    pub aliases: &'static [&'static str],
    /// `handled` or `passed`.
    pub verdict: &'static str,
    /// Why, or how.
    pub why: &'static str,
}

macro_rules! intercepted {
    ($($title:literal {
        $([$kind:ident $(, raw $number:ident)?] $name:ident ($($argument:ident: $type:ty),* $(,)?) -> $returned:ty
            => $body:path $(, also $($alias:ident)+)?; $verdict:ident $why:literal;)*
    })*) => {
        /// Every call of the list.
        pub const CALLS: &[Call] = &[$($(Call {
            section: $title,
            name: stringify!($name),
            aliases: &[$($(stringify!($alias)),+)?],
            verdict: stringify!($verdict),
            why: $why,
        }),*),*];
    };
}

macro_rules! socket_options {
    ($($level:ident { $($verdict:ident $name:ident $(= $number:literal)?: $why:literal;)* })*) => {
        /// Every option of the list: level, name, verdict, why.
        pub const OPTIONS: &[(&str, &str, &str, &str)] =
            &[$($((stringify!($level), stringify!($name), stringify!($verdict), $why)),*),*];
    };
}

include!("../../src/list.rs");
include!("../../src/option_list.rs");
