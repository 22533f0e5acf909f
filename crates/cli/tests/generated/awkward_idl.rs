// Made by `sidestep idl` from awkward.idl. Changes belong there.

/// What is declared beside modules.
#[allow(dead_code, clippy::all)]
pub const EPSILON: f64 = 1e-9;

/// `THIRD`
#[allow(dead_code, clippy::all)]
pub const THIRD: ::sidestep_orb::cdr::Fixed<31, 31> =
    ::sidestep_orb::cdr::Fixed::constant(3333333333333333333333333333333);

/// `Blob`
#[allow(dead_code, clippy::all)]
pub type Blob = Vec<u8>;

/// How it is used:
/// ```text
/// call(blob[0]);
/// ```
///
/// This is a reference to such an object; [`OutermostServant`] is what implements one.
#[derive(Debug, Clone, PartialEq)]
#[allow(dead_code, clippy::all)]
pub struct Outermost(::sidestep_orb::Object);

#[allow(dead_code, clippy::all)]
impl ::sidestep_orb::Stub for Outermost {
    fn from_object(object: ::sidestep_orb::Object) -> Self {
        Self(object)
    }

    fn object(&self) -> &::sidestep_orb::Object {
        &self.0
    }
}

#[allow(dead_code, clippy::all)]
impl ::sidestep_orb::cdr::Reference for Outermost {
    const TYPE_ID: &'static str = "IDL:Outermost:1.0";
    const NAME: &'static str = "Outermost";

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

#[allow(dead_code, clippy::all)]
impl Outermost {
    /// `many`
    pub fn many(
        &self,
        a: i32,
        b: i32,
        c: i32,
        d: i32,
        e: i32,
        f: i32,
        g: i32,
        h: i32,
    ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
        self.0.call(
            "many",
            |encoder| {
                ::sidestep_orb::cdr::Cdr::encode(&a, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&b, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&c, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&d, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&e, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&f, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&g, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&h, encoder)?;
                Ok(())
            },
            |_| Ok(()),
        )
    }

    /// Sends [`Self::many`] now; what comes back is collected later.
    pub fn begin_many(
        &self,
        a: i32,
        b: i32,
        c: i32,
        d: i32,
        e: i32,
        f: i32,
        g: i32,
        h: i32,
    ) -> ::std::result::Result<
        ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
        ::sidestep_orb::SystemException,
    > {
        self.0.begin(
            "many",
            |encoder| {
                ::sidestep_orb::cdr::Cdr::encode(&a, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&b, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&c, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&d, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&e, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&f, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&g, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&h, encoder)?;
                Ok(())
            },
            |_| Ok(()),
        )
    }
}

/// What implements `Outermost`.
#[allow(dead_code, clippy::all)]
pub trait OutermostServant: Send + Sync + 'static {
    /// `many`
    fn many(
        &self,
        a: i32,
        b: i32,
        c: i32,
        d: i32,
        e: i32,
        f: i32,
        g: i32,
        h: i32,
    ) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
}

/// Makes a [`OutermostServant`] an object that an adapter can activate.
#[derive(Debug)]
#[allow(dead_code, clippy::all)]
pub struct OutermostSkeleton<S>(pub S);

#[allow(dead_code, clippy::all)]
impl<S: OutermostServant> ::sidestep_orb::Servant for OutermostSkeleton<S> {
    fn type_ids(&self) -> &'static [&'static str] {
        &["IDL:Outermost:1.0"]
    }

    fn dispatch(
        &self,
        call: &mut ::sidestep_orb::Call<'_>,
    ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
        match call.operation() {
            "many" => {
                let (argument_0, argument_1, argument_2, argument_3, argument_4, argument_5, argument_6, argument_7) =
                    call.arguments(|decoder| {
                        Ok((
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ))
                    })?;
                OutermostServant::many(
                    &self.0, argument_0, argument_1, argument_2, argument_3, argument_4, argument_5, argument_6,
                    argument_7,
                )?;
                call.reply(|_| Ok(()))
            }
            _ => Err(call.unknown_operation()),
        }
    }
}

