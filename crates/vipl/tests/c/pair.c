/* Two processes: everything that needs a connection. */
#include "common.h"
#include <poll.h>
#include <signal.h>

#define RECV (VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE)
#define SENT (VIP_STATUS_DONE | VIP_STATUS_OP_SEND)
#define BIG (1 << 20)

static char global[65536];
static VIP_DESCRIPTOR d[8];
static VIP_MEM_HANDLE mem, data, big_handle;
static char *big;
static volatile unsigned errors_seen, notified, cq_notified; /* set by other threads */
static VIP_DESCRIPTOR *volatile notified_descriptor;

static VIP_ERROR_DESCRIPTOR last_errors[11];

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
    CHECK(context == &errors_seen && error->NicHandle == nic);
    last_errors[error->ErrorCode] = *error;
    errors_seen |= 1u << error->ErrorCode;
}
/* What the last error of a kind was about. */
static void check_error(VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_VI_HANDLE vi, VIP_CQ_HANDLE cq,
                        VIP_DESCRIPTOR *descriptor, VIP_ULONG operation) {
    VIP_ERROR_DESCRIPTOR *error = &last_errors[code];
    CHECK(error->ResourceCode == resource && error->ViHandle == vi && error->CQHandle == cq);
    CHECK(error->DescriptorPtr == descriptor && error->OpCode == operation);
}
static void on_done(VIP_PVOID context, VIP_NIC_HANDLE n, VIP_VI_HANDLE v, VIP_DESCRIPTOR *descriptor) {
    CHECK(context == global && n == nic && v);
    notified_descriptor = descriptor;
    notified++;
}
static void on_cq(VIP_PVOID context, VIP_NIC_HANDLE n, VIP_VI_HANDLE v, VIP_BOOLEAN receive) {
    VIP_DESCRIPTOR *out;
    CHECK(context == global && n == nic && receive);
    OK(VipRecvDone(v, &out));
    cq_notified++;
}
static void until_flag(volatile unsigned *flag, unsigned bits) {
    int tries;
    for (tries = 0; tries < 20000 && (*flag & bits) != bits; tries++)
        usleep(500);
    CHECK((*flag & bits) == bits);
}

/* After this the other side has done everything before its own call. */
static void meet(VIP_VI_HANDLE vi) {
    static VIP_DESCRIPTOR in, out;
    static VIP_MEM_HANDLE in_handle, out_handle;
    if (!in_handle)
        in_handle = reg(&in, sizeof in), out_handle = reg(&out, sizeof out);
    OK(VipPostRecv(vi, fill(&in, 0, NULL, 0, 0), in_handle));
    OK(VipExtPostSend(vi, fill(&out, 0, NULL, 0, 0), out_handle, VIP_EXT_FLOW_BLOCKING, 20000));
    expect_done(vi, 0, SENT);
    expect_done(vi, 1, RECV);
}

static void finish(VIP_VI_HANDLE vi) {
    OK(VipDisconnect(vi));
    CHECK(state_of(vi) == VIP_STATE_IDLE);
    destroy(vi);
}

