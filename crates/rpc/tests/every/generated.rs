// Generated from every_type.x by `sidestep idl`. Changes belong there.

use sidestep_rpc::xdr::{self, Reader, Writer, Xdr};
use sidestep_rpc::{Call, Client, Error, Pending, Procedure, Refusal, Service};

/// `const MAX_NAME = 16`.
pub const MAX_NAME: u32 = 16;

/// `const LIMIT = 5`.
pub const LIMIT: u32 = 5;

/// `const BIG = 4294967296`.
pub const BIG: i64 = 4294967296;

/// `const NEGATIVE = -3`.
pub const NEGATIVE: i32 = -3;

/// `enum color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Color {
    /// `RED`.
    Red = 0,
    /// `GREEN`.
    Green = 4,
    /// `BLUE`.
    Blue = 5,
}

impl Xdr for Color {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(*self as i32)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.i32()? {
            0 => Self::Red,
            4 => Self::Green,
            5 => Self::Blue,
            found => return Err(xdr::Error::Value { name: "color", found }),
        })
    }
}

/// `struct scalars`.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalars {
    /// `char c`.
    pub c: i8,
    /// `unsigned char uc`.
    pub uc: u8,
    /// `short s`.
    pub s: i16,
    /// `unsigned short us`.
    pub us: u16,
    /// `int i`.
    pub i: i32,
    /// `unsigned int ui`.
    pub ui: u32,
    /// `int l`.
    pub l: i32,
    /// `hyper h`.
    pub h: i64,
    /// `unsigned hyper uh`.
    pub uh: u64,
    /// `float f`.
    pub f: f32,
    /// `double d`.
    pub d: f64,
    /// `bool b`.
    pub b: bool,
    /// `color colour`.
    pub colour: Color,
}

impl Xdr for Scalars {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i8(self.c)?;
        out.u8(self.uc)?;
        out.i16(self.s)?;
        out.u16(self.us)?;
        out.i32(self.i)?;
        out.u32(self.ui)?;
        out.i32(self.l)?;
        out.i64(self.h)?;
        out.u64(self.uh)?;
        out.f32(self.f)?;
        out.f64(self.d)?;
        out.bool(self.b)?;
        out.value(&self.colour)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            c: input.i8()?,
            uc: input.u8()?,
            s: input.i16()?,
            us: input.u16()?,
            i: input.i32()?,
            ui: input.u32()?,
            l: input.i32()?,
            h: input.i64()?,
            uh: input.u64()?,
            f: input.f32()?,
            d: input.f64()?,
            b: input.bool()?,
            colour: input.value()?,
        })
    }
}

/// `typedef opaque digest[6]`.
pub type Digest = [u8; 6];

/// `struct seal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// `digest inner`.
    pub inner: Digest,
}

impl Xdr for Seal {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.fixed(&self.inner)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            inner: input.fixed_array()?,
        })
    }
}

/// `typedef string name_t<MAX_NAME>`.
pub type NameT = String;

/// `typedef int numbers<LIMIT>`.
pub type Numbers = Vec<i32>;

/// `struct node`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// `int value`.
    pub value: i32,
    /// `node *next`.
    pub next: Option<Box<Node>>,
}

impl Xdr for Node {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.i32(self.value)?;
        out.optional(self.next.as_deref(), |out, item| out.value(item))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            value: input.i32()?,
            next: input.optional(|input| input.value().map(Box::new))?,
        })
    }
}

/// `typedef node *list`.
pub type List = Option<Box<Node>>;

/// `typedef tree forest<4>`.
pub type Forest = Vec<Tree>;

/// `struct tree`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// `name_t label`.
    pub label: NameT,
    /// `forest branches`.
    pub branches: Forest,
}

impl Xdr for Tree {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.string(&self.label, MAX_NAME)?;
        out.array(&self.branches, 4, |out, item| out.nested(|out| out.value(item)))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            label: input.string(MAX_NAME).map(str::to_owned)?,
            branches: input.array(4, |input| input.nested(|input| input.value()))?,
        })
    }
}

