//! The client/server model: wait, accept, reject; request.

use std::{sync::Arc, thread, time::Duration};

use sidestep_fabric::{Endpoint, Error as FabricError, Listener, Request};
use sidestep_shm::wait::Waiter;
use sidestep_sys::clock;

use crate::{
    address::NetAddress,
    attributes::{RemoteAttributes, ViAttributes},
    code::ViState,
    error::{Error, Result, is_nobody},
    line::{self, Greeting, Line},
    nic::{Nic, NicCore},
    trunk::Route,
    vi::Vi,
};

/// Someone asks for a connection. Dropping it rejects.
#[derive(Debug)]
pub struct ConnectionRequest {
    request: Option<Request>,
    greeting: Greeting,
    local: NetAddress,
}

/// Between attempts to reach someone who is not there yet.
const RETRY: Duration = Duration::from_micros(500);
/// How long the other side may take to open the queues once it has said yes.
const JOIN_NS: u64 = 2_000_000_000;

impl Nic {
    /// Waits for a request at an address of this NIC.
    pub fn connect_wait(&self, local: &NetAddress, deadline: Option<u64>) -> Result<ConnectionRequest> {
        if !local.is_here(self.core.address()) {
            return Err(Error::Invalid("an address of another host"));
        }
        let listener = self.core.listener(&local.name(&self.core.link)?)?;
        let mut waiter = Waiter::default();
        loop {
            // Who only waits for others sees those who left, too.
            let request = self.core.node.wait_for(&mut waiter, deadline, &mut || {
                self.core.see_endings();
                listener.poll()
            });
            let request = request.map_err(|error| match error {
                FabricError::TimedOut(_) => FabricError::TimedOut("a request for a connection"),
                error => error,
            })?;
            // A request that is not of VIA is dropped, which refuses it.
            if let Ok(greeting) = Greeting::from_bytes(request.private()) {
                return Ok(ConnectionRequest { request: Some(request), greeting, local: local.clone() });
            }
        }
    }
}

impl Nic {
    /// Begins to listen at an address of this NIC, for [`poll_request`](Self::poll_request).
    pub fn listen(&self, local: &NetAddress) -> Result<()> {
        self.core.listener(&local.name(&self.core.link)?).map(drop)
    }

    /// The next request at an address of this NIC, if there is one.
    pub fn poll_request(&self, local: &NetAddress) -> Result<Option<ConnectionRequest>> {
        let listener = self.core.listener(&local.name(&self.core.link)?)?;
        while let Some(request) = listener.poll() {
            if let Ok(greeting) = Greeting::from_bytes(request.private()) {
                return Ok(Some(ConnectionRequest { request: Some(request), greeting, local: local.clone() }));
            }
        }
        Ok(None)
    }
}

impl NicCore {
    /// Who listens under a name, from the first wait on until the NIC is closed.
    fn listener(&self, name: &str) -> Result<Arc<Listener>> {
        let mut listeners = self.listeners.lock().expect("no panic with listeners");
        if let Some(listener) = listeners.get(name) {
            return Ok(listener.clone());
        }
        let listener = Arc::new(self.node.listen(name)?);
        listeners.insert(name.to_string(), listener.clone());
        Ok(listener)
    }
}

impl ConnectionRequest {
    /// Who asks.
    pub fn remote(&self) -> &NetAddress {
        &self.greeting.address
    }

    /// The attributes of the VI that asks.
    pub fn attributes(&self) -> RemoteAttributes {
        self.greeting.attributes
    }

    /// Connects the VI. If the two do not agree the request stays, to be accepted with another or rejected.
    pub fn accept(&mut self, vi: &Vi) -> Result<()> {
        let attributes = {
            let mut state = vi.core.lock();
            if state.status != ViState::Idle {
                return Err(Error::State { is: state.status });
            }
            if state.attributes.reliability != self.greeting.attributes.reliability {
                return Err(Error::Reliability);
            }
            state.status = ViState::ConnectPending;
            state.attributes
        };
        let Some(request) = self.request.take() else {
            vi.core.lock().status = ViState::Idle;
            return Err(Error::Invalid("the connection request"));
        };
        let deadline = Some(clock::now() + JOIN_NS);
        let own = (&*vi.core.nic, &Arc::downgrade(&vi.core));
        finish(vi, line::accept(request, &self.greeting, own, &attributes, &self.local, deadline))
    }

    /// Says no.
    pub fn reject(mut self) -> Result<()> {
        match self.request.take() {
            Some(request) => Ok(request.refuse(b"")?),
            None => Err(Error::Invalid("the connection request")),
        }
    }
}

