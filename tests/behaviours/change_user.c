/* A server that changes its effective user for each client, as FTP and NFS servers do: every connection works, an epoll
 * set sleeps afterwards, and nothing piles up. Each client changes to the same user. As another user than root, whose
 * changes the kernel refuses, both sides stay who they are. */
#define OWN_ROLES
#include "behaviour.h"
#include <dirent.h>
#include <grp.h>
#include <sys/resource.h>

enum { CLIENTS = 40, OTHER = 65533 };

static int entries(const char *folder) {
    DIR *all = opendir(folder);
    int count = 0;
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

static int mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; (c = getc(file)) != EOF;)
        lines += c == '\n';
    fclose(file);
    return lines;
}

static int64_t cpu_us(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ll + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

/* One client of one user after the other, each served until it has gone. */
static void serve(int set, int listener, int clients) {
    int served = 0;
    for (int i = 0; i < clients; i++) {
        int as = i % 2 ? OTHER : 0;
        if (getuid() == 0 && seteuid(as) < 0)
            die("seteuid");
        served += echo_by_set(set, listener, 1, EPOLLIN) == 0;
        if (getuid() == 0 && seteuid(0) < 0)
            die("seteuid back");
    }
    note("served %d of %d", served, clients);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port), set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    pid_t clients = start_role("clients", port);
    serve(set, listener, 8);
    int descriptors = entries("/proc/self/fd"), lines = mappings();
    serve(set, listener, CLIENTS);
    /* On a busy machine a peer that has gone may not have been seen to. */
    for (int looks = 0; looks < 500 && entries("/proc/self/fd") > descriptors + 8; looks++)
        epoll_wait(set, &event, 1, 10);
    note("%s", entries("/proc/self/fd") > descriptors + 8 ? "descriptors pile up" : "as many descriptors as before");
    note("%s", mappings() > lines + 40 ? "mappings pile up" : "as many mappings as before");
    /* Asleep, not looking again and again. */
    int64_t before = cpu_us();
    note("nothing comes: %d", epoll_wait(set, &event, 1, 300));
    note("%s", cpu_us() - before > 100000 ? "the wait was busy" : "the wait slept");
    note_end("the clients", clients);
}

static void role(const char *name UNUSED, int port) {
    for (int i = 0; i < 8 + CLIENTS; i++) {
        int as = (i < 8 ? i : i - 8) % 2 ? OTHER : 0;
        if (getuid() == 0 && seteuid(as) < 0)
            die("seteuid");
        ask_rounds(port, 30);
        if (getuid() == 0 && seteuid(0) < 0)
            die("seteuid back");
    }
}