/// `struct everything`.
#[derive(Debug, Clone, PartialEq)]
pub struct Everything {
    /// `scalars one`.
    pub one: Scalars,
    /// `scalars *maybe`.
    pub maybe: Option<Scalars>,
    /// `digest fixed`.
    pub fixed: Digest,
    /// `opaque bytes<10>`.
    pub bytes: Vec<u8>,
    /// `name_t name`.
    pub name: NameT,
    /// `string free<>`.
    pub free: String,
    /// `int row[3]`.
    pub row: [i32; 3],
    /// `numbers some`.
    pub some: Numbers,
    /// `color colours<LIMIT>`.
    pub colours: Vec<Color>,
    /// `name_t names<3>`.
    pub names: Vec<NameT>,
    /// `list chain`.
    pub chain: List,
    /// `int type`.
    pub r#type: i32,
}

impl Xdr for Everything {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.value(&self.one)?;
        out.optional(self.maybe.as_ref(), |out, item| out.value(item))?;
        out.fixed(&self.fixed)?;
        out.opaque(&self.bytes, 10)?;
        out.string(&self.name, MAX_NAME)?;
        out.string(&self.free, xdr::UNBOUNDED)?;
        out.items(&self.row, |out, item| out.i32(*item))?;
        out.array(&self.some, LIMIT, |out, item| out.i32(*item))?;
        out.array(&self.colours, LIMIT, |out, item| out.value(item))?;
        out.array(&self.names, 3, |out, item| out.string(item, MAX_NAME))?;
        out.optional(self.chain.as_deref(), |out, item| out.value(item))?;
        out.i32(self.r#type)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            one: input.value()?,
            maybe: input.optional(|input| input.value())?,
            fixed: input.fixed_array()?,
            bytes: input.opaque(10).map(<[u8]>::to_vec)?,
            name: input.string(MAX_NAME).map(str::to_owned)?,
            free: input.string(xdr::UNBOUNDED).map(str::to_owned)?,
            row: input.items(|input| input.i32())?,
            some: input.array(LIMIT, |input| input.i32())?,
            colours: input.array(LIMIT, |input| input.value())?,
            names: input.array(3, |input| input.string(MAX_NAME).map(str::to_owned))?,
            chain: input.optional(|input| input.value().map(Box::new))?,
            r#type: input.i32()?,
        })
    }
}

/// `union outcome switch (color kind)`.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// `case RED: int number`.
    Red(i32),
    /// `case GREEN: name_t text`.
    Green(NameT),
    /// `case BLUE: name_t text`.
    Blue(NameT),
}

impl Xdr for Outcome {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        match self {
            Self::Red(value) => {
                out.value(&Color::Red)?;
                out.i32(*value)
            }
            Self::Green(value) => {
                out.value(&Color::Green)?;
                out.string(value, MAX_NAME)
            }
            Self::Blue(value) => {
                out.value(&Color::Blue)?;
                out.string(value, MAX_NAME)
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.value::<Color>()? {
            Color::Red => Self::Red(input.i32()?),
            Color::Green => Self::Green(input.string(MAX_NAME).map(str::to_owned)?),
            Color::Blue => Self::Blue(input.string(MAX_NAME).map(str::to_owned)?),
        })
    }
}

/// `union answer switch (int status)`.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// `case 0: everything *all`.
    Case0(Option<Everything>),
    /// `case -1: void`.
    CaseMinus1,
    /// `default: string reason<>`, with the discriminant.
    Default(i32, String),
}

impl Xdr for Answer {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        match self {
            Self::Case0(value) => {
                out.i32(0)?;
                out.optional(value.as_ref(), |out, item| out.value(item))
            }
            Self::CaseMinus1 => out.i32(-1),
            Self::Default(discriminant, _) if matches!(discriminant, 0 | -1) => Err(xdr::Error::Value { name: "default of answer", found: *discriminant }),
            Self::Default(discriminant, value) => {
                out.i32(*discriminant)?;
                out.string(value, xdr::UNBOUNDED)
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.i32()? {
            0 => Self::Case0(input.optional(|input| input.value())?),
            -1 => Self::CaseMinus1,
            discriminant => Self::Default(discriminant, input.string(xdr::UNBOUNDED).map(str::to_owned)?),
        })
    }
}

/// `union flag switch (bool set)`.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flag {
    /// `case TRUE: hyper when`.
    True(i64),
    /// `case FALSE: void`.
    False,
}

impl Xdr for Flag {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        match self {
            Self::True(value) => {
                out.bool(true)?;
                out.i64(*value)
            }
            Self::False => out.bool(false),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(match input.bool()? {
            true => Self::True(input.i64()?),
            false => Self::False,
        })
    }
}

