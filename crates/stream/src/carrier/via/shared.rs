//! What has come for all links of a NIC: who has many of them looks at it once.

use sidestep_vi::Nic;

/// Where news of all links of a process comes in.
#[derive(Debug, Clone)]
pub struct SharedNews {
    nic: Nic,
    /// The memory of peers is not mapped: what has come must be let into that of this process first.
    distant: bool,
}

impl SharedNews {
    /// Of the links of this NIC.
    pub fn new(nic: &Nic) -> SharedNews {
        SharedNews { nic: nic.clone(), distant: nic.is_served() }
    }

    /// Whether something has come.
    pub fn has_arrivals(&self) -> bool {
        self.look_at_wire();
        self.nic.has_arrivals()
    }

    /// Gives what has come to the links it is for, unless another thread is at it.
    pub fn take_arrivals(&self) {
        self.look_at_wire();
        self.nic.take_arrivals();
    }

    /// The same, also if another thread is at it.
    pub fn catch_up(&self) {
        self.look_at_wire();
        self.nic.catch_up();
    }

    /// From now on what comes is news of the node.
    pub fn arm(&self) {
        self.nic.arm();
    }

    fn look_at_wire(&self) {
        if self.distant {
            self.nic.node().progress_served();
        }
    }
}
