//! MPA: framing of records on a TCP stream (RFC 5044), and enhanced set-up (RFC 6581).
//!
//! A connection begins with one [`frame`] each way, the request and the reply, in which the two ends
//! agree on CRC, markers and, with [`enhanced`] data, on read depths. From then on each direction is a
//! sequence of FPDUs ([`fpdu`]), with [`marker`]s in between where the receiver asked for them.

pub mod enhanced;
pub mod fpdu;
pub mod frame;
pub mod marker;

use crc_fast::{CrcAlgorithm, Digest};

/// CRC32C of `bytes`, continuing from `crc`, the CRC of what came before (0 at the start).
#[must_use]
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    if crc == 0 {
        return crc_fast::crc32_iscsi(bytes);
    }
    // The state of a CRC is its value before the last inversion.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    /// The values of RFC 3720 §B.4, which RFC 5044 §4.4 refers to.
    #[test]
    fn crc_of_the_iscsi_examples() {
        assert_eq!(crc32c(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(0, &[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(0, &ascending), 0x46dd_794e);
        assert_eq!(crc32c(crc32c(0, &ascending[..7]), &ascending[7..]), 0x46dd_794e);
    }
}
