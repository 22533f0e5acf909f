//! What a client says about its user.

use sidestep_wire::oncrpc::auth::{Auth, AuthSys, MAX_BODY};
use sidestep_wire::xdr::Writer;

/// What every call of a client says about its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    flavor: u32,
    body: Vec<u8>,
}

impl Credential {
    /// Nothing (AUTH_NONE).
    #[must_use]
    pub fn none() -> Self {
        Self { flavor: Auth::AUTH_NONE, body: Vec::new() }
    }

    /// The user and groups of this process (AUTH_SYS).
    #[must_use]
    pub fn sys() -> Self {
        let name = rustix::system::uname();
        let machine = name.nodename().to_bytes();
        let groups: Vec<u32> =
            rustix::process::getgroups().unwrap_or_default().into_iter().map(rustix::process::Gid::as_raw).collect();
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        Self::from_sys(&AuthSys::new(std::process::id(), &machine[..machine.len().min(255)], uid, gid, &groups))
    }

    /// A given user and given groups (AUTH_SYS).
    ///
    /// # Panics
    /// If the machine's name has more than 255 bytes.
    #[must_use]
    pub fn from_sys(sys: &AuthSys<'_>) -> Self {
        let mut body = Vec::new();
        sys.emit(&mut Writer::new(&mut body, MAX_BODY as usize)).expect("a machine's name of at most 255 bytes");
        Self { flavor: Auth::AUTH_SYS, body }
    }

    pub(crate) fn auth(&self) -> Auth<'_> {
        Auth { flavor: self.flavor, body: &self.body }
    }
}