/// Calls `EVERY_V1`, version 1 of program `EVERY_PROGRAM`.
#[derive(Debug, Clone)]
pub struct EveryV1Client {
    client: Client,
}

impl EveryV1Client {
    /// The number of the program.
    pub const PROGRAM: u32 = 536872823;
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

    /// `void EVERY_NULL(void) = 0`.
    pub fn every_null(&self) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 };
        self.client.call(procedure, |_| Ok(()), |_| Ok(()))
    }

    /// Begins `EVERY_NULL` and does not wait for its end.
    pub fn begin_every_null(&self) -> Result<Pending<()>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 };
        self.client.begin(procedure, |_| Ok(()), |_| Ok(()))
    }

    /// Sends `EVERY_NULL` to a server that does not reply to it. It may wait for the next call.
    pub fn batch_every_null(&self) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 };
        self.client.batch(procedure, |_| Ok(()))
    }

    /// `everything ECHO_ALL(everything) = 1`.
    pub fn echo_all(&self, argument: &Everything) -> Result<Everything, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.call(procedure, |out| out.value(argument), |input| input.value())
    }

    /// Begins `ECHO_ALL` and does not wait for its end.
    pub fn begin_echo_all(&self, argument: &Everything) -> Result<Pending<Everything>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.begin(procedure, |out| out.value(argument), |input| input.value())
    }

    /// `outcome ECHO_OUTCOME(outcome) = 2`.
    pub fn echo_outcome(&self, argument: &Outcome) -> Result<Outcome, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.call(procedure, |out| out.value(argument), |input| input.value())
    }

    /// Begins `ECHO_OUTCOME` and does not wait for its end.
    pub fn begin_echo_outcome(&self, argument: &Outcome) -> Result<Pending<Outcome>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.begin(procedure, |out| out.value(argument), |input| input.value())
    }

    /// `answer ECHO_ANSWER(answer) = 3`.
    pub fn echo_answer(&self, argument: &Answer) -> Result<Answer, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 3 };
        self.client.call(procedure, |out| out.value(argument), |input| input.value())
    }

    /// Begins `ECHO_ANSWER` and does not wait for its end.
    pub fn begin_echo_answer(&self, argument: &Answer) -> Result<Pending<Answer>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 3 };
        self.client.begin(procedure, |out| out.value(argument), |input| input.value())
    }

    /// `flag ECHO_FLAG(flag) = 4`.
    pub fn echo_flag(&self, argument: &Flag) -> Result<Flag, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 4 };
        self.client.call(procedure, |out| out.value(argument), |input| input.value())
    }

    /// Begins `ECHO_FLAG` and does not wait for its end.
    pub fn begin_echo_flag(&self, argument: &Flag) -> Result<Pending<Flag>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 4 };
        self.client.begin(procedure, |out| out.value(argument), |input| input.value())
    }

    /// `string<> ECHO_STRING(string<>) = 5`.
    pub fn echo_string(&self, argument: &str) -> Result<String, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 5 };
        self.client.call(procedure, |out| out.string(argument, xdr::UNBOUNDED), |input| input.string(xdr::UNBOUNDED).map(str::to_owned))
    }

    /// Begins `ECHO_STRING` and does not wait for its end.
    pub fn begin_echo_string(&self, argument: &str) -> Result<Pending<String>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 5 };
        self.client.begin(procedure, |out| out.string(argument, xdr::UNBOUNDED), |input| input.string(xdr::UNBOUNDED).map(str::to_owned))
    }

    /// `list ECHO_LIST(list) = 6`.
    pub fn echo_list(&self, argument: &List) -> Result<List, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 6 };
        self.client.call(procedure, |out| out.optional(argument.as_deref(), |out, item| out.value(item)), |input| input.optional(|input| input.value().map(Box::new)))
    }

    /// Begins `ECHO_LIST` and does not wait for its end.
    pub fn begin_echo_list(&self, argument: &List) -> Result<Pending<List>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 6 };
        self.client.begin(procedure, |out| out.optional(argument.as_deref(), |out, item| out.value(item)), |input| input.optional(|input| input.value().map(Box::new)))
    }

    /// `tree ECHO_TREE(tree) = 7`.
    pub fn echo_tree(&self, argument: &Tree) -> Result<Tree, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 7 };
        self.client.call(procedure, |out| out.value(argument), |input| input.value())
    }

    /// Begins `ECHO_TREE` and does not wait for its end.
    pub fn begin_echo_tree(&self, argument: &Tree) -> Result<Pending<Tree>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 7 };
        self.client.begin(procedure, |out| out.value(argument), |input| input.value())
    }

    /// `int COUNT(void) = 8`.
    pub fn count(&self) -> Result<i32, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 8 };
        self.client.call(procedure, |_| Ok(()), |input| input.i32())
    }

    /// Begins `COUNT` and does not wait for its end.
    pub fn begin_count(&self) -> Result<Pending<i32>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 8 };
        self.client.begin(procedure, |_| Ok(()), |input| input.i32())
    }

    /// `void ADD(int) = 9`.
    pub fn add(&self, argument: i32) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 9 };
        self.client.call(procedure, |out| out.i32(argument), |_| Ok(()))
    }

    /// Begins `ADD` and does not wait for its end.
    pub fn begin_add(&self, argument: i32) -> Result<Pending<()>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 9 };
        self.client.begin(procedure, |out| out.i32(argument), |_| Ok(()))
    }

    /// Sends `ADD` to a server that does not reply to it. It may wait for the next call.
    pub fn batch_add(&self, argument: i32) -> Result<(), Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 9 };
        self.client.batch(procedure, |out| out.i32(argument))
    }

    /// `seal ECHO_SEAL(seal) = 10`.
    pub fn echo_seal(&self, argument: &Seal) -> Result<Seal, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 10 };
        self.client.call(procedure, |out| out.value(argument), |input| input.value())
    }

    /// Begins `ECHO_SEAL` and does not wait for its end.
    pub fn begin_echo_seal(&self, argument: &Seal) -> Result<Pending<Seal>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 10 };
        self.client.begin(procedure, |out| out.value(argument), |input| input.value())
    }

    /// `numbers ECHO_NUMBERS(numbers) = 11`.
    pub fn echo_numbers(&self, argument: &[i32]) -> Result<Numbers, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 11 };
        self.client.call(procedure, |out| out.array(argument, LIMIT, |out, item| out.i32(*item)), |input| input.array(LIMIT, |input| input.i32()))
    }

    /// Begins `ECHO_NUMBERS` and does not wait for its end.
    pub fn begin_echo_numbers(&self, argument: &[i32]) -> Result<Pending<Numbers>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 11 };
        self.client.begin(procedure, |out| out.array(argument, LIMIT, |out, item| out.i32(*item)), |input| input.array(LIMIT, |input| input.i32()))
    }
}

