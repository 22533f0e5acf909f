// Made by `sidestep idl` from naming.idl. Changes belong there.

/// Names of objects, in contexts that form a graph.
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod cos_naming {

    /// `CosNaming::Istring`
    pub type Istring = String;

    /// One part of a name.
    #[derive(Debug, Clone, PartialEq)]
    pub struct NameComponent {
        /// `id`
        pub id: Istring,
        /// `kind`
        pub kind: Istring,
    }

    impl ::sidestep_orb::cdr::Cdr for NameComponent {
        const MIN_LEN: usize =
            <Istring as ::sidestep_orb::cdr::Cdr>::MIN_LEN + <Istring as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.id, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.kind, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self {
                id: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                kind: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for NameComponent {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:omg.org/CosNaming/NameComponent:1.0", |path| {
                let members = vec![
                    ("id", <Istring as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("kind", <Istring as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::structure(
                    "IDL:omg.org/CosNaming/NameComponent:1.0",
                    "NameComponent",
                    members,
                )
            })
        }
    }

    /// `CosNaming::Name`
    pub type Name = Vec<NameComponent>;

    /// What a name stands for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum BindingType {
        /// `nobject`
        Nobject,
        /// `ncontext`
        Ncontext,
    }

    impl ::sidestep_orb::cdr::Cdr for BindingType {
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
                0 => Ok(Self::Nobject),
                1 => Ok(Self::Ncontext),
                found => Err(::sidestep_orb::cdr::Error::Enumeration { enumeration: "BindingType", found }),
            }
        }
    }

    impl ::sidestep_orb::cdr::Typed for BindingType {
        fn type_code_in(_: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            let members = ["nobject", "ncontext"];
            ::sidestep_orb::cdr::TypeCode::enumeration("IDL:omg.org/CosNaming/BindingType:1.0", "BindingType", &members)
        }
    }

    /// A name and what it stands for.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Binding {
        /// `binding_name`
        pub binding_name: Name,
        /// `binding_type`
        pub binding_type: BindingType,
    }

    impl ::sidestep_orb::cdr::Cdr for Binding {
        const MIN_LEN: usize =
            <Name as ::sidestep_orb::cdr::Cdr>::MIN_LEN + <BindingType as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

        fn encode(
            &self,
            encoder: &mut ::sidestep_orb::cdr::Encoder,
        ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
            ::sidestep_orb::cdr::Cdr::encode(&self.binding_name, encoder)?;
            ::sidestep_orb::cdr::Cdr::encode(&self.binding_type, encoder)?;
            Ok(())
        }

        fn decode(
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
            Ok(Self {
                binding_name: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                binding_type: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
            })
        }
    }

    impl ::sidestep_orb::cdr::Typed for Binding {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:omg.org/CosNaming/Binding:1.0", |path| {
                let members = vec![
                    ("binding_name", <Name as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ("binding_type", <BindingType as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                ];
                ::sidestep_orb::cdr::TypeCode::structure("IDL:omg.org/CosNaming/Binding:1.0", "Binding", members)
            })
        }
    }

    /// `CosNaming::BindingList`
    pub type BindingList = Vec<Binding>;

    /// The rest of a list.
    ///
    /// This is a reference to such an object; [`BindingIteratorServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct BindingIterator(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for BindingIterator {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for BindingIterator {
        const TYPE_ID: &'static str = "IDL:omg.org/CosNaming/BindingIterator:1.0";
        const NAME: &'static str = "BindingIterator";

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

    impl BindingIterator {
        /// `next_one`
        pub fn next_one(&self) -> ::std::result::Result<(bool, Binding), ::sidestep_orb::SystemException> {
            self.0.call(
                "next_one",
                |_| Ok(()),
                |decoder| Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?)),
            )
        }

        /// Sends [`Self::next_one`] now; what comes back is collected later.
        pub fn begin_next_one(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(bool, Binding), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "next_one",
                |_| Ok(()),
                |decoder| Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?)),
            )
        }

        /// `next_n`
        pub fn next_n(
            &self,
            how_many: u32,
        ) -> ::std::result::Result<(bool, BindingList), ::sidestep_orb::SystemException> {
            self.0.call(
                "next_n",
                |encoder| ::sidestep_orb::cdr::Cdr::encode(&how_many, encoder),
                |decoder| Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?)),
            )
        }

        /// Sends [`Self::next_n`] now; what comes back is collected later.
        pub fn begin_next_n(
            &self,
            how_many: u32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(bool, BindingList), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "next_n",
                |encoder| ::sidestep_orb::cdr::Cdr::encode(&how_many, encoder),
                |decoder| Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?)),
            )
        }

        /// `destroy`
        pub fn destroy(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            self.0.call("destroy", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::destroy`] now; what comes back is collected later.
        pub fn begin_destroy(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("destroy", |_| Ok(()), |_| Ok(()))
        }
    }

    /// What implements `CosNaming::BindingIterator`.
    pub trait BindingIteratorServant: Send + Sync + 'static {
        /// `next_one`
        fn next_one(&self) -> ::std::result::Result<(bool, Binding), ::sidestep_orb::SystemException>;

        /// `next_n`
        fn next_n(&self, how_many: u32) -> ::std::result::Result<(bool, BindingList), ::sidestep_orb::SystemException>;

        /// `destroy`
        fn destroy(&self) -> ::std::result::Result<(), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`BindingIteratorServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct BindingIteratorSkeleton<S>(pub S);

    impl<S: BindingIteratorServant> ::sidestep_orb::Servant for BindingIteratorSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:omg.org/CosNaming/BindingIterator:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "next_one" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = BindingIteratorServant::next_one(&self.0)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        Ok(())
                    })
                }
                "next_n" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    let outcome = BindingIteratorServant::next_n(&self.0, argument_0)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        Ok(())
                    })
                }
                "destroy" => {
                    call.arguments(|_| Ok(()))?;
                    BindingIteratorServant::destroy(&self.0)?;
                    call.reply(|_| Ok(()))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// Why `bind` of `CosNaming::NamingContext` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextBindError {
        /// The servant has raised it.
        NotFound(naming_context::NotFound),
        /// The servant has raised it.
        CannotProceed(naming_context::CannotProceed),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The servant has raised it.
        AlreadyBound(naming_context::AlreadyBound),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextBindError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotFound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotFound));
            }
            if id == <naming_context::CannotProceed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::CannotProceed));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            if id == <naming_context::AlreadyBound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::AlreadyBound));
            }
            None
        }
    }

    impl From<naming_context::NotFound> for NamingContextBindError {
        fn from(exception: naming_context::NotFound) -> Self {
            Self::NotFound(exception)
        }
    }

    impl From<naming_context::CannotProceed> for NamingContextBindError {
        fn from(exception: naming_context::CannotProceed) -> Self {
            Self::CannotProceed(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextBindError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<naming_context::AlreadyBound> for NamingContextBindError {
        fn from(exception: naming_context::AlreadyBound) -> Self {
            Self::AlreadyBound(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextBindError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextBindError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotFound(exception) => exception.fmt(f),
                Self::CannotProceed(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::AlreadyBound(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextBindError {}

    /// Why `rebind` of `CosNaming::NamingContext` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextRebindError {
        /// The servant has raised it.
        NotFound(naming_context::NotFound),
        /// The servant has raised it.
        CannotProceed(naming_context::CannotProceed),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextRebindError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotFound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotFound));
            }
            if id == <naming_context::CannotProceed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::CannotProceed));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context::NotFound> for NamingContextRebindError {
        fn from(exception: naming_context::NotFound) -> Self {
            Self::NotFound(exception)
        }
    }

    impl From<naming_context::CannotProceed> for NamingContextRebindError {
        fn from(exception: naming_context::CannotProceed) -> Self {
            Self::CannotProceed(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextRebindError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextRebindError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextRebindError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotFound(exception) => exception.fmt(f),
                Self::CannotProceed(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextRebindError {}

    /// Why `bind_context` of `CosNaming::NamingContext` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextBindContextError {
        /// The servant has raised it.
        NotFound(naming_context::NotFound),
        /// The servant has raised it.
        CannotProceed(naming_context::CannotProceed),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The servant has raised it.
        AlreadyBound(naming_context::AlreadyBound),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextBindContextError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotFound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotFound));
            }
            if id == <naming_context::CannotProceed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::CannotProceed));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            if id == <naming_context::AlreadyBound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::AlreadyBound));
            }
            None
        }
    }

    impl From<naming_context::NotFound> for NamingContextBindContextError {
        fn from(exception: naming_context::NotFound) -> Self {
            Self::NotFound(exception)
        }
    }

    impl From<naming_context::CannotProceed> for NamingContextBindContextError {
        fn from(exception: naming_context::CannotProceed) -> Self {
            Self::CannotProceed(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextBindContextError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<naming_context::AlreadyBound> for NamingContextBindContextError {
        fn from(exception: naming_context::AlreadyBound) -> Self {
            Self::AlreadyBound(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextBindContextError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextBindContextError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotFound(exception) => exception.fmt(f),
                Self::CannotProceed(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::AlreadyBound(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextBindContextError {}

    /// Why `rebind_context` of `CosNaming::NamingContext` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextRebindContextError {
        /// The servant has raised it.
        NotFound(naming_context::NotFound),
        /// The servant has raised it.
        CannotProceed(naming_context::CannotProceed),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextRebindContextError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotFound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotFound));
            }
            if id == <naming_context::CannotProceed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::CannotProceed));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context::NotFound> for NamingContextRebindContextError {
        fn from(exception: naming_context::NotFound) -> Self {
            Self::NotFound(exception)
        }
    }

    impl From<naming_context::CannotProceed> for NamingContextRebindContextError {
        fn from(exception: naming_context::CannotProceed) -> Self {
            Self::CannotProceed(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextRebindContextError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextRebindContextError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextRebindContextError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotFound(exception) => exception.fmt(f),
                Self::CannotProceed(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextRebindContextError {}

    /// Why `resolve` of `CosNaming::NamingContext` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextResolveError {
        /// The servant has raised it.
        NotFound(naming_context::NotFound),
        /// The servant has raised it.
        CannotProceed(naming_context::CannotProceed),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextResolveError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotFound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotFound));
            }
            if id == <naming_context::CannotProceed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::CannotProceed));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context::NotFound> for NamingContextResolveError {
        fn from(exception: naming_context::NotFound) -> Self {
            Self::NotFound(exception)
        }
    }

    impl From<naming_context::CannotProceed> for NamingContextResolveError {
        fn from(exception: naming_context::CannotProceed) -> Self {
            Self::CannotProceed(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextResolveError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextResolveError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextResolveError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotFound(exception) => exception.fmt(f),
                Self::CannotProceed(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextResolveError {}

    /// Why `unbind` of `CosNaming::NamingContext` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextUnbindError {
        /// The servant has raised it.
        NotFound(naming_context::NotFound),
        /// The servant has raised it.
        CannotProceed(naming_context::CannotProceed),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextUnbindError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotFound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotFound));
            }
            if id == <naming_context::CannotProceed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::CannotProceed));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context::NotFound> for NamingContextUnbindError {
        fn from(exception: naming_context::NotFound) -> Self {
            Self::NotFound(exception)
        }
    }

    impl From<naming_context::CannotProceed> for NamingContextUnbindError {
        fn from(exception: naming_context::CannotProceed) -> Self {
            Self::CannotProceed(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextUnbindError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextUnbindError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextUnbindError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotFound(exception) => exception.fmt(f),
                Self::CannotProceed(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextUnbindError {}

    /// Why `bind_new_context` of `CosNaming::NamingContext` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextBindNewContextError {
        /// The servant has raised it.
        NotFound(naming_context::NotFound),
        /// The servant has raised it.
        AlreadyBound(naming_context::AlreadyBound),
        /// The servant has raised it.
        CannotProceed(naming_context::CannotProceed),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextBindNewContextError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotFound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotFound));
            }
            if id == <naming_context::AlreadyBound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::AlreadyBound));
            }
            if id == <naming_context::CannotProceed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::CannotProceed));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context::NotFound> for NamingContextBindNewContextError {
        fn from(exception: naming_context::NotFound) -> Self {
            Self::NotFound(exception)
        }
    }

    impl From<naming_context::AlreadyBound> for NamingContextBindNewContextError {
        fn from(exception: naming_context::AlreadyBound) -> Self {
            Self::AlreadyBound(exception)
        }
    }

    impl From<naming_context::CannotProceed> for NamingContextBindNewContextError {
        fn from(exception: naming_context::CannotProceed) -> Self {
            Self::CannotProceed(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextBindNewContextError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextBindNewContextError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextBindNewContextError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotFound(exception) => exception.fmt(f),
                Self::AlreadyBound(exception) => exception.fmt(f),
                Self::CannotProceed(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextBindNewContextError {}

    /// Why `destroy` of `CosNaming::NamingContext` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextDestroyError {
        /// The servant has raised it.
        NotEmpty(naming_context::NotEmpty),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextDestroyError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotEmpty as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotEmpty));
            }
            None
        }
    }

    impl From<naming_context::NotEmpty> for NamingContextDestroyError {
        fn from(exception: naming_context::NotEmpty) -> Self {
            Self::NotEmpty(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextDestroyError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextDestroyError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotEmpty(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextDestroyError {}

    /// A context: names, and what they stand for.
    ///
    /// This is a reference to such an object; [`NamingContextServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct NamingContext(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for NamingContext {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for NamingContext {
        const TYPE_ID: &'static str = "IDL:omg.org/CosNaming/NamingContext:1.0";
        const NAME: &'static str = "NamingContext";

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

    impl NamingContext {
        /// `bind`
        pub fn bind(
            &self,
            n: &[NameComponent],
            obj: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<(), NamingContextBindError> {
            self.0.call(
                "bind",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(obj)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::bind`] now; what comes back is collected later.
        pub fn begin_bind(
            &self,
            n: &[NameComponent],
            obj: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), NamingContextBindError>, NamingContextBindError>
        {
            self.0.begin(
                "bind",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(obj)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `rebind`
        pub fn rebind(
            &self,
            n: &[NameComponent],
            obj: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<(), NamingContextRebindError> {
            self.0.call(
                "rebind",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(obj)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::rebind`] now; what comes back is collected later.
        pub fn begin_rebind(
            &self,
            n: &[NameComponent],
            obj: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), NamingContextRebindError>, NamingContextRebindError>
        {
            self.0.begin(
                "rebind",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(obj)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `bind_context`
        pub fn bind_context(
            &self,
            n: &[NameComponent],
            nc: Option<&NamingContext>,
        ) -> ::std::result::Result<(), NamingContextBindContextError> {
            self.0.call(
                "bind_context",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(nc)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::bind_context`] now; what comes back is collected later.
        pub fn begin_bind_context(
            &self,
            n: &[NameComponent],
            nc: Option<&NamingContext>,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), NamingContextBindContextError>,
            NamingContextBindContextError,
        > {
            self.0.begin(
                "bind_context",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(nc)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `rebind_context`
        pub fn rebind_context(
            &self,
            n: &[NameComponent],
            nc: Option<&NamingContext>,
        ) -> ::std::result::Result<(), NamingContextRebindContextError> {
            self.0.call(
                "rebind_context",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(nc)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::rebind_context`] now; what comes back is collected later.
        pub fn begin_rebind_context(
            &self,
            n: &[NameComponent],
            nc: Option<&NamingContext>,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), NamingContextRebindContextError>,
            NamingContextRebindContextError,
        > {
            self.0.begin(
                "rebind_context",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(nc)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `resolve`
        pub fn resolve(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<Option<::sidestep_orb::Object>, NamingContextResolveError> {
            self.0.call("resolve", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::resolve`] now; what comes back is collected later.
        pub fn begin_resolve(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<::sidestep_orb::Object>, NamingContextResolveError>,
            NamingContextResolveError,
        > {
            self.0.begin("resolve", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `unbind`
        pub fn unbind(&self, n: &[NameComponent]) -> ::std::result::Result<(), NamingContextUnbindError> {
            self.0.call("unbind", |encoder| encoder.sequence(n), |_| Ok(()))
        }

        /// Sends [`Self::unbind`] now; what comes back is collected later.
        pub fn begin_unbind(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), NamingContextUnbindError>, NamingContextUnbindError>
        {
            self.0.begin("unbind", |encoder| encoder.sequence(n), |_| Ok(()))
        }

        /// `new_context`
        pub fn new_context(&self) -> ::std::result::Result<Option<NamingContext>, ::sidestep_orb::SystemException> {
            self.0.call("new_context", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::new_context`] now; what comes back is collected later.
        pub fn begin_new_context(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<NamingContext>, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("new_context", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `bind_new_context`
        pub fn bind_new_context(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<Option<NamingContext>, NamingContextBindNewContextError> {
            self.0.call("bind_new_context", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::bind_new_context`] now; what comes back is collected later.
        pub fn begin_bind_new_context(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<NamingContext>, NamingContextBindNewContextError>,
            NamingContextBindNewContextError,
        > {
            self.0.begin("bind_new_context", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `destroy`
        pub fn destroy(&self) -> ::std::result::Result<(), NamingContextDestroyError> {
            self.0.call("destroy", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::destroy`] now; what comes back is collected later.
        pub fn begin_destroy(
            &self,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), NamingContextDestroyError>, NamingContextDestroyError>
        {
            self.0.begin("destroy", |_| Ok(()), |_| Ok(()))
        }

        /// `list`
        pub fn list(
            &self,
            how_many: u32,
        ) -> ::std::result::Result<(BindingList, Option<BindingIterator>), ::sidestep_orb::SystemException> {
            self.0.call(
                "list",
                |encoder| ::sidestep_orb::cdr::Cdr::encode(&how_many, encoder),
                |decoder| Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?)),
            )
        }

        /// Sends [`Self::list`] now; what comes back is collected later.
        pub fn begin_list(
            &self,
            how_many: u32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(BindingList, Option<BindingIterator>), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "list",
                |encoder| ::sidestep_orb::cdr::Cdr::encode(&how_many, encoder),
                |decoder| Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?)),
            )
        }
    }

    /// What implements `CosNaming::NamingContext`.
    pub trait NamingContextServant: Send + Sync + 'static {
        /// `bind`
        fn bind(
            &self,
            n: Name,
            obj: Option<::sidestep_orb::Object>,
        ) -> ::std::result::Result<(), NamingContextBindError>;

        /// `rebind`
        fn rebind(
            &self,
            n: Name,
            obj: Option<::sidestep_orb::Object>,
        ) -> ::std::result::Result<(), NamingContextRebindError>;

        /// `bind_context`
        fn bind_context(
            &self,
            n: Name,
            nc: Option<NamingContext>,
        ) -> ::std::result::Result<(), NamingContextBindContextError>;

        /// `rebind_context`
        fn rebind_context(
            &self,
            n: Name,
            nc: Option<NamingContext>,
        ) -> ::std::result::Result<(), NamingContextRebindContextError>;

        /// `resolve`
        fn resolve(&self, n: Name) -> ::std::result::Result<Option<::sidestep_orb::Object>, NamingContextResolveError>;

        /// `unbind`
        fn unbind(&self, n: Name) -> ::std::result::Result<(), NamingContextUnbindError>;

        /// `new_context`
        fn new_context(&self) -> ::std::result::Result<Option<NamingContext>, ::sidestep_orb::SystemException>;

        /// `bind_new_context`
        fn bind_new_context(
            &self,
            n: Name,
        ) -> ::std::result::Result<Option<NamingContext>, NamingContextBindNewContextError>;

        /// `destroy`
        fn destroy(&self) -> ::std::result::Result<(), NamingContextDestroyError>;

        /// `list`
        fn list(
            &self,
            how_many: u32,
        ) -> ::std::result::Result<(BindingList, Option<BindingIterator>), ::sidestep_orb::SystemException>;
    }

    /// Makes a [`NamingContextServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct NamingContextSkeleton<S>(pub S);

    impl<S: NamingContextServant> ::sidestep_orb::Servant for NamingContextSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:omg.org/CosNaming/NamingContext:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "bind" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextServant::bind(&self.0, argument_0, argument_1) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextBindError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextBindError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextBindError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextBindError::AlreadyBound(exception)) => call.raise(&exception),
                        Err(NamingContextBindError::System(exception)) => Err(exception),
                    }
                }
                "rebind" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextServant::rebind(&self.0, argument_0, argument_1) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextRebindError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextRebindError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextRebindError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextRebindError::System(exception)) => Err(exception),
                    }
                }
                "bind_context" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextServant::bind_context(&self.0, argument_0, argument_1) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextBindContextError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextBindContextError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextBindContextError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextBindContextError::AlreadyBound(exception)) => call.raise(&exception),
                        Err(NamingContextBindContextError::System(exception)) => Err(exception),
                    }
                }
                "rebind_context" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextServant::rebind_context(&self.0, argument_0, argument_1) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextRebindContextError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextRebindContextError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextRebindContextError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextRebindContextError::System(exception)) => Err(exception),
                    }
                }
                "resolve" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextServant::resolve(&self.0, argument_0) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(NamingContextResolveError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextResolveError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextResolveError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextResolveError::System(exception)) => Err(exception),
                    }
                }
                "unbind" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextServant::unbind(&self.0, argument_0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextUnbindError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextUnbindError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextUnbindError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextUnbindError::System(exception)) => Err(exception),
                    }
                }
                "new_context" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = NamingContextServant::new_context(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "bind_new_context" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextServant::bind_new_context(&self.0, argument_0) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(NamingContextBindNewContextError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextBindNewContextError::AlreadyBound(exception)) => call.raise(&exception),
                        Err(NamingContextBindNewContextError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextBindNewContextError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextBindNewContextError::System(exception)) => Err(exception),
                    }
                }
                "destroy" => {
                    call.arguments(|_| Ok(()))?;
                    match NamingContextServant::destroy(&self.0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextDestroyError::NotEmpty(exception)) => call.raise(&exception),
                        Err(NamingContextDestroyError::System(exception)) => Err(exception),
                    }
                }
                "list" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    let outcome = NamingContextServant::list(&self.0, argument_0)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        Ok(())
                    })
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// What `CosNaming::NamingContext` declares.
    pub mod naming_context {

        /// `CosNaming::NamingContext::NotFoundReason`
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum NotFoundReason {
            /// `missing_node`
            MissingNode,
            /// `not_context`
            NotContext,
            /// `not_object`
            NotObject,
        }

        impl ::sidestep_orb::cdr::Cdr for NotFoundReason {
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
                    0 => Ok(Self::MissingNode),
                    1 => Ok(Self::NotContext),
                    2 => Ok(Self::NotObject),
                    found => Err(::sidestep_orb::cdr::Error::Enumeration { enumeration: "NotFoundReason", found }),
                }
            }
        }

        impl ::sidestep_orb::cdr::Typed for NotFoundReason {
            fn type_code_in(_: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                let members = ["missing_node", "not_context", "not_object"];
                ::sidestep_orb::cdr::TypeCode::enumeration(
                    "IDL:omg.org/CosNaming/NamingContext/NotFoundReason:1.0",
                    "NotFoundReason",
                    &members,
                )
            }
        }

        /// A part of the name is not there, or of the wrong kind.
        #[derive(Debug, Clone, PartialEq)]
        pub struct NotFound {
            /// `why`
            pub why: NotFoundReason,
            /// `rest_of_name`
            pub rest_of_name: super::Name,
        }

        impl ::sidestep_orb::UserException for NotFound {
            const ID: &'static str = "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0";
        }

        /// The repository id stands in front of the members.
        impl ::sidestep_orb::cdr::Cdr for NotFound {
            const MIN_LEN: usize = 4
                + <NotFoundReason as ::sidestep_orb::cdr::Cdr>::MIN_LEN
                + <super::Name as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

            fn encode(
                &self,
                encoder: &mut ::sidestep_orb::cdr::Encoder,
            ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
                encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
                ::sidestep_orb::cdr::Cdr::encode(&self.why, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&self.rest_of_name, encoder)?;
                Ok(())
            }

            fn decode(
                decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
            ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
                decoder.identifier()?;
                Ok(Self {
                    why: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    rest_of_name: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                })
            }
        }

        impl ::sidestep_orb::cdr::Typed for NotFound {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:omg.org/CosNaming/NamingContext/NotFound:1.0", |path| {
                    let members = vec![
                        ("why", <NotFoundReason as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                        ("rest_of_name", <super::Name as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ];
                    ::sidestep_orb::cdr::TypeCode::exception(
                        "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0",
                        "NotFound",
                        members,
                    )
                })
            }
        }

        impl ::std::fmt::Display for NotFound {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }

        impl ::std::error::Error for NotFound {}

        /// `CosNaming::NamingContext::CannotProceed`
        #[derive(Debug, Clone, PartialEq)]
        pub struct CannotProceed {
            /// `cxt`
            pub cxt: Option<super::NamingContext>,
            /// `rest_of_name`
            pub rest_of_name: super::Name,
        }

        impl ::sidestep_orb::UserException for CannotProceed {
            const ID: &'static str = "IDL:omg.org/CosNaming/NamingContext/CannotProceed:1.0";
        }

        /// The repository id stands in front of the members.
        impl ::sidestep_orb::cdr::Cdr for CannotProceed {
            const MIN_LEN: usize = 4
                + <Option<super::NamingContext> as ::sidestep_orb::cdr::Cdr>::MIN_LEN
                + <super::Name as ::sidestep_orb::cdr::Cdr>::MIN_LEN;

            fn encode(
                &self,
                encoder: &mut ::sidestep_orb::cdr::Encoder,
            ) -> ::std::result::Result<(), ::sidestep_orb::cdr::Error> {
                encoder.identifier(<Self as ::sidestep_orb::UserException>::ID.as_bytes())?;
                ::sidestep_orb::cdr::Cdr::encode(&self.cxt, encoder)?;
                ::sidestep_orb::cdr::Cdr::encode(&self.rest_of_name, encoder)?;
                Ok(())
            }

            fn decode(
                decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
            ) -> ::std::result::Result<Self, ::sidestep_orb::cdr::Error> {
                decoder.identifier()?;
                Ok(Self {
                    cxt: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                    rest_of_name: ::sidestep_orb::cdr::Cdr::decode(decoder)?,
                })
            }
        }

        impl ::sidestep_orb::cdr::Typed for CannotProceed {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:omg.org/CosNaming/NamingContext/CannotProceed:1.0", |path| {
                    let members = vec![
                        ("cxt", <Option<super::NamingContext> as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                        ("rest_of_name", <super::Name as ::sidestep_orb::cdr::Typed>::type_code_in(path)),
                    ];
                    ::sidestep_orb::cdr::TypeCode::exception(
                        "IDL:omg.org/CosNaming/NamingContext/CannotProceed:1.0",
                        "CannotProceed",
                        members,
                    )
                })
            }
        }

        impl ::std::fmt::Display for CannotProceed {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }

        impl ::std::error::Error for CannotProceed {}

        /// `CosNaming::NamingContext::InvalidName`
        #[derive(Debug, Clone, PartialEq)]
        pub struct InvalidName {}

        impl ::sidestep_orb::UserException for InvalidName {
            const ID: &'static str = "IDL:omg.org/CosNaming/NamingContext/InvalidName:1.0";
        }

        /// The repository id stands in front of the members.
        impl ::sidestep_orb::cdr::Cdr for InvalidName {
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

        impl ::sidestep_orb::cdr::Typed for InvalidName {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:omg.org/CosNaming/NamingContext/InvalidName:1.0", |path| {
                    let members = vec![];
                    let _ = path;
                    ::sidestep_orb::cdr::TypeCode::exception(
                        "IDL:omg.org/CosNaming/NamingContext/InvalidName:1.0",
                        "InvalidName",
                        members,
                    )
                })
            }
        }

        impl ::std::fmt::Display for InvalidName {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }

        impl ::std::error::Error for InvalidName {}

        /// `CosNaming::NamingContext::AlreadyBound`
        #[derive(Debug, Clone, PartialEq)]
        pub struct AlreadyBound {}

        impl ::sidestep_orb::UserException for AlreadyBound {
            const ID: &'static str = "IDL:omg.org/CosNaming/NamingContext/AlreadyBound:1.0";
        }

        /// The repository id stands in front of the members.
        impl ::sidestep_orb::cdr::Cdr for AlreadyBound {
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

        impl ::sidestep_orb::cdr::Typed for AlreadyBound {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:omg.org/CosNaming/NamingContext/AlreadyBound:1.0", |path| {
                    let members = vec![];
                    let _ = path;
                    ::sidestep_orb::cdr::TypeCode::exception(
                        "IDL:omg.org/CosNaming/NamingContext/AlreadyBound:1.0",
                        "AlreadyBound",
                        members,
                    )
                })
            }
        }

        impl ::std::fmt::Display for AlreadyBound {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }

        impl ::std::error::Error for AlreadyBound {}

        /// `CosNaming::NamingContext::NotEmpty`
        #[derive(Debug, Clone, PartialEq)]
        pub struct NotEmpty {}

        impl ::sidestep_orb::UserException for NotEmpty {
            const ID: &'static str = "IDL:omg.org/CosNaming/NamingContext/NotEmpty:1.0";
        }

        /// The repository id stands in front of the members.
        impl ::sidestep_orb::cdr::Cdr for NotEmpty {
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

        impl ::sidestep_orb::cdr::Typed for NotEmpty {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:omg.org/CosNaming/NamingContext/NotEmpty:1.0", |path| {
                    let members = vec![];
                    let _ = path;
                    ::sidestep_orb::cdr::TypeCode::exception(
                        "IDL:omg.org/CosNaming/NamingContext/NotEmpty:1.0",
                        "NotEmpty",
                        members,
                    )
                })
            }
        }

        impl ::std::fmt::Display for NotEmpty {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }

        impl ::std::error::Error for NotEmpty {}
    }

    /// Why `to_string` of `CosNaming::NamingContextExt` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextExtToStringError {
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextExtToStringError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context::InvalidName> for NamingContextExtToStringError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextExtToStringError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextExtToStringError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextExtToStringError {}

    /// Why `to_name` of `CosNaming::NamingContextExt` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextExtToNameError {
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextExtToNameError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context::InvalidName> for NamingContextExtToNameError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextExtToNameError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextExtToNameError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextExtToNameError {}

    /// Why `to_url` of `CosNaming::NamingContextExt` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextExtToUrlError {
        /// The servant has raised it.
        InvalidAddress(naming_context_ext::InvalidAddress),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextExtToUrlError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context_ext::InvalidAddress as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidAddress));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context_ext::InvalidAddress> for NamingContextExtToUrlError {
        fn from(exception: naming_context_ext::InvalidAddress) -> Self {
            Self::InvalidAddress(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextExtToUrlError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextExtToUrlError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextExtToUrlError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::InvalidAddress(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextExtToUrlError {}

    /// Why `resolve_str` of `CosNaming::NamingContextExt` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum NamingContextExtResolveStrError {
        /// The servant has raised it.
        NotFound(naming_context::NotFound),
        /// The servant has raised it.
        CannotProceed(naming_context::CannotProceed),
        /// The servant has raised it.
        InvalidName(naming_context::InvalidName),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for NamingContextExtResolveStrError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <naming_context::NotFound as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::NotFound));
            }
            if id == <naming_context::CannotProceed as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::CannotProceed));
            }
            if id == <naming_context::InvalidName as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::InvalidName));
            }
            None
        }
    }

    impl From<naming_context::NotFound> for NamingContextExtResolveStrError {
        fn from(exception: naming_context::NotFound) -> Self {
            Self::NotFound(exception)
        }
    }

    impl From<naming_context::CannotProceed> for NamingContextExtResolveStrError {
        fn from(exception: naming_context::CannotProceed) -> Self {
            Self::CannotProceed(exception)
        }
    }

    impl From<naming_context::InvalidName> for NamingContextExtResolveStrError {
        fn from(exception: naming_context::InvalidName) -> Self {
            Self::InvalidName(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for NamingContextExtResolveStrError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for NamingContextExtResolveStrError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::NotFound(exception) => exception.fmt(f),
                Self::CannotProceed(exception) => exception.fmt(f),
                Self::InvalidName(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for NamingContextExtResolveStrError {}

    /// A context that knows names as text.
    ///
    /// This is a reference to such an object; [`NamingContextExtServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct NamingContextExt(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for NamingContextExt {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for NamingContextExt {
        const TYPE_ID: &'static str = "IDL:omg.org/CosNaming/NamingContextExt:1.0";
        const NAME: &'static str = "NamingContextExt";

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

    impl From<NamingContextExt> for NamingContext {
        fn from(derived: NamingContextExt) -> Self {
            ::sidestep_orb::Stub::from_object(derived.0)
        }
    }

    impl NamingContextExt {
        /// `bind`
        pub fn bind(
            &self,
            n: &[NameComponent],
            obj: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<(), NamingContextBindError> {
            self.0.call(
                "bind",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(obj)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::bind`] now; what comes back is collected later.
        pub fn begin_bind(
            &self,
            n: &[NameComponent],
            obj: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), NamingContextBindError>, NamingContextBindError>
        {
            self.0.begin(
                "bind",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(obj)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `rebind`
        pub fn rebind(
            &self,
            n: &[NameComponent],
            obj: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<(), NamingContextRebindError> {
            self.0.call(
                "rebind",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(obj)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::rebind`] now; what comes back is collected later.
        pub fn begin_rebind(
            &self,
            n: &[NameComponent],
            obj: Option<&::sidestep_orb::Object>,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), NamingContextRebindError>, NamingContextRebindError>
        {
            self.0.begin(
                "rebind",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(obj)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `bind_context`
        pub fn bind_context(
            &self,
            n: &[NameComponent],
            nc: Option<&NamingContext>,
        ) -> ::std::result::Result<(), NamingContextBindContextError> {
            self.0.call(
                "bind_context",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(nc)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::bind_context`] now; what comes back is collected later.
        pub fn begin_bind_context(
            &self,
            n: &[NameComponent],
            nc: Option<&NamingContext>,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), NamingContextBindContextError>,
            NamingContextBindContextError,
        > {
            self.0.begin(
                "bind_context",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(nc)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `rebind_context`
        pub fn rebind_context(
            &self,
            n: &[NameComponent],
            nc: Option<&NamingContext>,
        ) -> ::std::result::Result<(), NamingContextRebindContextError> {
            self.0.call(
                "rebind_context",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(nc)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// Sends [`Self::rebind_context`] now; what comes back is collected later.
        pub fn begin_rebind_context(
            &self,
            n: &[NameComponent],
            nc: Option<&NamingContext>,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(), NamingContextRebindContextError>,
            NamingContextRebindContextError,
        > {
            self.0.begin(
                "rebind_context",
                |encoder| {
                    encoder.sequence(n)?;
                    encoder.reference(nc)?;
                    Ok(())
                },
                |_| Ok(()),
            )
        }

        /// `resolve`
        pub fn resolve(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<Option<::sidestep_orb::Object>, NamingContextResolveError> {
            self.0.call("resolve", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::resolve`] now; what comes back is collected later.
        pub fn begin_resolve(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<::sidestep_orb::Object>, NamingContextResolveError>,
            NamingContextResolveError,
        > {
            self.0.begin("resolve", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `unbind`
        pub fn unbind(&self, n: &[NameComponent]) -> ::std::result::Result<(), NamingContextUnbindError> {
            self.0.call("unbind", |encoder| encoder.sequence(n), |_| Ok(()))
        }

        /// Sends [`Self::unbind`] now; what comes back is collected later.
        pub fn begin_unbind(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), NamingContextUnbindError>, NamingContextUnbindError>
        {
            self.0.begin("unbind", |encoder| encoder.sequence(n), |_| Ok(()))
        }

        /// `new_context`
        pub fn new_context(&self) -> ::std::result::Result<Option<NamingContext>, ::sidestep_orb::SystemException> {
            self.0.call("new_context", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::new_context`] now; what comes back is collected later.
        pub fn begin_new_context(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<NamingContext>, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("new_context", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `bind_new_context`
        pub fn bind_new_context(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<Option<NamingContext>, NamingContextBindNewContextError> {
            self.0.call("bind_new_context", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::bind_new_context`] now; what comes back is collected later.
        pub fn begin_bind_new_context(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<NamingContext>, NamingContextBindNewContextError>,
            NamingContextBindNewContextError,
        > {
            self.0.begin("bind_new_context", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `destroy`
        pub fn destroy(&self) -> ::std::result::Result<(), NamingContextDestroyError> {
            self.0.call("destroy", |_| Ok(()), |_| Ok(()))
        }

        /// Sends [`Self::destroy`] now; what comes back is collected later.
        pub fn begin_destroy(
            &self,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<(), NamingContextDestroyError>, NamingContextDestroyError>
        {
            self.0.begin("destroy", |_| Ok(()), |_| Ok(()))
        }

        /// `list`
        pub fn list(
            &self,
            how_many: u32,
        ) -> ::std::result::Result<(BindingList, Option<BindingIterator>), ::sidestep_orb::SystemException> {
            self.0.call(
                "list",
                |encoder| ::sidestep_orb::cdr::Cdr::encode(&how_many, encoder),
                |decoder| Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?)),
            )
        }

        /// Sends [`Self::list`] now; what comes back is collected later.
        pub fn begin_list(
            &self,
            how_many: u32,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<(BindingList, Option<BindingIterator>), ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin(
                "list",
                |encoder| ::sidestep_orb::cdr::Cdr::encode(&how_many, encoder),
                |decoder| Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?)),
            )
        }

        /// `to_string`
        pub fn to_string(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<naming_context_ext::StringName, NamingContextExtToStringError> {
            self.0.call("to_string", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::to_string`] now; what comes back is collected later.
        pub fn begin_to_string(
            &self,
            n: &[NameComponent],
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<naming_context_ext::StringName, NamingContextExtToStringError>,
            NamingContextExtToStringError,
        > {
            self.0.begin("to_string", |encoder| encoder.sequence(n), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `to_name`
        pub fn to_name(&self, sn: &str) -> ::std::result::Result<Name, NamingContextExtToNameError> {
            self.0.call("to_name", |encoder| encoder.string(sn), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::to_name`] now; what comes back is collected later.
        pub fn begin_to_name(
            &self,
            sn: &str,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Name, NamingContextExtToNameError>,
            NamingContextExtToNameError,
        > {
            self.0.begin("to_name", |encoder| encoder.string(sn), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// `to_url`
        pub fn to_url(
            &self,
            addr: &str,
            sn: &str,
        ) -> ::std::result::Result<naming_context_ext::URLString, NamingContextExtToUrlError> {
            self.0.call(
                "to_url",
                |encoder| {
                    encoder.string(addr)?;
                    encoder.string(sn)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// Sends [`Self::to_url`] now; what comes back is collected later.
        pub fn begin_to_url(
            &self,
            addr: &str,
            sn: &str,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<naming_context_ext::URLString, NamingContextExtToUrlError>,
            NamingContextExtToUrlError,
        > {
            self.0.begin(
                "to_url",
                |encoder| {
                    encoder.string(addr)?;
                    encoder.string(sn)?;
                    Ok(())
                },
                ::sidestep_orb::cdr::Cdr::decode,
            )
        }

        /// `resolve_str`
        pub fn resolve_str(
            &self,
            sn: &str,
        ) -> ::std::result::Result<Option<::sidestep_orb::Object>, NamingContextExtResolveStrError> {
            self.0.call("resolve_str", |encoder| encoder.string(sn), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::resolve_str`] now; what comes back is collected later.
        pub fn begin_resolve_str(
            &self,
            sn: &str,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<Option<::sidestep_orb::Object>, NamingContextExtResolveStrError>,
            NamingContextExtResolveStrError,
        > {
            self.0.begin("resolve_str", |encoder| encoder.string(sn), ::sidestep_orb::cdr::Cdr::decode)
        }
    }

    /// What implements `CosNaming::NamingContextExt`.
    pub trait NamingContextExtServant: NamingContextServant {
        /// `to_string`
        fn to_string(
            &self,
            n: Name,
        ) -> ::std::result::Result<naming_context_ext::StringName, NamingContextExtToStringError>;

        /// `to_name`
        fn to_name(
            &self,
            sn: naming_context_ext::StringName,
        ) -> ::std::result::Result<Name, NamingContextExtToNameError>;

        /// `to_url`
        fn to_url(
            &self,
            addr: naming_context_ext::Address,
            sn: naming_context_ext::StringName,
        ) -> ::std::result::Result<naming_context_ext::URLString, NamingContextExtToUrlError>;

        /// `resolve_str`
        fn resolve_str(
            &self,
            sn: naming_context_ext::StringName,
        ) -> ::std::result::Result<Option<::sidestep_orb::Object>, NamingContextExtResolveStrError>;
    }

    /// Makes a [`NamingContextExtServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct NamingContextExtSkeleton<S>(pub S);

    impl<S: NamingContextExtServant> ::sidestep_orb::Servant for NamingContextExtSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:omg.org/CosNaming/NamingContextExt:1.0", "IDL:omg.org/CosNaming/NamingContext:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "bind" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextServant::bind(&self.0, argument_0, argument_1) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextBindError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextBindError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextBindError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextBindError::AlreadyBound(exception)) => call.raise(&exception),
                        Err(NamingContextBindError::System(exception)) => Err(exception),
                    }
                }
                "rebind" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextServant::rebind(&self.0, argument_0, argument_1) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextRebindError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextRebindError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextRebindError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextRebindError::System(exception)) => Err(exception),
                    }
                }
                "bind_context" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextServant::bind_context(&self.0, argument_0, argument_1) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextBindContextError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextBindContextError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextBindContextError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextBindContextError::AlreadyBound(exception)) => call.raise(&exception),
                        Err(NamingContextBindContextError::System(exception)) => Err(exception),
                    }
                }
                "rebind_context" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextServant::rebind_context(&self.0, argument_0, argument_1) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextRebindContextError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextRebindContextError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextRebindContextError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextRebindContextError::System(exception)) => Err(exception),
                    }
                }
                "resolve" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextServant::resolve(&self.0, argument_0) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(NamingContextResolveError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextResolveError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextResolveError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextResolveError::System(exception)) => Err(exception),
                    }
                }
                "unbind" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextServant::unbind(&self.0, argument_0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextUnbindError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextUnbindError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextUnbindError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextUnbindError::System(exception)) => Err(exception),
                    }
                }
                "new_context" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = NamingContextServant::new_context(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                "bind_new_context" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextServant::bind_new_context(&self.0, argument_0) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(NamingContextBindNewContextError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextBindNewContextError::AlreadyBound(exception)) => call.raise(&exception),
                        Err(NamingContextBindNewContextError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextBindNewContextError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextBindNewContextError::System(exception)) => Err(exception),
                    }
                }
                "destroy" => {
                    call.arguments(|_| Ok(()))?;
                    match NamingContextServant::destroy(&self.0) {
                        Ok(()) => call.reply(|_| Ok(())),
                        Err(NamingContextDestroyError::NotEmpty(exception)) => call.raise(&exception),
                        Err(NamingContextDestroyError::System(exception)) => Err(exception),
                    }
                }
                "list" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    let outcome = NamingContextServant::list(&self.0, argument_0)?;
                    call.reply(|encoder| {
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.0, encoder)?;
                        ::sidestep_orb::cdr::Cdr::encode(&outcome.1, encoder)?;
                        Ok(())
                    })
                }
                "to_string" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextExtServant::to_string(&self.0, argument_0) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(NamingContextExtToStringError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextExtToStringError::System(exception)) => Err(exception),
                    }
                }
                "to_name" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextExtServant::to_name(&self.0, argument_0) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(NamingContextExtToNameError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextExtToNameError::System(exception)) => Err(exception),
                    }
                }
                "to_url" => {
                    let (argument_0, argument_1) = call.arguments(|decoder| {
                        Ok((::sidestep_orb::cdr::Cdr::decode(decoder)?, ::sidestep_orb::cdr::Cdr::decode(decoder)?))
                    })?;
                    match NamingContextExtServant::to_url(&self.0, argument_0, argument_1) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(NamingContextExtToUrlError::InvalidAddress(exception)) => call.raise(&exception),
                        Err(NamingContextExtToUrlError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextExtToUrlError::System(exception)) => Err(exception),
                    }
                }
                "resolve_str" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match NamingContextExtServant::resolve_str(&self.0, argument_0) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(NamingContextExtResolveStrError::NotFound(exception)) => call.raise(&exception),
                        Err(NamingContextExtResolveStrError::CannotProceed(exception)) => call.raise(&exception),
                        Err(NamingContextExtResolveStrError::InvalidName(exception)) => call.raise(&exception),
                        Err(NamingContextExtResolveStrError::System(exception)) => Err(exception),
                    }
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }

    /// What `CosNaming::NamingContextExt` declares.
    pub mod naming_context_ext {

        /// `CosNaming::NamingContextExt::StringName`
        pub type StringName = String;

        /// `CosNaming::NamingContextExt::Address`
        pub type Address = String;

        /// `CosNaming::NamingContextExt::URLString`
        pub type URLString = String;

        /// `CosNaming::NamingContextExt::InvalidAddress`
        #[derive(Debug, Clone, PartialEq)]
        pub struct InvalidAddress {}

        impl ::sidestep_orb::UserException for InvalidAddress {
            const ID: &'static str = "IDL:omg.org/CosNaming/NamingContextExt/InvalidAddress:1.0";
        }

        /// The repository id stands in front of the members.
        impl ::sidestep_orb::cdr::Cdr for InvalidAddress {
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

        impl ::sidestep_orb::cdr::Typed for InvalidAddress {
            fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
                path.enter("IDL:omg.org/CosNaming/NamingContextExt/InvalidAddress:1.0", |path| {
                    let members = vec![];
                    let _ = path;
                    ::sidestep_orb::cdr::TypeCode::exception(
                        "IDL:omg.org/CosNaming/NamingContextExt/InvalidAddress:1.0",
                        "InvalidAddress",
                        members,
                    )
                })
            }
        }

        impl ::std::fmt::Display for InvalidAddress {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }

        impl ::std::error::Error for InvalidAddress {}
    }
}
