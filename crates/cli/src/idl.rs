//! `sidestep idl`: interface definitions to Rust.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::options::Idl;

/// Compiles a file.
pub fn run(options: &Idl) -> Result<()> {
    let name = options.file.display().to_string();
    let text = fs::read_to_string(&options.file).with_context(|| name.clone())?;
    let code = match options.file.extension().and_then(|extension| extension.to_str()) {
        Some("x") => {
            // A message a line, as compilers have it.
            let output = sidestep_idl::rpc::compile(&name, &text).map_err(|found| anyhow::anyhow!("\n{found}"))?;
            eprint!("{}", output.warnings);
            output.code
        }
        _ => bail!("{name}: the name of a definition ends with .x (ONC RPC)"),
    };
    match &options.output {
        Some(path) => fs::write(path, code).with_context(|| path.display().to_string()),
        None => {
            print!("{code}");
            Ok(())
        }
    }
}
