//! As much of NFS version 3 (RFC 1813) as shows that servers and this client understand each other, with its binding to
//! RDMA (RFC 8267 §6).

use sidestep_rpc::xdr::{self, Reader, Writer};
use sidestep_rpc::{Binding, Client, Error, Procedure};

/// A client of one server.
pub struct Nfs(pub Client);

/// What a server says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// 1 is a file, 2 a folder.
    pub kind: u32,
    pub size: u64,
}

/// Why a procedure was not done.
#[derive(Debug)]
pub enum Failure {
    Rpc(Error),
    /// The server says so.
    Status(u32),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Rpc(error) => error.fmt(f),
            Failure::Status(status) => write!(f, "NFS status {status}"),
        }
    }
}

impl std::error::Error for Failure {}

type Handle = Vec<u8>;

pub const PROGRAM: u32 = 100_003;
const MOUNT: u32 = 100_005;
const MAX_HANDLE: u32 = 64;
const MAX_DATA: u32 = 1 << 20;
const ATTRIBUTES: usize = 84;

const READ: u32 = 6;
const WRITE: u32 = 7;

/// The data of READ and WRITE travel apart.
pub const BINDING: Binding = Binding {
    argument: |procedure, arguments| {
        let handle = (procedure.procedure == WRITE).then(|| word(arguments, 0))??;
        Some(4 + handle.next_multiple_of(4) + 8 + 4 + 4 + 4)
    },
    result: |procedure, results| {
        let done = procedure.procedure == READ && word(results, 0)? == 0;
        let attributes = if word(results, 4)? == 1 { ATTRIBUTES } else { 0 };
        done.then_some(8 + attributes + 4 + 4 + 4)
    },
    result_limit: |procedure, arguments| {
        let handle = (procedure.procedure == READ).then(|| word(arguments, 0))??;
        Some(word(arguments, 4 + handle.next_multiple_of(4) + 8)? as u32)
    },
};

fn word(item: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_be_bytes(*item.get(at..)?.first_chunk()?) as usize)
}

/// Asks a mount program for the handle of an exported folder.
pub fn mount(client: &Client, path: &str) -> Result<Handle, Failure> {
    let procedure = Procedure { program: MOUNT, version: 3, procedure: 1 };
    done(client.call(
        procedure,
        |out| out.string(path, 1024),
        |input| {
            if let status @ 1.. = input.u32()? {
                return Ok(Err(status));
            }
            let handle = input.opaque(MAX_HANDLE)?.to_vec();
            for _ in 0..input.u32()? {
                input.u32()?;
            }
            Ok(Ok(handle))
        },
    ))
}

impl Nfs {
    pub fn null(&self) -> Result<(), Failure> {
        done(self.0.call(procedure(0), |_| Ok(()), |_| Ok(Ok(()))))
    }

    pub fn attributes(&self, file: &[u8]) -> Result<Attributes, Failure> {
        done(self.0.call(
            procedure(1),
            |out| out.opaque(file, MAX_HANDLE),
            |input| match input.u32()? {
                0 => Ok(Ok(attributes(input)?)),
                status => Ok(Err(status)),
            },
        ))
    }

    pub fn lookup(&self, folder: &[u8], name: &str) -> Result<Handle, Failure> {
        let encode = |out: &mut Writer<'_>| {
            out.opaque(folder, MAX_HANDLE)?;
            out.string(name, 255)
        };
        done(self.0.call(procedure(3), encode, |input| {
            let status = input.u32()?;
            let handle = if status == 0 { input.opaque(MAX_HANDLE)?.to_vec() } else { Vec::new() };
            if status == 0 {
                perhaps_attributes(input)?;
            }
            perhaps_attributes(input)?;
            Ok(if status == 0 { Ok(handle) } else { Err(status) })
        }))
    }

    /// Bytes of a file, and whether they are its last.
    pub fn read(&self, file: &[u8], offset: u64, count: u32) -> Result<(Vec<u8>, bool), Failure> {
        let encode = |out: &mut Writer<'_>| {
            out.opaque(file, MAX_HANDLE)?;
            out.u64(offset)?;
            out.u32(count)
        };
        done(self.0.call(procedure(READ), encode, |input| {
            let status = input.u32()?;
            perhaps_attributes(input)?;
            if status != 0 {
                return Ok(Err(status));
            }
            let (count, end) = (input.u32()?, input.bool()?);
            let bytes = input.opaque(MAX_DATA)?.to_vec();
            assert_eq!(bytes.len(), count as usize);
            Ok(Ok((bytes, end)))
        }))
    }

    /// Writes bytes, at once to where they are kept; how many that were.
    pub fn write(&self, file: &[u8], offset: u64, bytes: &[u8]) -> Result<u32, Failure> {
        let encode = |out: &mut Writer<'_>| {
            out.opaque(file, MAX_HANDLE)?;
            out.u64(offset)?;
            out.u32(bytes.len() as u32)?;
            out.u32(2)?;
            out.opaque(bytes, MAX_DATA)
        };
        done(self.0.call(procedure(WRITE), encode, |input| {
            let status = input.u32()?;
            if input.bool()? {
                input.fixed(24)?;
            }
            perhaps_attributes(input)?;
            if status != 0 {
                return Ok(Err(status));
            }
            let count = input.u32()?;
            input.fixed(4 + 8)?;
            Ok(Ok(count))
        }))
    }

    /// The names in a folder.
    pub fn names(&self, folder: &[u8]) -> Result<Vec<String>, Failure> {
        let encode = |out: &mut Writer<'_>| {
            out.opaque(folder, MAX_HANDLE)?;
            out.u64(0)?;
            out.u64(0)?;
            out.u32(8192)
        };
        done(self.0.call(procedure(16), encode, |input| {
            let status = input.u32()?;
            perhaps_attributes(input)?;
            if status != 0 {
                return Ok(Err(status));
            }
            input.fixed(8)?;
            let mut names = Vec::new();
            while input.bool()? {
                input.u64()?;
                names.push(input.string(255)?.to_owned());
                input.u64()?;
            }
            assert!(input.bool()?, "the folder is larger than expected");
            Ok(Ok(names))
        }))
    }
}

fn procedure(procedure: u32) -> Procedure {
    Procedure { program: PROGRAM, version: 3, procedure }
}

fn done<T>(outcome: Result<Result<T, u32>, Error>) -> Result<T, Failure> {
    outcome.map_err(Failure::Rpc)?.map_err(Failure::Status)
}

fn attributes(input: &mut Reader<'_>) -> Result<Attributes, xdr::Error> {
    let kind = input.u32()?;
    input.fixed(16)?;
    let size = input.u64()?;
    input.fixed(ATTRIBUTES - 28)?;
    Ok(Attributes { kind, size })
}

fn perhaps_attributes(input: &mut Reader<'_>) -> Result<(), xdr::Error> {
    if input.bool()? {
        attributes(input)?;
    }
    Ok(())
}
