//! What a call may fail with (CORBA 3.3 part 1 §7.15.3).

use std::fmt;

use crate::cdr::{self, Cdr, Decoder, Encoder};

/// Whether the operation had been carried out when the exception was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// It was.
    Yes,
    /// It was not, so it may be called again.
    No,
    /// Nobody knows.
    Maybe,
}

macro_rules! kinds {
    ($($variant:ident $name:literal $doc:literal),* $(,)?) => {
        /// The system exceptions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = $doc] $variant,)*
        }

        impl Kind {
            const ALL: &'static [(Kind, &'static str)] = &[$((Kind::$variant, $name)),*];
        }
    };
}

kinds! {
    Unknown "UNKNOWN" "Something that has no name here.",
    BadParam "BAD_PARAM" "An argument is not valid.",
    NoMemory "NO_MEMORY" "There is no memory left.",
    ImpLimit "IMP_LIMIT" "A limit of the implementation is exceeded.",
    CommFailure "COMM_FAILURE" "The connection broke.",
    InvObjref "INV_OBJREF" "The reference is malformed.",
    NoPermission "NO_PERMISSION" "The caller may not do this.",
    Internal "INTERNAL" "The broker is at fault.",
    Marshal "MARSHAL" "The bytes of a message are not what the operation expects.",
    Initialize "INITIALIZE" "The broker could not be started.",
    NoImplement "NO_IMPLEMENT" "The operation exists and is not implemented.",
    BadTypecode "BAD_TYPECODE" "A type code is malformed.",
    BadOperation "BAD_OPERATION" "The object has no such operation.",
    NoResources "NO_RESOURCES" "Something other than memory is used up.",
    NoResponse "NO_RESPONSE" "The reply is not there yet.",
    PersistStore "PERSIST_STORE" "What is stored cannot be read.",
    BadInvOrder "BAD_INV_ORDER" "The calls come in the wrong order, or the broker is shut down.",
    Transient "TRANSIENT" "It may work later.",
    FreeMem "FREE_MEM" "Memory could not be given back.",
    InvIdent "INV_IDENT" "A name is malformed.",
    InvFlag "INV_FLAG" "A flag is not valid.",
    IntfRepos "INTF_REPOS" "There is no interface repository.",
    BadContext "BAD_CONTEXT" "The context lacks something.",
    ObjAdapter "OBJ_ADAPTER" "The adapter of the object cannot serve.",
    DataConversion "DATA_CONVERSION" "Text cannot be said in the code set of the connection.",
    ObjectNotExist "OBJECT_NOT_EXIST" "There is no such object, and there will not be.",
    TransactionRequired "TRANSACTION_REQUIRED" "A transaction is missing.",
    TransactionRolledback "TRANSACTION_ROLLEDBACK" "The transaction was rolled back.",
    InvalidTransaction "INVALID_TRANSACTION" "The transaction is not valid.",
    InvPolicy "INV_POLICY" "Policies contradict each other.",
    CodesetIncompatible "CODESET_INCOMPATIBLE" "Both ends have no code set in common.",
    Rebind "REBIND" "The reference leads elsewhere now, and that is not wanted.",
    Timeout "TIMEOUT" "The time is up.",
    TransactionUnavailable "TRANSACTION_UNAVAILABLE" "There is no transaction service.",
    TransactionMode "TRANSACTION_MODE" "The transaction mode does not match.",
    BadQos "BAD_QOS" "The quality asked for cannot be had.",
    InvalidActivity "INVALID_ACTIVITY" "The activity is not valid.",
    ActivityCompleted "ACTIVITY_COMPLETED" "The activity has ended.",
    ActivityRequired "ACTIVITY_REQUIRED" "An activity is missing.",
}

/// An exception that any call may raise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemException {
    /// What went wrong.
    pub kind: Kind,
    /// A code that says more; its upper 20 bits name who has defined it.
    pub minor: u32,
    /// Whether the operation was carried out.
    pub completed: Completion,
}

/// The minor codes that the OMG has defined.
pub(crate) const OMG: u32 = 0x4f4d_0000;

impl Kind {
    /// The exception with a minor code of zero.
    #[must_use]
    pub fn raised(self, completed: Completion) -> SystemException {
        SystemException { kind: self, minor: 0, completed }
    }

    /// The exception with a minor code.
    #[must_use]
    pub fn with_minor(self, minor: u32, completed: Completion) -> SystemException {
        SystemException { kind: self, minor, completed }
    }

    /// The name in the standard.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("UNKNOWN", |(_, name)| name)
    }
}

const PREFIX: &[u8] = b"IDL:omg.org/CORBA/";
const SUFFIX: &[u8] = b":1.0";

impl SystemException {
    /// What a message that could not be read or written means for the call.
    #[must_use]
    pub fn of_cdr(error: &cdr::Error, completed: Completion) -> Self {
        let kind = match error {
            cdr::Error::Text { .. } => Kind::DataConversion,
            cdr::Error::Bound { .. } | cdr::Error::Discriminator { .. } | cdr::Error::Fixed { .. } => Kind::BadParam,
            cdr::Error::Kind { .. } | cdr::Error::TypeCode => Kind::BadTypecode,
            cdr::Error::Depth | cdr::Error::Length { .. } => Kind::ImpLimit,
            _ => Kind::Marshal,
        };
        kind.raised(completed)
    }

    pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), cdr::Error> {
        encoder.identifier(&[PREFIX, self.kind.name().as_bytes(), SUFFIX].concat())?;
        encoder.u32(self.minor);
        encoder.u32(match self.completed {
            Completion::Yes => 0,
            Completion::No => 1,
            Completion::Maybe => 2,
        });
        Ok(())
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, cdr::Error> {
        let id = decoder.identifier()?;
        let name = id.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)).unwrap_or_default();
        let kind = Kind::ALL.iter().find(|(_, each)| each.as_bytes() == name).map_or(Kind::Unknown, |(kind, _)| *kind);
        let minor = decoder.u32()?;
        let completed = match decoder.u32()? {
            0 => Completion::Yes,
            1 => Completion::No,
            2 => Completion::Maybe,
            found => return Err(cdr::Error::Enumeration { enumeration: "completion_status", found }),
        };
        Ok(Self { kind, minor, completed })
    }
}

impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let completed = match self.completed {
            Completion::Yes => "YES",
            Completion::No => "NO",
            Completion::Maybe => "MAYBE",
        };
        write!(f, "{} (minor {:#x}, completed {completed})", self.kind.name(), self.minor)
    }
}

impl std::error::Error for SystemException {}

/// An exception that the IDL declares.
pub trait UserException: Cdr {
    /// The repository id.
    const ID: &'static str;
}

/// What an operation may fail with: a system exception, or one of those that it declares.
pub trait Failure: From<SystemException> {
    /// The exception with this repository id, if the operation declares it. The decoder stands at the id.
    fn decode(id: &[u8], decoder: &mut Decoder<'_>) -> Option<Result<Self, cdr::Error>>;
}

impl Failure for SystemException {
    fn decode(_: &[u8], _: &mut Decoder<'_>) -> Option<Result<Self, cdr::Error>> {
        None
    }
}
