// Options that a stream may have or take while it is promoted. Any other takes it back to TCP.

kept_options! {
    SOL_SOCKET {
        SO_REUSEADDR: "for binding";
        SO_REUSEPORT: "for binding";
        SO_ERROR: "read only";
        SO_DEBUG: "the anchor's";
        SO_DONTROUTE: "the anchor's";
        SO_BROADCAST: "means nothing to TCP";
        SO_SNDBUF: "bounds what the stream accepts";
        SO_RCVBUF: "bounds what the stream accepts";
        SO_SNDBUFFORCE: "bounds what the stream accepts";
        SO_RCVBUFFORCE: "bounds what the stream accepts";
        SO_KEEPALIVE: "the anchor's: it still finds a dead host";
        SO_PRIORITY: "the anchor's";
        SO_LINGER: "the stream closes accordingly";
        SO_RCVLOWAT: "the stream waits accordingly";
        SO_SNDLOWAT: "the kernel refuses it";
        SO_RCVTIMEO: "the stream waits accordingly";
        SO_SNDTIMEO: "the stream waits accordingly";
        SO_BINDTODEVICE: "the anchor's";
        SO_MARK: "the anchor's";
        SO_BUSY_POLL: "the anchor's; the stream has its own policy";
        SO_RXQ_OVFL: "means nothing to TCP";
        SO_PASSCRED: "means nothing to TCP";
    }
    IPPROTO_TCP {
        TCP_NODELAY: "a promoted stream never waits to fill a packet";
        TCP_CORK: "the stream holds back accordingly";
        TCP_QUICKACK: "the anchor's";
        TCP_KEEPIDLE: "the anchor's";
        TCP_KEEPINTVL: "the anchor's";
        TCP_KEEPCNT: "the anchor's";
        TCP_USER_TIMEOUT: "the anchor's";
        TCP_LINGER2: "the anchor's";
        TCP_DEFER_ACCEPT: "for listeners";
        TCP_FASTOPEN: "for listeners";
        TCP_SYNCNT: "for connecting";
        TCP_FASTOPEN_CONNECT: "for connecting";
        TCP_WINDOW_CLAMP: "the anchor's";
        TCP_MAXSEG: "the anchor's";
        TCP_CONGESTION: "the anchor's";
        TCP_NOTSENT_LOWAT: "the anchor's";
        TCP_THIN_LINEAR_TIMEOUTS: "the anchor's";
        TCP_THIN_DUPACK: "the anchor's";
        TCP_SAVE_SYN: "for listeners";
    }
    IPPROTO_IP {
        IP_TOS: "the anchor's";
        IP_TTL: "the anchor's";
        IP_MTU_DISCOVER: "the anchor's";
        IP_RECVERR: "the anchor's errors";
        IP_FREEBIND: "for binding";
        IP_TRANSPARENT: "for binding";
        IP_BIND_ADDRESS_NO_PORT: "for binding";
    }
    IPPROTO_IPV6 {
        IPV6_V6ONLY: "for binding";
        IPV6_TCLASS: "the anchor's";
        IPV6_UNICAST_HOPS: "the anchor's";
        IPV6_MTU_DISCOVER: "the anchor's";
        IPV6_RECVERR: "the anchor's errors";
        IPV6_FREEBIND: "for binding";
        IPV6_TRANSPARENT: "for binding";
    }
}
