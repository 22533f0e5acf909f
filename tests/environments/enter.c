/* enter WORDS COMMAND...: executes a command in hostile surroundings. Words are separated by commas; those that are not here
 * are for the program itself (environment.h), which finds all of them in BEHAVIOUR_ENVIRONMENT.
 *
 *   stack=BYTES         soft limit of the main stack, which is also the size of other threads' stacks
 *   descriptors=S:H     soft and hard limit of descriptors
 *   space=BYTES         limit of the address space
 *   pending=COUNT       limit of queued signals and timers
 *   processes=COUNT     limit of the processes and threads of the user
 *   user=UID            another user and group
 *   shm=OPTIONS         a file system for /dev/shm with these options, in a mount namespace of its own
 *   closed              standard descriptors are closed
 *
 * Status 77: this user may not make them. */
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "environment.h"

static void check(int result, const char *what) {
    if (result >= 0)
        return;
    int refused = errno == EPERM || errno == EACCES || errno == ENOSYS;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(refused ? 77 : 3);
}

static void limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit now;
    check(getrlimit(resource, &now), "getrlimit");
    struct rlimit wanted = {soft, hard < now.rlim_max ? hard : now.rlim_max};
    if (wanted.rlim_cur > wanted.rlim_max)
        wanted.rlim_cur = wanted.rlim_max;
    check(setrlimit(resource, &wanted), "setrlimit");
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "%s WORDS COMMAND...\n", argv[0]);
        return 2;
    }
    setenv("BEHAVIOUR_ENVIRONMENT", argv[1], 1);
    const char *word;
    if ((word = environment_word("shm"))) {
        check(unshare(CLONE_NEWNS), "unshare");
        check(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount");
        check(mount("none", "/dev/shm", "tmpfs", 0, word), "mount /dev/shm");
    }
    if ((word = environment_word("user"))) {
        uid_t user = (uid_t)atoi(word);
        check(setgroups(0, NULL), "setgroups");
        check(setgid(user), "setgid");
        check(setuid(user), "setuid");
    }
    if ((word = environment_word("pending")))
        limit(RLIMIT_SIGPENDING, strtoul(word, NULL, 10), strtoul(word, NULL, 10));
    if ((word = environment_word("processes")))
        limit(RLIMIT_NPROC, strtoul(word, NULL, 10), strtoul(word, NULL, 10));
    if ((word = environment_word("space")))
        limit(RLIMIT_AS, strtoul(word, NULL, 10), strtoul(word, NULL, 10));
    if ((word = environment_word("stack")))
        limit(RLIMIT_STACK, strtoul(word, NULL, 10), RLIM_INFINITY);
    if ((word = environment_word("descriptors"))) {
        char *rest;
        rlim_t soft = strtoul(word, &rest, 10);
        limit(RLIMIT_NOFILE, soft, *rest ? strtoul(rest + 1, NULL, 10) : RLIM_INFINITY);
    }
    if (environment_word("closed")) {
        check(dup2(STDOUT_FILENO, CLOSED_OUT), "dup2");
        close(STDIN_FILENO), close(STDOUT_FILENO), close(STDERR_FILENO);
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
