//! The peer-to-peer model: both sides ask, and meet under a name that both can compute. Who comes first listens there,
//! the other connects; if the first gives up, the second listens.

use std::{sync::Arc, time::Duration};

use sidestep_fabric::Listener;
use sidestep_sys::clock;

use crate::{
    address::NetAddress,
    attributes::{RemoteAttributes, ViAttributes},
    code::ViState,
    connect::{self, Asked},
    error::{Error, Result},
    line::{self, Greeting, Line},
    vi::Vi,
};

/// A VI that wants to meet another.
#[derive(Debug)]
pub(crate) struct Meeting {
    name: String,
    local: NetAddress,
    deadline: Option<u64>,
    role: Role,
}

#[derive(Debug)]
enum Role {
    Undecided,
    Listening(Listener),
    Connecting(Box<Asked>),
}

const STEP: Duration = Duration::from_micros(200);
const JOIN_NS: u64 = 2_000_000_000;

impl Vi {
    /// Asks to be connected with the VI that asks for this one. Returns at once.
    pub fn connect_peer(&self, local: &NetAddress, remote: &NetAddress, deadline: Option<u64>) -> Result<()> {
        let nic = &self.core.nic;
        let name = local.meeting(remote, &nic.link)?;
        if !nic.link.distant && !remote.is_here(nic.address()) {
            return Err(Error::NotReachable);
        }
        connect::begin(self)?;
        let meeting = Meeting { name, local: local.clone(), deadline, role: Role::Undecided };
        self.core.lock().meeting = Some(Box::new(meeting));
        let _ = self.poll_peer();
        Ok(())
    }

    /// Whether the two have met: `None` while they have not.
    pub fn poll_peer(&self) -> Result<Option<RemoteAttributes>> {
        self.core.nic.node.progress();
        let mut state = self.core.lock();
        if state.status == ViState::Connected {
            return Ok(state.line.as_ref().map(|line| line.remote));
        }
        let Some(mut meeting) = state.meeting.take() else { return Err(Error::State { is: state.status }) };
        let attributes = state.attributes;
        drop(state);
        match meeting.step(self, &attributes) {
            Ok(Some(line)) => {
                connect::finish(self, Ok(line))?;
                Ok(self.remote_attributes())
            }
            Ok(None) if meeting.deadline.is_some_and(|deadline| clock::now() >= deadline) => {
                connect::finish(self, Err(Error::TimedOut)).map(|()| None)
            }
            Ok(None) => {
                let mut state = self.core.lock();
                if state.status == ViState::ConnectPending {
                    state.meeting = Some(meeting);
                }
                Ok(None)
            }
            Err(error) => connect::finish(self, Err(error)).map(|()| None),
        }
    }

    /// Waits until the two have met, or the time given with the request is over.
    pub fn wait_peer(&self) -> Result<RemoteAttributes> {
        loop {
            if let Some(remote) = self.poll_peer()? {
                return Ok(remote);
            }
            std::thread::sleep(STEP);
        }
    }
}

impl Meeting {
    fn step(&mut self, vi: &Vi, attributes: &ViAttributes) -> Result<Option<Line>> {
        let nic = &vi.core.nic;
        match std::mem::replace(&mut self.role, Role::Undecided) {
            Role::Undecided => {
                self.role = match nic.node.listen(&self.name) {
                    Ok(listener) => Role::Listening(listener),
                    // The other one is there already.
                    Err(_) => match connect::ask(vi, &self.name, attributes, &self.local) {
                        Ok(asked) => Role::Connecting(Box::new(asked)),
                        Err(_) => Role::Undecided,
                    },
                };
                Ok(None)
            }
            Role::Listening(listener) => {
                let Some(request) = listener.poll() else {
                    self.role = Role::Listening(listener);
                    return Ok(None);
                };
                let theirs = Greeting::from_bytes(request.private());
                let Ok(theirs) = theirs else {
                    self.role = Role::Listening(listener);
                    return Ok(None);
                };
                if theirs.attributes.reliability != attributes.reliability {
                    request.refuse(MISMATCH)?;
                    return Err(Error::Reliability);
                }
                let deadline = Some(clock::now() + JOIN_NS);
                let own = (&**nic, &Arc::downgrade(&vi.core));
                line::accept(request, &theirs, own, attributes, &self.local, deadline).map(Some)
            }
            Role::Connecting(asked) => match asked.endpoint.is_connected() {
                Ok(true) => Ok(Some(asked.join()?)),
                Ok(false) => {
                    self.role = Role::Connecting(asked);
                    Ok(None)
                }
                Err(sidestep_fabric::Error::Refused { private }) if private == MISMATCH => Err(Error::Reliability),
                // The other one gave up; perhaps it comes again.
                Err(_) => Ok(None),
            },
        }
    }
}

const MISMATCH: &[u8] = b"reliability";
