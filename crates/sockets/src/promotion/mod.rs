//! Promotion: how two ends agree on a carrier, what a user orders of it, and how a stream leaves its carrier for good.

pub mod engine;
pub mod leaving;
pub mod orders;
