/* A message goes and comes back:  pingpong server POINT,  then  pingpong client POINT [COUNT [BYTES]]. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vipl.h>

#define CHECK(call) do { if ((call) != VIP_SUCCESS) { fprintf(stderr, "failed: %s\n", #call); exit(1); } } while (0)
#define MOST 65536

static VIP_DESCRIPTOR receives[4], out;
static char buffers[5][MOST];

static VIP_DESCRIPTOR *prepare(VIP_DESCRIPTOR *d, char *data, VIP_MEM_HANDLE handle, VIP_UINT32 length) {
    memset(d, 0, sizeof *d);
    d->CS.SegCount = 1;
    d->CS.Length = d->DS[0].Local.Length = length;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = handle;
    return d;
}

int main(int count, char **arguments) {
    struct { VIP_NET_ADDRESS net; char room[80]; } here = {{4, 0, {0}}, {0}}, there = {{4, 0, {0}}, {0}};
    VIP_VI_ATTRIBUTES attributes = {VIP_SERVICE_RELIABLE_DELIVERY, MOST, NULL, NULL, VIP_FALSE, VIP_FALSE};
    VIP_MEM_ATTRIBUTES access = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_CONN_HANDLE connection;
    VIP_MEM_HANDLE memory, descriptors, own;
    VIP_DESCRIPTOR *done;
    int server = count > 1 && !strcmp(arguments[1], "server"), i;
    const char *point = count > 2 ? arguments[2] : "pingpong";
    long trips = count > 3 ? atol(arguments[3]) : 10000;
    VIP_UINT32 size = count > 4 ? (VIP_UINT32)atol(arguments[4]) : 4;
    struct timespec begin, end;

    memcpy((char *)&there + offsetof(VIP_NET_ADDRESS, HostAddress), "\x7f\0\0\1", 4);
    strncpy((char *)&there + offsetof(VIP_NET_ADDRESS, HostAddress) + 4, point, 64);
    there.net.DiscriminatorLen = (VIP_UINT16)strlen(point);
    CHECK(VipOpenNic("nic0", &nic));
    CHECK(VipCreatePtag(nic, &attributes.Ptag));
    access.Ptag = attributes.Ptag;
    CHECK(VipRegisterMem(nic, buffers, sizeof buffers, &access, &memory));
    CHECK(VipRegisterMem(nic, receives, sizeof receives, &access, &descriptors));
    CHECK(VipRegisterMem(nic, &out, sizeof out, &access, &own));
    CHECK(VipCreateVi(nic, &attributes, NULL, NULL, &vi));
    for (i = 0; i < 4; i++)
        CHECK(VipPostRecv(vi, prepare(&receives[i], buffers[i], memory, MOST), descriptors));
    if (server) {
        CHECK(VipConnectWait(nic, &there.net, VIP_INFINITE, NULL, NULL, &connection));
        CHECK(VipConnectAccept(connection, vi));
    } else
        CHECK(VipConnectRequest(vi, &here.net, &there.net, 10000, NULL));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (; server || trips-- > 0;) {
        if (!server)
            CHECK(VipPostSend(vi, prepare(&out, buffers[4], memory, size), own));
        while (VipRecvDone(vi, &done) == VIP_NOT_DONE)
            ;
        if (done->CS.Status & VIP_STATUS_ERROR_MASK)
            break; /* the client has gone */
        if (server)
            CHECK(VipPostSend(vi, prepare(&out, done->DS[0].Local.Data.Address, memory, done->CS.Length), own));
        i = (int)(done - receives);
        while (VipSendDone(vi, &done) == VIP_NOT_DONE)
            ;
        CHECK(VipPostRecv(vi, prepare(&receives[i], buffers[i], memory, MOST), descriptors));
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (!server)
        printf("%u bytes: half a round trip takes %.0f ns\n", size,
               ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / 2 /
                   (count > 3 ? atof(arguments[3]) : 10000));
    CHECK(VipDisconnect(vi));
    CHECK(VipCloseNic(nic));
    return 0;
}