/// `A`
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod a {

    /// `A::X`
    #[derive(Debug, Clone, PartialEq)]
    pub struct X {
        /// `code`
        pub code: i32,
    }

    impl ::sidestep_orb::UserException for X {
        const ID: &'static str = "IDL:A/X:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for X {
        const MIN_LEN: usize = 4 + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
            ::sidestep_orb::cdr::Cdr::encode(&self.code, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            decoder.identifier()?;
            Ok(Self { code: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for X {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:A/X:1.0", |path| {
                let members = vec![("code", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::exception("IDL:A/X:1.0", "X", members)
            })
        }
    }

    impl ::std::fmt::Display for X {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for X {}
}

/// `B`
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod b {

    /// `B::X`
    #[derive(Debug, Clone, PartialEq)]
    pub struct X {
        /// `code`
        pub code: String,
    }

    impl ::sidestep_orb::UserException for X {
        const ID: &'static str = "IDL:B/X:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for X {
        const MIN_LEN: usize = 4 + <String as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
            ::sidestep_orb::cdr::Cdr::encode(&self.code, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            decoder.identifier()?;
            Ok(Self { code: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for X {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:B/X:1.0", |path| {
                let members = vec![("code", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::exception("IDL:B/X:1.0", "X", members)
            })
        }
    }

    impl ::std::fmt::Display for X {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for X {}

    /// `B::System`
    #[derive(Debug, Clone, PartialEq)]
    pub struct System {
        /// `why`
        pub why: String,
    }

    impl ::sidestep_orb::UserException for System {
        const ID: &'static str = "IDL:B/System:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for System {
        const MIN_LEN: usize = 4 + <String as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
            ::sidestep_orb::cdr::Cdr::encode(&self.why, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            decoder.identifier()?;
            Ok(Self { why: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for System {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:B/System:1.0", |path| {
                let members = vec![("why", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::exception("IDL:B/System:1.0", "System", members)
            })
        }
    }

    impl ::std::fmt::Display for System {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for System {}
}

/// `CORBA`
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod corba {

    /// `CORBA::Handle`
    pub type Handle = i32;
}

/// The types that Rust has everywhere.
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod prelude {

    /// `Prelude::Option`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Option_ {
        /// `value`
        pub value: i32,
    }

    impl ::sidestep_orb::cdr::Cdr for Option_ {
        const MIN_LEN: usize = <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.value, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self { value: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Option_ {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Prelude/Option:1.0", |path| {
                let members = vec![("value", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:Prelude/Option:1.0", "Option", members)
            })
        }
    }

    /// `Prelude::Some`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Some_ {
        /// `value`
        pub value: i32,
    }

    impl ::sidestep_orb::cdr::Cdr for Some_ {
        const MIN_LEN: usize = <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.value, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self { value: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Some_ {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Prelude/Some:1.0", |path| {
                let members = vec![("value", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:Prelude/Some:1.0", "Some", members)
            })
        }
    }

    /// `Prelude::None`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum None_ {
        /// `Full`
        Full,
        /// `SelfMade`
        SelfMade,
    }

    impl ::sidestep_orb::cdr::Cdr for None_ {
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
                0 => Ok(Self::Full),
                1 => Ok(Self::SelfMade),
                found => Err(::sidestep_orb::cdr::Error::Enumeration { enumeration: "None", found }),
            }
        }
    }

    impl ::sidestep_orb::cdr::Typed for None_ {
        fn type_code_in(_: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            let members = ["Full", "SelfMade"];
            ::sidestep_orb::cdr::TypeCode::enumeration("IDL:Prelude/None:1.0", "None", &members)
        }
    }

    /// `Prelude::Vec`
    pub type Vec_ = Vec<String>;

    /// `Prelude::String`
    pub type String_ = Vec<Vec_>;

    /// `Prelude::From`
    ///
    /// This is a reference to such an object; [`FromServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct From_(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for From_ {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for From_ {
        const TYPE_ID: &'static str = "IDL:Prelude/From:1.0";
        const NAME: &'static str = "From";

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

    impl From_ {
        /// `some`
        pub fn some(
            &self,
            texts: &[Vec_],
            all: &[String],
        ) -> ::std::result::Result<Option_, ::sidestep_orb::SystemException> {
            self.0.call(
                "some",
                |encoder| {
                    encoder.sequence(texts)?;
                    encoder.sequence(all)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// Sends [`Self::some`] now; what comes back is collected later.
        pub fn begin_some(
            &self,
            texts: &[Vec_],
            all: &[String],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option_, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some",
                |encoder| {
                    encoder.sequence(texts)?;
                    encoder.sequence(all)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }
    }

    /// What implements `Prelude::From`.
    pub trait FromServant: Send + Sync + 'static {
        /// `some`
        fn some(&self, texts: String_, all: Vec_) -> ::std::result::Result<Option_, ::sidestep_orb::SystemException>;
    }

    /// Makes a [`FromServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct FromSkeleton<S>(pub S);

    impl<S: FromServant> ::sidestep_orb::Servant for FromSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Prelude/From:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "some" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = FromServant::some(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// Why `sync` of `Prelude::Send` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum SendSyncError {
        /// The servant has raised it.
        System_(super::b::System),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for SendSyncError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <super::b::System as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::System_));
            }
            None
        }
    }

    impl From<super::b::System> for SendSyncError {
        fn from(exception: super::b::System) -> Self {
            Self::System_(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for SendSyncError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for SendSyncError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::System_(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for SendSyncError {}

    /// `Prelude::Send`
    ///
    /// This is a reference to such an object; [`SendServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Send_(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Send_ {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Send_ {
        const TYPE_ID: &'static str = "IDL:Prelude/Send:1.0";
        const NAME: &'static str = "Send";

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

    impl From<Send_> for From_ {
        fn from(derived: Send_) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl Send_ {
        /// `some`
        pub fn some(
            &self,
            texts: &[Vec_],
            all: &[String],
        ) -> ::std::result::Result<Option_, ::sidestep_orb::SystemException> {
            self.0.call(
                "some",
                |encoder| {
                    encoder.sequence(texts)?;
                    encoder.sequence(all)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// Sends [`Self::some`] now; what comes back is collected later.
        pub fn begin_some(
            &self,
            texts: &[Vec_],
            all: &[String],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option_, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some",
                |encoder| {
                    encoder.sequence(texts)?;
                    encoder.sequence(all)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// `sync`
        pub fn sync(&self, who: Option<&From_>) -> ::std::result::Result<(), SendSyncError> {
            self.0.call("sync", |encoder| encoder.reference(who), |_| Ok(()))
        }

        /// Sends [`Self::sync`] now; what comes back is collected later.
        pub fn begin_sync(
            &self,
            who: Option<&From_>,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), SendSyncError>, SendSyncError> {
            self.0.begin("sync", |encoder| encoder.reference(who), |_| Ok(()))
        }
    }

    /// What implements `Prelude::Send`.
    pub trait SendServant: FromServant {
        /// `sync`
        fn sync(&self, who: Option<From_>) -> ::std::result::Result<(), SendSyncError>;
    }

    /// Makes a [`SendServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct SendSkeleton<S>(pub S);

    impl<S: SendServant> ::sidestep_orb::Servant for SendSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Prelude/Send:1.0", "IDL:Prelude/From:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "some" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = FromServant::some(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "sync" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match SendServant::sync(&self.0, argument_0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(SendSyncError::System_(exception)) => call.raise(&exception),
                        Err(SendSyncError::System(exception)) => Err(exception),
                    }
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Prelude::Result`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Result {
        /// `box`
        pub r#box: Option<::sidestep_orb::Object>,
    }

    impl ::sidestep_orb::UserException for Result {
        const ID: &'static str = "IDL:Prelude/Result:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for Result {
        const MIN_LEN: usize = 4 + <Option<::sidestep_orb::Object> as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
            ::sidestep_orb::cdr::Cdr::encode(&self.r#box, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            decoder.identifier()?;
            Ok(Self { r#box: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Result {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Prelude/Result:1.0", |path| {
                let members =
                    vec![("box", <Option<::sidestep_orb::Object> as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::exception("IDL:Prelude/Result:1.0", "Result", members)
            })
        }
    }

    impl ::std::fmt::Display for Result {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for Result {}

    /// Why `f` of `Prelude::Ok` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum OkFError {
        /// The servant has raised it.
        Result(Result),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for OkFError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <Result as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::Result));
            }
            None
        }
    }

    impl From<Result> for OkFError {
        fn from(exception: Result) -> Self {
            Self::Result(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for OkFError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for OkFError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::Result(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for OkFError {}

    /// `Prelude::Ok`
    ///
    /// This is a reference to such an object; [`OkServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Ok_(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Ok_ {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Ok_ {
        const TYPE_ID: &'static str = "IDL:Prelude/Ok:1.0";
        const NAME: &'static str = "Ok";

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

    impl Ok_ {
        /// `f`
        pub fn f(&self) -> ::std::result::Result<(), OkFError> {
            self.0.call("f", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::f`] now; what comes back is collected later.
        pub fn begin_f(&self) -> ::std::result::Result<::sidestep_orb::Deferred<(), OkFError>, OkFError> {
            self.0.begin("f", |_| Ok(()), |_| Ok(()))
        }
    }

    /// What implements `Prelude::Ok`.
    pub trait OkServant: Send + Sync + 'static {
        /// `f`
        fn f(&self) -> ::std::result::Result<(), OkFError>;
    }

    /// Makes a [`OkServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct OkSkeleton<S>(pub S);

    impl<S: OkServant> ::sidestep_orb::Servant for OkSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Prelude/Ok:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "f" => {
                    call.arguments(|_| Ok(()))?;
                    match OkServant::f(&self.0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(OkFError::Result(exception)) => call.raise(&exception),
                        Err(OkFError::System(exception)) => Err(exception),
                    }
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Prelude::Err`
    ///
    /// This is a reference to such an object; [`ErrServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Err_(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Err_ {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Err_ {
        const TYPE_ID: &'static str = "IDL:Prelude/Err:1.0";
        const NAME: &'static str = "Err";

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

    impl From<Err_> for From_ {
        fn from(derived: Err_) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl From<Err_> for Send_ {
        fn from(derived: Err_) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl From<Err_> for Ok_ {
        fn from(derived: Err_) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl Err_ {
        /// `some`
        pub fn some(
            &self,
            texts: &[Vec_],
            all: &[String],
        ) -> ::std::result::Result<Option_, ::sidestep_orb::SystemException> {
            self.0.call(
                "some",
                |encoder| {
                    encoder.sequence(texts)?;
                    encoder.sequence(all)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// Sends [`Self::some`] now; what comes back is collected later.
        pub fn begin_some(
            &self,
            texts: &[Vec_],
            all: &[String],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option_, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "some",
                |encoder| {
                    encoder.sequence(texts)?;
                    encoder.sequence(all)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// `sync`
        pub fn sync(&self, who: Option<&From_>) -> ::std::result::Result<(), SendSyncError> {
            self.0.call("sync", |encoder| encoder.reference(who), |_| Ok(()))
        }

        /// Sends [`Self::sync`] now; what comes back is collected later.
        pub fn begin_sync(
            &self,
            who: Option<&From_>,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), SendSyncError>, SendSyncError> {
            self.0.begin("sync", |encoder| encoder.reference(who), |_| Ok(()))
        }

        /// `f`
        pub fn f(&self) -> ::std::result::Result<(), OkFError> {
            self.0.call("f", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::f`] now; what comes back is collected later.
        pub fn begin_f(&self) -> ::std::result::Result<::sidestep_orb::Deferred<(), OkFError>, OkFError> {
            self.0.begin("f", |_| Ok(()), |_| Ok(()))
        }
    }

    /// What implements `Prelude::Err`.
    pub trait ErrServant: SendServant + OkServant {}

    /// Makes a [`ErrServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct ErrSkeleton<S>(pub S);

    impl<S: ErrServant> ::sidestep_orb::Servant for ErrSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Prelude/Err:1.0", "IDL:Prelude/Ok:1.0", "IDL:Prelude/Send:1.0", "IDL:Prelude/From:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "some" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    let outcome = FromServant::some(&self.0, argument_0, argument_1)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "sync" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match SendServant::sync(&self.0, argument_0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(SendSyncError::System_(exception)) => call.raise(&exception),
                        Err(SendSyncError::System(exception)) => Err(exception),
                    }
                }
                "f" => {
                    call.arguments(|_| Ok(()))?;
                    match OkServant::f(&self.0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(OkFError::Result(exception)) => call.raise(&exception),
                        Err(OkFError::System(exception)) => Err(exception),
                    }
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }
}

/// Modules that are primitive types of Rust.
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod u8_ {

    /// `u8::str`
    pub mod str_ {

        /// `u8::str::f64`
        pub type F64 = u8;

        /// `u8::str::S`
        #[derive(Debug, Clone, PartialEq)]
        pub struct S {
            /// `data`
            pub data: u8,
            /// `text`
            pub text: String,
            /// `usize`
            pub usize: u64,
            /// `bool`
            pub bool: bool,
            /// `x`
            pub x: F64,
        }

        impl ::sidestep_orb::cdr::Cdr for S {
            const MIN_LEN: usize = <u8 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
                + <String as ::sidestep_orb::cdr::Cdr>::MIN_LEN
                + <u64 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
                + <bool as ::sidestep_orb::cdr::Cdr>::MIN_LEN
                + <F64 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

            fn encode(
                &self,
                encoder: &mut ::sidestep_orb::cdr::Encoder,
            ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
                ::sidestep_orb::cdr::Cdr::encode(&self.data, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&self.text, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&self.usize, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&self.bool, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&self.x, encoder)?;
                Ok(())
            }

            fn decode(
                decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
            ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
                Ok(Self {
                    data: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    text: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    usize: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    bool: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    x: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                })
            }
        }

        impl ::sidestep_orb::cdr::Typed for S {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:u8/str/S:1.0", |path| {
                    let members = vec![
                        ("data", <u8 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                        ("text", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                        ("usize", <u64 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                        ("bool", <bool as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                        ("x", <F64 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ];
                    ::sidestep_orb::cdr::TypeCode::structure("IDL:u8/str/S:1.0", "S", members)
                })
            }
        }
    }
}

/// Names of Rust's own, and names that are no names.
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod words {

    /// `Words::Keywords`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Keywords {
        /// `self`
        pub self_: i32,
        /// `super`
        pub super_: i32,
        /// `crate`
        pub crate_: i32,
        /// `type`
        pub r#type: i32,
        /// `fn`
        pub r#fn: i32,
        /// `yield`
        pub r#yield: i32,
        /// `type_`
        pub type_: i32,
        /// `true`
        pub r#true: i32,
    }

    impl ::sidestep_orb::cdr::Cdr for Keywords {
        const MIN_LEN: usize = <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.self_, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.super_, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.crate_, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.r#type, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.r#fn, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.r#yield, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.type_, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.r#true, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self {
                self_: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                super_: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                crate_: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                r#type: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                r#fn: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                r#yield: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                type_: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                r#true: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Keywords {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Words/Keywords:1.0", |path| {
                let members = vec![
                    ("self", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("super", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("crate", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("type", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("fn", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("yield", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("type_", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("true", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:Words/Keywords:1.0", "Keywords", members)
            })
        }
    }

    /// `Words::struct`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Struct {
        /// `interface`
        pub interface: Keywords,
    }

    impl ::sidestep_orb::cdr::Cdr for Struct {
        const MIN_LEN: usize = <Keywords as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.interface, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self { interface: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Struct {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Words/struct:1.0", |path| {
                let members = vec![("interface", <Keywords as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:Words/struct:1.0", "struct", members)
            })
        }
    }

    /// `Words::foo_bar`
    pub const FOO_BAR: i32 = 1;

    /// `Words::fooBar`
    pub const FOO_BAR_: i32 = 2;

    /// `Words::match`
    ///
    /// This is a reference to such an object; [`MatchServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Match(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Match {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Match {
        const TYPE_ID: &'static str = "IDL:Words/match:1.0";
        const NAME: &'static str = "match";

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

    impl Match {
        /// `loop`
        pub fn r#loop(
            &self,
            r#while: i32,
            self_: i32,
            r#move: i32,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call(
                "loop",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&r#while, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&self_, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&r#move, encoder)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::loop`] now; what comes back is collected later.
        pub fn begin_loop(
            &self,
            r#while: i32,
            self_: i32,
            r#move: i32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "loop",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&r#while, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&self_, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&r#move, encoder)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }
    }

    /// What implements `Words::match`.
    pub trait MatchServant: Send + Sync + 'static {
        /// `loop`
        fn r#loop(
            &self,
            r#while: i32,
            self_: i32,
            r#move: i32,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`MatchServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct MatchSkeleton<S>(pub S);

    impl<S: MatchServant> ::sidestep_orb::Servant for MatchSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Words/match:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "loop" => {
                    let (argument_0, argument_1, argument_2) = call.arguments(|decoder| {
                        Ok((
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ))
                    })?;
                    MatchServant::r#loop(&self.0, argument_0, argument_1, argument_2)?;
                    call.reply(|_| Ok(()))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Words::E`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum E {
        /// `Ab`
        Ab,
        /// `AB_`
        Ab_,
        /// `Self`
        Self_,
        /// `default_`
        Default,
    }

    impl ::sidestep_orb::cdr::Cdr for E {
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
                0 => Ok(Self::Ab),
                1 => Ok(Self::Ab_),
                2 => Ok(Self::Self_),
                3 => Ok(Self::Default),
                found => Err(::sidestep_orb::cdr::Error::Enumeration { enumeration: "E", found }),
            }
        }
    }

    impl ::sidestep_orb::cdr::Typed for E {
        fn type_code_in(_: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            let members = ["Ab", "AB_", "Self", "default_"];
            ::sidestep_orb::cdr::TypeCode::enumeration("IDL:Words/E:1.0", "E", &members)
        }
    }
}

/// Names that become the same.
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod same {

    /// `Same::foo_bar`
    pub type FooBar = i32;

    /// `Same::fooBar`
    pub type FooBar_ = i16;

    /// `Same::Pair`
    #[derive(Debug, Clone, PartialEq)]
    pub struct Pair {
        /// `fooBar`
        pub foo_bar: i32,
        /// `foo_bar`
        pub foo_bar_: i32,
        /// `FOO_bar_`
        pub foo_bar__: FooBar_,
    }

    impl ::sidestep_orb::cdr::Cdr for Pair {
        const MIN_LEN: usize = <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN
            + <FooBar_ as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.foo_bar, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.foo_bar_, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.foo_bar__, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self {
                foo_bar: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                foo_bar_: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                foo_bar__: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Pair {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Same/Pair:1.0", |path| {
                let members = vec![
                    ("fooBar", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("foo_bar", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("FOO_bar_", <FooBar_ as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:Same/Pair:1.0", "Pair", members)
            })
        }
    }

    /// `Same::foo_baz`
    ///
    /// This is a reference to such an object; [`FooBazServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct FooBaz(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for FooBaz {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for FooBaz {
        const TYPE_ID: &'static str = "IDL:Same/foo_baz:1.0";
        const NAME: &'static str = "foo_baz";

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

    impl FooBaz {
        /// `get`
        pub fn get(&self) -> ::std::result::Result<foo_baz::Inner, ::sidestep_orb::SystemException> {
            self.0.call("get", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::get`] now; what comes back is collected later.
        pub fn begin_get(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<foo_baz::Inner, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("get", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }
    }

    /// What implements `Same::foo_baz`.
    pub trait FooBazServant: Send + Sync + 'static {
        /// `get`
        fn get(&self) -> ::std::result::Result<foo_baz::Inner, ::sidestep_orb::SystemException>;
    }

    /// Makes a [`FooBazServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct FooBazSkeleton<S>(pub S);

    impl<S: FooBazServant> ::sidestep_orb::Servant for FooBazSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Same/foo_baz:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "get" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = FooBazServant::get(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// What `Same::foo_baz` declares.
    pub mod foo_baz {

        /// `Same::foo_baz::Inner`
        #[derive(Debug, Clone, PartialEq)]
        pub struct Inner {
            /// `value`
            pub value: i32,
        }

        impl ::sidestep_orb::cdr::Cdr for Inner {
            const MIN_LEN: usize = <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

            fn encode(
                &self,
                encoder: &mut ::sidestep_orb::cdr::Encoder,
            ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
                ::sidestep_orb::cdr::Cdr::encode(&self.value, encoder)?;
                Ok(())
            }

            fn decode(
                decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
            ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
                Ok(Self { value: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
            }
        }

        impl ::sidestep_orb::cdr::Typed for Inner {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:Same/foo_baz/Inner:1.0", |path| {
                    let members = vec![("value", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                    ::sidestep_orb::cdr::TypeCode::structure("IDL:Same/foo_baz/Inner:1.0", "Inner", members)
                })
            }
        }
    }

    /// `Same::foo_baz_`
    pub mod foo_baz_ {

        /// `Same::foo_baz_::Inner`
        #[derive(Debug, Clone, PartialEq)]
        pub struct Inner {
            /// `value`
            pub value: String,
        }

        impl ::sidestep_orb::cdr::Cdr for Inner {
            const MIN_LEN: usize = <String as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

            fn encode(
                &self,
                encoder: &mut ::sidestep_orb::cdr::Encoder,
            ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
                ::sidestep_orb::cdr::Cdr::encode(&self.value, encoder)?;
                Ok(())
            }

            fn decode(
                decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
            ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
                Ok(Self { value: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
            }
        }

        impl ::sidestep_orb::cdr::Typed for Inner {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:Same/foo_baz_/Inner:1.0", |path| {
                    let members = vec![("value", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                    ::sidestep_orb::cdr::TypeCode::structure("IDL:Same/foo_baz_/Inner:1.0", "Inner", members)
                })
            }
        }
    }

    /// `Same::Switched`
    #[derive(Debug, Clone, PartialEq)]
    pub enum Switched {
        /// `fooBar`
        FooBar(i32),
        /// `foo_bar`
        FooBar_(String),
        /// `NoMember`
        NoMember_(bool),
        /// A label that selects no member.
        NoMember(i32),
    }

    impl ::sidestep_orb::cdr::Cdr for Switched {
        const MIN_LEN: usize = <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::FooBar(value) => {
                    <i32 as ::sidestep_orb::cdr::Cdr>::encode(&1, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::FooBar_(value) => {
                    <i32 as ::sidestep_orb::cdr::Cdr>::encode(&2, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::NoMember_(value) => {
                    <i32 as ::sidestep_orb::cdr::Cdr>::encode(&3, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::NoMember(label) if !matches!(*label, 1 | 2 | 3) => {
                    ::sidestep_orb::cdr::Cdr::encode(label, encoder)
                }
                Self::NoMember(_) => Err(::sidestep_orb::cdr::Error::Discriminator { union: "Switched" }),
            }
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            let label = <i32 as ::sidestep_orb::cdr::Cdr>::decode(decoder)?;
            Ok(match label {
                1 => Self::FooBar(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                2 => Self::FooBar_(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                3 => Self::NoMember_(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                _ => Self::NoMember(label),
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Switched {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Same/Switched:1.0", |path| {
                let discriminator = <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (1, "fooBar", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (2, "foo_bar", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (3, "NoMember", <bool as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union("IDL:Same/Switched:1.0", "Switched", discriminator, None, members)
            })
        }
    }

    /// `Same::Full`
    #[derive(Debug, Clone, PartialEq)]
    pub enum Full {
        /// `NoMember`
        NoMember_(i32),
        /// `no_member`
        NoMember__(String),
    }

    impl ::sidestep_orb::cdr::Cdr for Full {
        const MIN_LEN: usize = <bool as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            match self {
                Self::NoMember_(value) => {
                    <bool as ::sidestep_orb::cdr::Cdr>::encode(&true, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(value, encoder)
                }
                Self::NoMember__(value) => {
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
                true => Self::NoMember_(::sidestep_orb::cdr::Cdr::decode(decoder)?),
                false => Self::NoMember__(::sidestep_orb::cdr::Cdr::decode(decoder)?),
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Full {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Same/Full:1.0", |path| {
                let discriminator = <bool as ::sidestep_orb::cdr::Typed>::type_code_in(path);
                let members = vec![
                    (1, "NoMember", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    (0, "no_member", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::union("IDL:Same/Full:1.0", "Full", discriminator, None, members)
            })
        }
    }
}

/// Names that are made.
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod made {

    /// Why `f` of `Made::I` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum IFError {
        /// The servant has raised it.
        X(super::a::X),
        /// The servant has raised it.
        X_(super::b::X),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for IFError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <super::a::X as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::X));
            }
            if id == <super::b::X as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::X_));
            }
            None
        }
    }

    impl From<super::a::X> for IFError {
        fn from(exception: super::a::X) -> Self {
            Self::X(exception)
        }
    }

    impl From<super::b::X> for IFError {
        fn from(exception: super::b::X) -> Self {
            Self::X_(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for IFError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for IFError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::X(exception) => exception.fmt(f),
                Self::X_(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for IFError {}

    /// `Made::I`
    ///
    /// This is a reference to such an object; [`IServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct I(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for I {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for I {
        const TYPE_ID: &'static str = "IDL:Made/I:1.0";
        const NAME: &'static str = "I";

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

    impl I {
        /// `_get_x`
        pub fn x(&self) -> ::std::result::Result<i32, ::sidestep_orb::SystemException> {
            self.0.call("_get_x", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::x`] now; what comes back is collected later.
        pub fn begin_x(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<i32, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_get_x", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `_set_x`
        pub fn set_x(&self, value: i32) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("_set_x", |encoder| ::sidestep_orb::cdr::Cdr::encode(&value, encoder), |_| Ok(()))
        }

        /// Sends [`Self::set_x`] now; what comes back is collected later.
        pub fn begin_set_x(
            &self,
            value: i32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_set_x", |encoder| ::sidestep_orb::cdr::Cdr::encode(&value, encoder), |_| Ok(()))
        }

        /// `set_x`
        pub fn set_x_(&self, value: i32) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("set_x", |encoder| ::sidestep_orb::cdr::Cdr::encode(&value, encoder), |_| Ok(()))
        }

        /// Sends [`Self::set_x_`] now; what comes back is collected later.
        pub fn begin_set_x_(
            &self,
            value: i32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("set_x", |encoder| ::sidestep_orb::cdr::Cdr::encode(&value, encoder), |_| Ok(()))
        }

        /// `f`
        pub fn f(&self) -> ::std::result::Result<(), IFError> {
            self.0.call("f", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::f`] now; what comes back is collected later.
        pub fn begin_f(&self) -> ::std::result::Result<::sidestep_orb::Deferred<(), IFError>, IFError> {
            self.0.begin("f", |_| Ok(()), |_| Ok(()))
        }

        /// `begin_f`
        pub fn begin_f_(
            &self,
            encoder_: &str,
            decoder_: &str,
            path: i32,
            call: i32,
            outcome: i32,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call(
                "begin_f",
                |encoder| {
                    encoder.string(encoder_)?;
                    encoder.string(decoder_)?;
                    ::sidestep_orb::cdr::Cdr::encode(&path, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&call, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::begin_f_`] now; what comes back is collected later.
        pub fn begin_begin_f_(
            &self,
            encoder_: &str,
            decoder_: &str,
            path: i32,
            call: i32,
            outcome: i32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "begin_f",
                |encoder| {
                    encoder.string(encoder_)?;
                    encoder.string(decoder_)?;
                    ::sidestep_orb::cdr::Cdr::encode(&path, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&call, encoder)?;
                    ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `into`
        pub fn into_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("into", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::into_`] now; what comes back is collected later.
        pub fn begin_into_(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("into", |_| Ok(()), |_| Ok(()))
        }

        /// `plain`
        pub fn plain(
            &self,
            encoder_: super::corba::Handle,
            foo_bar: &str,
            foo_bar_: &str,
        ) -> ::std::result::Result<(i32, i32, String), ::sidestep_orb::SystemException> {
            self.0.call(
                "plain",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&encoder_, encoder)?;
                    encoder.string(foo_bar)?;
                    encoder.string(foo_bar_)?;
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

        /// Sends [`Self::plain`] now; what comes back is collected later.
        pub fn begin_plain(
            &self,
            encoder_: super::corba::Handle,
            foo_bar: &str,
            foo_bar_: &str,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(i32, i32, String), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "plain",
                |encoder| {
                    ::sidestep_orb::cdr::Cdr::encode(&encoder_, encoder)?;
                    encoder.string(foo_bar)?;
                    encoder.string(foo_bar_)?;
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
    }

    /// What implements `Made::I`.
    pub trait IServant: Send + Sync + 'static {
        /// `_get_x`
        fn x(&self) -> ::std::result::Result<i32, ::sidestep_orb::SystemException>;

        /// `_set_x`
        fn set_x(&self, value: i32) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `set_x`
        fn set_x_(&self, value: i32) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `f`
        fn f(&self) -> ::std::result::Result<(), IFError>;

        /// `begin_f`
        fn begin_f_(
            &self,
            encoder_: String,
            decoder_: String,
            path: i32,
            call: i32,
            outcome: i32,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `into`
        fn into_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `plain`
        fn plain(
            &self,
            encoder_: super::corba::Handle,
            foo_bar: String,
            foo_bar_: String,
        ) -> ::std::result::Result<(i32, i32, String), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`IServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct ISkeleton<S>(pub S);

    impl<S: IServant> ::sidestep_orb::Servant for ISkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Made/I:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "_get_x" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = IServant::x(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "_set_x" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    IServant::set_x(&self.0, argument_0)?;
                    call.reply(|_| Ok(()))
                }
                "set_x" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    IServant::set_x_(&self.0, argument_0)?;
                    call.reply(|_| Ok(()))
                }
                "f" => {
                    call.arguments(|_| Ok(()))?;
                    match IServant::f(&self.0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(IFError::X(exception)) => call.raise(&exception),
                        Err(IFError::X_(exception)) => call.raise(&exception),
                        Err(IFError::System(exception)) => Err(exception),
                    }
                }
                "begin_f" => {
                    let (argument_0, argument_1, argument_2, argument_3, argument_4) = call.arguments(|decoder| {
                        Ok((
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ))
                    })?;
                    IServant::begin_f_(&self.0, argument_0, argument_1, argument_2, argument_3, argument_4)?;
                    call.reply(|_| Ok(()))
                }
                "into" => {
                    call.arguments(|_| Ok(()))?;
                    IServant::into_(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "plain" => {
                    let (argument_0, argument_1, argument_2) = call.arguments(|decoder| {
                        Ok((
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                            ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                        ))
                    })?;
                    let outcome = IServant::plain(&self.0, argument_0, argument_1, argument_2)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.2, encoder)?;
                        Ok(())
                    })
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Made::IServant`
    #[derive(Debug, Clone, PartialEq)]
    pub struct IServant_ {
        /// `value`
        pub value: i32,
    }

    impl ::sidestep_orb::cdr::Cdr for IServant_ {
        const MIN_LEN: usize = <i32 as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.value, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self { value: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for IServant_ {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Made/IServant:1.0", |path| {
                let members = vec![("value", <i32 as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:Made/IServant:1.0", "IServant", members)
            })
        }
    }

    /// `Made::ISkeleton`
    #[derive(Debug, Clone, PartialEq)]
    pub struct ISkeleton_ {
        /// `reference`
        pub reference: Option<I>,
    }

    impl ::sidestep_orb::cdr::Cdr for ISkeleton_ {
        const MIN_LEN: usize = <Option<I> as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.reference, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self { reference: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for ISkeleton_ {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Made/ISkeleton:1.0", |path| {
                let members = vec![("reference", <Option<I> as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:Made/ISkeleton:1.0", "ISkeleton", members)
            })
        }
    }

    /// `Made::IFError`
    #[derive(Debug, Clone, PartialEq)]
    pub struct IFError_ {
        /// `reference`
        pub reference: Option<I>,
    }

    impl ::sidestep_orb::UserException for IFError_ {
        const ID: &'static str = "IDL:Made/IFError:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for IFError_ {
        const MIN_LEN: usize = 4 + <Option<I> as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
            ::sidestep_orb::cdr::Cdr::encode(&self.reference, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            decoder.identifier()?;
            Ok(Self { reference: ::sidestep_orb::cdr::Cdr::decode(decoder)? })
        }
    }

    impl ::sidestep_orb::cdr::Typed for IFError_ {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Made/IFError:1.0", |path| {
                let members = vec![("reference", <Option<I> as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::exception("IDL:Made/IFError:1.0", "IFError", members)
            })
        }
    }

    impl ::std::fmt::Display for IFError_ {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for IFError_ {}

    /// `Made::ISetX`
    #[derive(Debug, Clone, PartialEq)]
    pub struct ISetX {}

    impl ::sidestep_orb::UserException for ISetX {
        const ID: &'static str = "IDL:Made/ISetX:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for ISetX {
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

    impl ::sidestep_orb::cdr::Typed for ISetX {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Made/ISetX:1.0", |path| {
                let members = vec![];
                let _ = path;
                ::sidestep_orb::cdr::TypeCode::exception("IDL:Made/ISetX:1.0", "ISetX", members)
            })
        }
    }

    impl ::std::fmt::Display for ISetX {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for ISetX {}
}

/// Operations that meet by inheritance.
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod inherited {

    /// `Inherited::Left`
    ///
    /// This is a reference to such an object; [`LeftServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Left(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Left {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Left {
        const TYPE_ID: &'static str = "IDL:Inherited/Left:1.0";
        const NAME: &'static str = "Left";

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

    impl Left {
        /// `fooBar`
        pub fn foo_bar(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("fooBar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::foo_bar`] now; what comes back is collected later.
        pub fn begin_foo_bar(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("fooBar", |_| Ok(()), |_| Ok(()))
        }

        /// `only_left`
        pub fn only_left(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("only_left", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::only_left`] now; what comes back is collected later.
        pub fn begin_only_left(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("only_left", |_| Ok(()), |_| Ok(()))
        }
    }

    /// What implements `Inherited::Left`.
    pub trait LeftServant: Send + Sync + 'static {
        /// `fooBar`
        fn foo_bar(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `only_left`
        fn only_left(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`LeftServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct LeftSkeleton<S>(pub S);

    impl<S: LeftServant> ::sidestep_orb::Servant for LeftSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Inherited/Left:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "fooBar" => {
                    call.arguments(|_| Ok(()))?;
                    LeftServant::foo_bar(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "only_left" => {
                    call.arguments(|_| Ok(()))?;
                    LeftServant::only_left(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Inherited::Right`
    ///
    /// This is a reference to such an object; [`RightServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Right(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Right {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Right {
        const TYPE_ID: &'static str = "IDL:Inherited/Right:1.0";
        const NAME: &'static str = "Right";

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

    impl Right {
        /// `foo_bar`
        pub fn foo_bar(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::foo_bar`] now; what comes back is collected later.
        pub fn begin_foo_bar(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// `begin_foo_bar`
        pub fn begin_foo_bar_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("begin_foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::begin_foo_bar_`] now; what comes back is collected later.
        pub fn begin_begin_foo_bar_(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("begin_foo_bar", |_| Ok(()), |_| Ok(()))
        }
    }

    /// What implements `Inherited::Right`.
    pub trait RightServant: Send + Sync + 'static {
        /// `foo_bar`
        fn foo_bar(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `begin_foo_bar`
        fn begin_foo_bar_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`RightServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct RightSkeleton<S>(pub S);

    impl<S: RightServant> ::sidestep_orb::Servant for RightSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Inherited/Right:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "foo_bar" => {
                    call.arguments(|_| Ok(()))?;
                    RightServant::foo_bar(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "begin_foo_bar" => {
                    call.arguments(|_| Ok(()))?;
                    RightServant::begin_foo_bar_(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Inherited::Both`
    ///
    /// This is a reference to such an object; [`BothServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Both(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Both {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Both {
        const TYPE_ID: &'static str = "IDL:Inherited/Both:1.0";
        const NAME: &'static str = "Both";

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

    impl From<Both> for Left {
        fn from(derived: Both) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl From<Both> for Right {
        fn from(derived: Both) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl Both {
        /// `fooBar`
        pub fn foo_bar(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("fooBar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::foo_bar`] now; what comes back is collected later.
        pub fn begin_foo_bar(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("fooBar", |_| Ok(()), |_| Ok(()))
        }

        /// `only_left`
        pub fn only_left(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("only_left", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::only_left`] now; what comes back is collected later.
        pub fn begin_only_left(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("only_left", |_| Ok(()), |_| Ok(()))
        }

        /// `foo_bar`
        pub fn foo_bar_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::foo_bar_`] now; what comes back is collected later.
        pub fn begin_foo_bar_(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// `begin_foo_bar`
        pub fn begin_foo_bar__(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("begin_foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::begin_foo_bar__`] now; what comes back is collected later.
        pub fn begin_begin_foo_bar__(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("begin_foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// `FooBar_`
        pub fn foo_bar__(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("FooBar_", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::foo_bar__`] now; what comes back is collected later.
        pub fn begin_foo_bar___(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("FooBar_", |_| Ok(()), |_| Ok(()))
        }

        /// `begin_only_left`
        pub fn begin_only_left_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("begin_only_left", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::begin_only_left_`] now; what comes back is collected later.
        pub fn begin_begin_only_left_(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("begin_only_left", |_| Ok(()), |_| Ok(()))
        }
    }

    /// What implements `Inherited::Both`.
    pub trait BothServant: LeftServant + RightServant {
        /// `FooBar_`
        fn foo_bar__(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;

        /// `begin_only_left`
        fn begin_only_left_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`BothServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct BothSkeleton<S>(pub S);

    impl<S: BothServant> ::sidestep_orb::Servant for BothSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Inherited/Both:1.0", "IDL:Inherited/Right:1.0", "IDL:Inherited/Left:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "fooBar" => {
                    call.arguments(|_| Ok(()))?;
                    LeftServant::foo_bar(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "only_left" => {
                    call.arguments(|_| Ok(()))?;
                    LeftServant::only_left(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "foo_bar" => {
                    call.arguments(|_| Ok(()))?;
                    RightServant::foo_bar(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "begin_foo_bar" => {
                    call.arguments(|_| Ok(()))?;
                    RightServant::begin_foo_bar_(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "FooBar_" => {
                    call.arguments(|_| Ok(()))?;
                    BothServant::foo_bar__(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "begin_only_left" => {
                    call.arguments(|_| Ok(()))?;
                    BothServant::begin_only_left_(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Inherited::Announced`
    ///
    /// This is a reference to such an object; [`AnnouncedServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Announced(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Announced {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Announced {
        const TYPE_ID: &'static str = "IDL:Inherited/Announced:1.0";
        const NAME: &'static str = "Announced";

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

    impl From<Announced> for Earlier {
        fn from(derived: Announced) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl From<Announced> for Left {
        fn from(derived: Announced) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl From<Announced> for Right {
        fn from(derived: Announced) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl From<Announced> for Both {
        fn from(derived: Announced) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl Announced {
        /// `self`
        pub fn self_(
            &self,
            self_: Option<&Announced>,
        ) -> ::std::result::Result<Option<Announced>, ::sidestep_orb::SystemException> {
            self.0.call("self", |encoder| encoder.reference(self_), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::self_`] now; what comes back is collected later.
        pub fn begin_self_(
            &self,
            self_: Option<&Announced>,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<Announced>, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("self", |encoder| encoder.reference(self_), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `fooBar`
        pub fn foo_bar(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("fooBar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::foo_bar`] now; what comes back is collected later.
        pub fn begin_foo_bar(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("fooBar", |_| Ok(()), |_| Ok(()))
        }

        /// `only_left`
        pub fn only_left(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("only_left", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::only_left`] now; what comes back is collected later.
        pub fn begin_only_left(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("only_left", |_| Ok(()), |_| Ok(()))
        }

        /// `foo_bar`
        pub fn foo_bar_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::foo_bar_`] now; what comes back is collected later.
        pub fn begin_foo_bar_(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// `begin_foo_bar`
        pub fn begin_foo_bar__(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("begin_foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::begin_foo_bar__`] now; what comes back is collected later.
        pub fn begin_begin_foo_bar__(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("begin_foo_bar", |_| Ok(()), |_| Ok(()))
        }

        /// `FooBar_`
        pub fn foo_bar__(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("FooBar_", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::foo_bar__`] now; what comes back is collected later.
        pub fn begin_foo_bar___(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("FooBar_", |_| Ok(()), |_| Ok(()))
        }

        /// `begin_only_left`
        pub fn begin_only_left_(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("begin_only_left", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::begin_only_left_`] now; what comes back is collected later.
        pub fn begin_begin_only_left_(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("begin_only_left", |_| Ok(()), |_| Ok(()))
        }

        /// `begin_self`
        pub fn begin_self(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("begin_self", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::begin_self`] now; what comes back is collected later.
        pub fn begin_begin_self(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("begin_self", |_| Ok(()), |_| Ok(()))
        }
    }

    /// What implements `Inherited::Announced`.
    pub trait AnnouncedServant: EarlierServant + BothServant {
        /// `begin_self`
        fn begin_self(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`AnnouncedServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct AnnouncedSkeleton<S>(pub S);

    impl<S: AnnouncedServant> ::sidestep_orb::Servant for AnnouncedSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &[
                "IDL:Inherited/Announced:1.0",
                "IDL:Inherited/Both:1.0",
                "IDL:Inherited/Right:1.0",
                "IDL:Inherited/Left:1.0",
                "IDL:Inherited/Earlier:1.0",
            ]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "self" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    let outcome = EarlierServant::self_(&self.0, argument_0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "fooBar" => {
                    call.arguments(|_| Ok(()))?;
                    LeftServant::foo_bar(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "only_left" => {
                    call.arguments(|_| Ok(()))?;
                    LeftServant::only_left(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "foo_bar" => {
                    call.arguments(|_| Ok(()))?;
                    RightServant::foo_bar(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "begin_foo_bar" => {
                    call.arguments(|_| Ok(()))?;
                    RightServant::begin_foo_bar_(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "FooBar_" => {
                    call.arguments(|_| Ok(()))?;
                    BothServant::foo_bar__(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "begin_only_left" => {
                    call.arguments(|_| Ok(()))?;
                    BothServant::begin_only_left_(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                "begin_self" => {
                    call.arguments(|_| Ok(()))?;
                    AnnouncedServant::begin_self(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// `Inherited::Earlier`
    ///
    /// This is a reference to such an object; [`EarlierServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Earlier(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Earlier {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Earlier {
        const TYPE_ID: &'static str = "IDL:Inherited/Earlier:1.0";
        const NAME: &'static str = "Earlier";

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

    impl Earlier {
        /// `self`
        pub fn self_(
            &self,
            self_: Option<&Announced>,
        ) -> ::std::result::Result<Option<Announced>, ::sidestep_orb::SystemException> {
            self.0.call("self", |encoder| encoder.reference(self_), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::self_`] now; what comes back is collected later.
        pub fn begin_self_(
            &self,
            self_: Option<&Announced>,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<Announced>, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("self", |encoder| encoder.reference(self_), ::sidestep_orb::cdr::Cdr::decode)
        }
    }

    /// What implements `Inherited::Earlier`.
    pub trait EarlierServant: Send + Sync + 'static {
        /// `self`
        fn self_(
            &self,
            self_: Option<Announced>,
        ) -> ::std::result::Result<Option<Announced>, ::sidestep_orb::SystemException>;
    }

    /// Makes a [`EarlierServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct EarlierSkeleton<S>(pub S);

    impl<S: EarlierServant> ::sidestep_orb::Servant for EarlierSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Inherited/Earlier:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "self" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    let outcome = EarlierServant::self_(&self.0, argument_0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }
}
