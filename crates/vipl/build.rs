//! Gives the shared library the name that programs are bound to.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvipl.so.1");
}
