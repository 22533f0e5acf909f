/* As timestamps, on a connection that may have moved before. */
#define LATE 1
#include "timestamps.c"