impl Vi {
    /// Asks whoever waits at `remote` for a connection, and waits for the answer.
    pub fn connect(&self, local: &NetAddress, remote: &NetAddress, deadline: Option<u64>) -> Result<RemoteAttributes> {
        let nic = &self.core.nic;
        let name = remote.name(&nic.link)?;
        if !nic.link.distant && !remote.is_here(nic.address()) {
            return Err(Error::NotReachable);
        }
        let attributes = begin(self)?;
        let made = loop {
            match ask(self, &name, &attributes, local).and_then(|asked| asked.wait(deadline)) {
                Err(error) if is_nobody(&error) => {
                    if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                        break Err(Error::NoMatch);
                    }
                    thread::sleep(RETRY);
                }
                outcome => break outcome.map_err(Error::from),
            }
        };
        let remote = made.as_ref().map(|line| line.remote).ok();
        finish(self, made)?;
        remote.ok_or(Error::State { is: ViState::Error })
    }
}

/// A VI that has asked for a connection and not been answered.
#[derive(Debug)]
pub struct Connecting {
    vi: Vi,
    asked: Option<Asked>,
}

impl Vi {
    /// Asks whoever waits at `remote` for a connection, and returns at once.
    pub fn begin_connect(&self, local: &NetAddress, remote: &NetAddress) -> Result<Connecting> {
        let name = remote.name(&self.core.nic.link)?;
        let attributes = begin(self)?;
        match ask(self, &name, &attributes, local) {
            Ok(asked) => Ok(Connecting { vi: self.clone(), asked: Some(asked) }),
            Err(error) => {
                self.core.lock().status = ViState::Idle;
                Err(if is_nobody(&error) { Error::NoMatch } else { error.into() })
            }
        }
    }
}

impl Connecting {
    /// Whether the connection stands. An error: it never will.
    pub fn poll(&mut self) -> Result<bool> {
        let Some(asked) = &self.asked else { return Ok(self.vi.is_connected()) };
        if matches!(asked.endpoint.is_connected(), Ok(false)) {
            return Ok(false);
        }
        let asked = self.asked.take().expect("looked at above");
        let made = asked.endpoint.is_connected().and_then(|_| asked.join());
        finish(&self.vi, made.map_err(Error::from)).map(|()| true)
    }
}

/// Takes an idle VI for a connection.
pub(crate) fn begin(vi: &Vi) -> Result<ViAttributes> {
    let mut state = vi.core.lock();
    if state.status != ViState::Idle {
        return Err(Error::State { is: state.status });
    }
    state.status = ViState::ConnectPending;
    Ok(state.attributes)
}

/// Gives the VI its connection, or makes it idle again.
pub(crate) fn finish(vi: &Vi, made: Result<Line>) -> Result<()> {
    let mut state = vi.core.lock();
    if state.status != ViState::ConnectPending {
        // Disconnected meanwhile, by another thread.
        return Err(Error::State { is: state.status });
    }
    match made {
        Ok(line) => {
            let (trunk, number) = (line.route.trunk.clone(), line.route.number);
            vi.core.connected(&mut state, line);
            drop(state);
            trunk.open(number);
            Ok(())
        }
        Err(error) => {
            state.status = ViState::Idle;
            drop(state);
            // What was made for the two to share may have no user now.
            vi.core.nic.trunks.prune();
            Err(error)
        }
    }
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) endpoint: Endpoint,
    route: Route,
}

/// Asks, without waiting.
pub(crate) fn ask(
    vi: &Vi,
    name: &str,
    attributes: &ViAttributes,
    local: &NetAddress,
) -> sidestep_fabric::Result<Asked> {
    let nic = &vi.core.nic;
    let mut made = None;
    let endpoint = nic.node.begin_connect_with(name, |peer| {
        let full = FabricError::Full { what: "the trunk", limit: 0 };
        let route = nic.trunks.of(&nic.node, peer)?.route(&Arc::downgrade(&vi.core)).map_err(|_| full)?;
        let greeting = Greeting::new(attributes, local, &route).to_bytes();
        made = Some(route);
        Ok(greeting)
    })?;
    Ok(Asked { endpoint, route: made.expect("made before the request was sent") })
}

impl Asked {
    fn wait(self, deadline: Option<u64>) -> sidestep_fabric::Result<Line> {
        self.endpoint.wait_connected(deadline)?;
        self.join()
    }

    /// After the other side has said yes.
    pub(crate) fn join(self) -> sidestep_fabric::Result<Line> {
        let private = self.endpoint.private();
        let bad = FabricError::Closed(sidestep_fabric::CloseReason::Violation("an answer that is not of VIA"));
        let theirs = Greeting::from_bytes(&private).map_err(|_| bad)?;
        self.route.trunk.join(&self.endpoint, theirs.trunk(), Some(clock::now() + JOIN_NS))?;
        Ok(Line::new(self.endpoint, self.route, &theirs))
    }
}
