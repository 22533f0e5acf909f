/* One process: arguments, handles, attributes, names. Every function with null, wrong and freed handles. */
#include "common.h"

static char global[4096];

static void no_handler(VIP_PVOID c, VIP_NIC_HANDLE n, VIP_VI_HANDLE v, VIP_DESCRIPTOR *d) {
    (void)c, (void)n, (void)v, (void)d;
}
static void no_cq_handler(VIP_PVOID c, VIP_NIC_HANDLE n, VIP_VI_HANDLE v, VIP_BOOLEAN r) {
    (void)c, (void)n, (void)v, (void)r;
}

static void bad_handles(void *bad) {
    VIP_NIC_ATTRIBUTES na;
    VIP_VI_ATTRIBUTES va = {2, 0, NULL, ptag, 0, 0};
    VIP_MEM_ATTRIBUTES ma = {ptag, 0, 0};
    VIP_DESCRIPTOR d, *out;
    VIP_AUTODISCOVERY_LIST list;
    VIP_MEM_HANDLE mem;
    VIP_BOOLEAN flag;
    VIP_ULONG length = 10;
    VIP_UINT64 user;
    Address a;
    char name[64];
    void *p;
    int fd;
    memset(&d, 0, sizeof d);
    address(&a, "x");
    EXPECT(VIP_INVALID_PARAMETER, VipCloseNic(bad));
    EXPECT(VIP_INVALID_PARAMETER, VipQueryNic(bad, &na));
    EXPECT(VIP_INVALID_PARAMETER, VipErrorCallback(bad, NULL, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipQuerySystemManagementInfo(bad, VIP_SMI_AUTODISCOVERY, &list));
    EXPECT(VIP_INVALID_PARAMETER, VipCreateVi(bad, &va, NULL, NULL, &p));
    EXPECT(VIP_INVALID_PARAMETER, VipDestroyVi(bad));
    EXPECT(VIP_INVALID_PARAMETER, VipQueryVi(bad, NULL, &va, NULL, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipSetViAttributes(bad, &va));
    EXPECT(VIP_INVALID_PARAMETER, VipConnectWait(bad, &a.net, 0, NULL, NULL, &p));
    EXPECT(VIP_INVALID_PARAMETER, VipConnectAccept(bad, bad));
    EXPECT(VIP_INVALID_PARAMETER, VipConnectReject(bad));
    EXPECT(VIP_INVALID_PARAMETER, VipConnectRequest(bad, &a.net, &a.net, 0, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipDisconnect(bad));
    EXPECT(VIP_INVALID_PARAMETER, VipConnectPeerRequest(bad, &a.net, &a.net, 0));
    EXPECT(VIP_INVALID_PARAMETER, VipConnectPeerDone(bad, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipConnectPeerWait(bad, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipCreatePtag(bad, &p));
    EXPECT(VIP_INVALID_PARAMETER, VipDestroyPtag(bad, ptag));
    EXPECT(VIP_INVALID_PTAG, VipDestroyPtag(nic, bad));
    EXPECT(VIP_INVALID_PARAMETER, VipRegisterMem(bad, global, 10, &ma, &mem));
    EXPECT(VIP_INVALID_PARAMETER, VipDeregisterMem(bad, global, 1));
    EXPECT(VIP_INVALID_PARAMETER, VipSetMemAttributes(bad, global, 1, &ma));
    EXPECT(VIP_INVALID_PARAMETER, VipQueryMem(bad, global, 1, &ma));
    EXPECT(VIP_INVALID_PARAMETER, VipPostSend(bad, &d, 1));
    EXPECT(VIP_INVALID_PARAMETER, VipPostRecv(bad, &d, 1));
    EXPECT(VIP_INVALID_PARAMETER, VipSendDone(bad, &out));
    EXPECT(VIP_INVALID_PARAMETER, VipRecvDone(bad, &out));
    EXPECT(VIP_INVALID_PARAMETER, VipSendWait(bad, 0, &out));
    EXPECT(VIP_INVALID_PARAMETER, VipRecvWait(bad, 0, &out));
    EXPECT(VIP_INVALID_PARAMETER, VipSendNotify(bad, NULL, no_handler));
    EXPECT(VIP_INVALID_PARAMETER, VipRecvNotify(bad, NULL, no_handler));
    EXPECT(VIP_INVALID_PARAMETER, VipCreateCQ(bad, 1, &p));
    EXPECT(VIP_INVALID_PARAMETER, VipDestroyCQ(bad));
    EXPECT(VIP_INVALID_PARAMETER, VipResizeCQ(bad, 1));
    EXPECT(VIP_INVALID_PARAMETER, VipCQDone(bad, &p, &flag));
    EXPECT(VIP_INVALID_PARAMETER, VipCQWait(bad, 0, &p, &flag));
    EXPECT(VIP_INVALID_PARAMETER, VipCQNotify(bad, NULL, no_cq_handler));
    EXPECT(VIP_INVALID_PARAMETER, VipNSInit(bad, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipNSShutdown(bad));
    EXPECT(VIP_INVALID_PARAMETER, VipNSGetHostByName(bad, "localhost", &a.net, 0));
    EXPECT(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(bad, &a.net, name, &length));
    EXPECT(VIP_INVALID_PARAMETER, VipExtAllocMem(bad, 10, &ma, &p, &mem));
    EXPECT(VIP_INVALID_PARAMETER, VipExtFreeMem(bad, global, 1));
    EXPECT(VIP_INVALID_PARAMETER, VipExtPostSend(bad, &d, 1, 0, 0));
    EXPECT(VIP_INVALID_PARAMETER, VipExtSetFlow(bad, 0));
    EXPECT(VIP_INVALID_PARAMETER, VipExtSetSplit(bad, 0));
    EXPECT(VIP_INVALID_PARAMETER, VipExtSetPlacing(bad, 0));
    EXPECT(VIP_INVALID_PARAMETER, VipExtSetUserWord(bad, 0));
    EXPECT(VIP_INVALID_PARAMETER, VipExtGetUserWord(bad, &user));
    EXPECT(VIP_INVALID_PARAMETER, VipExtCQDescriptor(bad, &fd));
    EXPECT(VIP_INVALID_PARAMETER, VipExtMoveVi(bad, 0, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipPostDeferredSends(bad, 0, &flag));
    VipSetUserData(bad, &d);
    CHECK(VipGetUserData(bad) == NULL);
}

static void attributes(void) {
    VIP_NIC_ATTRIBUTES na;
    VIP_VI_ATTRIBUTES va = {2, 0, NULL, ptag, 0, 0}, got;
    VIP_VI_HANDLE vi;
    VIP_VI_STATE state;
    VIP_BOOLEAN send, receive;
    VIP_AUTODISCOVERY_LIST list;
    OK(VipQueryNic(nic, &na));
    CHECK(na.MaxVI <= 4096 && na.MaxDescriptorsPerQueue <= 4096 && na.MaxTransferSize >= 65536);
    CHECK(na.NicAddressLen > 0 && na.LocalNicAddress[0] == 127 && strcmp(na.Name, "nic0") == 0 && na.ThreadSafe);
    OK(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list));
    CHECK(list.NumAdAddrs == 1 && list.ADAddrArray[0]->HostAddressLen == na.NicAddressLen);
    EXPECT(VIP_INVALID_PARAMETER, VipQuerySystemManagementInfo(nic, 7, &list));
    va.ReliabilityLevel = 3;
    EXPECT(VIP_INVALID_RELIABILITY_LEVEL, VipCreateVi(nic, &va, NULL, NULL, &vi));
    va.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
    va.EnableRdmaRead = VIP_TRUE;
    EXPECT(VIP_INVALID_RDMAREAD, VipCreateVi(nic, &va, NULL, NULL, &vi));
    va.EnableRdmaRead = VIP_FALSE;
    va.MaxTransferSize = na.MaxTransferSize + 1;
    EXPECT(VIP_INVALID_MTU, VipCreateVi(nic, &va, NULL, NULL, &vi));
    va.MaxTransferSize = 1000;
    va.QoS = &va;
    EXPECT(VIP_INVALID_QOS, VipCreateVi(nic, &va, NULL, NULL, &vi));
    va.QoS = NULL;
    va.Ptag = NULL;
    EXPECT(VIP_INVALID_PTAG, VipCreateVi(nic, &va, NULL, NULL, &vi));
    va.Ptag = ptag;
    EXPECT(VIP_INVALID_PARAMETER, VipCreateVi(nic, &va, nic, NULL, &vi));
    OK(VipCreateVi(nic, &va, NULL, NULL, &vi));
    OK(VipQueryVi(vi, &state, &got, &send, &receive));
    CHECK(state == VIP_STATE_IDLE && got.MaxTransferSize == 1000 && got.Ptag == ptag && send && receive);
    va.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
    OK(VipSetViAttributes(vi, &va));
    OK(VipQueryVi(vi, NULL, &got, NULL, NULL));
    CHECK(got.ReliabilityLevel == VIP_SERVICE_RELIABLE_RECEPTION);
    EXPECT(VIP_ERROR_RESOURCE, VipDestroyPtag(nic, ptag));
    CHECK(VipGetUserData(vi) == NULL);
    VipSetUserData(vi, &got);
    CHECK(VipGetUserData(vi) == &got);
    OK(VipPostDeferredSends(vi, VIP_FALSE, &send));
    CHECK(!send);
    OK(VipDestroyVi(vi));
    EXPECT(VIP_INVALID_PARAMETER, VipDestroyVi(vi));
    bad_handles(vi);
}

static void memory(void) {
    VIP_MEM_ATTRIBUTES ma = {ptag, VIP_TRUE, VIP_FALSE}, got;
    VIP_MEM_HANDLE one, two, three;
    char stack[256], *heap = malloc(1 << 20);
    volatile size_t was;
    void *own;
    /* The same memory twice, and overlapping. */
    OK(VipRegisterMem(nic, global, sizeof global, &ma, &one));
    OK(VipRegisterMem(nic, global, sizeof global, &ma, &two));
    OK(VipRegisterMem(nic, global + 100, 100, &ma, &three));
    CHECK(one != two && two != three && one != three);
    OK(VipQueryMem(nic, global, one, &got));
    CHECK(got.Ptag == ptag && got.EnableRdmaWrite && !got.EnableRdmaRead);
    ma.EnableRdmaRead = VIP_TRUE;
    OK(VipSetMemAttributes(nic, global, one, &ma));
    OK(VipQueryMem(nic, global, one, &got));
    CHECK(got.EnableRdmaRead);
    EXPECT(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, global + 1, one));
    OK(VipDeregisterMem(nic, global, one));
    EXPECT(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, global, one));
    EXPECT(VIP_INVALID_PARAMETER, VipQueryMem(nic, global, one, &got));
    OK(VipDeregisterMem(nic, global, two));
    OK(VipDeregisterMem(nic, global + 100, three));
    OK(VipRegisterMem(nic, stack, sizeof stack, &ma, &one));
    OK(VipDeregisterMem(nic, stack, one));
    /* Freed while it is registered: the handle is still given back in order. */
    OK(VipRegisterMem(nic, heap, 1 << 20, &ma, &one));
    was = (size_t)heap;
    free(heap);
    OK(VipDeregisterMem(nic, (void *)was, one));
    EXPECT(VIP_INVALID_PARAMETER, VipRegisterMem(nic, NULL, 10, &ma, &one));
    EXPECT(VIP_INVALID_PARAMETER, VipRegisterMem(nic, global, 0, &ma, &one));
    EXPECT(VIP_INVALID_PARAMETER, VipRegisterMem(nic, global, 10, &ma, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipRegisterMem(nic, global, 10, NULL, &one));
    ma.Ptag = nic;
    EXPECT(VIP_INVALID_PTAG, VipRegisterMem(nic, global, 10, &ma, &one));
    ma.Ptag = ptag;
    OK(VipExtAllocMem(nic, 5000, &ma, &own, &one));
    memset(own, 1, 5000);
    EXPECT(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, own, one));
    OK(VipExtFreeMem(nic, own, one));
    EXPECT(VIP_INVALID_PARAMETER, VipExtFreeMem(nic, own, one));
}

static void queues(void) {
    static VIP_DESCRIPTOR d[4];
    VIP_MEM_HANDLE mem = reg(d, sizeof d), data = reg(global, sizeof global);
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL), other;
    VIP_DESCRIPTOR *out, *crooked = (VIP_DESCRIPTOR *)(global + 64 - (size_t)global % 64 + 16);
    VIP_CQ_HANDLE cq;
    VIP_ULONG entries = 0;
    VIP_BOOLEAN flag;
    EXPECT(VIP_NOT_DONE, VipRecvDone(vi, &out));
    EXPECT(VIP_NOT_DONE, VipSendDone(vi, &out));
    EXPECT(VIP_TIMEOUT, VipRecvWait(vi, 0, &out));
    EXPECT(VIP_TIMEOUT, VipSendWait(vi, 5, &out));
    EXPECT(VIP_INVALID_PARAMETER, VipRecvDone(vi, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipPostRecv(vi, NULL, mem));
    /* A send without a connection. */
    OK(VipPostSend(vi, fill(&d[0], 0, global, data, 10), mem));
    CHECK(expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR) == &d[0]);
    /* A receive is kept until the VI is disconnected. */
    OK(VipPostRecv(vi, fill(&d[0], 0, global, data, 10), mem));
    EXPECT(VIP_NOT_DONE, VipRecvDone(vi, &out));
    EXPECT(VIP_ERROR_RESOURCE, VipDestroyVi(vi));
    OK(VipDisconnect(vi));
    /* So is one that has completed until it is taken. */
    EXPECT(VIP_ERROR_RESOURCE, VipDestroyVi(vi));
    expect_done(vi, 1, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR);
    /* Bad descriptors. */
    fill(&d[1], VIP_CONTROL_RESERVED, global, data, 10);
    OK(VipPostSend(vi, &d[1], mem));
    expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_FORMAT_ERROR);
    fill(&d[1], VIP_CONTROL_OP_RESERVED, global, data, 10);
    OK(VipPostSend(vi, &d[1], mem));
    expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_FORMAT_ERROR);
    fill(&d[1], 0, global, data, 10)->CS.Length = 11;
    OK(VipPostSend(vi, &d[1], mem));
    expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR);
    /* A length that was left out, and on the receive queue any, says nothing. */
    fill(&d[1], 0, global, data, 10)->CS.Length = 0;
    OK(VipPostSend(vi, &d[1], mem));
    expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR);
    fill(&d[1], 0, global, data, 10)->CS.SegCount = 1000;
    OK(VipPostRecv(vi, &d[1], mem));
    /* The fault is one of the message that meets it: here there is none. */
    EXPECT(VIP_NOT_DONE, VipRecvDone(vi, &out));
    OK(VipDisconnect(vi));
    expect_done(vi, 1, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR);
    memset(crooked, 0, sizeof *crooked);
    OK(VipPostSend(vi, crooked, data));
    OK(VipSendDone(vi, &out) == VIP_DESCRIPTOR_ERROR ? VIP_SUCCESS : VIP_REJECT);
    CHECK(out == crooked && out->CS.Status & VIP_STATUS_FORMAT_ERROR);
    OK(VipPostSend(vi, fill(&d[1], 0, global, data, 10), data));
    expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_PROTECTION_ERROR);
    OK(VipPostSend(vi, fill(&d[1], 0, global, data, sizeof global + 1), mem));
    expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_PROTECTION_ERROR);
    /* A queue has an end. */
    while (VipPostRecv(vi, &d[0], mem) == VIP_SUCCESS)
        CHECK(++entries <= 4096);
    EXPECT(VIP_ERROR_RESOURCE, VipPostRecv(vi, &d[0], mem));
    OK(VipDisconnect(vi));
    /* Completion queues. */
    EXPECT(VIP_INVALID_PARAMETER, VipCreateCQ(nic, 0, &cq));
    EXPECT(VIP_ERROR_RESOURCE, VipCreateCQ(nic, 1ul << 40, &cq));
    OK(VipCreateCQ(nic, 10, &cq));
    EXPECT(VIP_NOT_DONE, VipCQDone(cq, &other, &flag));
    EXPECT(VIP_TIMEOUT, VipCQWait(cq, 1, &other, &flag));
    OK(VipResizeCQ(cq, 20));
    other = make_vi(VIP_SERVICE_UNRELIABLE, cq, cq);
    EXPECT(VIP_ERROR_RESOURCE, VipDestroyCQ(cq));
    EXPECT(VIP_INVALID_PARAMETER, VipRecvWait(other, 0, &out));
    OK(VipDestroyVi(other));
    OK(VipDestroyCQ(cq));
    bad_handles(cq);
    destroy(vi);
    OK(VipDeregisterMem(nic, d, mem));
    OK(VipDeregisterMem(nic, global, data));
}