static void messages(void) {
    VIP_UINT32 sizes[] = {4, 400, 9000, 65536, BIG}, i;
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    char stack[64];
    VIP_MEM_HANDLE stack_handle = reg(stack, sizeof stack);
    /* Receives before the connection; the server's are on its stack, in a global, and on the heap. */
    if (is_server()) {
        OK(VipPostRecv(vi, fill(&d[0], 0, stack, stack_handle, sizeof stack), mem));
        OK(VipPostRecv(vi, fill(&d[1], 0, global, data, sizeof global), mem));
        OK(VipPostRecv(vi, fill(&d[2], 0, NULL, 0, 0), mem));
        OK(VipPostRecv(vi, fill(&d[3], 0, NULL, 0, 0), mem));
    }
    join_at(vi, "messages");
    CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    EXPECT(VIP_INVALID_STATE, VipDestroyVi(vi));
    if (is_server()) {
        CHECK(expect_done(vi, 1, RECV) == &d[0] && d[0].CS.Length == 5 && strcmp(stack, "four") == 0);
        CHECK(expect_done(vi, 1, RECV | VIP_STATUS_IMMEDIATE) == &d[1]);
        CHECK(d[1].CS.Length == 6 && d[1].CS.ImmediateData == 77 && strcmp(global, "hello") == 0);
        CHECK(expect_done(vi, 1, RECV) == &d[2] && d[2].CS.Length == 0);
        CHECK(expect_done(vi, 1, RECV | VIP_STATUS_IMMEDIATE) == &d[3] && d[3].CS.ImmediateData == 78);
    } else {
        strcpy(stack, "four"), strcpy(global, "hello");
        OK(VipPostSend(vi, fill(&d[0], 0, stack, stack_handle, 5), mem));
        /* In two segments, by the other spelling. */
        fill(&d[1], VIP_CONTROL_IMMEDIATE, global, data, 2)->CS.ImmediateData = 77;
        d[1].Control.SegCount = 2, d[1].Control.Length = 6;
        d[1].Data[1].Data.Address = global + 2, d[1].Data[1].Handle = data, d[1].Data[1].Length = 4;
        OK(VipPostSend(vi, &d[1], mem));
        OK(VipPostSend(vi, fill(&d[2], 0, NULL, 0, 0), mem));
        fill(&d[3], VIP_CONTROL_IMMEDIATE, NULL, 0, 0)->CS.ImmediateData = 78;
        OK(VipPostSend(vi, &d[3], mem));
        for (i = 0; i < 4; i++)
            CHECK(expect_done(vi, 0, SENT | (i % 2 ? VIP_STATUS_IMMEDIATE : 0)) == &d[i]);
    }
    meet(vi);
    /* One descriptor, used again as soon as it is done, back and forth; the heap, then memory of the library. */
    for (i = 0; i < 10; i++) {
        VIP_UINT32 size = sizes[i / 2];
        if (is_server()) {
            OK(VipPostRecv(vi, fill(&d[0], 0, big, big_handle, BIG), mem));
            expect_done(vi, 1, RECV);
            CHECK(d[0].CS.Length == size && big[0] == (char)i && big[size - 1] == (char)i);
        } else {
            memset(big, (int)i, size);
            OK(VipExtPostSend(vi, fill(&d[0], 0, big, big_handle, size), mem, VIP_EXT_FLOW_BLOCKING, 20000));
            expect_done(vi, 0, SENT);
        }
    }
    meet(vi);
    finish(vi);
    OK(VipDeregisterMem(nic, stack, stack_handle));
}

/* The program looks at the status, or at a word of memory, and never calls. */
static void polling_memory(void) {
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    volatile VIP_UINT32 *status = &d[0].CS.Status;
    volatile unsigned *target = (volatile unsigned *)(void *)(global + 1024);
    struct { VIP_UINT64 address; VIP_MEM_HANDLE handle; } *there = (void *)(global + 2048);
    VIP_DESCRIPTOR *out;
    *target = 0;
    OK(VipPostRecv(vi, fill(&d[0], 0, there, data, sizeof *there), mem));
    join_at(vi, "polling");
    if (is_server()) {
        static VIP_DESCRIPTOR own;
        VIP_MEM_HANDLE own_handle = reg(&own, sizeof own);
        char *note = global + 4096;
        memcpy(note, &(VIP_UINT64){(VIP_UINT64)(size_t)target}, 8);
        memcpy(note + 8, &data, sizeof data);
        OK(VipPostSend(vi, fill(&own, 0, note, data, sizeof *there), own_handle));
        while (*target < 4711)
            usleep(10);
        /* With immediate data it takes a receive; the status is all that is looked at. */
        while (!(*status & VIP_STATUS_DONE))
            usleep(10);
        CHECK(*status == (VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE));
        seen_status |= *status;
        CHECK(d[0].CS.ImmediateData == 5 && *target == 4712);
        OK(VipRecvDone(vi, &out));
        OK(VipSendDone(vi, &out));
    } else {
        unsigned *value = (unsigned *)(void *)(global + 8192);
        expect_done(vi, 1, RECV);
        *value = 4711;
        fill_rdma(&d[1], VIP_CONTROL_OP_RDMAWRITE, there->address, there->handle, value, data, 4);
        OK(VipPostSend(vi, &d[1], mem));
        expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE);
        *value = 4712;
        d[1].CS.Control |= VIP_CONTROL_IMMEDIATE, d[1].CS.ImmediateData = 5;
        OK(VipPostSend(vi, &d[1], mem));
        expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
        /* Read it back, and fence what follows. */
        *value = 0;
        fill_rdma(&d[1], VIP_CONTROL_OP_RDMAREAD, there->address, there->handle, value, data, 4);
        OK(VipPostSend(vi, &d[1], mem));
        fill_rdma(&d[2], VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_QFENCE, there->address, there->handle, value, data, 4);
        OK(VipPostSend(vi, &d[2], mem));
        expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ);
        expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE);
        CHECK(*value == 4712);
    }
    meet(vi);
    finish(vi);
}

