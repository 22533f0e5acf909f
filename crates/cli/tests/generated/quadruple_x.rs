// Generated from quadruple.x by `sidestep idl`. Changes belong there.

use sidestep_rpc::xdr::{self, Reader, Writer};
use sidestep_rpc::{Call, Client, Error, Pending, Procedure, Refusal, Service};

/// `typedef quadruple wide`.
pub type Wide = xdr::Quadruple;

/// `typedef wide wides<3>`.
pub type Wides = Vec<Wide>;

/// Calls `WIDE_V1`, version 1 of program `WIDE_PROGRAM`.
#[derive(Debug, Clone)]
pub struct WideV1Client {
    client: Client,
}

impl WideV1Client {
    /// The number of the program.
    pub const PROGRAM: u32 = 536872824;
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

    /// `quadruple LARGEST(quadruple, wide) = 1`.
    pub fn largest(&self, argument1: &xdr::Quadruple, argument2: &Wide) -> Result<xdr::Quadruple, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.call(procedure, |out| { out.value(argument1)?; out.value(argument2) }, |input| input.value())
    }

    /// Begins `LARGEST` and does not wait for its end.
    pub fn begin_largest(&self, argument1: &xdr::Quadruple, argument2: &Wide) -> Result<Pending<xdr::Quadruple>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 1 };
        self.client.begin(procedure, |out| { out.value(argument1)?; out.value(argument2) }, |input| input.value())
    }

    /// `wides ALL(wides) = 2`.
    pub fn all(&self, argument: &[Wide]) -> Result<Wides, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.call(procedure, |out| out.array(argument, 3, |out, item| out.value(item)), |input| input.array(3, |input| input.value()))
    }

    /// Begins `ALL` and does not wait for its end.
    pub fn begin_all(&self, argument: &[Wide]) -> Result<Pending<Wides>, Error> {
        let procedure = Procedure { program: Self::PROGRAM, version: Self::VERSION, procedure: 2 };
        self.client.begin(procedure, |out| out.array(argument, 3, |out, item| out.value(item)), |input| input.array(3, |input| input.value()))
    }
}

/// What a server does for `WIDE_V1`, version 1 of program `WIDE_PROGRAM`.
pub trait WideV1Service: Send + Sync + 'static {
    /// Procedure 0, which does nothing.
    fn null(&self, _call: &Call<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// `quadruple LARGEST(quadruple, wide) = 1`.
    fn largest(&self, call: &Call<'_>, argument1: xdr::Quadruple, argument2: Wide) -> Result<xdr::Quadruple, Refusal>;

    /// `wides ALL(wides) = 2`.
    fn all(&self, call: &Call<'_>, argument: Wides) -> Result<Wides, Refusal>;
}

/// Gives the calls of `WIDE_V1`, version 1 of program `WIDE_PROGRAM` to a service.
#[derive(Debug)]
pub struct WideV1Server<T>(pub T);

impl<T: WideV1Service> Service for WideV1Server<T> {
    fn program(&self) -> u32 {
        536872824
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
                let argument1 = input.value()?;
                let argument2 = input.value()?;
                input.finish()?;
                let result = self.0.largest(call, argument1, argument2)?;
                out.value(&result).map_err(Refusal::of_results)
            }
            2 => {
                let argument = input.array(3, |input| input.value())?;
                input.finish()?;
                let result = self.0.all(call, argument)?;
                out.array(&result, 3, |out, item| out.value(item)).map_err(Refusal::of_results)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}
