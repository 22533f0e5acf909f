// Generated from kv.x by `sidestep idl`. Changes belong there.

use sidestep_rpc::xdr::{self, Reader, Writer, Xdr};
use sidestep_rpc::{Call, Client, Error, Pending, Procedure, Refusal, Service};

/// `const MAX_KEY = 255`.
pub const MAX_KEY: u32 = 255;

/// `enum status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// `OK`.
    Ok = 0,
    /// `NOT_FOUND`.
    NotFound = 1,
}

impl Xdr for Status {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(*self as i32)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.i32()? {
            0 => Self::Ok,
            1 => Self::NotFound,
            found => return Err(xdr::Error::Value { name: "status", found }),
        })
    }
}

/// `typedef string key<MAX_KEY>`.
pub type Key = String;

/// `typedef opaque value<65536>`.
pub type Value = Vec<u8>;

/// `struct pair`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// `key name`.
    pub name: Key,
    /// `value content`.
    pub content: Value,
}

impl Xdr for Pair {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.string(&self.name, MAX_KEY)?;
        out.opaque(&self.content, 65536)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            name: input.string(MAX_KEY).map(str::to_owned)?,
            content: input.opaque(65536).map(<[u8]>::to_vec)?,
        })
    }
}

/// `union lookup switch (status state)`.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// `case OK: value content`.
    Ok(Value),
    /// `case NOT_FOUND: void`.
    NotFound,
}

impl Xdr for Lookup {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        match self {
            Self::Ok(value) => {
                out.value(&Status::Ok)?;
                out.opaque(value, 65536)
            }
            Self::NotFound => out.value(&Status::NotFound),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.value::<Status>()? {
            Status::Ok => Self::Ok(input.opaque(65536).map(<[u8]>::to_vec)?),
            Status::NotFound => Self::NotFound,
        })
    }
}

/// Calls `KV_V1`, version 1 of program `KEY_VALUE`.
#[derive(Debug, Clone)]
pub struct KvV1Client {
    client: Client,
}

impl KvV1Client {
    /// The number of the program.
    pub const PROGRAM: u32 = 536871065;
    /// The number of the version.
    pub const VERSION: u32 = 1;

    /// Calls through a client that may also be used for other programs.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Connects to an address, for example `tcp:127.0.0.1:2049`.
    pub fn connect(address: &str) -> Result<Self, Error> {
        Client::connect(address).map(Self::new)
    }

    /// What the calls go through.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Procedure 0, which does nothing.
    pub fn null(&self) -> Result<(), Error> {
        self.client.call(Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 }, |_| Ok(()), |_| Ok(()))
    }

    /// `void PUT(pair) = 1`.
    pub fn put(&self, argument: &Pair) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.call(procedure, |out| out.value(argument), |_| Ok(()))
    }

    /// Begins `PUT` and does not wait for its end.
    pub fn begin_put(&self, argument: &Pair) -> Result<Pending<()>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.begin(procedure, |out| out.value(argument), |_| Ok(()))
    }

    /// Sends `PUT` to a server that does not reply to it. It may wait for the next call.
    pub fn batch_put(&self, argument: &Pair) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.batch(procedure, |out| out.value(argument))
    }

    /// `lookup GET(key) = 2`.
    pub fn get(&self, argument: &str) -> Result<Lookup, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.call(procedure, |out| out.string(argument, MAX_KEY), |input| input.value())
    }

    /// Begins `GET` and does not wait for its end.
    pub fn begin_get(&self, argument: &str) -> Result<Pending<Lookup>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.begin(procedure, |out| out.string(argument, MAX_KEY), |input| input.value())
    }

    /// `unsigned int LENGTH(void) = 3`.
    pub fn length(&self) -> Result<u32, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 3 };
        self.client.call(procedure, |_| Ok(()), |input| input.u32())
    }

    /// Begins `LENGTH` and does not wait for its end.
    pub fn begin_length(&self) -> Result<Pending<u32>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 3 };
        self.client.begin(procedure, |_| Ok(()), |input| input.u32())
    }
}

/// What a server does for `KV_V1`, version 1 of program `KEY_VALUE`.
pub trait KvV1Service: Send + Sync + 'static {
    /// Procedure 0, which does nothing.
    fn null(&self, _call: &Call<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// `void PUT(pair) = 1`.
    fn put(&self, call: &Call<'_>, argument: Pair) -> Result<(), Refusal>;

    /// `lookup GET(key) = 2`.
    fn get(&self, call: &Call<'_>, argument: &str) -> Result<Lookup, Refusal>;

    /// `unsigned int LENGTH(void) = 3`.
    fn length(&self, call: &Call<'_>) -> Result<u32, Refusal>;
}

/// Gives the calls of `KV_V1`, version 1 of program `KEY_VALUE` to a service.
#[derive(Debug)]
pub struct KvV1Server<T>(pub T);

impl<T: KvV1Service> Service for KvV1Server<T> {
    fn program(&self) -> u32 {
        536871065
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let _ = &out;
        match call.procedure {
            0 => {
                input.finish()?;
                self.0.null(call)
            }
            1 => {
                let argument = input.value()?;
                input.finish()?;
                self.0.put(call, argument)
            }
            2 => {
                let argument = input.string(MAX_KEY)?;
                input.finish()?;
                let result = self.0.get(call, argument)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            3 => {
                input.finish()?;
                let result = self.0.length(call)?;
                out.u32(result).map_err(Refusal::of_results)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}
