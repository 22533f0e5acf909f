// Generated from awkward.x by `sidestep idl`. Changes belong there.

use sidestep_rpc::xdr::{self, Reader, Writer, Xdr};
use sidestep_rpc::{Call, Client, Error, Pending, Procedure, Refusal, Service};

/// `const SIZE = 4`.
pub const SIZE: u32 = 4;

/// `const _ = 1`.
pub const UNDERSCORE: u32 = 1;

/// `const _2nd = 2`.
pub const _2ND: u32 = 2;

/// `const max_key = 3`.
pub const MAX_KEY: u32 = 3;

/// `const MAX_KEY = 4`.
pub const MAX_KEY_: u32 = 4;

/// `const PROGRAM = 5`.
pub const PROGRAM: u32 = 5;

/// `struct sync`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sync_ {
    /// `int send`.
    pub send: i32,
}

impl Xdr for Sync_ {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(self.send)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            send: input.i32()?,
        })
    }
}

/// `struct send`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Send_ {
    /// `sync self`.
    pub self_: Sync_,
    /// `int super`.
    pub super_: i32,
    /// `int type`.
    pub r#type: i32,
    /// `int type_`.
    pub type_: i32,
    /// `int _`.
    pub underscore: i32,
    /// `int _2`.
    pub _2: i32,
}

impl Xdr for Send_ {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.value(&self.self_)?;
        out.i32(self.super_)?;
        out.i32(self.r#type)?;
        out.i32(self.type_)?;
        out.i32(self.underscore)?;
        out.i32(self._2)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            self_: input.value()?,
            super_: input.i32()?,
            r#type: input.i32()?,
            type_: input.i32()?,
            underscore: input.i32()?,
            _2: input.i32()?,
        })
    }
}

/// `typedef send option<SIZE>`.
pub type Option_ = Vec<Send_>;

/// `enum result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Result_ {
    /// `Self`.
    Self_ = 0,
    /// `OK`.
    Ok = 1,
    /// `Ok`.
    Ok_ = 2,
    /// `_3`.
    _3 = 3,
}

impl Xdr for Result_ {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(*self as i32)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.i32()? {
            0 => Self::Self_,
            1 => Self::Ok,
            2 => Self::Ok_,
            3 => Self::_3,
            found => return Err(xdr::Error::Value { name: "result", found }),
        })
    }
}

/// `struct t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct T {
    /// `result ok`.
    pub ok: Result_,
}

impl Xdr for T {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.value(&self.ok)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            ok: input.value()?,
        })
    }
}

/// `struct xdr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xdr_ {
    /// `t *xdr`.
    pub xdr: Option<T>,
    /// `xdr *next`.
    pub next: Option<Box<Xdr_>>,
}

impl Xdr for Xdr_ {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.optional(self.xdr.as_ref(), |out, item| out.value(item))?;
        out.optional(self.next.as_deref(), |out, item| out.value(item))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            xdr: input.optional(|input| input.value())?,
            next: input.optional(|input| input.value().map(Box::new))?,
        })
    }
}

/// `typedef hyper box`.
pub type Box_ = i64;

/// `struct a_b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AB {
    /// `int fooBar`.
    pub foo_bar: i32,
    /// `int foo_bar`.
    pub foo_bar_: i32,
}

impl Xdr for AB {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(self.foo_bar)?;
        out.i32(self.foo_bar_)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            foo_bar: input.i32()?,
            foo_bar_: input.i32()?,
        })
    }
}

/// `enum aB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AB_ {
    /// `FOO_BAR`.
    FooBar = 0,
    /// `fooBar`.
    FooBar_ = 1,
}

impl Xdr for AB_ {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(*self as i32)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.i32()? {
            0 => Self::FooBar,
            1 => Self::FooBar_,
            found => return Err(xdr::Error::Value { name: "aB", found }),
        })
    }
}

/// `union a_B switch (aB it)`.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AB__ {
    /// `case FOO_BAR: int one`.
    FooBar(i32),
    /// `case fooBar: a_b two`.
    FooBar_(AB),
}

