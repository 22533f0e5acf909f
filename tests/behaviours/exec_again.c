/* A program is executed with a connection and executes another one with it, several times; before each, it tries to execute one
 * that is not there. Every second time bytes lie there that it has not read. The other times it leaves rubbish where the library
 * looks for what the program before knew. */
#define OWN_ROLES
#include "behaviour.h"
#include <sys/resource.h>

enum { PIECE = 40000, GENERATIONS = 12, TABLE = (8 + 16384 * 16) * 8 };

/* The number of the descriptor at which the library looks. */
static int place(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_max < 4608 ? (int)limit.rlim_max - 1 : 4607;
}

static void leave_rubbish(int kind) {
    int at = place(), fd;
    uint64_t words[4096];
    if (kind == 0) {
        fd = open("/dev/null", O_RDWR);
    } else {
        fd = memfd_create("rubbish", MFD_ALLOW_SEALING);
        for (size_t word = 0; word < 4096; word++)
            words[word] = kind < 4 ? UINT64_MAX : word * 7919;
        if (kind > 3)
            words[0] = 1 << 30, words[1] = 0x7369646573746501;
        for (off_t done = 0; done < TABLE; done += sizeof words)
            if (pwrite(fd, words, sizeof words, done) < 0)
                die("pwrite");
        if (ftruncate(fd, kind == 2 ? TABLE - 8 : TABLE) < 0)
            die("ftruncate");
        if (kind > 1)
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    }
    if (dup2(fd, at) == at)
        lseek(at, ((off_t)getpid() << 40) | ((1 << 24) + 1), SEEK_SET);
    close(fd);
}

static void answer_pattern(int fd, int generation) {
    size_t before = me->length;
    receive_pattern(fd, (size_t)generation * PIECE, PIECE);
    if (strstr(me->text + before, "all right"))
        me->length = before;
    char byte = 'a';
    if (send(fd, &byte, 1, 0) != 1)
        die("send");
}

/* What is right leaves no note. */
static void stage(int fd, int generation) {
    me = &server_side;
    close(place());
    if (generation % 2)
        answer_pattern(fd, generation - 1);
    if (generation == GENERATIONS) {
        char byte;
        if (recv(fd, &byte, 1, 0) != 0)
            note("there is more");
        close(fd);
        return;
    }
    warm(fd);
    await_bytes(fd, 1);
    if (generation % 2)
        answer_pattern(fd, generation);
    char text[16];
    snprintf(text, sizeof text, "%d", fd * 100 + generation + 1);
    if (execl("/nowhere/at/all", "all", (char *)NULL) != -1 || errno != ENOENT)
        note("an error");
    if (generation % 2)
        leave_rubbish(generation / 2);
    if (generation % 4 > 1)
        execl("/proc/self/exe", program, "stage", text, (char *)NULL);
    char *arguments[] = {(char *)program, "stage", text, NULL};
    execv("/proc/self/exe", arguments);
    die("execv");
}

static void role(const char *name, int number) {
    if (!strcmp(name, "stage")) {
        stage(number / 100, number % 100);
        return;
    }
    int fd = dial(AF_INET, number);
    for (int generation = 0; generation < GENERATIONS; generation++) {
        char byte;
        warm(fd);
        size_t before = me->length;
        send_pattern(fd, (size_t)generation * PIECE, PIECE);
        if (recv(fd, &byte, 1, 0) != 1)
            die("recv");
        me->length = before;
    }
    close(fd);
}

static void behaviour(void) {
    int port, listener = listen_somewhere(AF_INET, &port);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    pid_t client = start_role("client", port), server = fork();
    if (server == 0) {
        int fd = accept_one(listener);
        stage(fd, 0);
    }
    close(listener);
    note_end("the server", server);
    note_end("the client", client);
}
