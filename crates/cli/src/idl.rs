//! `sidestep idl`: interface definitions to Rust.

use std::fs;

use anyhow::{Context, Result, anyhow, bail};
use sidestep_idl::{Disk, formatted, omg, rpc, source};

use crate::options::Idl;

/// Compiles a file.
pub fn run(options: &Idl) -> Result<()> {
    let name = options.file.display().to_string();
    let text = source::text(&fs::read(&options.file).with_context(|| name.clone())?);
    // A message a line, as compilers have it.
    let code = match options.file.extension().and_then(|extension| extension.to_str()) {
        Some("x") if !(options.include.is_empty() && options.define.is_empty()) => {
            bail!(
                "{name}: -I and -D are for .idl files; `#include` and `#if` are not followed in a .x file: run `cpp -C` first"
            )
        }
        Some("x") => {
            let output = rpc::compile(&name, &text).map_err(|found| anyhow!("\n{found}"))?;
            eprint!("{}", output.warnings);
            output.code
        }
        Some("idl") => {
            let files = Disk { search: options.include.clone() };
            let output =
                omg::compile_with(&name, &text, &files, &options.define).map_err(|found| anyhow!("\n{found}"))?;
            eprint!("{}", output.warnings);
            formatted(output.code)
        }
        _ => bail!("{name}: the name of a definition ends with .x (ONC RPC) or .idl (CORBA)"),
    };
    match &options.output {
        Some(path) => fs::write(path, code).with_context(|| path.display().to_string()),
        None => {
            print!("{code}");
            Ok(())
        }
    }
}
