//! Bytes that cross the memory bus for each byte of a message, on the machine of the thesis: figures of a model (chapter 9 of Balaji 2006).

use serde_json::json;
use sidestep_extended::traffic::{Direction, Interface, cache, ceiling};

use super::record;
use crate::bench::{record::Metric, sheet::Table};

/// The ways of the model.
const MODELLED: [&str; 3] = ["sockets-transmit", "sockets-receive", "rdma"];

/// Bytes of a message in the model: the smaller ones fit into its cache.
pub const MESSAGES: [usize; 4] = [4 << 10, 64 << 10, 256 << 10, 10 << 20];

/// The model by itself.
pub fn table() -> Table {
    let mut table = Table::new(&["bytes (model)", "sockets out", "sockets in", "RDMA"]);
    for message in MESSAGES {
        let transfer = cache::Transfer { message, socket_buffer: cache::SOCKET_BUFFER };
        let ratio = |interface, direction| cache::ratio(cache::XEON, interface, direction, transfer);
        let cells = [
            ratio(Interface::Sockets, Direction::Transmit),
            ratio(Interface::Sockets, Direction::Receive),
            ratio(Interface::Rdma, Direction::Receive),
        ];
        let shown = cells.iter().map(|cell| format!("{cell:.2}"));
        table.row(&std::iter::once(message.to_string()).chain(shown).collect::<Vec<_>>());
        for (path, cell) in MODELLED.into_iter().zip(cells) {
            let mut modelled = record("extended.traffic", path, message, Metric::BusBytes, (cell, None));
            modelled.extra.insert("simulated".to_string(), json!(true));
            table.records.push(modelled);
        }
    }
    let most = ceiling(8.0 * 333e6, 4.0) * 8e-9;
    table.text.push(format!("a bus of 64 bits at 333 MHz, four bytes for each: {most:.2} Gbit/s at most"));
    table
}
