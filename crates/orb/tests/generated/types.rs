// Made by `sidestep idl` from types.idl. Changes belong there.

/// `Types`
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod types {

    /// `Types::Color`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Color {
        /// `red`
        Red,
        /// `green`
        Green,
        /// `blue`
        Blue,
    }

    impl ::sidestep_orb::cdr::Cdr for Color {
        const MIN_LEN: usize = 4;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            encoder.u32(*self as u32);
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            match decoder.u32()? {
                0 => Ok(Self::Red),
                1 => Ok(Self::Green),
                2 => Ok(Self::Blue),
                found => Err(::sidestep_orb::cdr::Error::Enumeration { enumeration: "Color", found }),
            }
        }
    }

    impl ::sidestep_orb::cdr::Typed for Color {
        fn type_code_in(_: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            let members = ["red", "green", "blue"];
            ::sidestep_orb::cdr::TypeCode::enumeration("IDL:sidestep.test/Types/Color:1.0", "Color", &members)
        }
    }

    /// `Types::Small`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Small {
        /// `tag`
        pub tag: u8,
        /// `value`
        pub value: f64,
        /// `flag`
        pub flag: bool,
    }

    impl ::sidestep_orb::cdr::Cdr for Small {
        const MIN_LEN: usize = <u8 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <f64 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <bool as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.tag, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.value, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.flag, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self {
                tag: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                value: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                flag: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Small {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/Small:1.0", |path| {
                let members = vec![
                    ("tag", <u8 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("value", <f64 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("flag", <bool as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:sidestep.test/Types/Small:1.0", "Small", members)
            })
        }
    }

    /// `Types::Tree`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Tree {
        /// `name`
        pub name: String,
        /// `children`
        pub children: Trees,
    }

    impl ::sidestep_orb::cdr::Cdr for Tree {
        const MIN_LEN: usize =
            <String as ::sidestep_orb::cdr::Cdr>::MIN_LEN + <Trees as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.name, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.children, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self {
                name: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                children: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Tree {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/Tree:1.0", |path| {
                let members = vec![
                    ("name", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("children", <Trees as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:sidestep.test/Types/Tree:1.0", "Tree", members)
            })
        }
    }

    /// `Types::Trees`
    pub type Trees = Vec<Tree>;

    /// `Types::Choice`
    #[derive(Debug, Clone, PartialEq)]
    pub enum Choice {
        /// `number`
        Number(i32),
        /// `text`
        Text(String),
        /// `both`
        Both {
            /// Which of its labels selects it.
            label: Color,
            /// The member.
            value: Small,
        },
    }

    impl ::sidestep_orb::cdr::Cdr for Choice {
        const MIN_LEN: usize = <Color as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Number(value) => {
                    <Color as ::sidestep_orb::cdr::Cdr>::encode(&Color::Red, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Text(value) => {
                    <Color as ::sidestep_orb::cdr::Cdr>::encode(&Color::Green, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Both { label, value } => {
                    if matches!(*label, Color::Red | Color::Green) {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "Choice" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <Color as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                Color::Red => Self::Number(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                Color::Green => Self::Text(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::Both { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Choice {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/Choice:1.0", |path| {
                let discriminator = <Color as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (0, "number", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (1, "text", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "both", <Small as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/Choice:1.0",
                    "Choice",
                    discriminator,
                    Some(2),
                    members,
                )
            })
        }
    }

    /// `Types::Labels`
    #[derive(Debug, Clone, PartialEq)]
    pub enum Labels {
        /// `some`
        Some {
            /// Which of its labels selects it.
            label: i16,
            /// The member.
            value: String,
        },
        /// `other`
        Other(f64),
        /// A label that selects no member.
        NoMember(i16),
    }

    impl ::sidestep_orb::cdr::Cdr for Labels {
        const MIN_LEN: usize = <i16 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Some { label, value } => {
                    if !matches!(*label, 1 | 2) {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "Labels" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Other(value) => {
                    <i16 as ::sidestep_orb::cdr::Cdr>::encode(&-3, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::NoMember(label) if !matches!(*label, 1 | 2 | -3) => {
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)
                }
                Self::NoMember(_) => Err(::sidestep_orb::cdr::Error::Discriminator { union: "Labels" }),
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <i16 as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                1 | 2 => Self::Some { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
                -3 => Self::Other(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::NoMember(label),
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Labels {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/Labels:1.0", |path| {
                let discriminator = <i16 as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (1, "some", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (2, "some", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (-3, "other", <f64 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/Labels:1.0",
                    "Labels",
                    discriminator,
                    None,
                    members,
                )
            })
        }
    }

    /// A union for every kind of discriminator.
    #[derive(Debug, Clone, PartialEq)]
    pub enum OfBoolean {
        /// `yes`
        Yes(i32),
        /// `no`
        No(String),
    }

    impl ::sidestep_orb::cdr::Cdr for OfBoolean {
        const MIN_LEN: usize = <bool as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Yes(value) => {
                    <bool as ::sidestep_orb::cdr::Cdr>::encode(&true, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::No(value) => {
                    <bool as ::sidestep_orb::cdr::Cdr>::encode(&false, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <bool as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                true => Self::Yes(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                false => Self::No(::sidestep_orb::cdr::Cdr::decode(decoder)?),
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for OfBoolean {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/OfBoolean:1.0", |path| {
                let discriminator = <bool as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (1, "yes", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "no", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/OfBoolean:1.0",
                    "OfBoolean",
                    discriminator,
                    None,
                    members,
                )
            })
        }
    }

    /// `Types::OfChar`
    #[derive(Debug, Clone, PartialEq)]
    pub enum OfChar {
        /// `letter`
        Letter {
            /// Which of its labels selects it.
            label: char,
            /// The member.
            value: i16,
        },
        /// `other`
        Other {
            /// Which of its labels selects it.
            label: char,
            /// The member.
            value: f64,
        },
    }

    impl ::sidestep_orb::cdr::Cdr for OfChar {
        const MIN_LEN: usize = <char as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Letter { label, value } => {
                    if !matches!(*label, 'a' | 'z') {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "OfChar" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Other { label, value } => {
                    if matches!(*label, 'a' | 'z') {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "OfChar" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <char as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                'a' | 'z' => Self::Letter { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
                _ => Self::Other { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for OfChar {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/OfChar:1.0", |path| {
                let discriminator = <char as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (97, "letter", <i16 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (122, "letter", <i16 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "other", <f64 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/OfChar:1.0",
                    "OfChar",
                    discriminator,
                    Some(2),
                    members,
                )
            })
        }
    }

    /// `Types::OfUShort`
    #[derive(Debug, Clone, PartialEq)]
    pub enum OfUShort {
        /// `most`
        Most(u8),
        /// `least`
        Least(String),
        /// A label that selects no member.
        NoMember(u16),
    }

    impl ::sidestep_orb::cdr::Cdr for OfUShort {
        const MIN_LEN: usize = <u16 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Most(value) => {
                    <u16 as ::sidestep_orb::cdr::Cdr>::encode(&65535, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Least(value) => {
                    <u16 as ::sidestep_orb::cdr::Cdr>::encode(&0, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::NoMember(label) if !matches!(*label, 65535 | 0) => {
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)
                }
                Self::NoMember(_) => Err(::sidestep_orb::cdr::Error::Discriminator { union: "OfUShort" }),
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <u16 as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                65535 => Self::Most(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                0 => Self::Least(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::NoMember(label),
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for OfUShort {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/OfUShort:1.0", |path| {
                let discriminator = <u16 as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (65535, "most", <u8 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "least", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/OfUShort:1.0",
                    "OfUShort",
                    discriminator,
                    None,
                    members,
                )
            })
        }
    }

    /// `Types::OfLong`
    #[derive(Debug, Clone, PartialEq)]
    pub enum OfLong {
        /// `least`
        Least(String),
        /// `some`
        Some(Vec<i32>),
        /// `other`
        Other {
            /// Which of its labels selects it.
            label: i32,
            /// The member.
            value: bool,
        },
    }

    impl ::sidestep_orb::cdr::Cdr for OfLong {
        const MIN_LEN: usize = <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Least(value) => {
                    <i32 as ::sidestep_orb::cdr::Cdr>::encode(&-2147483647, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Some(value) => {
                    <i32 as ::sidestep_orb::cdr::Cdr>::encode(&7, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Other { label, value } => {
                    if matches!(*label, -2147483647 | 7) {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "OfLong" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <i32 as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                -2147483647 => Self::Least(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                7 => Self::Some(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::Other { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for OfLong {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/OfLong:1.0", |path| {
                let discriminator = <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (-2147483647, "least", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (7, "some", <Vec<i32> as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "other", <bool as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/OfLong:1.0",
                    "OfLong",
                    discriminator,
                    Some(2),
                    members,
                )
            })
        }
    }

    /// `Types::OfULong`
    #[derive(Debug, Clone, PartialEq)]
    pub enum OfULong {
        /// `most`
        Most(String),
        /// `other`
        Other {
            /// Which of its labels selects it.
            label: u32,
            /// The member.
            value: u8,
        },
    }

    impl ::sidestep_orb::cdr::Cdr for OfULong {
        const MIN_LEN: usize = <u32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Most(value) => {
                    <u32 as ::sidestep_orb::cdr::Cdr>::encode(&4294967295, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Other { label, value } => {
                    if matches!(*label, 4294967295) {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "OfULong" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <u32 as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                4294967295 => Self::Most(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::Other { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for OfULong {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/OfULong:1.0", |path| {
                let discriminator = <u32 as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (4294967295, "most", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "other", <u8 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/OfULong:1.0",
                    "OfULong",
                    discriminator,
                    Some(1),
                    members,
                )
            })
        }
    }

    /// `Types::OfLongLong`
    #[derive(Debug, Clone, PartialEq)]
    pub enum OfLongLong {
        /// `least`
        Least(u8),
        /// `one`
        One(String),
        /// A label that selects no member.
        NoMember(i64),
    }

    impl ::sidestep_orb::cdr::Cdr for OfLongLong {
        const MIN_LEN: usize = <i64 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Least(value) => {
                    <i64 as ::sidestep_orb::cdr::Cdr>::encode(&-9223372036854775807, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::One(value) => {
                    <i64 as ::sidestep_orb::cdr::Cdr>::encode(&1, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::NoMember(label) if !matches!(*label, -9223372036854775807 | 1) => {
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)
                }
                Self::NoMember(_) => Err(::sidestep_orb::cdr::Error::Discriminator { union: "OfLongLong" }),
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <i64 as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                -9223372036854775807 => Self::Least(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                1 => Self::One(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::NoMember(label),
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for OfLongLong {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/OfLongLong:1.0", |path| {
                let discriminator = <i64 as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (-9223372036854775807, "least", <u8 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (1, "one", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/OfLongLong:1.0",
                    "OfLongLong",
                    discriminator,
                    None,
                    members,
                )
            })
        }
    }

    /// `Types::OfULongLong`
    #[derive(Debug, Clone, PartialEq)]
    pub enum OfULongLong {
        /// `most`
        Most(f64),
        /// `other`
        Other {
            /// Which of its labels selects it.
            label: u64,
            /// The member.
            value: Small,
        },
    }

    impl ::sidestep_orb::cdr::Cdr for OfULongLong {
        const MIN_LEN: usize = <u64 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Most(value) => {
                    <u64 as ::sidestep_orb::cdr::Cdr>::encode(&18446744073709551615, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Other { label, value } => {
                    if matches!(*label, 18446744073709551615) {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "OfULongLong" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <u64 as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                18446744073709551615 => Self::Most(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::Other { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for OfULongLong {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/OfULongLong:1.0", |path| {
                let discriminator = <u64 as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (-1, "most", <f64 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "other", <Small as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/OfULongLong:1.0",
                    "OfULongLong",
                    discriminator,
                    Some(1),
                    members,
                )
            })
        }
    }

    /// `Types::Nested`
    #[derive(Debug, Clone, PartialEq)]
    pub enum Nested {
        /// `inner`
        Inner(OfChar),
        /// `content`
        Content(::sidestep_orb::cdr::Any),
        /// `chosen`
        Chosen {
            /// Which of its labels selects it.
            label: Color,
            /// The member.
            value: Choice,
        },
    }

    impl ::sidestep_orb::cdr::Cdr for Nested {
        const MIN_LEN: usize = <Color as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Inner(value) => {
                    <Color as ::sidestep_orb::cdr::Cdr>::encode(&Color::Red, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Content(value) => {
                    <Color as ::sidestep_orb::cdr::Cdr>::encode(&Color::Green, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Chosen { label, value } => {
                    if matches!(*label, Color::Red | Color::Green) {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "Nested" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <Color as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                Color::Red => Self::Inner(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                Color::Green => Self::Content(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::Chosen { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Nested {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/Nested:1.0", |path| {
                let discriminator = <Color as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (0, "inner", <OfChar as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (1, "content", <::sidestep_orb::cdr::Any as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "chosen", <Choice as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/Nested:1.0",
                    "Nested",
                    discriminator,
                    Some(2),
                    members,
                )
            })
        }
    }

    /// `Types::OfWide`
    #[derive(Debug, Clone, PartialEq)]
    pub enum OfWide {
        /// `letter`
        Letter(::sidestep_orb::cdr::WChar),
        /// `other`
        Other {
            /// Which of its labels selects it.
            label: i16,
            /// The member.
            value: ::sidestep_orb::cdr::WString,
        },
    }

    impl ::sidestep_orb::cdr::Cdr for OfWide {
        const MIN_LEN: usize = <i16 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::Letter(value) => {
                    <i16 as ::sidestep_orb::cdr::Cdr>::encode(&1, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::Other { label, value } => {
                    if matches!(*label, 1) {
                        return Err(::sidestep_orb::cdr::Error::Discriminator { union: "OfWide" });
                    }
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <i16 as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                1 => Self::Letter(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::Other { label, value: ::sidestep_orb::cdr::Cdr::decode(decoder)? },
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for OfWide {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/OfWide:1.0", |path| {
                let discriminator = <i16 as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (1, "letter", <::sidestep_orb::cdr::WChar as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "other", <::sidestep_orb::cdr::WString as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union(
                    "IDL:sidestep.test/Types/OfWide:1.0",
                    "OfWide",
                    discriminator,
                    Some(1),
                    members,
                )
            })
        }
    }

    /// `Types::Unions`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Unions {
        /// `of_boolean`
        pub of_boolean: OfBoolean,
        /// `of_char`
        pub of_char: OfChar,
        /// `of_ushort`
        pub of_ushort: OfUShort,
        /// `of_long`
        pub of_long: OfLong,
        /// `of_ulong`
        pub of_ulong: OfULong,
        /// `of_longlong`
        pub of_longlong: OfLongLong,
        /// `of_ulonglong`
        pub of_ulonglong: OfULongLong,
        /// `deep`
        pub deep: Nested,
    }

    impl ::sidestep_orb::cdr::Cdr for Unions {
        const MIN_LEN: usize = <OfBoolean as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <OfChar as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <OfUShort as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <OfLong as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <OfULong as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <OfLongLong as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <OfULongLong as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <Nested as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.of_boolean, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.of_char, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.of_ushort, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.of_long, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.of_ulong, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.of_longlong, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.of_ulonglong, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.deep, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self {
                of_boolean: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                of_char: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                of_ushort: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                of_long: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                of_ulong: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                of_longlong: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                of_ulonglong: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                deep: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Unions {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/Unions:1.0", |path| {
                let members = vec![
                    ("of_boolean", <OfBoolean as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("of_char", <OfChar as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("of_ushort", <OfUShort as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("of_long", <OfLong as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("of_ulong", <OfULong as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("of_longlong", <OfLongLong as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("of_ulonglong", <OfULongLong as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("deep", <Nested as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:sidestep.test/Types/Unions:1.0", "Unions", members)
            })
        }
    }

    /// `Types::Octets`
    pub type Octets = Vec<u8>;

    /// `Types::Longs`
    pub type Longs = Vec<i32>;

    /// `Types::Strings`
    pub type Strings = Vec<String>;

    /// `Types::Smalls`
    pub type Smalls = Vec<Small>;

    /// `Types::Bounded`
    pub type Bounded = ::sidestep_orb::cdr::BoundedSequence<i16, 4>;

    /// `Types::ShortText`
    pub type ShortText = ::sidestep_orb::cdr::BoundedString<8>;

    /// `Types::ShortWide`
    pub type ShortWide = ::sidestep_orb::cdr::BoundedWString<8>;

    /// `Types::Grid`
    pub type Grid = [[i32; 3]; 2];

    /// `Types::Money`
    pub type Money = ::sidestep_orb::cdr::Fixed<7, 2>;

    /// `Types::Anys`
    pub type Anys = Vec<::sidestep_orb::cdr::Any>;

    /// `Types::ANSWER`
    pub const ANSWER: i32 = 42;

    /// Why `fail` of `Types::Peer` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum PeerFailError {
        /// The servant has raised it.
        Plain(Plain),
        /// The servant has raised it.
        Detailed(Detailed),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for PeerFailError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <Plain as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::Plain));
            }
            if id == <Detailed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::Detailed));
            }
            None
        }
    }

    impl From<Plain> for PeerFailError {
        fn from(exception: Plain) -> Self {
            Self::Plain(exception)
        }
    }

    impl From<Detailed> for PeerFailError {
        fn from(exception: Detailed) -> Self {
            Self::Detailed(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for PeerFailError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for PeerFailError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::Plain(exception) => exception.fmt(f),
                Self::Detailed(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for PeerFailError {}

    /// An operation on a type returns `i`; `o` becomes what `io` was, and `io` becomes `i`.
    ///
    /// This is a reference to such an object; [`PeerServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Peer(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Peer {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Peer {
        const TYPE_ID: &'static str = "IDL:sidestep.test/Types/Peer:1.0";
        const NAME: &'static str = "Peer";

        fn from_ior(
            ior: ::sidestep_orb::Ior,
            decoder: &::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::Object::from_ior(ior, decoder).map(Self)
        }

        fn ior(&self) -> &::sidestep_orb::Ior {
            self.0.ior()
        }
    }

    impl From<Peer> for Base {
        fn from(derived: Peer) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl Peer {
        /// `_get_calls`
        pub fn calls(&self) -> ::std::result::Result<i32, ::sidestep_orb::SystemException> {
            self.0.call("_get_calls", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::calls`] now; what comes back is collected later.
        pub fn begin_calls(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<i32, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_get_calls", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `_get_label`
        pub fn label(&self) -> ::std::result::Result<String, ::sidestep_orb::SystemException> {
            self.0.call("_get_label", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::label`] now; what comes back is collected later.
        pub fn begin_label(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<String, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_get_label", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `_set_label`
        pub fn set_label(&self, value: &str) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("_set_label", |encoder| encoder.string(value), |_| Ok(()))
        }

        /// Sends [`Self::set_label`] now; what comes back is collected later.
        pub fn begin_set_label(
            &self,
            value: &str,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_set_label", |encoder| encoder.string(value), |_| Ok(()))
        }

        /// `ping`
        pub fn ping(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("ping", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::ping`] now; what comes back is collected later.
        pub fn begin_ping(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("ping", |_| Ok(()), |_| Ok(()))
        }

        /// `a_short`
        pub fn a_short(
            &self,
            i: i16,
            io: i16,
        ) -> ::std::result::Result<(i16, i16, i16), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_short",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_short`] now; what comes back is collected later.
        pub fn begin_a_short(
            &self,
            i: i16,
            io: i16,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(i16, i16, i16), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_short",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_ushort`
        pub fn a_ushort(
            &self,
            i: u16,
            io: u16,
        ) -> ::std::result::Result<(u16, u16, u16), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_ushort",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_ushort`] now; what comes back is collected later.
        pub fn begin_a_ushort(
            &self,
            i: u16,
            io: u16,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(u16, u16, u16), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_ushort",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_long`
        pub fn a_long(
            &self,
            i: i32,
            io: i32,
        ) -> ::std::result::Result<(i32, i32, i32), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_long",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_long`] now; what comes back is collected later.
        pub fn begin_a_long(
            &self,
            i: i32,
            io: i32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(i32, i32, i32), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_long",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_ulong`
        pub fn a_ulong(
            &self,
            i: u32,
            io: u32,
        ) -> ::std::result::Result<(u32, u32, u32), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_ulong",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_ulong`] now; what comes back is collected later.
        pub fn begin_a_ulong(
            &self,
            i: u32,
            io: u32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(u32, u32, u32), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_ulong",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_longlong`
        pub fn a_longlong(
            &self,
            i: i64,
            io: i64,
        ) -> ::std::result::Result<(i64, i64, i64), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_longlong",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_longlong`] now; what comes back is collected later.
        pub fn begin_a_longlong(
            &self,
            i: i64,
            io: i64,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(i64, i64, i64), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_longlong",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_ulonglong`
        pub fn a_ulonglong(
            &self,
            i: u64,
            io: u64,
        ) -> ::std::result::Result<(u64, u64, u64), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_ulonglong",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_ulonglong`] now; what comes back is collected later.
        pub fn begin_a_ulonglong(
            &self,
            i: u64,
            io: u64,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(u64, u64, u64), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_ulonglong",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_float`
        pub fn a_float(
            &self,
            i: f32,
            io: f32,
        ) -> ::std::result::Result<(f32, f32, f32), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_float",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_float`] now; what comes back is collected later.
        pub fn begin_a_float(
            &self,
            i: f32,
            io: f32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(f32, f32, f32), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_float",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_double`
        pub fn a_double(
            &self,
            i: f64,
            io: f64,
        ) -> ::std::result::Result<(f64, f64, f64), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_double",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_double`] now; what comes back is collected later.
        pub fn begin_a_double(
            &self,
            i: f64,
            io: f64,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(f64, f64, f64), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_double",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_boolean`
        pub fn a_boolean(
            &self,
            i: bool,
            io: bool,
        ) -> ::std::result::Result<(bool, bool, bool), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_boolean",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_boolean`] now; what comes back is collected later.
        pub fn begin_a_boolean(
            &self,
            i: bool,
            io: bool,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(bool, bool, bool), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_boolean",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_char`
        pub fn a_char(
            &self,
            i: char,
            io: char,
        ) -> ::std::result::Result<(char, char, char), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_char",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_char`] now; what comes back is collected later.
        pub fn begin_a_char(
            &self,
            i: char,
            io: char,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(char, char, char), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_char",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_wchar`
        pub fn a_wchar(
            &self,
            i: ::sidestep_orb::cdr::WChar,
            io: ::sidestep_orb::cdr::WChar,
        ) -> ::std::result::Result<
            (::sidestep_orb::cdr::WChar, ::sidestep_orb::cdr::WChar, ::sidestep_orb::cdr::WChar),
            ::sidestep_orb::SystemException,
        > {
            self.0.call(
                "a_wchar",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_wchar`] now; what comes back is collected later.
        pub fn begin_a_wchar(
            &self,
            i: ::sidestep_orb::cdr::WChar,
            io: ::sidestep_orb::cdr::WChar,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<
                (::sidestep_orb::cdr::WChar, ::sidestep_orb::cdr::WChar, ::sidestep_orb::cdr::WChar),
                ::sidestep_orb::SystemException,
            >,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_wchar",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `an_octet`
        pub fn an_octet(&self, i: u8, io: u8) -> ::std::result::Result<(u8, u8, u8), ::sidestep_orb::SystemException> {
            self.0.call(
                "an_octet",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::an_octet`] now; what comes back is collected later.
        pub fn begin_an_octet(
            &self,
            i: u8,
            io: u8,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(u8, u8, u8), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "an_octet",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_string`
        pub fn a_string(
            &self,
            i: &str,
            io: &str,
        ) -> ::std::result::Result<(String, String, String), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_string",
                |encoder| {
                    encoder.string(i)?;
                    encoder.string(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_string`] now; what comes back is collected later.
        pub fn begin_a_string(
            &self,
            i: &str,
            io: &str,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(String, String, String), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_string",
                |encoder| {
                    encoder.string(i)?;
                    encoder.string(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_wstring`
        pub fn a_wstring(
            &self,
            i: &::sidestep_orb::cdr::WString,
            io: &::sidestep_orb::cdr::WString,
        ) -> ::std::result::Result<
            (::sidestep_orb::cdr::WString, ::sidestep_orb::cdr::WString, ::sidestep_orb::cdr::WString),
            ::sidestep_orb::SystemException,
        > {
            self.0.call(
                "a_wstring",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_wstring`] now; what comes back is collected later.
        pub fn begin_a_wstring(
            &self,
            i: &::sidestep_orb::cdr::WString,
            io: &::sidestep_orb::cdr::WString,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<
                (::sidestep_orb::cdr::WString, ::sidestep_orb::cdr::WString, ::sidestep_orb::cdr::WString),
                ::sidestep_orb::SystemException,
            >,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_wstring",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_short_text`
        pub fn a_short_text(
            &self,
            i: &ShortText,
            io: &ShortText,
        ) -> ::std::result::Result<(ShortText, ShortText, ShortText), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_short_text",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_short_text`] now; what comes back is collected later.
        pub fn begin_a_short_text(
            &self,
            i: &ShortText,
            io: &ShortText,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(ShortText, ShortText, ShortText), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_short_text",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_short_wide`
        pub fn a_short_wide(
            &self,
            i: &ShortWide,
            io: &ShortWide,
        ) -> ::std::result::Result<(ShortWide, ShortWide, ShortWide), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_short_wide",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_short_wide`] now; what comes back is collected later.
        pub fn begin_a_short_wide(
            &self,
            i: &ShortWide,
            io: &ShortWide,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(ShortWide, ShortWide, ShortWide), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_short_wide",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_wide_choice`
        pub fn a_wide_choice(
            &self,
            i: &OfWide,
            io: &OfWide,
        ) -> ::std::result::Result<(OfWide, OfWide, OfWide), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_wide_choice",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_wide_choice`] now; what comes back is collected later.
        pub fn begin_a_wide_choice(
            &self,
            i: &OfWide,
            io: &OfWide,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(OfWide, OfWide, OfWide), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_wide_choice",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_unions`
        pub fn some_unions(
            &self,
            i: &Unions,
            io: &Unions,
        ) -> ::std::result::Result<(Unions, Unions, Unions), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_unions",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_unions`] now; what comes back is collected later.
        pub fn begin_some_unions(
            &self,
            i: &Unions,
            io: &Unions,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Unions, Unions, Unions), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_unions",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_color`
        pub fn a_color(
            &self,
            i: Color,
            io: Color,
        ) -> ::std::result::Result<(Color, Color, Color), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_color",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_color`] now; what comes back is collected later.
        pub fn begin_a_color(
            &self,
            i: Color,
            io: Color,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Color, Color, Color), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_color",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_small`
        pub fn a_small(
            &self,
            i: &Small,
            io: &Small,
        ) -> ::std::result::Result<(Small, Small, Small), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_small",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_small`] now; what comes back is collected later.
        pub fn begin_a_small(
            &self,
            i: &Small,
            io: &Small,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Small, Small, Small), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_small",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_tree`
        pub fn a_tree(
            &self,
            i: &Tree,
            io: &Tree,
        ) -> ::std::result::Result<(Tree, Tree, Tree), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_tree",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_tree`] now; what comes back is collected later.
        pub fn begin_a_tree(
            &self,
            i: &Tree,
            io: &Tree,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Tree, Tree, Tree), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_tree",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_choice`
        pub fn a_choice(
            &self,
            i: &Choice,
            io: &Choice,
        ) -> ::std::result::Result<(Choice, Choice, Choice), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_choice",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_choice`] now; what comes back is collected later.
        pub fn begin_a_choice(
            &self,
            i: &Choice,
            io: &Choice,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Choice, Choice, Choice), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_choice",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_labels`
        pub fn some_labels(
            &self,
            i: &Labels,
            io: &Labels,
        ) -> ::std::result::Result<(Labels, Labels, Labels), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_labels",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_labels`] now; what comes back is collected later.
        pub fn begin_some_labels(
            &self,
            i: &Labels,
            io: &Labels,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Labels, Labels, Labels), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_labels",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_octets`
        pub fn some_octets(
            &self,
            i: &[u8],
            io: &[u8],
        ) -> ::std::result::Result<(Octets, Octets, Octets), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_octets",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_octets`] now; what comes back is collected later.
        pub fn begin_some_octets(
            &self,
            i: &[u8],
            io: &[u8],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Octets, Octets, Octets), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_octets",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_longs`
        pub fn some_longs(
            &self,
            i: &[i32],
            io: &[i32],
        ) -> ::std::result::Result<(Longs, Longs, Longs), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_longs",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_longs`] now; what comes back is collected later.
        pub fn begin_some_longs(
            &self,
            i: &[i32],
            io: &[i32],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Longs, Longs, Longs), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_longs",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_strings`
        pub fn some_strings(
            &self,
            i: &[String],
            io: &[String],
        ) -> ::std::result::Result<(Strings, Strings, Strings), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_strings",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_strings`] now; what comes back is collected later.
        pub fn begin_some_strings(
            &self,
            i: &[String],
            io: &[String],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Strings, Strings, Strings), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_strings",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_smalls`
        pub fn some_smalls(
            &self,
            i: &[Small],
            io: &[Small],
        ) -> ::std::result::Result<(Smalls, Smalls, Smalls), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_smalls",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_smalls`] now; what comes back is collected later.
        pub fn begin_some_smalls(
            &self,
            i: &[Small],
            io: &[Small],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Smalls, Smalls, Smalls), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_smalls",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_bounded`
        pub fn some_bounded(
            &self,
            i: &Bounded,
            io: &Bounded,
        ) -> ::std::result::Result<(Bounded, Bounded, Bounded), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_bounded",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_bounded`] now; what comes back is collected later.
        pub fn begin_some_bounded(
            &self,
            i: &Bounded,
            io: &Bounded,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Bounded, Bounded, Bounded), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_bounded",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_grid`
        pub fn a_grid(
            &self,
            i: &Grid,
            io: &Grid,
        ) -> ::std::result::Result<(Grid, Grid, Grid), ::sidestep_orb::SystemException> {
            self.0.call(
                "a_grid",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_grid`] now; what comes back is collected later.
        pub fn begin_a_grid(
            &self,
            i: &Grid,
            io: &Grid,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Grid, Grid, Grid), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_grid",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_money`
        pub fn some_money(
            &self,
            i: Money,
            io: Money,
        ) -> ::std::result::Result<(Money, Money, Money), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_money",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_money`] now; what comes back is collected later.
        pub fn begin_some_money(
            &self,
            i: Money,
            io: Money,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Money, Money, Money), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_money",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `an_any`
        pub fn an_any(
            &self,
            i: &::sidestep_orb::cdr::Any,
            io: &::sidestep_orb::cdr::Any,
        ) -> ::std::result::Result<
            (::sidestep_orb::cdr::Any, ::sidestep_orb::cdr::Any, ::sidestep_orb::cdr::Any),
            ::sidestep_orb::SystemException,
        > {
            self.0.call(
                "an_any",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::an_any`] now; what comes back is collected later.
        pub fn begin_an_any(
            &self,
            i: &::sidestep_orb::cdr::Any,
            io: &::sidestep_orb::cdr::Any,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<
                (::sidestep_orb::cdr::Any, ::sidestep_orb::cdr::Any, ::sidestep_orb::cdr::Any),
                ::sidestep_orb::SystemException,
            >,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "an_any",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `some_anys`
        pub fn some_anys(
            &self,
            i: &[::sidestep_orb::cdr::Any],
            io: &[::sidestep_orb::cdr::Any],
        ) -> ::std::result::Result<(Anys, Anys, Anys), ::sidestep_orb::SystemException> {
            self.0.call(
                "some_anys",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::some_anys`] now; what comes back is collected later.
        pub fn begin_some_anys(
            &self,
            i: &[::sidestep_orb::cdr::Any],
            io: &[::sidestep_orb::cdr::Any],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Anys, Anys, Anys), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some_anys",
                |encoder| {
                    encoder.sequence(i)?;
                    encoder.sequence(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `an_object`
        pub fn an_object(
            &self,
            i: Option<&::sidestep_orb::Object>,
            io: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<
            (Option<::sidestep_orb::Object>, Option<::sidestep_orb::Object>, Option<::sidestep_orb::Object>),
            ::sidestep_orb::SystemException,
        > {
            self.0.call(
                "an_object",
                |encoder| {
                    encoder.reference(i)?;
                    encoder.reference(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::an_object`] now; what comes back is collected later.
        pub fn begin_an_object(
            &self,
            i: Option<&::sidestep_orb::Object>,
            io: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<
                (Option<::sidestep_orb::Object>, Option<::sidestep_orb::Object>, Option<::sidestep_orb::Object>),
                ::sidestep_orb::SystemException,
            >,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "an_object",
                |encoder| {
                    encoder.reference(i)?;
                    encoder.reference(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_peer`
        pub fn a_peer(
            &self,
            i: Option<&Peer>,
            io: Option<&Peer>,
        ) -> ::std::result::Result<(Option<Peer>, Option<Peer>, Option<Peer>), ::sidestep_orb::SystemException>
        {
            self.0.call(
                "a_peer",
                |encoder| {
                    encoder.reference(i)?;
                    encoder.reference(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_peer`] now; what comes back is collected later.
        pub fn begin_a_peer(
            &self,
            i: Option<&Peer>,
            io: Option<&Peer>,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(Option<Peer>, Option<Peer>, Option<Peer>), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_peer",
                |encoder| {
                    encoder.reference(i)?;
                    encoder.reference(io)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `a_type`
        pub fn a_type(
            &self,
            i: &::sidestep_orb::cdr::TypeCode,
            io: &::sidestep_orb::cdr::TypeCode,
        ) -> ::std::result::Result<
            (::sidestep_orb::cdr::TypeCode, ::sidestep_orb::cdr::TypeCode, ::sidestep_orb::cdr::TypeCode),
            ::sidestep_orb::SystemException,
        > {
            self.0.call(
                "a_type",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// Sends [`Self::a_type`] now; what comes back is collected later.
        pub fn begin_a_type(
            &self,
            i: &::sidestep_orb::cdr::TypeCode,
            io: &::sidestep_orb::cdr::TypeCode,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<
                (::sidestep_orb::cdr::TypeCode, ::sidestep_orb::cdr::TypeCode, ::sidestep_orb::cdr::TypeCode),
                ::sidestep_orb::SystemException,
            >,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "a_type",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(i, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(io, encoder)?;
                    Ok(())
                },
                |decoder| {
                    Ok((
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    ))
                },
            )
        }

        /// `fail`
        pub fn fail(&self, how: i32) -> ::std::result::Result<(), PeerFailError> {
            self.0.call("fail", |encoder| ::sidestep_orb::cdr::Cdr::encode(&how, encoder), |_| Ok(()))
        }

        /// Sends [`Self::fail`] now; what comes back is collected later.
        pub fn begin_fail(
            &self,
            how: i32,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), PeerFailError>, PeerFailError> {
            self.0.begin("fail", |encoder| ::sidestep_orb::cdr::Cdr::encode(&how, encoder), |_| Ok(()))
        }

        /// `tell`
        pub fn tell(&self, text: &str) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.oneway("tell", |encoder| encoder.string(text))
        }

        /// `told`
        pub fn told(&self) -> ::std::result::Result<String, ::sidestep_orb::SystemException> {
            self.0.call("told", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::told`] now; what comes back is collected later.
        pub fn begin_told(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<String, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("told", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Calls `a_long` of another object.
        pub fn relay(
            &self,
            other: Option<&Peer>,
            number: i32,
        ) -> ::std::result::Result<i32, ::sidestep_orb::SystemException> {
            self.0.call(
                "relay",
                |encoder| {
                    encoder.reference(other)?;
                    ::sidestep_orb::cdr::Cdr::encode(&number, encoder)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// Sends [`Self::relay`] now; what comes back is collected later.
        pub fn begin_relay(
            &self,
            other: Option<&Peer>,
            number: i32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<i32, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "relay",
                |encoder| {
                    encoder.reference(other)?;
                    ::sidestep_orb::cdr::Cdr::encode(&number, encoder)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// `sleep`
        pub fn sleep(&self, milliseconds: u32) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("sleep", |encoder| ::sidestep_orb::cdr::Cdr::encode(&milliseconds, encoder), |_| Ok(()))
        }

        /// Sends [`Self::sleep`] now; what comes back is collected later.
        pub fn begin_sleep(
            &self,
            milliseconds: u32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("sleep", |encoder| ::sidestep_orb::cdr::Cdr::encode(&milliseconds, encoder), |_| Ok(()))
        }

        /// `leave`
        pub fn leave(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.oneway("leave", |_| Ok(()))
        }
    }

    /// What implements `Types::Peer`.
    pub trait PeerServant: BaseServant {
        /// `a_short`
        fn a_short(&self, i: i16, io: i16) -> ::std::result::Result<(i16, i16, i16), ::sidestep_orb::SystemException>;

        /// `a_ushort`
        fn a_ushort(&self, i: u16, io: u16) -> ::std::result::Result<(u16, u16, u16), ::sidestep_orb::SystemException>;

        /// `a_long`
        fn a_long(&self, i: i32, io: i32) -> ::std::result::Result<(i32, i32, i32), ::sidestep_orb::SystemException>;

        /// `a_ulong`
        fn a_ulong(&self, i: u32, io: u32) -> ::std::result::Result<(u32, u32, u32), ::sidestep_orb::SystemException>;

        /// `a_longlong`
        fn a_longlong(
            &self,
            i: i64,
            io: i64,
        ) -> ::std::result::Result<(i64, i64, i64), ::sidestep_orb::SystemException>;

        /// `a_ulonglong`
        fn a_ulonglong(
            &self,
            i: u64,
            io: u64,
        ) -> ::std::result::Result<(u64, u64, u64), ::sidestep_orb::SystemException>;

        /// `a_float`
        fn a_float(&self, i: f32, io: f32) -> ::std::result::Result<(f32, f32, f32), ::sidestep_orb::SystemException>;

        /// `a_double`
        fn a_double(&self, i: f64, io: f64) -> ::std::result::Result<(f64, f64, f64), ::sidestep_orb::SystemException>;

        /// `a_boolean`
        fn a_boolean(
            &self,
            i: bool,
            io: bool,
        ) -> ::std::result::Result<(bool, bool, bool), ::sidestep_orb::SystemException>;

        /// `a_char`
        fn a_char(
            &self,
            i: char,
            io: char,
        ) -> ::std::result::Result<(char, char, char), ::sidestep_orb::SystemException>;

        /// `a_wchar`
        fn a_wchar(
            &self,
            i: ::sidestep_orb::cdr::WChar,
            io: ::sidestep_orb::cdr::WChar,
        ) -> ::std::result::Result<
            (::sidestep_orb::cdr::WChar, ::sidestep_orb::cdr::WChar, ::sidestep_orb::cdr::WChar),
            ::sidestep_orb::SystemException,
        >;

        /// `an_octet`
        fn an_octet(&self, i: u8, io: u8) -> ::std::result::Result<(u8, u8, u8), ::sidestep_orb::SystemException>;

        /// `a_string`
        fn a_string(
            &self,
            i: String,
            io: String,
        ) -> ::std::result::Result<(String, String, String), ::sidestep_orb::SystemException>;

        /// `a_wstring`
        fn a_wstring(
            &self,
            i: ::sidestep_orb::cdr::WString,
            io: ::sidestep_orb::cdr::WString,
        ) -> ::std::result::Result<
            (::sidestep_orb::cdr::WString, ::sidestep_orb::cdr::WString, ::sidestep_orb::cdr::WString),
            ::sidestep_orb::SystemException,
        >;

        /// `a_short_text`
        fn a_short_text(
            &self,
            i: ShortText,
            io: ShortText,
        ) -> ::std::result::Result<(ShortText, ShortText, ShortText), ::sidestep_orb::SystemException>;

        /// `a_short_wide`
        fn a_short_wide(
            &self,
            i: ShortWide,
            io: ShortWide,
        ) -> ::std::result::Result<(ShortWide, ShortWide, ShortWide), ::sidestep_orb::SystemException>;

        /// `a_wide_choice`
        fn a_wide_choice(
            &self,
            i: OfWide,
            io: OfWide,
        ) -> ::std::result::Result<(OfWide, OfWide, OfWide), ::sidestep_orb::SystemException>;

        /// `some_unions`
        fn some_unions(
            &self,
            i: Unions,
            io: Unions,
        ) -> ::std::result::Result<(Unions, Unions, Unions), ::sidestep_orb::SystemException>;

        /// `a_color`
        fn a_color(
            &self,
            i: Color,
            io: Color,
        ) -> ::std::result::Result<(Color, Color, Color), ::sidestep_orb::SystemException>;

        /// `a_small`
        fn a_small(
            &self,
            i: Small,
            io: Small,
        ) -> ::std::result::Result<(Small, Small, Small), ::sidestep_orb::SystemException>;

        /// `a_tree`
        fn a_tree(
            &self,
            i: Tree,
            io: Tree,
        ) -> ::std::result::Result<(Tree, Tree, Tree), ::sidestep_orb::SystemException>;

        /// `a_choice`
        fn a_choice(
            &self,
            i: Choice,
            io: Choice,
        ) -> ::std::result::Result<(Choice, Choice, Choice), ::sidestep_orb::SystemException>;

        /// `some_labels`
        fn some_labels(
            &self,
            i: Labels,
            io: Labels,
        ) -> ::std::result::Result<(Labels, Labels, Labels), ::sidestep_orb::SystemException>;

        /// `some_octets`
        fn some_octets(
            &self,
            i: Octets,
            io: Octets,
        ) -> ::std::result::Result<(Octets, Octets, Octets), ::sidestep_orb::SystemException>;

        /// `some_longs`
        fn some_longs(
            &self,
            i: Longs,
            io: Longs,
        ) -> ::std::result::Result<(Longs, Longs, Longs), ::sidestep_orb::SystemException>;

        /// `some_strings`
        fn some_strings(
            &self,
            i: Strings,
            io: Strings,
        ) -> ::std::result::Result<(Strings, Strings, Strings), ::sidestep_orb::SystemException>;

        /// `some_smalls`
        fn some_smalls(
            &self,
            i: Smalls,
            io: Smalls,
        ) -> ::std::result::Result<(Smalls, Smalls, Smalls), ::sidestep_orb::SystemException>;

        /// `some_bounded`
        fn some_bounded(
            &self,
            i: Bounded,
            io: Bounded,
        ) -> ::std::result::Result<(Bounded, Bounded, Bounded), ::sidestep_orb::SystemException>;

        /// `a_grid`
        fn a_grid(
            &self,
            i: Grid,
            io: Grid,
        ) -> ::std::result::Result<(Grid, Grid, Grid), ::sidestep_orb::SystemException>;

        /// `some_money`
        fn some_money(
            &self,
            i: Money,
            io: Money,
        ) -> ::std::result::Result<(Money, Money, Money), ::sidestep_orb::SystemException>;

        /// `an_any`
        fn an_any(
            &self,
            i: ::sidestep_orb::cdr::Any,
            io: ::sidestep_orb::cdr::Any,
        ) -> ::std::result::Result<
            (::sidestep_orb::cdr::Any, ::sidestep_orb::cdr::Any, ::sidestep_orb::cdr::Any),
            ::sidestep_orb::SystemException,
        >;

        /// `some_anys`
        fn some_anys(
            &self,
            i: Anys,
            io: Anys,
        ) -> ::std::result::Result<(Anys, Anys, Anys), ::sidestep_orb::SystemException>;

        /// `an_object`
        fn an_object(
            &self,
            i: Option<::sidestep_orb::Object>,
            io: Option<::sidestep_orb::Object>,
        ) -> ::std::result::Result<
            (Option<::sidestep_orb::Object>, Option<::sidestep_orb::Object>, Option<::sidestep_orb::Object>),
            ::sidestep_orb::SystemException,
        >;

        /// `a_peer`
        fn a_peer(
            &self,
            i: Option<Peer>,
            io: Option<Peer>,
        ) -> ::std::result::Result<(Option<Peer>, Option<Peer>, Option<Peer>), ::sidestep_orb::SystemException>;

        /// `a_type`
        fn a_type(
            &self,
            i: ::sidestep_orb::cdr::TypeCode,
            io: ::sidestep_orb::cdr::TypeCode,
        ) -> ::std::result::Result<
            (::sidestep_orb::cdr::TypeCode, ::sidestep_orb::cdr::TypeCode, ::sidestep_orb::cdr::TypeCode),
            ::sidestep_orb::SystemException,
        >;

        /// `fail`
        fn fail(&self, how: i32) -> ::std::result::Result<(), PeerFailError>;

        /// `tell`
        fn tell(&self, text: String) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `told`
        fn told(&self) -> ::std::result::Result<String, ::sidestep_orb::SystemException>;

        /// Calls `a_long` of another object.
        fn relay(
            &self,
            other: Option<Peer>,
            number: i32,
        ) -> ::std::result::Result<i32, ::sidestep_orb::SystemException>;

        /// `sleep`
        fn sleep(&self, milliseconds: u32) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `leave`
        fn leave(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`PeerServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct PeerSkeleton<S>(pub S);

    impl<S: PeerServant> ::sidestep_orb::Servant for PeerSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:sidestep.test/Types/Peer:1.0", "IDL:sidestep.test/Types/Base:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "_get_calls" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = BaseServant::calls(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "_get_label" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = BaseServant::label(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "_set_label" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    BaseServant::set_label(&self.0, argument_0)?;
                    call.reply(|_| Ok(()))
                }
                "ping" => {
                    call.arguments(|_| Ok(()))?;
                    BaseServant::ping(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "a_short" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_short(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_ushort" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_ushort(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_long" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_long(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_ulong" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_ulong(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_longlong" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_longlong(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_ulonglong" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_ulonglong(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_float" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_float(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_double" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_double(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_boolean" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_boolean(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_char" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_char(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_wchar" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_wchar(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "an_octet" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::an_octet(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_string" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_string(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_wstring" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_wstring(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_short_text" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_short_text(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_short_wide" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_short_wide(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_wide_choice" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_wide_choice(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_unions" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_unions(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_color" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_color(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_small" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_small(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_tree" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_tree(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_choice" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_choice(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_labels" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_labels(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_octets" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_octets(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_longs" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_longs(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_strings" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_strings(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_smalls" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_smalls(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_bounded" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_bounded(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_grid" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_grid(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_money" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_money(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "an_any" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::an_any(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "some_anys" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::some_anys(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "an_object" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::an_object(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_peer" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_peer(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "a_type" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::a_type(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                "fail" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match PeerServant::fail(&self.0, argument_0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(PeerFailError::Plain(exception)) => call.raise(&exception),
                        Err(PeerFailError::Detailed(exception)) => call.raise(&exception),
                        Err(PeerFailError::System(exception)) => Err(exception),
                    }
                }
                "tell" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    PeerServant::tell(&self.0, argument_0)?;
                    call.reply(|_| Ok(()))
                }
                "told" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = PeerServant::told(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "relay" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = PeerServant::relay(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "sleep" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    PeerServant::sleep(&self.0, argument_0)?;
                    call.reply(|_| Ok(()))
                }
                "leave" => {
                    call.arguments(|_| Ok(()))?;
                    PeerServant::leave(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Types::Plain`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Plain {}

    impl ::sidestep_orb::UserException for Plain {
        const ID: &'static str = "IDL:sidestep.test/Types/Plain:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for Plain {
        const MIN_LEN: usize = 4;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            decoder.identifier()?;
            Ok(Self {})
        }
    }

    impl ::sidestep_orb::cdr::Typed for Plain {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/Plain:1.0", |path| {
                let members = vec![];
                let _ = path;
                ::sidestep_orb::cdr::TypeCode::exception("IDL:sidestep.test/Types/Plain:1.0", "Plain", members)
            })
        }
    }

    impl ::std::fmt::Display for Plain {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for Plain {}

    /// `Types::Detailed`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Detailed {
        /// `why`
        pub why: String,
        /// `code`
        pub code: i32,
        /// `shade`
        pub shade: Color,
    }

    impl ::sidestep_orb::UserException for Detailed {
        const ID: &'static str = "IDL:sidestep.test/Types/Detailed:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for Detailed {
        const MIN_LEN: usize = 4
            + <String as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <Color as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
            ::sidestep_orb::cdr::Cdr::encode(&self.why, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.code, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.shade, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            decoder.identifier()?;
            Ok(Self {
                why: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                code: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                shade: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Detailed {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:sidestep.test/Types/Detailed:1.0", |path| {
                let members = vec![
                    ("why", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("code", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("shade", <Color as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::exception("IDL:sidestep.test/Types/Detailed:1.0", "Detailed", members)
            })
        }
    }

    impl ::std::fmt::Display for Detailed {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for Detailed {}

    /// `Types::Base`
    ///
    /// This is a reference to such an object; [`BaseServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Base(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Base {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Base {
        const TYPE_ID: &'static str = "IDL:sidestep.test/Types/Base:1.0";
        const NAME: &'static str = "Base";

        fn from_ior(
            ior: ::sidestep_orb::Ior,
            decoder: &::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::Object::from_ior(ior, decoder).map(Self)
        }

        fn ior(&self) -> &::sidestep_orb::Ior {
            self.0.ior()
        }
    }

    impl Base {
        /// `_get_calls`
        pub fn calls(&self) -> ::std::result::Result<i32, ::sidestep_orb::SystemException> {
            self.0.call("_get_calls", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::calls`] now; what comes back is collected later.
        pub fn begin_calls(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<i32, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_get_calls", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `_get_label`
        pub fn label(&self) -> ::std::result::Result<String, ::sidestep_orb::SystemException> {
            self.0.call("_get_label", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::label`] now; what comes back is collected later.
        pub fn begin_label(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<String, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_get_label", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `_set_label`
        pub fn set_label(&self, value: &str) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("_set_label", |encoder| encoder.string(value), |_| Ok(()))
        }

        /// Sends [`Self::set_label`] now; what comes back is collected later.
        pub fn begin_set_label(
            &self,
            value: &str,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_set_label", |encoder| encoder.string(value), |_| Ok(()))
        }

        /// `ping`
        pub fn ping(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("ping", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::ping`] now; what comes back is collected later.
        pub fn begin_ping(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("ping", |_| Ok(()), |_| Ok(()))
        }
    }

    /// What implements `Types::Base`.
    pub trait BaseServant: Send + Sync + 'static {
        /// `_get_calls`
        fn calls(&self) -> ::std::result::Result<i32, ::sidestep_orb::SystemException>;

        /// `_get_label`
        fn label(&self) -> ::std::result::Result<String, ::sidestep_orb::SystemException>;

        /// `_set_label`
        fn set_label(&self, value: String) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `ping`
        fn ping(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`BaseServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct BaseSkeleton<S>(pub S);

    impl<S: BaseServant> ::sidestep_orb::Servant for BaseSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:sidestep.test/Types/Base:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "_get_calls" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = BaseServant::calls(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "_get_label" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = BaseServant::label(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "_set_label" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    BaseServant::set_label(&self.0, argument_0)?;
                    call.reply(|_| Ok(()))
                }
                "ping" => {
                    call.arguments(|_| Ok(()))?;
                    BaseServant::ping(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }
}
