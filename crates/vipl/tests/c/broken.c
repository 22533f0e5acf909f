/* The program breaks what the NIC sleeps on: the error callback says that the NIC works no more. */
#include "common.h"
#include <dirent.h>
#include <fcntl.h>

static volatile unsigned errors_seen;
static VIP_ERROR_DESCRIPTOR last;

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
    CHECK(context == &last && error->NicHandle == nic);
    if (error->ErrorCode == VIP_ERROR_CATASTROPHIC)
        last = *error;
    errors_seen |= 1u << error->ErrorCode;
}

/* Puts a file that cannot be waited on in the place of every epoll set. */
static int break_sets(void) {
    char name[300], target[64];
    struct dirent *entry;
    int broken = 0, null = open("/dev/null", O_RDWR);
    DIR *all = opendir("/proc/self/fd");
    CHECK(all && null >= 0);
    while ((entry = readdir(all))) {
        ssize_t length;
        snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
        length = readlink(name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        if (strcmp(target, "anon_inode:[eventpoll]") == 0) {
            CHECK(dup2(null, atoi(entry->d_name)) >= 0);
            broken++;
        }
    }
    closedir(all);
    return broken;
}

int main(int count, char **arguments) {
    int tries;
    begin(count, arguments);
    make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    OK(VipErrorCallback(nic, &last, on_error));
    CHECK(break_sets() > 0);
    for (tries = 0; tries < 120000 && !(errors_seen & 1u << VIP_ERROR_CATASTROPHIC); tries++)
        usleep(5000);
    CHECK(last.ErrorCode == VIP_ERROR_CATASTROPHIC && last.ResourceCode == VIP_RESOURCE_NIC);
    CHECK(last.ViHandle == NULL && last.CQHandle == NULL && last.DescriptorPtr == NULL && last.OpCode == 0);
    printf("codes %x status %x\n", seen_codes, seen_status);
    /* Nothing is given back: the descriptors are not what the library left there. */
    fflush(stdout);
    _exit(0);
}
