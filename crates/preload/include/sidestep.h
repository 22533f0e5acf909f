/* Extended sockets: one-sided operations on an ordinary connected TCP socket.
 *
 * Link with -lsidestep, or run under `sidestep run`. The rules, with the order of operations against the stream of bytes, are in
 * docs/extended.md and sidestep.h(3). Unless said otherwise a call returns 0, or -1 with errno; ss_error() then says what happened.
 * No call is async-signal-safe; handlers of signals that come during a call run when it returns. */

#ifndef SIDESTEP_H
#define SIDESTEP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a peer may do with memory. */
#define SS_READ 1
#define SS_WRITE 2
#define SS_ATOMIC 4
#define SS_ALL 7

/* Registered memory of this process, and a region of the other end; 0 is none. */
typedef uint64_t ss_region;
typedef uint64_t ss_remote;

/* One element of a gather list: a part of a registered region. */
struct ss_piece {
    ss_region region;
    size_t offset;
    size_t length;
};

/* What is told of an imported region. */
struct ss_imported {
    uint64_t tag;    /* what its owner said */
    uint64_t length;
    int32_t rights;
    int32_t direct;  /* 1: reads need nothing of the owner; 0: they need its library, which between hosts has a thread for it */
};

/* What a completion tells of. */
enum ss_kind {
    SS_PUT = 1,     /* ss_post_put has ended: the bytes are in the other end's memory */
    SS_GET = 2,     /* ss_post_get has ended: the bytes are here */
    SS_SEND = 3,    /* ss_post_send has ended: its memory may be used again */
    SS_RECEIVE = 4, /* ss_post_recv has ended: a message is here */
    SS_NOTICE = 5,  /* the other end called ss_notify */
    SS_EXPORT = 6,  /* the other end exported a region: ss_import finds it */
    SS_CLOSED = 7   /* the extension of this socket has ended */
};

struct ss_completion {
    uint64_t token;  /* what was given to the post; the value of a notice; the tag of an export */
    uint64_t length; /* bytes */
    int32_t kind;    /* enum ss_kind */
    int32_t error;   /* 0, or an errno */
    int32_t fd;      /* which socket */
    int32_t unused;
};

/* Makes a completion queue. Returns its descriptor, which poll() and epoll report as readable while ss_queue_poll() may find
 * something; close() ends it. A queue serves any number of sockets. */
int ss_queue_create(void);

/* Takes up to most completions, without waiting. Returns how many. */
int ss_queue_poll(int queue, struct ss_completion *into, int most);

/* Takes up to most completions, and waits for the first of them for at most timeout_ms milliseconds; -1 waits for ever. Returns how
 * many; 0 when the time is over. A signal ends the wait with EINTR. */
int ss_queue_wait(int queue, struct ss_completion *into, int most, int timeout_ms);

/* Extends a connected TCP socket: asks the other end, and waits at most timeout_ms milliseconds until it has called this, too.
 * Completions of the socket go to queue. The stream of bytes is not touched; where the other end cannot or will not, the
 * socket stays as it was: EHOSTUNREACH when it is on another host and there is no port, ETIMEDOUT when it has not called in time,
 * EACCES when whoever answers does not hold the other end, EBUSY when the socket is extended already.
 *
 * Ends on two hosts meet on a TCP port: SIDESTEP_EXTENDED_PORT in the environment of both, read by the first call. The end whose port of the
 * connection is smaller listens there while it waits in this call, so the other one must be let through to it. The library
 * then has a thread, which serves the other end while the program is busy. What such an end has proven, and what not, is in
 * docs/extended.md.
 *
 * With SIDESTEP_EXTENDED_IN_PLACE=1 in the environment of both, on one host or two, the connection itself becomes the line: iWARP on the
 * wire, no port, and no stream of bytes any more. Plain calls on the descriptor then fail with ENOTCONN, ss_disable() ends the
 * connection, and EPROTO says that bytes were not read, ECONNABORTED that the other end did not answer the request that was
 * written, so that the connection is of no more use. */
int ss_enable(int fd, int queue, int timeout_ms);

/* Ends the extension; the connection goes on. close() of the descriptor ends it, too. */
int ss_disable(int fd);

/* Registers memory, with the most that a peer may be given: SS_READ, SS_WRITE, SS_ATOMIC or several. With address NULL the library makes
 * the memory (see ss_address), which peers with SS_READ or SS_ALL then map, so that their operations need nothing of this
 * process. Memory of the program must stay mapped until it is deregistered. Returns 0 on failure. */
ss_region ss_register(void *address, size_t length, int rights);

/* Tells where a region begins; NULL for none. */
void *ss_address(ss_region region);

/* Takes a region back from every peer, and keeps it. When this returns, no peer reads what is stored there from now on, and
 * nothing that a peer writes arrives. It may be exported again. */
int ss_revoke(ss_region region);

/* Takes a region back from every peer, and forgets it; memory of the library is gone. When this returns, no peer reads or writes at
 * its addresses any more. EBUSY while a posted operation uses it. */
int ss_deregister(ss_region region);

/* Lets the other end reach a region, with rights among those that it was registered with. The tag says to the other end which
 * one it is. */
int ss_export(int fd, ss_region region, int rights, uint64_t tag);

/* Takes the next region that the other end has exported; waits for it at most timeout_ms milliseconds, -1 for ever. What is told of
 * it is put into about, unless that is NULL. Returns 0 on failure. */
ss_remote ss_import(int fd, struct ss_imported *about, int timeout_ms);

/* Forgets an imported region. */
int ss_release(ss_remote remote);

/* Writes bytes into memory of the other end. They are there when this returns. */
int ss_put(int fd, ss_remote remote, uint64_t offset, const void *from, size_t length);

/* Reads bytes of the other end's memory. */
int ss_get(int fd, ss_remote remote, uint64_t offset, void *into, size_t length);

/* Stores desired in an aligned word of 64 bits if it holds expected. What it held is put into old. */
int ss_compare_swap(int fd, ss_remote remote, uint64_t offset, uint64_t expected, uint64_t desired, uint64_t *old);

/* Adds to an aligned word of 64 bits. What it held is put into old. */
int ss_fetch_add(int fd, ss_remote remote, uint64_t offset, uint64_t value, uint64_t *old);

/* Posts a write of the pieces, one behind the other, into memory of the other end. The pieces must not change before the completion. */
int ss_post_put(int fd, ss_remote remote, uint64_t offset, const struct ss_piece *pieces, int count, uint64_t token);

/* Posts a read of the other end's memory into the pieces, one behind the other. */
int ss_post_get(int fd, ss_remote remote, uint64_t offset, const struct ss_piece *pieces, int count, uint64_t token);

/* Posts a message, gathered from the pieces. They must not change before the completion. */
int ss_post_send(int fd, const struct ss_piece *pieces, int count, uint64_t token);

/* Posts memory for the next message. A longer one completes it with EMSGSIZE and is lost. */
int ss_post_recv(int fd, const struct ss_piece *pieces, int count, uint64_t token);

/* Tells the other end a number, after every operation on this socket that was called before. */
int ss_notify(int fd, uint64_t value);

/* Waits until every operation that was posted on this socket has taken effect, and every message is on its way. */
int ss_fence(int fd);

/* Serves peers whose operations need this process. Every other call does that, too. */
int ss_progress(void);

/* Says in a sentence why the last call of this thread failed. It is the library's, until the next call that fails. */
const char *ss_error(void);

#ifdef __cplusplus
}
#endif

#endif