/* The same bytes in two segments: a peer cannot place a message there by itself, so it comes in parts. */
static VIP_DESCRIPTOR *halved(VIP_DESCRIPTOR *whole) {
    whole->CS.SegCount = 2;
    whole->DS[1] = whole->DS[0];
    whole->DS[0].Local.Length /= 2;
    whole->DS[1].Local.Length -= whole->DS[0].Local.Length;
    whole->DS[1].Local.Data.Address = (char *)whole->DS[0].Local.Data.Address + whole->DS[0].Local.Length;
    return whole;
}

static void errors_at(const char *name, VIP_RELIABILITY_LEVEL level, int kind) {
    VIP_VI_HANDLE vi = make_vi(level, NULL, NULL);
    errors_seen = 0;
    if (is_server() && kind)
        OK(VipPostRecv(vi, halved(fill(&d[0], 0, big, big_handle, kind == 1 ? 10 : BIG)), mem));
    if (is_server() && kind == 2)
        OK(VipPostRecv(vi, halved(fill(&d[1], 0, big, big_handle, BIG)), mem));
    join_at(vi, name);
    if (is_server()) {
        switch (kind) {
        case 0: /* No receive. */
            if (level != VIP_SERVICE_UNRELIABLE) {
                until_flag(&errors_seen, 1u << VIP_ERROR_RECVQ_EMPTY);
                check_error(VIP_ERROR_RECVQ_EMPTY, VIP_RESOURCE_VI, vi, NULL, NULL, VIP_STATUS_OP_RECEIVE);
            }
            break;
        case 1: /* Too small a receive. */
            expect_done(vi, 1, RECV | VIP_STATUS_LENGTH_ERROR);
            break;
        case 2: /* The peer goes in the middle of a message. It needs to know who this is. */
            *(int *)(void *)global = getpid();
            OK(VipExtPostSend(vi, fill(&d[2], 0, global, data, 4), mem, VIP_EXT_FLOW_BLOCKING, 20000));
            expect_done(vi, 0, SENT);
            expect_done(vi, 1, RECV | VIP_STATUS_PARTIAL_ERROR);
            expect_done(vi, 1, RECV | VIP_STATUS_DESC_FLUSHED_ERROR);
            until_flag(&errors_seen, 1u << VIP_ERROR_CONN_LOST);
            break;
        case 3: /* Bad memory, for writing and reading: the client ends it. */
            if (*name == 'w') {
                until_flag(&errors_seen, 1u << VIP_ERROR_RDMAW_PROT);
                check_error(VIP_ERROR_RDMAW_PROT, VIP_RESOURCE_VI, vi, NULL, NULL, VIP_STATUS_OP_REMOTE_RDMA_WRITE);
            } else {
                until_flag(&errors_seen, 1u << VIP_ERROR_RDMAR_PROT);
                check_error(VIP_ERROR_RDMAR_PROT, VIP_RESOURCE_VI, vi, NULL, NULL, VIP_STATUS_OP_RDMA_READ);
            }
            break;
        }
        if (level != VIP_SERVICE_UNRELIABLE)
            until_state(vi, VIP_STATE_ERROR);
    } else {
        VIP_UINT32 lost = level == VIP_SERVICE_RELIABLE_RECEPTION ? VIP_STATUS_REMOTE_DESC_ERROR : 0;
        switch (kind) {
        case 0:
        case 1:
            OK(VipPostSend(vi, fill(&d[0], 0, global, data, 20), mem));
            expect_done(vi, 0, SENT | lost);
            break;
        case 2:
            OK(VipPostRecv(vi, fill(&d[2], 0, global, data, 4), mem));
            expect_done(vi, 1, RECV);
            /* Stopped, it takes nothing; what does not fit into the ring stays here. */
            kill(*(int *)(void *)global, SIGSTOP);
            OK(VipPostSend(vi, fill(&d[0], 0, big, big_handle, BIG), mem));
            OK(VipPostSend(vi, fill(&d[1], 0, big, big_handle, BIG), mem));
            OK(VipDisconnect(vi));
            kill(*(int *)(void *)global, SIGCONT);
            expect_done(vi, 0, SENT | VIP_STATUS_TRANSPORT_ERROR);
            expect_done(vi, 0, SENT | VIP_STATUS_DESC_FLUSHED_ERROR);
            break;
        case 3:
            fill_rdma(&d[0], *name == 'w' ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD, 4096, 99, global, data, 8);
            OK(VipPostSend(vi, &d[0], mem));
            expect_done(vi, 0,
                        VIP_STATUS_DONE | VIP_STATUS_RDMA_PROT_ERROR |
                            (*name == 'w' ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_RDMA_READ));
            break;
        }
        if (level != VIP_SERVICE_UNRELIABLE && kind != 2)
            until_state(vi, VIP_STATE_ERROR);
    }
    if (level == VIP_SERVICE_UNRELIABLE) {
        /* The connection stands. Another one tells that the client has sent. */
        VIP_VI_HANDLE other = make_vi(level, NULL, NULL);
        CHECK(state_of(vi) == VIP_STATE_CONNECTED);
        join_at(other, "has-sent");
        meet(vi);
        finish(other);
    }
    finish(vi);
}

