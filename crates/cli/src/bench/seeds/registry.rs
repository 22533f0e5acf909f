//! The registry: every table and figure with figures, document by document, in the order in which they stand there.
//!
//! A figure that a document has for two of its own machines or cards, and that has no counterpart on one host, says so. A
//! mechanism that is named in a document and not here is "not built".

use super::super::record::Metric::{self, *};
use super::{Entry, Lines, Of, Paper, Source, WHOLE};

const RIDDOCH: &str = "000 Riddoch 2002, Low Latency Distributed Computing";
const SOVIA: &str = "001 Kim, Kim, Jung 2001, SOVIA";
const MINI: &str = "002 Azimi 2002, miNI";
const CLAN: &str = "003 Riddoch, Pope, Mansley 2001, VIA over the CLAN network";
const BALAJI: &str = "004 Balaji 2006, High Performance Communication Support for Sockets";

/// The best over all sizes.
pub const ANY: usize = usize::MAX;

type What = (&'static str, &'static str, &'static str);

/// A ratio of two lines: how many times better the first path is than the second.
const fn ratio(
    of: What,
    times: f64,
    bench: &'static str,
    metric: Metric,
    size: usize,
    paths: [&'static str; 2],
) -> Entry {
    let source = Source::Lines(Lines { bench, metric, size, paths, of: Of::All }, "");
    Entry { document: of.0, place: of.1, what: of.2, paper: Paper::Times(times), source }
}

/// A share that a line is, beside the document's.
const fn share(of: What, there: f64, bench: &'static str, metric: Metric, size: usize, path: &'static str) -> Entry {
    ratio(of, there, bench, metric, size, [path, WHOLE])
}

/// The same, where the document has a plot and no figure.
const fn better(of: What, bench: &'static str, metric: Metric, size: usize, paths: [&'static str; 2]) -> Entry {
    Entry { paper: Paper::Better, ..ratio(of, 1.0, bench, metric, size, paths) }
}

/// Only lines with so many connections, or of this name.
const fn only(entry: Entry, of: Of) -> Entry {
    let Entry { document, place, what, paper, source } = entry;
    match source {
        Source::Lines(lines, why) => {
            Entry { document, place, what, paper, source: Source::Lines(Lines { of, ..lines }, why) }
        }
        source => Entry { document, place, what, paper, source },
    }
}

/// Why it is the other way round here.
const fn because(entry: Entry, why: &'static str) -> Entry {
    let Entry { document, place, what, paper, source } = entry;
    match source {
        Source::Lines(lines, _) => Entry { document, place, what, paper, source: Source::Lines(lines, why) },
        source => Entry { document, place, what, paper, source },
    }
}

const fn not_here(of: What, why: &'static str) -> Entry {
    Entry { document: of.0, place: of.1, what: of.2, paper: Paper::Nothing, source: Source::NotHere(why) }
}

const fn not_built(of: What) -> Entry {
    Entry { document: of.0, place: of.1, what: of.2, paper: Paper::Nothing, source: Source::NotBuilt }
}

const CARD: &str = "it compares two network cards";
const COUNTERS: &str = "it needs counters of the processor and the memory bus, which virtual machines lack";
const NETWORK: &str = "it needs a network of its speed between two machines";
const COPIES: &str = "both ways are copies by the same processor here";
const SHORT: &str = "connections with one request stay on TCP, since an agreement costs more than it brings";
const GENERATOR: &str =
    "the generator of its page accesses reads other pages in each step, or fits into the smaller cache";
const MODEL: &str =
    "they run in a model of cards, where these times are parameters; `bench vmmc --only timing` shows it";
const LOOKS: &str = "both servers look at their queues here; there one took an interrupt for each event";

/// Every entry.
#[rustfmt::skip] // One line each, so that it is read as the table it is.
pub static ENTRIES: &[Entry] = &[
    not_here((RIDDOCH, "Fig 2.2", "TCP over two Ethernets"), NETWORK),
    not_here((RIDDOCH, "Fig 2.3", "sizes of packets in a network"), "it is a trace of a network of its time"),
    not_built((RIDDOCH, "Fig 3.5", "transmit overhead of PIO and DMA by size, on the bare network")),
    not_built((RIDDOCH, "Fig 3.6", "bandwidth of PIO and DMA by size, on the bare network")),
    not_here((RIDDOCH, "Fig 3.7", "the same on an Alpha"), "it is about the write buffers of another processor"),
    not_built((RIDDOCH, "Fig 3.8", "receive work per octet")),
    because(ratio((RIDDOCH, "Table 4.1", "making an endpoint, against a TCP socket"), 11.0 / 12.5, "fabric.cost", Cost, 0, ["endpoint", "tcp-socket"]), "an endpoint has memory that is shared with others, which has to be made"),
    better((RIDDOCH, "Table 4.1", "an endpoint again, against a new one"), "fabric.cost", Cost, 0, ["endpoint-again", "endpoint"]),
    ratio((RIDDOCH, "Table 4.1", "a local aperture, against an outgoing one"), 50.1 / 24.3, "fabric.cost", Cost, 65536, ["region", "aperture"]),
    not_here((RIDDOCH, "Table 5.1", "against the VIA of a card"), CARD),
    ratio((RIDDOCH, "Table 5.1", "PIO against DMA, 0 B"), 9.7 / 7.5, "via.latency", OneWayP50, 0, ["via-pio", "via-rdma"]),
    ratio((RIDDOCH, "Table 5.1", "PIO against DMA, 4 B"), 13.1 / 10.0, "via.latency", OneWayP50, 4, ["via-pio", "via-rdma"]),
    ratio((RIDDOCH, "Table 5.1", "PIO against DMA, 40 B"), 14.3 / 10.6, "via.latency", OneWayP50, 40, ["via-pio", "via-rdma"]),
    ratio((RIDDOCH, "Table 5.1", "PIO against DMA, 400 B"), 33.4 / 33.0, "via.latency", OneWayP50, 400, ["via-pio", "via-rdma"]),
    ratio((RIDDOCH, "Table 5.1", "VIA against TCP (Fig 2.2), 4 B"), 96.0 / 10.0, "via.latency", OneWayP50, 4, ["via", "tcp"]),
    because(better((RIDDOCH, "Fig 5.7", "bandwidth of DMA against PIO, 16 KiB"), "via.bandwidth", Bandwidth, 16384, ["via-rdma", "via-pio"]), COPIES),
    because(better((RIDDOCH, "Fig 5.8", "send overhead of DMA against PIO, 4 KiB"), "via.cost", Cost, 4096, ["via-send-rdma", "via-send-pio"]), COPIES),
    not_here((RIDDOCH, "Table 5.2", "calls against those of a card"), CARD),
    ratio((RIDDOCH, "Table 5.2", "RecvDone: nothing found, against a message"), 303.0 / 46.0, "via.cost", Cost, 4, ["via-recvdone-none", "via-recvdone"]),
    ratio((RIDDOCH, "Table 5.2", "SendDone: nothing found, against a send"), 169.0 / 78.0, "via.cost", Cost, 4, ["via-senddone-none", "via-senddone"]),
    ratio((RIDDOCH, "Table 5.2", "PostRecv without a lock, against one with"), 710.0 / 538.0, "via.cost", Cost, 4, ["via-postrecv-single", "via-postrecv"]),
    ratio((RIDDOCH, "Table 5.2", "RecvDone without a lock, against one with"), 475.0 / 303.0, "via.cost", Cost, 4, ["via-recvdone-single", "via-recvdone"]),
    because(ratio((RIDDOCH, "Fig 5.9", "raw requests against VIA, 100 connections"), 2500.0 / 114.0, "via.events", OneWayP50, 100, ["fabric-cq", "via-cq"]), LOOKS),
    because(ratio((RIDDOCH, "Fig 5.9", "the same with one of 1000 connections active"), 204.0 / 53.3, "via.events", OneWayP50, 1000, ["fabric-cq-idle", "via-cq-idle"]), LOOKS),
    ratio((RIDDOCH, "Table 6.1", "CORBA null call over the fabric, against TCP on one host"), 55.2 / 16.1, "orb.null", RoundTripP50, 0, ["fabric", "omniorb-tcp"]),
    ratio((RIDDOCH, "Table 6.1", "CORBA null call over the fabric, against VIA"), 28.3 / 16.1, "orb.null", RoundTripP50, 0, ["fabric", "via"]),
    because(ratio((RIDDOCH, "Table 6.1", "single copy against zero copy"), 17.2 / 16.1, "orb.null", RoundTripP50, 0, ["fabric-single", "fabric"]), "stores into mapped memory cost what others cost here, and a copy more costs a copy"),
    not_built((RIDDOCH, "Fig 6.6", "bandwidth of misaligned messages")),
    ratio((RIDDOCH, "Fig 6.8", "bandwidth of calls over the fabric against VIA, 64 B"), 1.25, "orb.bulk", Bandwidth, 64, ["fabric", "via"]),
    better((RIDDOCH, "Fig 6.9", "processor time of a call over the fabric against VIA, 64 B"), "orb.bulk", CpuPerMessage, 64, ["fabric", "via"]),
    not_built((RIDDOCH, "Fig 6.10", "the same with a receiver that checks the payload 30 times")),
    ratio((RIDDOCH, "s6.6", "first call of a broker, against TCP"), 762.0 / 1807.0, "orb.first", RoundTripP50, 0, ["fabric", "tcp"]),
    ratio((RIDDOCH, "s6.6", "first call over a cached connection, against TCP"), 762.0 / 641.0, "orb.first", Cost, 0, ["fabric", "tcp"]),
    ratio((RIDDOCH, "Fig 6.11", "most null requests a second, against TCP"), 145.0 / 21.5, "orb.clients", Requests, ANY, ["fabric", "tcp"]),
    ratio((SOVIA, "Fig 6", "4 B against TCP"), 55.0 / 10.5, "sovia.latency", OneWayP50, 4, ["sovia", "tcp"]),
    ratio((SOVIA, "Fig 6", "4 B against the VI itself"), 8.5 / 10.5, "sovia.latency", OneWayP50, 4, ["sovia", "vi"]),
    ratio((SOVIA, "Fig 6", "4 B without a handler thread, against one with"), 25.5 / 10.5, "sovia.latency", OneWayP50, 4, ["single", "handler"]),
    better((SOVIA, "Fig 6", "16 B one way: a window, against one message at a time"), "sovia.rate", Rate, 16, ["flowctrl", "single"]),
    better((SOVIA, "Fig 6", "16 B one way: with delayed acknowledgements"), "sovia.rate", Rate, 16, ["dacks", "flowctrl"]),
    better((SOVIA, "Fig 6", "16 B one way: with combining"), "sovia.rate", Rate, 16, ["combine", "dacks"]),
    ratio((SOVIA, "Fig 6", "32 KiB against the VI itself"), 814.0 / 815.0, "sovia.bandwidth", Bandwidth, 32768, ["sovia", "vi"]),
    ratio((SOVIA, "Fig 6", "32 KiB against TCP"), 814.0 / 450.0, "sovia.bandwidth", Bandwidth, 32768, ["sovia", "tcp"]),
    only(ratio((SOVIA, "Table 1", "FTP of 19 MB, against TCP"), 573.0 / 262.0, "sockets.ftp", Bandwidth, 0, ["via", "tcp"]), Of::What("19 MB")),
    only(ratio((SOVIA, "Table 1", "FTP of 146 MB, against TCP"), 532.0 / 254.0, "sockets.ftp", Bandwidth, 0, ["via", "tcp"]), Of::What("146 MB")),
    ratio((SOVIA, "Fig 7", "empty ONC RPC over VIA, against TCP"), 149.0 / 35.0, "rpc.null", CallP50, 0, ["tirpc-via", "tirpc-tcp"]),
    better((SOVIA, "Fig 7", "ONC RPC with 4 KiB over VIA, against TCP"), "rpc.sizes", CallP50, 4096, ["tirpc-via", "tirpc-tcp"]),
    only(ratio((MINI, "Table 1.1", "memory for looking up: caches against tables"), 524.0 / 132.0, "vmmc.memory", Memory, 0, ["cached", "static"]), Of::What("lookup")),
    only(ratio((MINI, "Table 1.1", "all memory: caches against tables"), 798.0 / 419.0, "vmmc.memory", Memory, 0, ["cached", "static"]), Of::What("total")),
    ratio((MINI, "Table 4.2", "a word: send one way against fetch"), 22.0 / 8.0, "vmmc.costs", Cost, 4, ["send", "fetch"]),
    ratio((MINI, "Table 4.2", "4 KiB: send one way against fetch"), 81.0 / 52.0, "vmmc.costs", Cost, 4096, ["send", "fetch"]),
    better((MINI, "Fig 4.1", "4 KiB: no misses of memory handles, against half of them"), "vmmc.vmh", OneWayMean, 4096, ["0 %", "50 %"]),
    because(ratio((MINI, "Fig 4.2", "FFT, lines of 128: 32K entries against 16K"), 2.0, "vmmc.grid", Misses, 0, ["fft C32K L128 A4", "fft C16K L128 A4"]), GENERATOR),
    because(ratio((MINI, "Fig 4.2", "LU, lines of 128: 32K entries against 16K"), 2.0, "vmmc.grid", Misses, 0, ["lu C32K L128 A4", "lu C16K L128 A4"]), GENERATOR),
    better((MINI, "Fig 4.2", "Ocean, lines of 128: 32K entries against 16K"), "vmmc.grid", Misses, 0, ["ocean C32K L128 A4", "ocean C16K L128 A4"]),
    better((MINI, "Fig 4.2", "Radix, 8K entries, lines of 128: 4 ways against 2"), "vmmc.grid", Misses, 0, ["radix C8K L128 A4", "radix C8K L128 A2"]),
    not_built((MINI, "Fig 4.3", "speed-ups of SPLASH-2 by cache")),
    better((MINI, "Fig 4.4", "4 KiB: no misses of buffer handles, against half of them"), "vmmc.cbh", OneWayMean, 4096, ["0 %", "50 %"]),
    ratio((MINI, "Table 4.5", "FFT: caches against tables"), 2010.0 / 2085.0, "vmmc.execution", Cost, 0, ["fft cached", "fft static"]),
    ratio((MINI, "Table 4.5", "Ocean: caches against tables"), 2842.0 / 2930.0, "vmmc.execution", Cost, 0, ["ocean cached", "ocean static"]),
    ratio((MINI, "Table 4.5", "Radix: caches against tables"), 1535.0 / 1934.0, "vmmc.execution", Cost, 0, ["radix cached", "radix static"]),
    because(ratio((MINI, "Table 4.5", "LU: caches against tables"), 13209.0 / 7755.0, "vmmc.execution", Cost, 0, ["lu cached", "lu static"]), "the document has no reason for its figure; caches cannot be faster than tables here"),
    ratio((MINI, "Table 4.5", "Water, squared: caches against tables"), 20547.0 / 20747.0, "vmmc.execution", Cost, 0, ["water-nsquared cached", "water-nsquared static"]),
    share((MINI, "Table 4.6", "misses whose thread runs within 50 us, FFT"), 0.94, "vmmc.histograms", Utilisation, 0, "fft delay"),
    share((MINI, "Table 4.6", "misses whose thread runs within 50 us, LU"), 0.94, "vmmc.histograms", Utilisation, 0, "lu delay"),
    not_here((MINI, "Table 4.6", "the same for the other six programs"), MODEL),
    share((MINI, "Table 4.7", "misses that are processed within 50 us, FFT"), 0.72, "vmmc.histograms", Utilisation, 0, "fft processing"),
    share((MINI, "Table 4.7", "misses that are processed within 50 us, LU"), 0.31, "vmmc.histograms", Utilisation, 0, "lu processing"),
    not_here((MINI, "Table 4.7", "the same for the other six programs"), MODEL),
    ratio((CLAN, "Table 1", "PIO against DMA, 0 B"), 4.4 / 3.4, "via.latency", OneWayP50, 0, ["via-pio", "via-rdma"]),
    ratio((CLAN, "Table 1", "PIO against DMA, 4 B"), 6.4 / 4.6, "via.latency", OneWayP50, 4, ["via-pio", "via-rdma"]),
    ratio((CLAN, "Table 1", "PIO against DMA, 40 B"), 6.8 / 4.7, "via.latency", OneWayP50, 40, ["via-pio", "via-rdma"]),
    ratio((CLAN, "Table 1", "VIA against the bare network, 4 B"), 2.6 / 4.6, "via.latency", OneWayP50, 4, ["via", "queue"]),
    not_here((CLAN, "Table 1", "against the VIA of a card, M-VIA and Berkeley VIA"), CARD),
    because(better((CLAN, "Fig 6", "bandwidth of DMA against PIO, 4 KiB"), "via.bandwidth", Bandwidth, 4096, ["via-rdma", "via-pio"]), COPIES),
    because(better((CLAN, "Fig 7", "raw requests against VIA, 100 connections"), "via.events", OneWayP50, 100, ["fabric-cq", "via-cq"]), LOOKS),
    better((BALAJI, "Fig 2.7", "4 B: delayed acknowledgements"), "sovia.latency", OneWayP50, 4, ["ds_da", "ds"]),
    better((BALAJI, "Fig 2.7", "4 B: acknowledgements apart"), "sovia.latency", OneWayP50, 4, ["ds_da_uq", "ds_da"]),
    ratio((BALAJI, "Fig 2.7", "4 B: streams against the bare network"), 28.0 / 37.0, "sovia.latency", OneWayP50, 4, ["ds_da_uq", "vi"]),
    ratio((BALAJI, "Fig 2.7", "4 B: datagrams against the bare network"), 28.0 / 28.5, "sovia.latency", OneWayP50, 4, ["dg", "vi"]),
    better((BALAJI, "Fig 2.8", "4 B: 32 credits against one"), "sovia.latency", OneWayP50, 4, ["32 credits", "1 credit"]),
    ratio((BALAJI, "Fig 2.9", "4 B: datagrams against TCP"), 120.0 / 28.5, "sovia.latency", OneWayP50, 4, ["dg", "tcp"]),
    ratio((BALAJI, "Fig 2.9", "4 B: streams against TCP"), 120.0 / 37.0, "sovia.latency", OneWayP50, 4, ["ds_da_uq", "tcp"]),
    ratio((BALAJI, "Fig 2.9", "bandwidth against TCP, 64 KiB"), 840.0 / 550.0, "sovia.bandwidth", Bandwidth, 65536, ["sovia", "tcp"]),
    only(ratio((BALAJI, "Fig 2.10", "FTP of a large file, against TCP"), 11.8 / 6.84, "sockets.ftp", Bandwidth, 0, ["via", "tcp"]), Of::What("146 MB")),
    not_built((BALAJI, "Fig 2.10", "FTP of small files")),
    because(ratio((BALAJI, "Fig 2.11", "a request per connection (HTTP/1.0), against TCP"), 6.0, "sockets.connections", Connections, 64, ["ring", "tcp"]), SHORT),
    only(better((BALAJI, "Fig 2.12", "nginx with kept connections, against TCP"), "sockets.nginx", Requests, 0, ["ring", "tcp"]), Of::What("1 KiB, one connection")),
    ratio((BALAJI, "Fig 3.5", "4 B over VIA, against TCP"), 5.0, "sovia.latency", OneWayP50, 4, ["sovia", "tcp"]),
    ratio((BALAJI, "Fig 3.5", "bandwidth over VIA, against the VI itself"), 763.0 / 795.0, "sovia.bandwidth", Bandwidth, 65536, ["sovia", "vi"]),
    ratio((BALAJI, "Fig 3.5", "bandwidth over VIA, against TCP"), 763.0 / 510.0, "sovia.bandwidth", Bandwidth, 65536, ["sovia", "tcp"]),
    only(ratio((BALAJI, "Fig 3.8", "partial updates, same blocks, against TCP (simulated)"), 3.5, "filters.update", Ratio, ANY, ["via", "tcp"]), Of::What("same blocks, without")),
    only(ratio((BALAJI, "Fig 3.8", "partial updates, own blocks, against TCP (simulated)"), 10.0, "filters.update", Ratio, ANY, ["via", "tcp"]), Of::What("own blocks, without")),
    only(ratio((BALAJI, "Fig 3.8", "the same with computing, same blocks (simulated)"), 4.0, "filters.update", Ratio, ANY, ["via", "tcp"]), Of::What("same blocks, with computing")),
    only(ratio((BALAJI, "Fig 3.8", "the same with computing, own blocks (simulated)"), 12.0, "filters.update", Ratio, ANY, ["via", "tcp"]), Of::What("own blocks, with computing")),
    only(ratio((BALAJI, "Fig 3.9", "updates a second under a latency, against TCP (simulated)"), 6.0, "filters.rate", Ratio, ANY, ["via", "tcp"]), Of::What("without computing")),
    only(ratio((BALAJI, "Fig 3.9", "the same with computing (simulated)"), 4.0, "filters.rate", Ratio, ANY, ["via", "tcp"]), Of::What("with computing")),
    ratio((BALAJI, "Fig 3.10", "share of complete updates in a mix, against TCP (simulated)"), 1.5, "filters.mix", Ratio, ANY, ["via", "tcp"]),
    ratio((BALAJI, "Fig 3.11", "block of perfect pipelining, smaller than over TCP (simulated)"), 8.0, "filters.block", Ratio, ANY, ["via", "tcp"]),
    ratio((BALAJI, "Fig 3.11", "reaction of a load balancer, against TCP (simulated)"), 8.0, "filters.reaction", Ratio, ANY, ["via", "tcp"]),
    ratio((BALAJI, "Fig 3.12", "demand-driven scheduling, against TCP (simulated)"), 1.0, "filters.demand", Ratio, ANY, ["via", "tcp"]),
    not_built((BALAJI, "Fig 4.3", "SDP against IP over InfiniBand")),
    only(ratio((BALAJI, "Fig 4.4", "multi-stream, 8 connections, against TCP (rings for SDP)"), 500.0 / 200.0, "sockets.streams", Bandwidth, 16384, ["ring", "tcp"]), Of::Connections(8)),
    only(ratio((BALAJI, "Fig 4.4", "hot-spot, 8 clients, against TCP (rings for SDP)"), 456.0 / 138.0, "sockets.hotspot", Requests, 16384, ["ring", "tcp"]), Of::Connections(8)),
    only(ratio((BALAJI, "Fig 4.5", "fan-in, 8 clients, against TCP (rings for SDP)"), 687.0 / 237.0, "sockets.fanin", Bandwidth, 16384, ["ring", "tcp"]), Of::Connections(8)),
    only(ratio((BALAJI, "Fig 4.5", "fan-out, 8 clients, against TCP (rings for SDP)"), 477.0 / 175.0, "sockets.fanout", Bandwidth, 16384, ["ring", "tcp"]), Of::Connections(8)),
    not_built((BALAJI, "Fig 4.6-4.9", "a data center of three tiers")),
    not_built((BALAJI, "Fig 4.10-12", "a parallel file system")),
    not_built((BALAJI, "Table 5.1", "what starting an asynchronous zero-copy send costs")),
    not_built((BALAJI, "Fig 5.4-5.9", "asynchronous zero-copy sockets")),
    ratio((BALAJI, "Fig 6.3", "4 B: packetised against credits"), 1.0, "sovia.latency", OneWayP50, 4, ["byte ring", "slot credits"]),
    ratio((BALAJI, "Fig 6.3", "1 B one way: packetised against credits"), 10.0, "sovia.rate", Rate, 1, ["byte ring", "slot credits"]),
    ratio((BALAJI, "Fig 6.3", "64 B one way: packetised against credits"), 10.0, "sovia.rate", Rate, 64, ["byte ring", "slot credits"]),
    better((BALAJI, "Fig 6.4", "use of the buffers by messages of 1 B"), "sovia.buffer", Utilisation, 1, ["packetised", "slot credits"]),
    not_built((BALAJI, "Fig 7.3-7.4", "TCP offloaded to a card")),
    only(ratio((BALAJI, "Fig 7.5", "multi-stream, 8 connections, against TCP (rings for the card)"), 7.1 / 4.9, "sockets.streams", Bandwidth, 16384, ["ring", "tcp"]), Of::Connections(8)),
    only(better((BALAJI, "Fig 7.5", "hot-spot, 8 clients, against TCP (rings for the card)"), "sockets.hotspot", Requests, 16384, ["ring", "tcp"]), Of::Connections(8)),
    only(better((BALAJI, "Fig 7.6", "fan-in, 8 clients, against TCP (rings for the card)"), "sockets.fanin", Bandwidth, 16384, ["ring", "tcp"]), Of::Connections(8)),
    not_built((BALAJI, "Fig 7.7-7.8", "MPI, and Apache with Zipf's law, over the card")),
    ratio((BALAJI, "Fig 8.2", "4 B: looking against sleeping"), 24.4 / 8.25, "via.latency", OneWayP50, 4, ["via", "via-wait"]),
    better((BALAJI, "Fig 8.3", "both ways at the same time, 16 KiB, against TCP"), "sockets.twoway", Bandwidth, 16384, ["ring", "tcp"]),
    only(better((BALAJI, "Fig 8.4", "multi-stream, 4 connections, against TCP"), "sockets.streams", Bandwidth, 16384, ["ring", "tcp"]), Of::Connections(4)),
    only(better((BALAJI, "Fig 8.5", "fan-out, 4 clients, against TCP"), "sockets.fanout", Bandwidth, 16384, ["ring", "tcp"]), Of::Connections(4)),
    only(better((BALAJI, "Fig 8.7", "virtual microscope, 16 MB, against TCP (simulated)"), "filters.application", Ratio, ANY, ["via", "tcp"]), Of::What("microscope")),
    only(better((BALAJI, "Fig 8.7", "isosurfaces, 64 MB, against TCP (simulated)"), "filters.application", Ratio, ANY, ["via", "tcp"]), Of::What("isosurface")),
    not_built((BALAJI, "Fig 8.8-8.10", "a parallel file system, tiles")),
    not_built((BALAJI, "Fig 8.11", "Ganglia: a connection for each answer")),
    ratio((BALAJI, "Table 9.1", "bytes on the bus: RDMA against receiving, out of cache (model)"), 4.0, "extended.traffic", BusBytes, 10 << 20, ["rdma", "sockets-receive"]),
    ratio((BALAJI, "Table 9.1", "bytes on the bus: RDMA against receiving, in cache (model)"), 2.0, "extended.traffic", BusBytes, 4 << 10, ["rdma", "sockets-receive"]),
    ratio((BALAJI, "Table 9.1", "bytes on the bus: RDMA against sending, out of cache (model)"), 2.0, "extended.traffic", BusBytes, 10 << 20, ["rdma", "sockets-transmit"]),
    ratio((BALAJI, "Table 9.1", "bytes on the bus: RDMA against sending, in cache (model)"), 1.0, "extended.traffic", BusBytes, 4 << 10, ["rdma", "sockets-transmit"]),
    not_here((BALAJI, "Fig 9.2-9.3", "10-gigabit Ethernet by operating system"), NETWORK),
    only(better((BALAJI, "Fig 9.4", "half in, half out, 4 and 4 clients, against TCP"), "sockets.dual", Bandwidth, 16384, ["ring", "tcp"]), Of::Connections(8)),
    not_here((BALAJI, "Fig 9.5-9.7", "where the processor and the memory spend their time"), COUNTERS),
    ratio((BALAJI, "Fig 9.9", "RDMA write against TCP, 64 B"), 3.0, "fabric.latency", OneWayP50, 64, ["rdma", "tcp"]),
    ratio((BALAJI, "Fig 9.10", "RDMA write against TCP, 64 KiB"), 3.5, "fabric.bandwidth", Bandwidth, 65536, ["rdma", "tcp"]),
    ratio((BALAJI, "Fig 10.8", "RDMA write against half of an RDMA read, 64 B"), 10.5 / 2.0 / 5.5, "iwarp.latency", OneWayP50, 64, ["write", "read"]),
    ratio((BALAJI, "Fig 10.8", "one-sided get on a socket against TCP, 64 B"), 30.0 / 10.5, "extended.operations", RoundTripP50, 64, ["get", "tcp"]),
    better((BALAJI, "Fig 10.9", "asking a busy process: RDMA read against TCP, 4 threads"), "iwarp.busy", OneWayP50, 4, ["iwarp-read", "tcp"]),
    better((BALAJI, "Fig 10.9", "the same: a get on a socket against TCP, 8 threads"), "extended.busy", RoundTripP50, 8, ["read", "asked"]),
    ratio((BALAJI, "Fig 10.10", "coherent cache against none, idle server"), 1.5, "cache.small", Requests, 0, ["one-sided", "no-cache"]),
    better((BALAJI, "Fig 10.10", "hits checked by a read against asked, 8 threads"), "cache.small", Requests, 8, ["one-sided", "two-sided"]),
    ratio((BALAJI, "Fig 10.11", "moving servers against fixed, bursts of 8K (simulated)"), 51.0 / 26.0, "balance.bursts", Requests, 8192, ["moving", "rigid"]),
    share((BALAJI, "Fig 10.12", "nodes that serve a burst of 8K, of six (simulated)"), 1.0, "balance.bursts", Utilisation, 8192, "moving"),
    ratio((BALAJI, "Fig 11.5", "sockets that nothing is done for, against plain ones"), 1.0, "sockets.foreign", OneWayP50, 64, ["unix-under-run", "unix"]),
    ratio((BALAJI, "Fig 11.5", "plain calls on an extended socket, against one without"), 1.0, "extended.plain", RoundTripP50, 64, ["tcp-extended", "tcp"]),
    better((BALAJI, "Fig 11.6", "4 B between hosts: extended sockets against two threads"), "extended.threaded", OneWayP50, 4, ["extended", "threads"]),
    ratio((BALAJI, "Fig 11.6", "iWARP in software against TCP, 1 MiB"), 1.0, "iwarp.bandwidth", Bandwidth, 1 << 20, ["write", "tcp"]),
    not_built((BALAJI, "Fig 12.2", "iWARP in a card, in software, and in both")),
    better((BALAJI, "Fig 12.3", "markers each 32 KiB against each 512 B"), "iwarp.bandwidth", Bandwidth, 65536, ["m32768", "m512"]),
];
