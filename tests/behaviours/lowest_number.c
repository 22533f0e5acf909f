/* Whatever a connection does, a new descriptor gets the lowest free number. */
#include "behaviour.h"

/* One end makes descriptors, while the other waits for its turn: within a call, it may have one of the engine's for a moment. */
static void look(int fd, const char *when) {
    int ends[2], port, made;
    made = open("/dev/null", O_RDONLY), close(made);
    note("%s: open %d", when, made);
    made = dup(fd), close(made);
    note("dup %d", made);
    made = fcntl(fd, F_DUPFD, 50);
    note("F_DUPFD %d", made);
    close(made);
    made = epoll_create1(0), close(made);
    note("epoll_create1 %d", made);
    if (pipe(ends) < 0)
        die("pipe");
    close(ends[0]), close(ends[1]);
    note("pipe %d %d", ends[0], ends[1]);
    int listener = listen_somewhere(AF_INET, &port), dialled = dial(AF_INET, port), accepted = accept_one(listener);
    note("socket %d, connected %d, accepted %d", listener, dialled, accepted);
    close(listener), close(dialled), close(accepted);
}

static void in_turn(int fd, const char *when) {
    meet();
    if (me == &server_side)
        look(fd, when), meet();
    else
        meet(), look(fd, when);
    meet();
}

static void both(int fd) {
    in_turn(fd, "at first");
    for (int child = 0; child < 2; child++) {
        /* One before the connection has moved. */
        if (me == &server_side) {
            pid_t process = fork();
            if (process == 0) {
                _exit(open("/dev/null", O_RDONLY));
            }
            note_end("the child", process);
        }
        meet();
        in_turn(fd, "after a fork");
        warm(fd);
        in_turn(fd, "after exchanges");
        if (me == &server_side)
            send_pattern(fd, 0, 4 << 20);
        else
            receive_pattern(fd, 0, 4 << 20);
        in_turn(fd, "after much");
    }
    DO(close(fd));
}

static void server(int fd) { both(fd); }
static void client(int fd) { both(fd); }