impl Xdr for AB__ {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        match self {
            Self::FooBar(value) => {
                out.value(&AB_::FooBar)?;
                out.i32(*value)
            }
            Self::FooBar_(value) => {
                out.value(&AB_::FooBar_)?;
                out.value(value)
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.value::<AB_>()? {
            AB_::FooBar => Self::FooBar(input.i32()?),
            AB_::FooBar_ => Self::FooBar_(input.value()?),
        })
    }
}

/// `enum kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `NONE`.
    None = 0,
    /// `DEFAULT`.
    Default = 1,
    /// `default_`.
    Default_ = 2,
}

impl Xdr for Kind {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(*self as i32)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.i32()? {
            0 => Self::None,
            1 => Self::Default,
            2 => Self::Default_,
            found => return Err(xdr::Error::Value { name: "kind", found }),
        })
    }
}

/// `union chosen switch (kind which)`.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// `case NONE: int some`.
    None(i32),
    /// `case DEFAULT: int some`.
    Default_(i32),
    /// `default: string why<>`, with the discriminant.
    Default(Kind, String),
}

impl Xdr for Chosen {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        match self {
            Self::None(value) => {
                out.value(&Kind::None)?;
                out.i32(*value)
            }
            Self::Default_(value) => {
                out.value(&Kind::Default)?;
                out.i32(*value)
            }
            Self::Default(discriminant, _) if matches!(discriminant, Kind::None | Kind::Default) => Err(xdr::Error::Value { name: "default of chosen", found: *discriminant as i32 }),
            Self::Default(discriminant, value) => {
                out.value(discriminant)?;
                out.string(value, xdr::UNBOUNDED)
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.value::<Kind>()? {
            Kind::None => Self::None(input.i32()?),
            Kind::Default => Self::Default_(input.i32()?),
            discriminant => Self::Default(discriminant, input.string(xdr::UNBOUNDED).map(str::to_owned)?),
        })
    }
}

/// `union counted switch (int number)`.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// `case -1: void`.
    CaseMinus1,
    /// `case 1: wide wide`.
    Case1(Wide),
    /// `default: void`, with the discriminant.
    Default(i32),
}

impl Xdr for Counted {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        match self {
            Self::CaseMinus1 => out.i32(-1),
            Self::Case1(value) => {
                out.i32(1)?;
                out.value(value)
            }
            Self::Default(discriminant) if matches!(discriminant, -1 | 1) => Err(xdr::Error::Value { name: "default of counted", found: *discriminant }),
            Self::Default(discriminant) => out.i32(*discriminant),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.i32()? {
            -1 => Self::CaseMinus1,
            1 => Self::Case1(input.value()?),
            discriminant => Self::Default(discriminant),
        })
    }
}

/// `typedef quadruple wide`.
pub type Wide = xdr::Quadruple;

/// `struct v_client`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VClient {
    /// `int value`.
    pub value: i32,
}

impl Xdr for VClient {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(self.value)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            value: input.i32()?,
        })
    }
}

/// `struct v_server`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VServer {
    /// `v_client value`.
    pub value: VClient,
}

impl Xdr for VServer {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.value(&self.value)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            value: input.value()?,
        })
    }
}

/// Calls `V`, version 1 of program `P`.
#[derive(Debug, Clone)]
pub struct VClient_ {
    client: Client,
}

impl VClient_ {
    /// The number of the program.
    pub const PROGRAM: u32 = 536872825;
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

