/* Streams of the C library on a socket. */
#include "behaviour.h"

static void server(int fd) {
    char line[200];
    warm(fd);
    FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
    for (int i = 0; i < 200; i++) {
        if (!fgets(line, sizeof line, in))
            break;
        fprintf(out, "%d: %s", i, line);
        fflush(out);
    }
    DO(fgets(line, sizeof line, in) == NULL);
    DO(feof(in) != 0);
    DO(fclose(out));
    DO(fclose(in));
}

static void client(int fd) {
    char line[200], expected[200];
    warm(fd);
    FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
    int good = 0;
    for (int i = 0; i < 200; i++) {
        fprintf(out, "line %d of many\n", i);
        fflush(out);
        snprintf(expected, sizeof expected, "%d: line %d of many\n", i, i);
        good += fgets(line, sizeof line, in) && !strcmp(line, expected);
    }
    DO(good);
    DO(shutdown(fd, SHUT_WR));
    DO(fgetc(in) == EOF);
    DO(fclose(out));
    DO(fclose(in));
}
