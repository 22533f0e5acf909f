// What socket options do to a stream that is promoted, or is to be.
//
// `stays`: nothing; the option works on the anchor, or means nothing to a connection. `served`: the stream carries it out.
// `leaves`: only the kernel can carry it out, so the stream goes back to TCP first, or never leaves it. An option that is not
// listed here leaves.

socket_options! {
    SOL_SOCKET {
        stays SO_REUSEADDR: "for binding";
        stays SO_REUSEPORT: "for binding";
        stays SO_ATTACH_REUSEPORT_CBPF: "for listeners";
        stays SO_ATTACH_REUSEPORT_EBPF: "for listeners";
        stays SO_DETACH_REUSEPORT_BPF: "for listeners";
        stays SO_ERROR: "read only";
        stays SO_COOKIE: "read only";
        stays SO_MEMINFO: "read only; the anchor's";
        stays SO_INCOMING_NAPI_ID: "read only; the anchor's";
        stays SO_DEBUG: "the anchor's";
        stays SO_DONTROUTE: "the anchor's";
        stays SO_BROADCAST: "means nothing to TCP";
        served SO_SNDBUF: "bounds what the stream accepts";
        served SO_RCVBUF: "bounds what the stream accepts";
        served SO_SNDBUFFORCE: "bounds what the stream accepts";
        served SO_RCVBUFFORCE: "bounds what the stream accepts";
        stays SO_BUF_LOCK = 72: "the anchor's";
        stays SO_RESERVE_MEM = 73: "the anchor's";
        stays SO_KEEPALIVE: "the anchor's: it still finds a dead host";
        stays SO_PRIORITY: "the anchor's";
        served SO_LINGER: "the stream closes accordingly";
        served SO_RCVLOWAT: "the stream waits accordingly";
        stays SO_SNDLOWAT: "the kernel refuses it";
        served SO_RCVTIMEO: "the stream waits accordingly";
        served SO_SNDTIMEO: "the stream waits accordingly";
        stays SO_BINDTODEVICE: "the anchor's";
        stays SO_MARK: "the anchor's";
        stays SO_RCVMARK = 75: "means nothing to TCP";
        stays SO_BUSY_POLL: "the anchor's; the stream has its own policy";
        stays SO_PREFER_BUSY_POLL = 69: "the anchor's";
        stays SO_BUSY_POLL_BUDGET = 70: "the anchor's";
        stays SO_INCOMING_CPU: "the anchor's";
        stays SO_CNX_ADVICE = 53: "the anchor's";
        stays SO_TXREHASH = 74: "the anchor's";
        stays SO_NO_CHECK: "means nothing to TCP";
        stays SO_RXQ_OVFL: "means nothing to TCP";
        stays SO_PASSCRED: "means nothing to TCP";
        stays SO_PASSSEC: "means nothing to TCP";
        stays SO_PASSPIDFD = 76: "means nothing to TCP";
        stays SO_TXTIME: "a time comes with a control message, which takes the stream back to TCP";
        stays SO_ZEROCOPY: "means nothing before a send with MSG_ZEROCOPY, which takes the stream back to TCP";
        stays SO_DETACH_FILTER: "a stream with a filter has left";
        stays SO_LOCK_FILTER: "a stream with a filter has left";
        leaves SO_ATTACH_FILTER: "only the kernel filters packets";
        leaves SO_ATTACH_BPF: "only the kernel filters packets";
        leaves SO_MAX_PACING_RATE: "only the kernel paces";
        leaves SO_TIMESTAMP: "only the kernel knows when a packet came";
        leaves SO_TIMESTAMPNS: "only the kernel knows when a packet came";
        leaves SO_TIMESTAMPING: "only the kernel knows when a packet came or went";
        leaves SO_TIMESTAMP_NEW: "only the kernel knows when a packet came";
        leaves SO_TIMESTAMPNS_NEW: "only the kernel knows when a packet came";
        leaves SO_TIMESTAMPING_NEW: "only the kernel knows when a packet came or went";
        leaves SO_PEEK_OFF: "each MSG_PEEK begins after the last one";
        leaves SO_OOBINLINE: "urgent bytes are the kernel's";
    }
    IPPROTO_TCP {
        stays TCP_NODELAY: "a promoted stream never waits to fill a packet";
        served TCP_CORK: "the stream holds back accordingly";
        served TCP_INQ: "`recvmsg` tells how many bytes are left, wherever they lie";
        stays TCP_QUICKACK: "the anchor's";
        stays TCP_KEEPIDLE: "the anchor's";
        stays TCP_KEEPINTVL: "the anchor's";
        stays TCP_KEEPCNT: "the anchor's";
        stays TCP_USER_TIMEOUT: "the anchor's";
        stays TCP_LINGER2: "the anchor's";
        stays TCP_DEFER_ACCEPT: "for listeners";
        stays TCP_FASTOPEN: "for listeners";
        stays TCP_FASTOPEN_KEY: "for listeners";
        stays TCP_SAVE_SYN: "for listeners";
        stays TCP_SAVED_SYN: "read only";
        stays TCP_SYNCNT: "for connecting";
        stays TCP_FASTOPEN_CONNECT: "for connecting";
        stays TCP_FASTOPEN_NO_COOKIE: "for connecting";
        stays TCP_WINDOW_CLAMP: "the anchor's";
        stays TCP_MAXSEG: "the anchor's";
        stays TCP_CONGESTION: "the anchor's";
        stays TCP_NOTSENT_LOWAT: "bytes in the ring have been sent";
        stays TCP_THIN_LINEAR_TIMEOUTS: "the anchor's";
        stays TCP_THIN_DUPACK: "the anchor's";
        stays TCP_INFO: "read only; the anchor's";
        stays TCP_CC_INFO: "read only; the anchor's";
        stays TCP_MD5SIG: "the anchor's; nobody else can write the ring";
        stays TCP_MD5SIG_EXT: "the anchor's; nobody else can write the ring";
        stays TCP_TIMESTAMP: "the anchor's";
        stays TCP_RTO_MAX_MS = 44: "the anchor's";
        stays TCP_RTO_MIN_US = 45: "the anchor's";
        stays TCP_DELACK_MAX_US = 46: "the anchor's";
        leaves TCP_ULP: "the kernel adds a layer of its own";
        leaves TCP_REPAIR: "the kernel's state is saved and restored";
        leaves TCP_TX_DELAY = 37: "only the kernel delays";
        leaves TCP_ZEROCOPY_RECEIVE: "only the kernel maps packets (also when read)";
    }
    IPPROTO_IP {
        stays IP_TOS: "the anchor's";
        stays IP_TTL: "the anchor's";
        stays IP_MINTTL: "the anchor's";
        stays IP_MTU_DISCOVER: "the anchor's";
        stays IP_RECVERR: "the anchor's errors";
        stays IP_OPTIONS: "the anchor's";
        stays IP_UNICAST_IF: "the anchor's";
        stays IP_FREEBIND: "for binding";
        stays IP_TRANSPARENT: "for binding";
        stays IP_BIND_ADDRESS_NO_PORT: "for binding";
        stays IP_LOCAL_PORT_RANGE = 51: "for binding";
        stays IP_PKTINFO: "tells a receiver of TCP nothing";
        stays IP_RECVTOS: "tells a receiver of TCP nothing";
        stays IP_RECVTTL: "tells a receiver of TCP nothing";
        stays IP_RECVORIGDSTADDR: "tells a receiver of TCP nothing";
        stays IP_MULTICAST_TTL: "means nothing to TCP";
        stays IP_MULTICAST_LOOP: "means nothing to TCP";
        stays IP_MULTICAST_IF: "means nothing to TCP";
    }
    IPPROTO_IPV6 {
        stays IPV6_V6ONLY: "for binding";
        stays IPV6_TCLASS: "the anchor's";
        stays IPV6_UNICAST_HOPS: "the anchor's";
        stays IPV6_MINHOPCOUNT: "the anchor's";
        stays IPV6_MTU: "the anchor's";
        stays IPV6_MTU_DISCOVER: "the anchor's";
        stays IPV6_DONTFRAG: "the anchor's";
        stays IPV6_AUTOFLOWLABEL: "the anchor's";
        stays IPV6_FLOWINFO_SEND: "the anchor's";
        stays IPV6_ADDR_PREFERENCES: "the anchor's";
        stays IPV6_UNICAST_IF: "the anchor's";
        stays IPV6_RECVERR: "the anchor's errors";
        stays IPV6_FREEBIND: "for binding";
        stays IPV6_TRANSPARENT: "for binding";
        stays IPV6_RECVPKTINFO: "tells a receiver of TCP nothing";
        stays IPV6_RECVTCLASS: "tells a receiver of TCP nothing";
        stays IPV6_RECVHOPLIMIT: "tells a receiver of TCP nothing";
        stays IPV6_MULTICAST_HOPS: "means nothing to TCP";
        stays IPV6_MULTICAST_LOOP: "means nothing to TCP";
    }
}
