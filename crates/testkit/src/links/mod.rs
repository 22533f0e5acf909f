//! Links for tests: a simulated network, links that fail on demand, and streams that can be cut.

pub mod cuttable;
pub mod faulty;
pub mod sim;
