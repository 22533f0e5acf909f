//! Two nodes of one process, connected: for what an operation costs without another core in the way.

use anyhow::Result;
use sidestep_fabric::{Endpoint, Listener, Node};

use super::clock;
use super::shared;

/// Two nodes, and how one reaches the other.
pub struct Duo {
    /// The side that listens.
    pub server: Node,
    /// The side that connects.
    pub client: Node,
    listener: Listener,
    name: String,
}

impl Duo {
    /// Makes the nodes.
    pub fn new() -> Result<Duo> {
        let (server, client) = (Node::new()?, Node::new()?);
        let name = shared::fabric_name();
        let listener = server.listen(&name)?;
        Ok(Duo { server, client, listener, name })
    }

    /// Connects: the client's end and the server's.
    pub fn connect(&self) -> Result<(Endpoint, Endpoint)> {
        let client = self.client.begin_connect(&self.name, b"")?;
        let server = self.until(|| Ok(self.listener.poll()))?.accept(b"")?;
        self.until(|| Ok(client.is_connected()?.then_some(())))?;
        Ok((client, server))
    }

    /// Lets both sides make progress until there is an answer.
    pub fn until<T>(&self, mut answer: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let deadline = clock::now() + 10_000_000_000;
        loop {
            if let Some(answer) = answer()? {
                return Ok(answer);
            }
            self.server.progress();
            self.client.progress();
            anyhow::ensure!(clock::now() < deadline, "two nodes of one process do not get together");
        }
    }
}
