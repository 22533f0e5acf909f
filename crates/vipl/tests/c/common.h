/* What the C tests share. Each program is started twice, as "server" and as "client", with a word of its own. */
#ifndef COMMON_H
#define COMMON_H

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s %s:%d: %s\n", role, __FILE__, __LINE__, #condition);                                  \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

#define EXPECT(code, call)                                                                                            \
    do {                                                                                                              \
        VIP_RETURN expect_got = (call);                                                                                 \
        seen_codes |= 1u << expect_got;                                                                                      \
        if (expect_got != (code)) {                                                                                          \
            fprintf(stderr, "%s %s:%d: %s is %d, not %s\n", role, __FILE__, __LINE__, #call, (int)expect_got, #code);        \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

#define OK(call) EXPECT(VIP_SUCCESS, call)

static const char *role = "?";
static const char *word = "?";
static unsigned seen_codes, seen_status;
static VIP_NIC_HANDLE nic;
static VIP_PROTECTION_HANDLE ptag;

typedef struct {
    VIP_NET_ADDRESS net;
    char room[80];
} Address;

static inline VIP_NET_ADDRESS *address(Address *into, const char *name) {
    char text[64];
    unsigned char host[4] = {127, 0, 0, 1};
    snprintf(text, sizeof text, "%s-%s", word, name);
    into->net.HostAddressLen = 4;
    into->net.DiscriminatorLen = (VIP_UINT16)strlen(text);
    memcpy(into->net.HostAddress, host, 4);
    memcpy(into->net.HostAddress + 4, text, strlen(text));
    return &into->net;
}

static inline int is_server(void) { return strcmp(role, "server") == 0; }

static inline VIP_VI_HANDLE make_vi(VIP_RELIABILITY_LEVEL level, VIP_CQ_HANDLE send, VIP_CQ_HANDLE receive) {
    VIP_VI_ATTRIBUTES attributes = {level, 0, NULL, ptag, VIP_TRUE, level != VIP_SERVICE_UNRELIABLE};
    VIP_VI_HANDLE vi;
    attributes.MaxTransferSize = 1 << 22;
    OK(VipCreateVi(nic, &attributes, send, receive, &vi));
    return vi;
}

static inline VIP_MEM_HANDLE reg(void *memory, size_t length) {
    VIP_MEM_ATTRIBUTES attributes = {ptag, VIP_TRUE, VIP_TRUE};
    VIP_MEM_HANDLE handle;
    OK(VipRegisterMem(nic, memory, length, &attributes, &handle));
    return handle;
}

/* Connects the VIs of the two processes at a point. */
static inline void join_at(VIP_VI_HANDLE vi, const char *name) {
    if (getenv("VIA_TRACE"))
        fprintf(stderr, "%s joins at %s\n", role, name);
    Address here, there, from;
    VIP_CONN_HANDLE connection;
    VIP_VI_ATTRIBUTES remote;
    if (is_server()) {
        OK(VipConnectWait(nic, address(&here, name), 20000, &from.net, &remote, &connection));
        OK(VipConnectAccept(connection, vi));
    } else {
        OK(VipConnectRequest(vi, address(&here, "client"), address(&there, name), 20000, &remote));
    }
    CHECK(remote.MaxTransferSize == 1 << 22);
}

static inline VIP_DESCRIPTOR *fill(VIP_DESCRIPTOR *d, VIP_UINT16 control, void *data, VIP_MEM_HANDLE handle,
                                   VIP_UINT32 length) {
    memset(d, 0, sizeof *d);
    d->CS.Control = control;
    d->CS.SegCount = data ? 1 : 0;
    d->CS.Length = length;
    if (data) {
        d->DS[0].Local.Data.Address = data;
        d->DS[0].Local.Handle = handle;
        d->DS[0].Local.Length = length;
    }
    return d;
}

/* The same with a remote segment in front. */
static inline VIP_DESCRIPTOR *fill_rdma(VIP_DESCRIPTOR *d, VIP_UINT16 control, VIP_UINT64 remote, VIP_MEM_HANDLE there,
                                        void *data, VIP_MEM_HANDLE handle, VIP_UINT32 length) {
    fill(d, control, data, handle, length);
    d->CS.SegCount = 2;
    d->DS[1] = d->DS[0];
    d->DS[0].Remote.Data.AddressBits = remote;
    d->DS[0].Remote.Handle = there;
    d->DS[0].Remote.Reserved = 0;
    return d;
}

/* Waits for a completion of a queue and expects these status bits. */
static inline VIP_DESCRIPTOR *expect_done(VIP_VI_HANDLE vi, int receive, VIP_UINT32 status) {
    VIP_DESCRIPTOR *d = NULL;
    VIP_RETURN code = receive ? VipRecvWait(vi, 20000, &d) : VipSendWait(vi, 20000, &d);
    VIP_RETURN wanted = status & VIP_STATUS_ERROR_MASK ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
    seen_codes |= 1u << code;
    if (code != wanted || !d || d->CS.Status != status) {
        fprintf(stderr, "%s: code %d, status %x, not %x\n", role, (int)code, d ? d->CS.Status : 0, status);
        abort();
    }
    seen_status |= status;
    return d;
}

static inline VIP_VI_STATE state_of(VIP_VI_HANDLE vi) {
    VIP_VI_STATE state;
    OK(VipQueryVi(vi, &state, NULL, NULL, NULL));
    return state;
}

static inline void until_state(VIP_VI_HANDLE vi, VIP_VI_STATE wanted) {
    int tries;
    for (tries = 0; tries < 20000 && state_of(vi) != wanted; tries++)
        usleep(500);
    CHECK(state_of(vi) == wanted);
}

/* Takes what has completed, and destroys the VI. */
static inline void destroy(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR *d;
    while (VipSendDone(vi, &d) != VIP_NOT_DONE || VipRecvDone(vi, &d) != VIP_NOT_DONE)
        ;
    OK(VipDestroyVi(vi));
}

static inline void begin(int count, char **arguments) {
    if (count < 3)
        exit(2);
    role = arguments[1];
    word = arguments[2];
    alarm(60);
    OK(VipOpenNic("nic0", &nic));
    OK(VipCreatePtag(nic, &ptag));
}

#endif