static void completion_queues(void) {
    enum { VIS = 5 };
    VIP_CQ_HANDLE cq, other;
    VIP_VI_HANDLE vi[VIS], from;
    VIP_BOOLEAN receive;
    VIP_DESCRIPTOR *out;
    VIP_UINT64 user;
    char name[16];
    int i, descriptor;
    OK(VipCreateCQ(nic, 3, &cq)); /* fewer entries than there will be: told, and nothing lost */
    OK(VipCreateCQ(nic, 100, &other));
    errors_seen = 0;
    for (i = 0; i < VIS; i++) {
        vi[i] = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, is_server() ? NULL : cq, is_server() ? cq : NULL);
        OK(VipExtSetUserWord(vi[i], (VIP_UINT64)i));
        if (is_server())
            OK(VipPostRecv(vi[i], fill(&d[i], 0, global + 100 * i, data, 100), mem));
        snprintf(name, sizeof name, "cq%d", i);
        join_at(vi[i], name);
    }
    if (!is_server())
        for (i = 0; i < VIS; i++)
            OK(VipPostSend(vi[i], fill(&d[i], 0, global, data, 10 + (VIP_UINT32)i), mem));
    for (i = 0; i < VIS; i++) {
        if (i % 2)
            OK(VipCQWait(cq, 20000, &from, &receive));
        else
            while (VipCQDone(cq, &from, &receive) == VIP_NOT_DONE)
                ;
        CHECK(receive == is_server());
        OK(receive ? VipRecvDone(from, &out) : VipSendDone(from, &out));
        OK(VipExtGetUserWord(from, &user));
        CHECK(out == &d[user] && from == vi[user] && out->CS.Length == 10 + user);
        seen_status |= out->CS.Status;
    }
    if (!is_server()) {
        until_flag(&errors_seen, 1u << VIP_ERROR_VI_OVERRUN);
        check_error(VIP_ERROR_VI_OVERRUN, VIP_RESOURCE_CQ, vi[3], cq, NULL, VIP_STATUS_OP_SEND);
    }
    /* As a descriptor, after moving to another queue; then by a callback. */
    if (is_server()) {
        struct pollfd set = {0, POLLIN, 0};
        OK(VipExtMoveVi(vi[0], VIP_TRUE, other));
        OK(VipExtCQDescriptor(other, &descriptor));
        set.fd = descriptor;
        while (VipCQDone(other, &from, &receive) == VIP_SUCCESS)
            ;
        OK(VipPostRecv(vi[0], fill(&d[0], 0, global, data, 100), mem));
        do
            CHECK(poll(&set, 1, 20000) == 1);
        while (VipCQDone(other, &from, &receive) == VIP_NOT_DONE);
        CHECK(from == vi[0]);
        OK(VipRecvDone(from, &out));
        OK(VipCQNotify(cq, global, on_cq));
        OK(VipPostRecv(vi[1], fill(&d[1], 0, global, data, 100), mem));
        until_flag(&cq_notified, 1);
    } else {
        for (i = 0; i < 2; i++)
            OK(VipExtPostSend(vi[i], fill(&d[i], 0, global, data, 10), mem, VIP_EXT_FLOW_BLOCKING, 20000));
    }
    for (i = 0; i < VIS; i++) {
        if (!is_server())
            until_state(vi[i], VIP_STATE_ERROR);
        finish(vi[i]);
    }
    OK(VipDestroyCQ(other));
}

