/* Two processes on NICs of a given name, at an address that is HOST:PORT: over iWARP, and without thread safety. Every call
 * is as on any other NIC. */
#include "common.h"

#define RECV (VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE)
#define SENT (VIP_STATUS_DONE | VIP_STATUS_OP_SEND)
#define WROTE (VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE)
#define READ (VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ)
#define HALF (128 << 10)

static unsigned char room[3 * HALF];
static VIP_DESCRIPTOR d[8];
static VIP_MEM_HANDLE mem, data;
static VIP_NIC_ATTRIBUTES attributes;

/* Where the program waits: a socket, and which of several points behind it. */
static VIP_NET_ADDRESS *at(Address *into, const char *name) {
    char text[64];
    snprintf(text, sizeof text, "%s/%s", word, name);
    into->net.HostAddressLen = 0;
    into->net.DiscriminatorLen = (VIP_UINT16)strlen(text);
    memcpy(into->net.HostAddress, text, strlen(text));
    return &into->net;
}

static VIP_VI_HANDLE connected(void) {
    Address here, there, from;
    VIP_CONN_HANDLE connection;
    VIP_VI_ATTRIBUTES remote;
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    int i;
    for (i = 0; i < 4; i++)
        OK(VipPostRecv(vi, fill(&d[i], 0, room + 2 * HALF, data, HALF), mem));
    if (is_server()) {
        OK(VipConnectWait(nic, at(&here, "point"), 20000, &from.net, &remote, &connection));
        OK(VipConnectAccept(connection, vi));
    } else {
        OK(VipConnectRequest(vi, at(&here, "client"), at(&there, "point"), 20000, &remote));
    }
    CHECK(remote.ReliabilityLevel == VIP_SERVICE_RELIABLE_DELIVERY && remote.EnableRdmaRead);
    return vi;
}

static void pattern(unsigned char *bytes, int length, int seed) {
    int i;
    for (i = 0; i < length; i++)
        bytes[i] = (unsigned char)(i * 7 + seed);
}

static void expect_pattern(const unsigned char *bytes, int length, int seed) {
    int i;
    for (i = 0; i < length; i++)
        CHECK(bytes[i] == (unsigned char)(i * 7 + seed));
}

/* What the server tells of its memory. */
typedef struct {
    VIP_UINT64 address;
    VIP_MEM_HANDLE handle;
} Target;

static void server(VIP_VI_HANDLE vi) {
    Target target = {(VIP_UINT64)(uintptr_t)room, data};
    volatile unsigned char *last = room + HALF - 1;
    int tries;
    memcpy(room + HALF, &target, sizeof target);
    OK(VipPostSend(vi, fill(&d[4], 0, room + HALF, data, sizeof target), mem));
    expect_done(vi, 0, SENT);
    /* A message of one piece, and one of many. */
    CHECK(expect_done(vi, 1, RECV) == &d[0] && d[0].CS.Length == 4);
    CHECK(expect_done(vi, 1, RECV) == &d[1] && d[1].CS.Length == HALF);
    expect_pattern(room + 2 * HALF, HALF, 1);
    /* A write that nobody tells of: where the NIC has a thread, the memory changes while this program calls nothing. */
    for (tries = 0; attributes.ThreadSafe && tries < 20000 && *last != (unsigned char)((HALF - 1) * 7 + 2); tries++)
        usleep(500);
    CHECK(tries < 20000);
    CHECK(expect_done(vi, 1, RECV | VIP_STATUS_IMMEDIATE) == &d[2] && d[2].CS.ImmediateData == 99);
    expect_pattern(room, HALF, 2);
    /* The client hears that all has come, and goes. */
    OK(VipPostSend(vi, fill(&d[4], 0, NULL, 0, 0), mem));
    expect_done(vi, 0, SENT);
    until_state(vi, VIP_STATE_ERROR);
    expect_done(vi, 1, RECV | VIP_STATUS_DESC_FLUSHED_ERROR);
}

static void client(VIP_VI_HANDLE vi) {
    Target target;
    CHECK(expect_done(vi, 1, RECV) == &d[0] && d[0].CS.Length == sizeof target);
    memcpy(&target, room + 2 * HALF, sizeof target);
    memcpy(room, "four", 4);
    OK(VipPostSend(vi, fill(&d[4], 0, room, data, 4), mem));
    expect_done(vi, 0, SENT);
    pattern(room, HALF, 1);
    OK(VipPostSend(vi, fill(&d[4], 0, room, data, HALF), mem));
    expect_done(vi, 0, SENT);
    pattern(room, HALF, 2);
    OK(VipPostSend(vi, fill_rdma(&d[4], VIP_CONTROL_OP_RDMAWRITE, target.address, target.handle, room, data, HALF), mem));
    expect_done(vi, 0, WROTE);
    OK(VipPostSend(vi, fill_rdma(&d[5], VIP_CONTROL_OP_RDMAREAD, target.address, target.handle, room + HALF, data, HALF),
                   mem));
    expect_done(vi, 0, READ);
    expect_pattern(room + HALF, HALF, 2);
    fill(&d[6], VIP_CONTROL_IMMEDIATE, NULL, 0, 0)->CS.ImmediateData = 99;
    OK(VipPostSend(vi, &d[6], mem));
    expect_done(vi, 0, SENT | VIP_STATUS_IMMEDIATE);
    CHECK(expect_done(vi, 1, RECV) == &d[1] && d[1].CS.Length == 0);
    OK(VipDisconnect(vi));
}

int main(int count, char **arguments) {
    VIP_VI_HANDLE vi;
    CHECK(count == 4);
    role = arguments[1];
    word = arguments[2];
    alarm(60);
    OK(VipOpenNic(arguments[3], &nic));
    OK(VipQueryNic(nic, &attributes));
    CHECK(strcmp(attributes.Name, arguments[3]) == 0);
    CHECK(!attributes.ThreadSafe == (strstr(arguments[3], ",single") != NULL));
    OK(VipCreatePtag(nic, &ptag));
    mem = reg(d, sizeof d);
    data = reg(room, sizeof room);
    vi = connected();
    if (is_server())
        server(vi);
    else
        client(vi);
    OK(VipCloseNic(nic));
    printf("%s done\n", role);
    return 0;
}