/// What a server does for `EVERY_V1`, version 1 of program `EVERY_PROGRAM`.
pub trait EveryV1Service: Send + Sync + 'static {
    /// `void EVERY_NULL(void) = 0`.
    fn every_null(&self, call: &Call<'_>) -> Result<(), Refusal>;

    /// `everything ECHO_ALL(everything) = 1`.
    fn echo_all(&self, call: &Call<'_>, argument: Everything) -> Result<Everything, Refusal>;

    /// `outcome ECHO_OUTCOME(outcome) = 2`.
    fn echo_outcome(&self, call: &Call<'_>, argument: Outcome) -> Result<Outcome, Refusal>;

    /// `answer ECHO_ANSWER(answer) = 3`.
    fn echo_answer(&self, call: &Call<'_>, argument: Answer) -> Result<Answer, Refusal>;

    /// `flag ECHO_FLAG(flag) = 4`.
    fn echo_flag(&self, call: &Call<'_>, argument: Flag) -> Result<Flag, Refusal>;

    /// `string<> ECHO_STRING(string<>) = 5`.
    fn echo_string(&self, call: &Call<'_>, argument: &str) -> Result<String, Refusal>;

    /// `list ECHO_LIST(list) = 6`.
    fn echo_list(&self, call: &Call<'_>, argument: List) -> Result<List, Refusal>;

    /// `tree ECHO_TREE(tree) = 7`.
    fn echo_tree(&self, call: &Call<'_>, argument: Tree) -> Result<Tree, Refusal>;

    /// `int COUNT(void) = 8`.
    fn count(&self, call: &Call<'_>) -> Result<i32, Refusal>;

    /// `void ADD(int) = 9`.
    fn add(&self, call: &Call<'_>, argument: i32) -> Result<(), Refusal>;

    /// `seal ECHO_SEAL(seal) = 10`.
    fn echo_seal(&self, call: &Call<'_>, argument: Seal) -> Result<Seal, Refusal>;

    /// `numbers ECHO_NUMBERS(numbers) = 11`.
    fn echo_numbers(&self, call: &Call<'_>, argument: Numbers) -> Result<Numbers, Refusal>;
}

/// Gives the calls of `EVERY_V1`, version 1 of program `EVERY_PROGRAM` to a service.
#[derive(Debug)]
pub struct EveryV1Server<T>(pub T);

impl<T: EveryV1Service> Service for EveryV1Server<T> {
    fn program(&self) -> u32 {
        536872823
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let _ = &out;
        match call.procedure {
            0 => {
                input.finish()?;
                self.0.every_null(call)
            }
            1 => {
                let argument = input.value()?;
                input.finish()?;
                let result = self.0.echo_all(call, argument)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            2 => {
                let argument = input.value()?;
                input.finish()?;
                let result = self.0.echo_outcome(call, argument)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            3 => {
                let argument = input.value()?;
                input.finish()?;
                let result = self.0.echo_answer(call, argument)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            4 => {
                let argument = input.value()?;
                input.finish()?;
                let result = self.0.echo_flag(call, argument)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            5 => {
                let argument = input.string(xdr::UNBOUNDED)?;
                input.finish()?;
                let result = self.0.echo_string(call, argument)?;
                out.string(&result, xdr::UNBOUNDED).map_err(Refusal::of_results)
            }
            6 => {
                let argument = input.optional(|input| input.value().map(Box::new))?;
                input.finish()?;
                let result = self.0.echo_list(call, argument)?;
                out.optional(result.as_deref(), |out, item| out.value(item)).map_err(Refusal::of_results)
            }
            7 => {
                let argument = input.value()?;
                input.finish()?;
                let result = self.0.echo_tree(call, argument)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            8 => {
                input.finish()?;
                let result = self.0.count(call)?;
                out.i32(result).map_err(Refusal::of_results)
            }
            9 => {
                let argument = input.i32()?;
                input.finish()?;
                self.0.add(call, argument)
            }
            10 => {
                let argument = input.value()?;
                input.finish()?;
                let result = self.0.echo_seal(call, argument)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            11 => {
                let argument = input.array(LIMIT, |input| input.i32())?;
                input.finish()?;
                let result = self.0.echo_numbers(call, argument)?;
                out.array(&result, LIMIT, |out, item| out.i32(*item)).map_err(Refusal::of_results)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}

/// Calls `EVERY_V2`, version 2 of program `EVERY_PROGRAM`.
#[derive(Debug, Clone)]
pub struct EveryV2Client {
    client: Client,
}

impl EveryV2Client {
    /// The number of the program.
    pub const PROGRAM: u32 = 536872823;
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

    /// Procedure 0, which does nothing.
    pub fn null(&self) -> Result<(), Error> {
        self.client.call(Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 0 }, |_| Ok(()), |_| Ok(()))
    }

    /// `int SUM(int, int) = 1`.
    pub fn sum(&self, argument1: i32, argument2: i32) -> Result<i32, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.call(procedure, |out| { out.i32(argument1)?; out.i32(argument2) }, |input| input.i32())
    }

    /// Begins `SUM` and does not wait for its end.
    pub fn begin_sum(&self, argument1: i32, argument2: i32) -> Result<Pending<i32>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.begin(procedure, |out| { out.i32(argument1)?; out.i32(argument2) }, |input| input.i32())
    }
}

/// What a server does for `EVERY_V2`, version 2 of program `EVERY_PROGRAM`.
pub trait EveryV2Service: Send + Sync + 'static {
    /// Procedure 0, which does nothing.
    fn null(&self, _call: &Call<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// `int SUM(int, int) = 1`.
    fn sum(&self, call: &Call<'_>, argument1: i32, argument2: i32) -> Result<i32, Refusal>;
}

/// Gives the calls of `EVERY_V2`, version 2 of program `EVERY_PROGRAM` to a service.
#[derive(Debug)]
pub struct EveryV2Server<T>(pub T);

impl<T: EveryV2Service> Service for EveryV2Server<T> {
    fn program(&self) -> u32 {
        536872823
    }

    fn version(&self) -> u32 {
        2
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let _ = &out;
        match call.procedure {
            0 => {
                input.finish()?;
                self.0.null(call)
            }
            1 => {
                let argument1 = input.i32()?;
                let argument2 = input.i32()?;
                input.finish()?;
                let result = self.0.sum(call, argument1, argument2)?;
                out.i32(result).map_err(Refusal::of_results)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}