static void connecting(void) {
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_CONN_HANDLE connection;
    Address here, there;
    address(&here, "nobody"), address(&there, "there");
    EXPECT(VIP_NO_MATCH, VipConnectRequest(vi, &here.net, &there.net, 20, NULL));
    EXPECT(VIP_TIMEOUT, VipConnectWait(nic, &here.net, 5, NULL, NULL, &connection));
    there.net.HostAddress[0] = 192, there.net.HostAddress[1] = 0, there.net.HostAddress[2] = 2;
    EXPECT(VIP_NOT_REACHABLE, VipConnectRequest(vi, &here.net, &there.net, 20, NULL));
    EXPECT(VIP_INVALID_STATE, VipConnectPeerDone(vi, NULL));
    address(&there, "there");
    OK(VipConnectPeerRequest(vi, &here.net, &there.net, 10));
    CHECK(state_of(vi) == VIP_STATE_CONNECT_PENDING);
    EXPECT(VIP_INVALID_STATE, VipConnectRequest(vi, &here.net, &there.net, 20, NULL));
    EXPECT(VIP_NOT_DONE, VipConnectPeerDone(vi, NULL));
    EXPECT(VIP_TIMEOUT, VipConnectPeerWait(vi, NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipConnectWait(nic, NULL, 0, NULL, NULL, &connection));
    OK(VipDestroyVi(vi));
}

static void names(void) {
    Address a;
    char name[64];
    VIP_ULONG length = sizeof name;
    EXPECT(VIP_ERROR_NAMESERVICE, VipNSGetHostByName(nic, "localhost", &a.net, 0));
    EXPECT(VIP_ERROR_NAMESERVICE, VipNSShutdown(nic));
    EXPECT(VIP_ERROR_NAMESERVICE, VipNSInit(nic, "/nonexistent/hosts"));
    OK(VipNSInit(nic, NULL));
    OK(VipNSGetHostByName(nic, "localhost", &a.net, 0));
    CHECK(a.net.HostAddressLen == 4 && a.net.HostAddress[0] == 127);
    EXPECT(VIP_ERROR_NAMESERVICE, VipNSGetHostByName(nic, "localhost", &a.net, 99));
    OK(VipNSGetHostByAddr(nic, &a.net, name, &length));
    CHECK(length == strlen(name) + 1);
    length = 1;
    EXPECT(VIP_ERROR_RESOURCE, VipNSGetHostByAddr(nic, &a.net, name, &length));
    a.net.HostAddress[0] = 203;
    EXPECT(VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(nic, &a.net, name, &length));
    OK(VipNSShutdown(nic));
}

/* As programs look for the NICs of a host: each row of names ends. */
static void probing(void) {
    static const char *rows[] = {"nic%d", "VINIC%d", "/dev/clanvi%d", "/dev/via_eth%d", "iwarp%d"};
    VIP_NIC_HANDLE found;
    char name[64];
    int row, i;
    for (row = 0; row < 5; row++)
        for (i = 0; i < 3; i++) {
            snprintf(name, sizeof name, rows[row], i);
            EXPECT(i ? VIP_INVALID_PARAMETER : VIP_SUCCESS, VipOpenNic(name, &found));
            if (i == 0)
                OK(VipCloseNic(found));
        }
    setenv("SIDESTEP_VIA_NICS", "/dev/lanai=shm,wan=iwarp", 1);
    OK(VipOpenNic("/dev/lanai", &found));
    OK(VipCloseNic(found));
    OK(VipOpenNic("wan", &found));
    OK(VipCloseNic(found));
    EXPECT(VIP_INVALID_PARAMETER, VipOpenNic("lan", &found));
}

/* The structure of other providers' headers, and what lies behind it in an old program. */
static void layout(void) {
    struct {
        VIP_NIC_ATTRIBUTES attributes;
        char guard[64];
    } room;
    int i;
    memset(&room, 0x5a, sizeof room);
    OK(VipQueryNic(nic, &room.attributes));
    CHECK(sizeof room.attributes == 200);
    for (i = 0; i < 64; i++)
        CHECK(room.guard[i] == 0x5a);
}

int main(int count, char **arguments) {
    VIP_NIC_HANDLE other;
    begin(count, arguments);
    bad_handles(NULL);
    bad_handles((void *)0x1234);
    bad_handles(&count);
    EXPECT(VIP_INVALID_PARAMETER, VipOpenNic(NULL, &other));
    EXPECT(VIP_INVALID_PARAMETER, VipOpenNic("nic0", NULL));
    EXPECT(VIP_INVALID_PARAMETER, VipOpenNic("/dev/null", &other));
    probing();
    OK(VipOpenNic("/dev/via_lo", &other));
    OK(VipCloseNic(other));
    EXPECT(VIP_INVALID_PARAMETER, VipCloseNic(other));
    layout();
    attributes();
    memory();
    queues();
    connecting();
    names();
    OK(VipDestroyPtag(nic, ptag));
    EXPECT(VIP_INVALID_PTAG, VipDestroyPtag(nic, ptag));
    OK(VipCloseNic(nic));
    printf("codes %x status %x\n", seen_codes, seen_status);
    return 0;
}