    /// `void FOO(int) = 1`.
    pub fn foo(&self, argument: i32) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.call(procedure, |out| out.i32(argument), |_| Ok(()))
    }

    /// Begins `FOO` and does not wait for its end.
    pub fn begin_foo(&self, argument: i32) -> Result<Pending<()>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.begin(procedure, |out| out.i32(argument), |_| Ok(()))
    }

    /// Sends `FOO` to a server that does not reply to it. It may wait for the next call.
    pub fn batch_foo(&self, argument: i32) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.batch(procedure, |out| out.i32(argument))
    }

    /// `void BATCH_FOO(v_client) = 2`.
    pub fn batch_foo_(&self, argument: &VClient) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.call(procedure, |out| out.value(argument), |_| Ok(()))
    }

    /// Begins `BATCH_FOO` and does not wait for its end.
    pub fn begin_batch_foo_(&self, argument: &VClient) -> Result<Pending<()>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.begin(procedure, |out| out.value(argument), |_| Ok(()))
    }

    /// Sends `BATCH_FOO` to a server that does not reply to it. It may wait for the next call.
    pub fn batch_batch_foo_(&self, argument: &VClient) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.batch(procedure, |out| out.value(argument))
    }

    /// `int BEGIN_FOO(void) = 3`.
    pub fn begin_foo_(&self) -> Result<i32, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 3 };
        self.client.call(procedure, |_| Ok(()), |input| input.i32())
    }

    /// Begins `BEGIN_FOO` and does not wait for its end.
    pub fn begin_begin_foo_(&self) -> Result<Pending<i32>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 3 };
        self.client.begin(procedure, |_| Ok(()), |input| input.i32())
    }

    /// `int NEW(void) = 4`.
    pub fn new_(&self) -> Result<i32, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 4 };
        self.client.call(procedure, |_| Ok(()), |input| input.i32())
    }

    /// Begins `NEW` and does not wait for its end.
    pub fn begin_new_(&self) -> Result<Pending<i32>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 4 };
        self.client.begin(procedure, |_| Ok(()), |input| input.i32())
    }

    /// `int connect(string<>) = 5`.
    pub fn connect_(&self, argument: &str) -> Result<i32, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 5 };
        self.client.call(procedure, |out| out.string(argument, xdr::UNBOUNDED), |input| input.i32())
    }

    /// Begins `connect` and does not wait for its end.
    pub fn begin_connect_(&self, argument: &str) -> Result<Pending<i32>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 5 };
        self.client.begin(procedure, |out| out.string(argument, xdr::UNBOUNDED), |input| input.i32())
    }

    /// `v_server client(v_server) = 6`.
    pub fn client_(&self, argument: &VServer) -> Result<VServer, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 6 };
        self.client.call(procedure, |out| out.value(argument), |input| input.value())
    }

    /// Begins `client` and does not wait for its end.
    pub fn begin_client_(&self, argument: &VServer) -> Result<Pending<VServer>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 6 };
        self.client.begin(procedure, |out| out.value(argument), |input| input.value())
    }

    /// `xdr INTO(xdr, chosen, counted) = 7`.
    pub fn into_(&self, argument1: &Xdr_, argument2: &Chosen, argument3: &Counted) -> Result<Xdr_, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 7 };
        self.client.call(procedure, |out| { out.value(argument1)?; out.value(argument2)?; out.value(argument3) }, |input| input.value())
    }

    /// Begins `INTO` and does not wait for its end.
    pub fn begin_into_(&self, argument1: &Xdr_, argument2: &Chosen, argument3: &Counted) -> Result<Pending<Xdr_>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 7 };
        self.client.begin(procedure, |out| { out.value(argument1)?; out.value(argument2)?; out.value(argument3) }, |input| input.value())
    }

    /// `a_B null(a_B, option) = 8`.
    pub fn null_(&self, argument1: &AB__, argument2: &[Send_]) -> Result<AB__, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 8 };
        self.client.call(procedure, |out| { out.value(argument1)?; out.array(argument2, SIZE, |out, item| out.value(item)) }, |input| input.value())
    }

    /// Begins `null` and does not wait for its end.
    pub fn begin_null_(&self, argument1: &AB__, argument2: &[Send_]) -> Result<Pending<AB__>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 8 };
        self.client.begin(procedure, |out| { out.value(argument1)?; out.array(argument2, SIZE, |out, item| out.value(item)) }, |input| input.value())
    }

    /// `quadruple FOO_(quadruple, box) = 9`.
    pub fn foo_(&self, argument1: &xdr::Quadruple, argument2: Box_) -> Result<xdr::Quadruple, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 9 };
        self.client.call(procedure, |out| { out.value(argument1)?; out.i64(argument2) }, |input| input.value())
    }

    /// Begins `FOO_` and does not wait for its end.
    pub fn begin_foo__(&self, argument1: &xdr::Quadruple, argument2: Box_) -> Result<Pending<xdr::Quadruple>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 9 };
        self.client.begin(procedure, |out| { out.value(argument1)?; out.i64(argument2) }, |input| input.value())
    }
}