static void callbacks_and_flow(void) {
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_RECEPTION, NULL, NULL);
    VIP_VI_HANDLE other = make_vi(VIP_SERVICE_RELIABLE_RECEPTION, NULL, NULL);
    join_at(vi, "callbacks");
    notified = 0;
    if (is_server()) {
        OK(VipRecvNotify(vi, global, on_done));
        /* The client has seen that nothing is posted. */
        join_at(other, "refused");
        OK(VipPostRecv(vi, fill(&d[0], 0, global, data, 100), mem));
        until_flag(&notified, 1);
        CHECK(notified_descriptor == &d[0]);
        /* One message over two receives. */
        OK(VipPostRecv(vi, fill(&d[0], 0, global, data, 60), mem));
        OK(VipPostRecv(vi, fill(&d[1], 0, global + 60, data, 60), mem));
        expect_done(vi, 1, RECV);
        CHECK(d[0].CS.Reserved == 1 && d[0].CS.Length == 60);
        expect_done(vi, 1, RECV);
        CHECK(d[1].CS.Reserved == 0 && d[1].CS.Length == 40);
    } else {
        EXPECT(VIP_NOT_DONE, VipExtPostSend(vi, fill(&d[0], 0, global, data, 10), mem, VIP_EXT_FLOW_NONBLOCKING, 0));
        EXPECT(VIP_TIMEOUT, VipExtPostSend(vi, fill(&d[0], 0, global, data, 10), mem, VIP_EXT_FLOW_BLOCKING, 1));
        EXPECT(VIP_INVALID_PARAMETER, VipExtPostSend(vi, fill(&d[0], 0, global, data, 10), mem, 9, 0));
        join_at(other, "refused");
        OK(VipSendNotify(vi, global, on_done));
        OK(VipExtSetFlow(vi, VIP_EXT_FLOW_ASYNCHRONOUS));
        OK(VipPostSend(vi, fill(&d[0], 0, global, data, 10), mem));
        until_flag(&notified, 1);
        CHECK(notified_descriptor == &d[0]);
        OK(VipExtSetSplit(vi, VIP_TRUE));
        OK(VipPostSend(vi, fill(&d[0], 0, global, data, 100), mem));
        expect_done(vi, 0, SENT);
        OK(VipExtSetFlow(vi, VIP_EXT_FLOW_COMPLIANT));
    }
    meet(vi);
    finish(other);
    finish(vi);
}

/* Sends that find no receive wait for one, by the names of other providers. */
static void deferred_sends(void) {
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_DFC, NULL, NULL);
    VIP_VI_HANDLE other = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_BOOLEAN deferred;
    join_at(vi, "deferred");
    if (is_server()) {
        join_at(other, "waits");
        OK(VipPostRecv(vi, fill(&d[0], 0, global, data, 100), mem));
        CHECK(expect_done(vi, 1, RECV)->CS.Length == 10);
    } else {
        OK(VipPostSend(vi, fill(&d[0], 0, global, data, 10), mem));
        OK(VipPostDeferredSends(vi, VIP_TRUE, &deferred));
        CHECK(deferred);
        join_at(other, "waits");
        do
            OK(VipPostDeferredSends(vi, VIP_TRUE, &deferred));
        while (deferred);
        expect_done(vi, 0, SENT);
    }
    meet(vi);
    finish(other);
    finish(vi);
}

