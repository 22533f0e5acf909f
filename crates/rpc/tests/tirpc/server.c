/* Every type of every_type.x with libtirpc: echoes, counts, and misbehaves where it is asked to.
 * usage: server PATH     listens on TCP, UDP and a UNIX socket at PATH; prints the two ports; knows no rpcbind */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include "every.h"

static int counter;

#define ECHO(NAME, TYPE) \
	bool_t NAME(TYPE argument, TYPE *result, struct svc_req *request) { *result = argument; return TRUE; }

ECHO(echo_all_1_svc, everything)
ECHO(echo_outcome_1_svc, outcome)
ECHO(echo_answer_1_svc, answer)
ECHO(echo_flag_1_svc, flag)
ECHO(echo_list_1_svc, list)
ECHO(echo_tree_1_svc, tree)
ECHO(echo_numbers_1_svc, numbers)
ECHO(echo_seal_1_svc, seal)

bool_t every_null_1_svc(void *result, struct svc_req *request) { return TRUE; }

bool_t echo_string_1_svc(char *argument, char **result, struct svc_req *request)
{
	if (!strcmp(argument, "panic")) {
		svcerr_systemerr(request->rq_xprt);
		return FALSE;
	}
	if (!strcmp(argument, "forbidden")) {
		svcerr_weakauth(request->rq_xprt);
		return FALSE;
	}
	*result = argument;
	return TRUE;
}

bool_t count_1_svc(int *result, struct svc_req *request) { *result = counter; return TRUE; }

/* Negative numbers are batched: no reply. */
bool_t add_1_svc(int argument, void *result, struct svc_req *request)
{
	counter += abs(argument);
	return argument >= 0;
}

bool_t sum_2_svc(int a, int b, int *result, struct svc_req *request) { *result = a + b; return TRUE; }

/* Results share their memory with the arguments, which are freed. */
int every_program_1_freeresult(SVCXPRT *x, xdrproc_t p, caddr_t r) { return 1; }
int every_program_2_freeresult(SVCXPRT *x, xdrproc_t p, caddr_t r) { return 1; }

extern void every_program_1(struct svc_req *, SVCXPRT *);
extern void every_program_2(struct svc_req *, SVCXPRT *);

int main(int argc, char **argv)
{
	SVCXPRT *tcp = svctcp_create(RPC_ANYSOCK, 0, 0), *udp = svcudp_create(RPC_ANYSOCK);
	SVCXPRT *local = svcunix_create(RPC_ANYSOCK, 0, 0, argv[1]);
	SVCXPRT *all[] = { tcp, udp, local };
	for (int i = 0; i < 3; i++)
		if (!all[i] || !svc_register(all[i], EVERY_PROGRAM, EVERY_V1, every_program_1, 0) ||
		    !svc_register(all[i], EVERY_PROGRAM, EVERY_V2, every_program_2, 0)) {
			fprintf(stderr, "transport %d cannot be registered\n", i);
			return 1;
		}
	printf("%d %d\n", tcp->xp_port, udp->xp_port);
	fflush(stdout);
	svc_run();
	return 1;
}
