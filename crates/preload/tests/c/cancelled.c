/* A thread is cancelled in calls on descriptors that are not connections. */
#include "tell.h"
#include <poll.h>
#include <pthread.h>

static int pipes[2];
static volatile int cleaned;

static void clean(void *by) {
    cleaned += (int)(long)by;
}

static void *wait_in(void *how) {
    char byte;
    struct pollfd entry = {pipes[0], POLLIN, 0};
    pthread_cleanup_push(clean, (void *)1);
    if ((long)how == 0)
        (void)!read(pipes[0], &byte, 1);
    else
        poll(&entry, 1, -1);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    if (pipe(pipes))
        return 1;
    for (long how = 0; how < 2; how++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, wait_in, (void *)how);
        usleep(20000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("%ld cancelled %d cleaned %d\n", how, result == PTHREAD_CANCELED, cleaned);
    }
    return 0;
}