/* A descriptor in memory that is not registered, and one whose memory is deregistered while it is posted. */
static void lost_descriptors(void) {
    static VIP_DESCRIPTOR stray[2];
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_UNRELIABLE, NULL, NULL);
    VIP_MEM_HANDLE handle;
    VIP_DESCRIPTOR *out;
    errors_seen = 0;
    OK(VipPostRecv(vi, fill(&stray[0], 0, global, data, 100), data));
    until_flag(&errors_seen, 1u << VIP_ERROR_POST_DESC);
    check_error(VIP_ERROR_POST_DESC, VIP_RESOURCE_DESCRIPTOR, vi, NULL, &stray[0], VIP_STATUS_OP_RECEIVE);
    handle = reg(stray, sizeof stray);
    OK(VipPostRecv(vi, fill(&stray[1], 0, global, data, 100), handle));
    OK(VipDeregisterMem(nic, stray, handle));
    OK(VipDisconnect(vi));
    until_flag(&errors_seen, 1u << VIP_ERROR_COMP_PROT);
    check_error(VIP_ERROR_COMP_PROT, VIP_RESOURCE_DESCRIPTOR, vi, NULL, &stray[1], VIP_STATUS_OP_RECEIVE);
    EXPECT(VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &out));
    EXPECT(VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &out));
    CHECK(out == &stray[1] && out->CS.Status == 0); /* nothing is written there any more */
    OK(VipDestroyVi(vi));
}

static void rejecting(void) {
    VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_HANDLE other = make_vi(VIP_SERVICE_UNRELIABLE, NULL, NULL);
    VIP_CONN_HANDLE connection;
    Address here, there, from;
    if (is_server()) {
        OK(VipConnectWait(nic, address(&here, "reject"), 20000, &from.net, NULL, &connection));
        CHECK(memcmp(from.net.HostAddress + 4, address(&there, "client")->HostAddress + 4, 10) == 0);
        EXPECT(VIP_INVALID_RELIABILITY_LEVEL, VipConnectAccept(connection, other));
        OK(VipConnectReject(connection));
        EXPECT(VIP_INVALID_PARAMETER, VipConnectReject(connection));
    } else {
        EXPECT(VIP_REJECT, VipConnectRequest(vi, address(&here, "client"), address(&there, "reject"), 20000, NULL));
    }
    /* Peers. */
    address(&here, is_server() ? "p1" : "p2"), address(&there, is_server() ? "p2" : "p1");
    OK(VipConnectPeerRequest(vi, &here.net, &there.net, 20000));
    if (is_server())
        OK(VipConnectPeerWait(vi, NULL));
    else {
        VIP_RETURN code;
        while ((code = VipConnectPeerDone(vi, NULL)) == VIP_NOT_DONE)
            usleep(100);
        OK(code);
    }
    meet(vi);
    OK(VipDestroyVi(other));
    finish(vi);
}

int main(int count, char **arguments) {
    VIP_MEM_ATTRIBUTES attributes = {NULL, VIP_TRUE, VIP_TRUE};
    void *own;
    begin(count, arguments);
    attributes.Ptag = ptag;
    mem = reg(d, sizeof d), data = reg(global, sizeof global);
    OK(VipErrorCallback(nic, (void *)&errors_seen, on_error));
    big = malloc(BIG);
    memset(big, 0, BIG);
    big_handle = reg(big, BIG);
    messages();
    polling_memory();
    errors_at("partial", VIP_SERVICE_RELIABLE_DELIVERY, 2);
    errors_at("drop", VIP_SERVICE_UNRELIABLE, 0);
    errors_at("none", VIP_SERVICE_RELIABLE_DELIVERY, 0);
    errors_at("reception", VIP_SERVICE_RELIABLE_RECEPTION, 0);
    errors_at("long", VIP_SERVICE_RELIABLE_DELIVERY, 1);
    errors_at("long-reception", VIP_SERVICE_RELIABLE_RECEPTION, 1);
    errors_at("long-unreliable", VIP_SERVICE_UNRELIABLE, 1);
    errors_at("write", VIP_SERVICE_RELIABLE_DELIVERY, 3);
    errors_at("read", VIP_SERVICE_RELIABLE_DELIVERY, 3);
    completion_queues();
    callbacks_and_flow();
    deferred_sends();
    lost_descriptors();
    rejecting();
    /* The same messages in memory of the library. */
    OK(VipDeregisterMem(nic, big, big_handle));
    free(big);
    OK(VipExtAllocMem(nic, BIG, &attributes, &own, &big_handle));
    big = own;
    messages();
    OK(VipErrorCallback(nic, NULL, NULL));
    OK(VipCloseNic(nic));
    printf("codes %x status %x\n", seen_codes, seen_status);
    return 0;
}
