//! The middleware programs: their sources come with this program, and are compiled when they are measured.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::pair::output;
use super::service::{Folder, prepare};

/// The built pair of a middleware.
pub struct Kit {
    /// Where it is.
    pub folder: Folder,
    /// The server.
    pub server: PathBuf,
    /// The client.
    pub client: PathBuf,
}

/// The ONC RPC pair, made with rpcgen and libtirpc.
pub fn rpc() -> Result<Kit> {
    let folder = Folder::new("rpc")?;
    folder.file("echo.x", include_str!("../../../../../../tests/programs/rpc/echo.x"))?;
    folder.file("server.c", include_str!("../../../../../../tests/programs/rpc/server.c"))?;
    folder.file("client.c", include_str!("../../../../../../tests/programs/rpc/client.c"))?;
    for (kind, file) in [("-h", "echo.h"), ("-c", "echo_xdr.c"), ("-l", "echo_clnt.c"), ("-m", "echo_svc.c")] {
        prepare(Command::new("rpcgen").args(["-C", kind, "-o", file, "echo.x"]), &folder.0)?;
    }
    for (name, stub) in [("server", "echo_svc.c"), ("client", "echo_clnt.c")] {
        let mut compiler = Command::new("cc");
        compiler.args([
            "-O2",
            "-I/usr/include/tirpc",
            "-o",
            name,
            &format!("{name}.c"),
            stub,
            "echo_xdr.c",
            "-ltirpc",
            "-pthread",
        ]);
        prepare(&mut compiler, &folder.0)?;
    }
    let (server, client) = (folder.0.join("server"), folder.0.join("client"));
    Ok(Kit { folder, server, client })
}

/// The CORBA pair, made with omniidl and omniORB.
pub fn corba() -> Result<Kit> {
    let folder = Folder::new("corba")?;
    folder.file("echo.idl", include_str!("../../../../../../tests/programs/corba/echo.idl"))?;
    folder.file("server.cc", include_str!("../../../../../../tests/programs/corba/server.cc"))?;
    folder.file("client.cc", include_str!("../../../../../../tests/programs/corba/client.cc"))?;
    prepare(Command::new("omniidl").args(["-bcxx", "echo.idl"]), &folder.0)?;
    for name in ["server", "client"] {
        let mut compiler = Command::new("c++");
        compiler.args(["-O1", "-o", name, &format!("{name}.cc"), "echoSK.cc", "-lomniORB4", "-lomnithread"]);
        prepare(&mut compiler, &folder.0)?;
    }
    let (server, client) = (folder.0.join("server"), folder.0.join("client"));
    Ok(Kit { folder, server, client })
}

/// The median that a client prints, as half a round trip in nanoseconds.
pub fn half_trip(client: &mut Command) -> Result<f64> {
    let text = output(client, Duration::from_secs(30))?;
    let median = text.split_whitespace().skip_while(|word| *word != "median_ns").nth(1);
    let median: f64 = median.and_then(|word| word.parse().ok()).with_context(|| format!("no figure in {text}"))?;
    Ok(median / 2.0)
}
