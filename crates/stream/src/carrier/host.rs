//! What a carrier asks of the process that it lives in, which may be somebody else's program.

/// What a process allows.
#[derive(Debug)]
pub struct Host {
    /// Whether calls that a sandbox may forbid must not be made any more.
    pub is_sandboxed: fn() -> bool,
    /// Whether a thread may be started here and now. That allocates, which a program that was interrupted may not allow.
    pub may_start: fn() -> bool,
}

impl Host {
    /// A process that is nobody else's.
    pub const PLAIN: Host = Host { is_sandboxed: || false, may_start: || true };
}
