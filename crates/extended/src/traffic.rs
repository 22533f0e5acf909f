//! How many bytes cross the memory bus for each byte that crosses the network (Balaji 2006, chapter 9).
//!
//! Sockets copy: the processor reads one buffer and writes the other, the card reads or writes the second by itself. RDMA has no
//! second buffer. The steps of figure 9.1 are [`Step`]s with the least and the most they can cost; their sums are table 9.1.
//! [`cache`] runs the same steps through a simulated cache, which shows where between the two a machine ends up.
//!
//! This is a model. Nothing here is measured; `bench extended --only traffic` prints it beside copies that are counted and times that are measured.

pub mod cache;

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the network.
    Transmit,
    /// From it.
    Receive,
}

/// How the bytes are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interface {
    /// By a copy between the program's buffer and the socket's.
    Sockets,
    /// Straight from or into the program's buffer.
    Rdma,
}

/// What the estimate assumes of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Buffers may be mapped to the same lines and push each other out.
    Theoretical,
    /// What fits stays.
    Practical,
}

/// One access of figure 9.1, with the bytes on the memory bus for each byte on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub what: &'static str,
    /// The least that it costs.
    pub least: u32,
    /// The most.
    pub most: u32,
}

/// What fraction of a memory bus's peak can be sustained, by the rule of thumb of section 9.3.
pub const SUSTAINABLE: f64 = 0.65;

const fn step(what: &'static str, least: u32, most: u32) -> Step {
    Step { what, least, most }
}

/// The steps of a transfer; `fits`: the program's buffer fits into the cache, together with the socket's.
pub fn steps(interface: Interface, direction: Direction, fits: bool, policy: Policy) -> Vec<Step> {
    if interface == Interface::Rdma {
        return vec![match direction {
            Direction::Transmit => step("the card reads the program's buffer", 1, 1),
            Direction::Receive => step("the card writes the program's buffer", 1, 1),
        }];
    }
    let conflicts = policy == Policy::Theoretical;
    match direction {
        Direction::Transmit => vec![
            // Fetched in every round if it does not stay; never dirty, so never written back.
            step("the processor reads the program's buffer", u32::from(!fits), u32::from(!fits || conflicts)),
            // Pushed out and fetched again where the program's buffer needs its lines.
            step("the processor writes the socket's buffer", 0, if !fits || conflicts { 2 } else { 0 }),
            // From memory, or an implicit write-back of a dirty line.
            step("the card reads the socket's buffer", 1, 1),
        ],
        Direction::Receive => vec![
            step("the card writes the socket's buffer", 1, 1),
            // The card's write has made it invalid in the cache.
            step("the processor reads the socket's buffer", 1, 1),
            step(
                "the processor writes the program's buffer",
                if fits { 0 } else { 2 },
                if !fits || conflicts { 2 } else { 0 },
            ),
        ],
    }
}

/// Bytes on the memory bus for each byte on the network, from the least to the most: a cell of table 9.1.
pub fn ratio(interface: Interface, direction: Direction, fits: bool, policy: Policy) -> (u32, u32) {
    let steps = steps(interface, direction, fits, policy);
    steps.iter().fold((0, 0), |(least, most), step| (least + step.least, most + step.most))
}

/// The most bytes a second on the network that a memory bus with this peak allows, at so many bytes on the bus for each.
pub fn ceiling(peak: f64, ratio: f64) -> f64 {
    peak * SUSTAINABLE / ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_table_9_1() {
        use Direction::{Receive, Transmit};
        use Policy::{Practical, Theoretical};
        let table = [
            (Transmit, Theoretical, (1, 4), (2, 4)),
            (Transmit, Practical, (1, 1), (2, 4)),
            (Receive, Theoretical, (2, 4), (4, 4)),
            (Receive, Practical, (2, 2), (4, 4)),
        ];
        for (direction, policy, fits, does_not) in table {
            assert_eq!(ratio(Interface::Sockets, direction, true, policy), fits, "{direction:?} {policy:?}");
            assert_eq!(ratio(Interface::Sockets, direction, false, policy), does_not, "{direction:?} {policy:?}");
            for fits in [true, false] {
                assert_eq!(ratio(Interface::Rdma, direction, fits, policy), (1, 1));
            }
        }
    }

    /// 64 bits at 333 MHz, four bytes for each: less than 35 % of ten gigabits.
    #[test]
    fn the_rule_gives_the_bound_of_the_thesis() {
        let most = ceiling(8.0 * 333e6, 4.0) * 8.0;
        assert!(most < 0.35 * 10e9 && most > 0.34 * 10e9, "{most}");
        assert!(ceiling(8.0 * 333e6, 1.0) * 8.0 > 10e9, "RDMA is not bound by the memory");
    }
}
