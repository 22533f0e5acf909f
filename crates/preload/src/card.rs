//! A card for connections over VIA (`--nic vmmc`): a link that the engine opens by its name.

use sidestep_sockets::{
    config::{Device, config},
    kernel,
    signal::Inside,
};
use sidestep_vmmc::{Config, link};

/// Provides it, if the program is to have one. Without it connections go over rings.
pub fn provide() {
    let wanted = config();
    if wanted.nic != Device::Vmmc {
        return;
    }
    let _inside = Inside::enter();
    if let Err(error) = Config::default().within(wanted.card).and_then(link::provide) {
        kernel::complain(&format!("sidestep: there is no card for --nic vmmc: {error}\n"));
    }
}
