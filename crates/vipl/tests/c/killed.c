/* The server is killed in the middle; the client sees it within 100 ms. */
#include "common.h"
#include <signal.h>

static VIP_DESCRIPTOR d[3];
static char bytes[64];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE mem, data;
    double began;
    begin(count, arguments);
    mem = reg(d, sizeof d), data = reg(bytes, sizeof bytes);
    vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    OK(VipPostRecv(vi, fill(&d[0], 0, bytes, data, 32), mem));
    if (!is_server())
        OK(VipPostRecv(vi, fill(&d[1], 0, bytes, data, 32), mem));
    join_at(vi, "killed");
    if (is_server()) {
        /* The client has its connection. */
        expect_done(vi, 1, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE);
        OK(VipPostSend(vi, fill(&d[1], 0, bytes, data, 4), mem));
        expect_done(vi, 0, VIP_STATUS_DONE | VIP_STATUS_OP_SEND);
        kill(getpid(), SIGKILL);
    }
    OK(VipPostSend(vi, fill(&d[2], 0, bytes, data, 4), mem));
    expect_done(vi, 1, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE);
    began = now();
    /* Without calling: the service thread sees it. */
    while (!(*(volatile VIP_UINT32 *)&d[1].CS.Status & VIP_STATUS_DONE)) {
        CHECK(now() - began < 0.1);
        usleep(50);
    }
    expect_done(vi, 1, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR);
    CHECK(state_of(vi) == VIP_STATE_ERROR);
    printf("codes %x status %x\n", seen_codes, seen_status);
    return 0;
}
