// The load over MPI: two ranks, of which the first asks. mpirun -np 2 ./mpi MILLISECONDS
#include <mpi.h>

#include "load.h"

static int peer;

static void send_message(const void *bytes, size_t size) { MPI_Send(bytes, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD); }

static void receive_message(void *bytes, size_t size) {
    MPI_Recv(bytes, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    if (rank == 0)
        ask(argc > 1 ? strtoull(argv[1], NULL, 10) : 100);
    else
        serve();
    return MPI_Finalize();
}
