/* One thread serves many connections:  cq_server server POINT N,  then  cq_server client POINT N [REQUESTS]. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vipl.h>

#define CHECK(call) do { if ((call) != VIP_SUCCESS) { fprintf(stderr, "failed: %s\n", #call); exit(1); } } while (0)
#define SIZE 64

typedef struct { VIP_DESCRIPTOR in, out; char request[SIZE], answer[SIZE]; } Slot; /* of one connection */
static Slot *slots;
static VIP_MEM_HANDLE memory;

static VIP_DESCRIPTOR *prepare(VIP_DESCRIPTOR *d, char *data) {
    memset(d, 0, sizeof *d);
    d->CS.SegCount = 1;
    d->CS.Length = d->DS[0].Local.Length = SIZE;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = memory;
    return d;
}

int main(int count, char **arguments) {
    struct { VIP_NET_ADDRESS net; char room[80]; } here = {{4, 0, {0}}, {0}}, there = {{4, 0, {0}}, {0}};
    VIP_VI_ATTRIBUTES attributes = {VIP_SERVICE_RELIABLE_DELIVERY, SIZE, NULL, NULL, VIP_FALSE, VIP_FALSE};
    VIP_MEM_ATTRIBUTES access = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_NIC_HANDLE nic;
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE *vis, vi;
    VIP_CONN_HANDLE connection;
    VIP_BOOLEAN receive;
    VIP_DESCRIPTOR *done;
    int server = count > 1 && !strcmp(arguments[1], "server"), i;
    const char *point = count > 2 ? arguments[2] : "cq_server";
    int connections = count > 3 ? atoi(arguments[3]) : 10, open = connections;
    long requests = count > 4 ? atol(arguments[4]) : 100000, answered = 0, posted = connections;
    struct timespec begin, end;

    memcpy((char *)&there + offsetof(VIP_NET_ADDRESS, HostAddress), "\x7f\0\0\1", 4);
    strncpy((char *)&there + offsetof(VIP_NET_ADDRESS, HostAddress) + 4, point, 64);
    there.net.DiscriminatorLen = (VIP_UINT16)strlen(point);
    slots = aligned_alloc(64, (size_t)connections * sizeof *slots);
    vis = calloc((size_t)connections, sizeof *vis);
    CHECK(VipOpenNic("nic0", &nic));
    CHECK(VipCreatePtag(nic, &attributes.Ptag));
    access.Ptag = attributes.Ptag;
    CHECK(VipRegisterMem(nic, slots, (size_t)connections * sizeof *slots, &access, &memory));
    CHECK(VipCreateCQ(nic, 2 * (VIP_ULONG)connections, &cq));
    for (i = 0; i < connections; i++) {
        CHECK(VipCreateVi(nic, &attributes, NULL, cq, &vis[i]));
        CHECK(VipPostRecv(vis[i], prepare(&slots[i].in, slots[i].request), memory));
        if (server) {
            CHECK(VipConnectWait(nic, &there.net, VIP_INFINITE, NULL, NULL, &connection));
            CHECK(VipConnectAccept(connection, vis[i]));
        } else {
            CHECK(VipConnectRequest(vis[i], &here.net, &there.net, 10000, NULL));
            CHECK(VipPostSend(vis[i], prepare(&slots[i].out, slots[i].answer), memory));
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (server ? open > 0 : answered < requests) {
        CHECK(VipCQWait(cq, VIP_INFINITE, &vi, &receive));
        if (VipRecvDone(vi, &done) != VIP_SUCCESS) { open--; continue; } /* this client has gone */
        i = (int)((Slot *)done - slots);
        answered++;
        if (!server && posted++ >= requests) continue; /* the last answers are waited for */
        CHECK(VipPostRecv(vi, prepare(&slots[i].in, slots[i].request), memory));
        CHECK(VipPostSend(vi, prepare(&slots[i].out, slots[i].answer), memory));
        CHECK(VipSendDone(vi, &done));
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (!server)
        printf("%d connections: %.0f requests a second\n", connections,
               (double)answered / ((double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9));
    CHECK(VipCloseNic(nic));
    return 0;
}
