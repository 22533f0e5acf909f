/* A program into which no library can be loaded: it is linked statically. */
int main(void) { return 0; }