/// What a server does for `V`, version 1 of program `P`.
pub trait VService: Send + Sync + 'static {
    /// Procedure 0, which does nothing.
    fn null(&self, _call: &Call<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// `void FOO(int) = 1`.
    fn foo(&self, call: &Call<'_>, argument: i32) -> Result<(), Refusal>;

    /// `void BATCH_FOO(v_client) = 2`.
    fn batch_foo_(&self, call: &Call<'_>, argument: VClient) -> Result<(), Refusal>;

    /// `int BEGIN_FOO(void) = 3`.
    fn begin_foo_(&self, call: &Call<'_>) -> Result<i32, Refusal>;

    /// `int NEW(void) = 4`.
    fn new_(&self, call: &Call<'_>) -> Result<i32, Refusal>;

    /// `int connect(string<>) = 5`.
    fn connect_(&self, call: &Call<'_>, argument: &str) -> Result<i32, Refusal>;

    /// `v_server client(v_server) = 6`.
    fn client_(&self, call: &Call<'_>, argument: VServer) -> Result<VServer, Refusal>;

    /// `xdr INTO(xdr, chosen, counted) = 7`.
    fn into_(&self, call: &Call<'_>, argument1: Xdr_, argument2: Chosen, argument3: Counted) -> Result<Xdr_, Refusal>;

    /// `a_B null(a_B, option) = 8`.
    fn null_(&self, call: &Call<'_>, argument1: AB__, argument2: Option_) -> Result<AB__, Refusal>;

    /// `quadruple FOO_(quadruple, box) = 9`.
    fn foo_(&self, call: &Call<'_>, argument1: xdr::Quadruple, argument2: Box_) -> Result<xdr::Quadruple, Refusal>;
}

/// Gives the calls of `V`, version 1 of program `P` to a service.
#[derive(Debug)]
pub struct VServer_<T>(pub T);

impl<T: VService> Service for VServer_<T> {
    fn program(&self) -> u32 {
        536872825
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
                let argument = input.i32()?;
                input.finish()?;
                self.0.foo(call, argument)
            }
            2 => {
                let argument = input.value()?;
                input.finish()?;
                self.0.batch_foo_(call, argument)
            }
            3 => {
                input.finish()?;
                let result = self.0.begin_foo_(call)?;
                out.i32(result).map_err(Refusal::of_results)
            }
            4 => {
                input.finish()?;
                let result = self.0.new_(call)?;
                out.i32(result).map_err(Refusal::of_results)
            }
            5 => {
                let argument = input.string(xdr::UNBOUNDED)?;
                input.finish()?;
                let result = self.0.connect_(call, argument)?;
                out.i32(result).map_err(Refusal::of_results)
            }
            6 => {
                let argument = input.value()?;
                input.finish()?;
                let result = self.0.client_(call, argument)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            7 => {
                let argument1 = input.value()?;
                let argument2 = input.value()?;
                let argument3 = input.value()?;
                input.finish()?;
                let result = self.0.into_(call, argument1, argument2, argument3)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            8 => {
                let argument1 = input.value()?;
                let argument2 = input.array(SIZE, |input| input.value())?;
                input.finish()?;
                let result = self.0.null_(call, argument1, argument2)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            9 => {
                let argument1 = input.value()?;
                let argument2 = input.i64()?;
                input.finish()?;
                let result = self.0.foo_(call, argument1, argument2)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }

    fn repeatable(&self, procedure: u32) -> bool {
        matches!(procedure, 0 | 6)
    }
}

/// Calls `v`, version 2 of program `P`.
#[derive(Debug, Clone)]
pub struct VClient__ {
    client: Client,
}

impl VClient__ {
    /// The number of the program.
    pub const PROGRAM: u32 = 536872825;
    /// The number of the version.
    pub const VERSION: u32 = 2;

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

    /// `void NULL_PROCEDURE(void) = 0`.
    pub fn null_procedure(&self) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 };
        self.client.call(procedure, |_| Ok(()), |_| Ok(()))
    }

    /// Begins `NULL_PROCEDURE` and does not wait for its end.
    pub fn begin_null_procedure(&self) -> Result<Pending<()>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 };
        self.client.begin(procedure, |_| Ok(()), |_| Ok(()))
    }

    /// Sends `NULL_PROCEDURE` to a server that does not reply to it. It may wait for the next call.
    pub fn batch_null_procedure(&self) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 };
        self.client.batch(procedure, |_| Ok(()))
    }

    /// `result null(result, t) = 1`.
    pub fn null(&self, argument1: &Result_, argument2: &T) -> Result<Result_, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.call(procedure, |out| { out.value(argument1)?; out.value(argument2) }, |input| input.value())
    }

    /// Begins `null` and does not wait for its end.
    pub fn begin_null(&self, argument1: &Result_, argument2: &T) -> Result<Pending<Result_>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.begin(procedure, |out| { out.value(argument1)?; out.value(argument2) }, |input| input.value())
    }
}

/// What a server does for `v`, version 2 of program `P`.
pub trait VService_: Send + Sync + 'static {
    /// `void NULL_PROCEDURE(void) = 0`.
    fn null_procedure(&self, call: &Call<'_>) -> Result<(), Refusal>;

    /// `result null(result, t) = 1`.
    fn null(&self, call: &Call<'_>, argument1: Result_, argument2: T) -> Result<Result_, Refusal>;
}

/// Gives the calls of `v`, version 2 of program `P` to a service.
#[derive(Debug)]
pub struct VServer__<T>(pub T);

impl<T: VService_> Service for VServer__<T> {
    fn program(&self) -> u32 {
        536872825
    }

    fn version(&self) -> u32 {
        2
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let _ = &out;
        match call.procedure {
            0 => {
                input.finish()?;
                self.0.null_procedure(call)
            }
            1 => {
                let argument1 = input.value()?;
                let argument2 = input.value()?;
                input.finish()?;
                let result = self.0.null(call, argument1, argument2)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}

/// Calls `V`, version 1 of program `Q`.
#[derive(Debug, Clone)]
pub struct VClient___ {
    client: Client,
}

impl VClient___ {
    /// The number of the program.
    pub const PROGRAM: u32 = 536872832;
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

    /// `int FOO(int) = 1`.
    pub fn foo(&self, argument: i32) -> Result<i32, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.call(procedure, |out| out.i32(argument), |input| input.i32())
    }

    /// Begins `FOO` and does not wait for its end.
    pub fn begin_foo(&self, argument: i32) -> Result<Pending<i32>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.begin(procedure, |out| out.i32(argument), |input| input.i32())
    }
}

/// What a server does for `V`, version 1 of program `Q`.
pub trait VService__: Send + Sync + 'static {
    /// Procedure 0, which does nothing.
    fn null(&self, _call: &Call<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// `int FOO(int) = 1`.
    fn foo(&self, call: &Call<'_>, argument: i32) -> Result<i32, Refusal>;
}

/// Gives the calls of `V`, version 1 of program `Q` to a service.
#[derive(Debug)]
pub struct VServer___<T>(pub T);

impl<T: VService__> Service for VServer___<T> {
    fn program(&self) -> u32 {
        536872832
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
                let argument = input.i32()?;
                input.finish()?;
                let result = self.0.foo(call, argument)?;
                out.i32(result).map_err(Refusal::of_results)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}
