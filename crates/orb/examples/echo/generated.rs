// Made by `sidestep idl` from echo.idl. Changes belong there.

/// The example of docs/orb.md.
#[forbid(unsafe_code)]
#[allow(dead_code, clippy::all)]
pub mod example {

    /// There is nothing to say.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Silence {
        /// `why`
        pub why: String,
    }

    impl ::sidestep_orb::UserException for Silence {
        const ID: &'static str = "IDL:Example/Silence:1.0";
    }

    /// The repository id stands in front of the members.
    impl ::sidestep_orb::cdr::Cdr for Silence {
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

    impl ::sidestep_orb::cdr::Typed for Silence {
        fn type_code_in(path: &mut ::sidestep_orb::cdr::Path) -> ::sidestep_orb::cdr::TypeCode {
            path.enter("IDL:Example/Silence:1.0", |path| {
                let members = vec![("why", <String as ::sidestep_orb::cdr::Typed>::type_code_in(path))];
                ::sidestep_orb::cdr::TypeCode::exception("IDL:Example/Silence:1.0", "Silence", members)
            })
        }
    }

    impl ::std::fmt::Display for Silence {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            ::std::fmt::Debug::fmt(self, f)
        }
    }

    impl ::std::error::Error for Silence {}

    /// Why `say` of `Example::Echo` failed.
    #[derive(Debug, Clone, PartialEq)]
    pub enum EchoSayError {
        /// The servant has raised it.
        Silence(Silence),
        /// The call itself failed.
        System(::sidestep_orb::SystemException),
    }

    impl ::sidestep_orb::Failure for EchoSayError {
        fn decode(
            id: &[u8],
            decoder: &mut ::sidestep_orb::cdr::Decoder<'_>,
        ) -> Option<::std::result::Result<Self, ::sidestep_orb::cdr::Error>> {
            if id == <Silence as ::sidestep_orb::UserException>::ID.as_bytes() {
                return Some(::sidestep_orb::cdr::Cdr::decode(decoder).map(Self::Silence));
            }
            None
        }
    }

    impl From<Silence> for EchoSayError {
        fn from(exception: Silence) -> Self {
            Self::Silence(exception)
        }
    }

    impl From<::sidestep_orb::SystemException> for EchoSayError {
        fn from(exception: ::sidestep_orb::SystemException) -> Self {
            Self::System(exception)
        }
    }

    impl ::std::fmt::Display for EchoSayError {
        fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            match self {
                Self::Silence(exception) => exception.fmt(f),
                Self::System(exception) => exception.fmt(f),
            }
        }
    }

    impl ::std::error::Error for EchoSayError {}

    /// `Example::Echo`
    ///
    /// This is a reference to such an object; [`EchoServant`] is what implements one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Echo(::sidestep_orb::Object);

    impl ::sidestep_orb::Stub for Echo {
        fn from_object(object: ::sidestep_orb::Object) -> Self {
            Self(object)
        }

        fn object(&self) -> &::sidestep_orb::Object {
            &self.0
        }
    }

    impl ::sidestep_orb::cdr::Reference for Echo {
        const TYPE_ID: &'static str = "IDL:Example/Echo:1.0";
        const NAME: &'static str = "Echo";

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

    impl Echo {
        /// Returns the text; an empty text is refused.
        pub fn say(&self, text: &str) -> ::std::result::Result<String, EchoSayError> {
            self.0.call("say", |encoder| encoder.string(text), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::say`] now; what comes back is collected later.
        pub fn begin_say(
            &self,
            text: &str,
        ) -> ::std::result::Result<::sidestep_orb::Deferred<String, EchoSayError>, EchoSayError> {
            self.0.begin("say", |encoder| encoder.string(text), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// How often something was said.
        pub fn count(&self) -> ::std::result::Result<u32, ::sidestep_orb::SystemException> {
            self.0.call("_get_count", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }

        /// Sends [`Self::count`] now; what comes back is collected later.
        pub fn begin_count(
            &self,
        ) -> ::std::result::Result<
            ::sidestep_orb::Deferred<u32, ::sidestep_orb::SystemException>,
            ::sidestep_orb::SystemException,
        > {
            self.0.begin("_get_count", |_| Ok(()), ::sidestep_orb::cdr::Cdr::decode)
        }
    }

    /// What implements `Example::Echo`.
    pub trait EchoServant: Send + Sync + 'static {
        /// Returns the text; an empty text is refused.
        fn say(&self, text: String) -> ::std::result::Result<String, EchoSayError>;

        /// How often something was said.
        fn count(&self) -> ::std::result::Result<u32, ::sidestep_orb::SystemException>;
    }

    /// Makes a [`EchoServant`] an object that an adapter can activate.
    #[derive(Debug)]
    pub struct EchoSkeleton<S>(pub S);

    impl<S: EchoServant> ::sidestep_orb::Servant for EchoSkeleton<S> {
        fn type_ids(&self) -> &'static [&'static str] {
            &["IDL:Example/Echo:1.0"]
        }

        fn dispatch(
            &self,
            call: &mut ::sidestep_orb::Call<'_>,
        ) -> ::std::result::Result<(), ::sidestep_orb::SystemException> {
            match call.operation() {
                "say" => {
                    let argument_0 = call.arguments(::sidestep_orb::cdr::Cdr::decode)?;
                    match EchoServant::say(&self.0, argument_0) {
                        Ok(outcome) => call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder)),
                        Err(EchoSayError::Silence(exception)) => call.raise(&exception),
                        Err(EchoSayError::System(exception)) => Err(exception),
                    }
                }
                "_get_count" => {
                    call.arguments(|_| Ok(()))?;
                    let outcome = EchoServant::count(&self.0)?;
                    call.reply(|encoder| ::sidestep_orb::cdr::Cdr::encode(&outcome, encoder))
                }
                _ => Err(call.unknown_operation()),
            }
        }
    }
}
