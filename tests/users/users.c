/* Programs that change their user, fork in long lines, or live where their users cannot be told apart. Each has both ends of
 * its connections, and says when a connection is there to be looked at; it goes on when its input ends. */
#define OWN_ROLES
#include "../behaviours/behaviour.h"
#include <dirent.h>
#include <sys/epoll.h>

enum { OTHER = 65533 };

static int listener, port;

struct pair {
    int client, server;
};

static struct pair connect_both(void) {
    struct pair pair = {.client = dial(AF_INET, port)};
    pair.server = accept_one(listener);
    return pair;
}

static void exchange(struct pair pair, int rounds) {
    for (int i = 0; i < rounds; i++) {
        char byte = i;
        if (send(pair.client, &byte, 1, 0) != 1 || recv(pair.server, &byte, 1, 0) != 1 ||
            send(pair.server, &byte, 1, 0) != 1 || recv(pair.client, &byte, 1, 0) != 1 || byte != (char)i)
            die("exchange");
    }
}

static void close_both(struct pair pair) { close(pair.client), close(pair.server); }

static void exchange_anew(int rounds) {
    struct pair pair = connect_both();
    exchange(pair, rounds);
    close_both(pair);
}

static int descriptors(void) {
    DIR *all = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

/* Lets others look at a promoted connection. */
static void be_looked_at(void) {
    struct pair pair = connect_both();
    exchange(pair, 100);
    printf("ready %d\n", getpid());
    fflush(stdout);
    for (char byte; read(0, &byte, 1) > 0;)
        exchange(pair, 10);
    exchange(pair, 100);
    close_both(pair);
}

static void become(int user) {
    if (seteuid(user) < 0)
        die("seteuid");
}

/* More changes than there were ever places for engines. */
static void change_often(void) {
    int before = 0;
    for (int i = 0; i < 1200; i++) {
        if (i == 200)
            before = descriptors();
        become(i % 2 ? OTHER : 0);
        if (i % 20 < 2)
            exchange_anew(20);
    }
    become(0);
    printf("%d more descriptors\n", descriptors() - before);
}

static void *sleep_long(void *fd) {
    char byte;
    return (void *)(intptr_t)recv((int)(intptr_t)fd, &byte, 1, 0);
}

/* All threads change together; one of them sleeps on a promoted connection. */
static void change_asleep(void) {
    struct pair pair = connect_both();
    pthread_t thread;
    exchange(pair, 100);
    pthread_create(&thread, NULL, sleep_long, (void *)(intptr_t)pair.server);
    pause_ms(50);
    become(OTHER);
    exchange_anew(100);
    send(pair.client, "x", 1, 0);
    void *got;
    pthread_join(thread, &got);
    printf("the sleeper got %d\n", (int)(intptr_t)got);
    exchange(pair, 100);
    become(0);
    exchange(pair, 100);
    close_both(pair);
}

/* A server that makes a child for each connection, which ends without a word. */
static void make_children(void) {
    for (int i = 0; i < 2500; i++) {
        struct pair pair = connect_both();
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (i % 8)
            waitpid(child, NULL, 0);
        close_both(pair);
    }
    while (wait(NULL) > 0)
        ;
}

/* Each process makes the next one and ends; the last one is looked at. Now and then one has connections of its own. */
static void fork_in_a_line(void) {
    int alive[2];
    if (pipe(alive) < 0)
        die("pipe");
    for (int i = 0; i < 1100; i++) {
        pid_t child = fork();
        if (child < 0)
            die("fork");
        if (child > 0 && i > 0)
            _exit(0);
        if (child > 0) {
            char byte;
            close(alive[1]);
            while (read(alive[0], &byte, 1) > 0)
                ;
            return;
        }
        if (i % 100 == 0)
            exchange_anew(100);
    }
    be_looked_at();
}

static void enter_namespace(void) {
    if (unshare(CLONE_NEWUSER) < 0) {
        printf("refused\n");
        exit(0);
    }
}

/* One end of a connection that another user's program has the other one of: answers each byte with itself. With an argument it
 * waits by epoll. */
static void answer(int waits) {
    printf("ready %d\n", port);
    fflush(stdout);
    int fd = accept_one(listener), set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    for (char byte;;) {
        if (waits && epoll_wait(set, &event, 1, -1) < 1)
            die("epoll_wait");
        ssize_t got = recv(fd, &byte, 1, 0);
        if (got == 0)
            return;
        if (got != 1 || send(fd, &byte, 1, 0) != 1)
            die("answer");
    }
}

/* The other one: says when it can be looked at. */
static void ask(int fd, int rounds) {
    for (int i = 0; i < rounds; i++) {
        char byte = i;
        if (send(fd, &byte, 1, 0) != 1 || recv(fd, &byte, 1, 0) != 1 || byte != (char)i)
            die("ask");
    }
}

static void call(int where) {
    int fd = dial(AF_INET, where);
    ask(fd, 200);
    printf("ready %d\n", getpid());
    fflush(stdout);
    for (char byte; read(0, &byte, 1) > 0;)
        ask(fd, 10);
    close(fd);
}

static void behaviour(void) {}

static void role(const char *name, int argument) {
    listener = listen_somewhere(AF_INET, &port);
    if (!strcmp(name, "often"))
        change_often(), exchange_anew(100);
    else if (!strcmp(name, "asleep"))
        change_asleep();
    else if (!strcmp(name, "children"))
        make_children(), exchange_anew(100);
    else if (!strcmp(name, "line"))
        fork_in_a_line();
    else if (!strcmp(name, "other"))
        become(OTHER), be_looked_at();
    else if (!strcmp(name, "dropped")) {
        exchange_anew(100);
        if (setresgid(OTHER, OTHER, OTHER) < 0 || setresuid(OTHER, OTHER, OTHER) < 0)
            die("setresuid");
        be_looked_at();
    } else if (!strcmp(name, "nobody"))
        enter_namespace(), be_looked_at();
    else if (!strcmp(name, "answer"))
        answer(argument);
    else if (!strcmp(name, "call"))
        call(argument);
    else if (!strcmp(name, "once"))
        exchange_anew(100);
    else
        be_looked_at();
}
