//! The mechanisms of a link, each of which can be switched: by `SIDESTEP_SOVIA` for programs, one by one in `bench sovia`.

use super::packet::{MOST_BYTES, MOST_PACKETS};

/// How a link works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets that may be under way: the credits of the sender.
    pub window: u32,
    /// Packets that are read before they are acknowledged, unless data takes the acknowledgement along. 1: each at once.
    pub acks: u32,
    /// Whether data take acknowledgements along.
    pub piggyback: bool,
    /// Whether acknowledgements are written to memory of the sender, and take no receive of it.
    pub apart: bool,
    /// Small writes are combined in a packet of at most so many bytes; 0: they are not.
    pub combine: usize,
    /// Longer writes are sent from where they are, in registered memory; shorter ones are copied.
    pub copy: usize,
    /// Writes from this length on are offered to the reader, to be taken from where they are; 0: none is.
    pub rendezvous: usize,
    /// Whether each read gives one write, and what is left of it is dropped.
    pub datagram: bool,
    /// Whether a thread of its own takes what arrives.
    pub handler: bool,
    /// Bytes of the longest packet.
    pub chunk: usize,
}

impl Options {
    /// The best of them, found by `sidestep bench sovia`.
    pub const BEST: Options = Options {
        window: 32,
        acks: 16,
        piggyback: true,
        apart: true,
        combine: 16 << 10,
        copy: 4 << 10,
        rendezvous: 24 << 10,
        datagram: false,
        handler: false,
        chunk: 16 << 10,
    };

    /// Reads `window=8,acks=4,no-piggyback,combine=0`; what it does not name is as in [`BEST`](Self::BEST). The error names
    /// the word that is none.
    pub fn parse(text: &str) -> Result<Options, String> {
        let mut options = Options::BEST;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let (on, name) = name.strip_prefix("no-").map_or((true, name), |name| (false, name));
            let number = || value.parse::<usize>().map_err(|_| format!("{word}: {name} takes a number"));
            match name {
                "window" => options.window = number()? as u32,
                "acks" => options.acks = number()? as u32,
                "combine" => options.combine = number()?,
                "copy" => options.copy = number()?,
                "rendezvous" => options.rendezvous = number()?,
                "chunk" => options.chunk = number()?,
                "piggyback" => options.piggyback = on,
                "apart" => options.apart = on,
                "datagram" => options.datagram = on,
                "handler" => options.handler = on,
                _ => return Err(format!("{word}: no mechanism has this name")),
            }
        }
        Ok(options.within_limits())
    }

    /// With every number where it can be.
    fn within_limits(mut self) -> Options {
        self.chunk = self.chunk.clamp(LEAST_CHUNK, MOST_CHUNK).next_multiple_of(64);
        self.window = self.window.clamp(1, MOST_PACKETS.min(MOST_BYTES / self.chunk as u32));
        self.acks = self.acks.clamp(1, self.window);
        self.combine = self.combine.min(self.chunk);
        self.copy = self.copy.min(self.chunk);
        if self.datagram {
            // A read gives what one write was: none is taken in parts, and none waits for another.
            (self.rendezvous, self.combine) = (0, 0);
        }
        self
    }

    /// The same where memory of the peer is out of reach.
    pub fn over_a_wire(self) -> Options {
        Options { apart: false, ..self }
    }

    /// Receives that are posted: one for each packet of data, and for each acknowledgement that takes one, and some for the
    /// rest.
    pub fn receives(&self) -> usize {
        self.window as usize * if self.apart { 1 } else { 2 } + SPARE
    }
}

/// Packets that are neither data nor acknowledgements: the protocol of the streams has few under way.
const SPARE: usize = 16;
const LEAST_CHUNK: usize = 1 << 10;
const MOST_CHUNK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_switch_mechanisms() {
        assert_eq!(Options::parse(""), Ok(Options::BEST));
        let options = Options::parse("window=4,acks=9,no-piggyback,combine=0").unwrap();
        assert_eq!((options.window, options.acks, options.piggyback, options.combine), (4, 4, false, 0));
        assert!(Options::parse("colour=red").is_err());
        assert!(Options::parse("window=many").is_err());
        let large = Options::parse("window=100000,chunk=1000000").unwrap();
        assert!(large.window as usize * large.chunk <= 1 << 20);
    }
}
