/* Calls a server of every_type.x with libtirpc and compares what comes back.
 * usage: client tcp|udp PORT, client unix PATH */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include "every.h"

#define CHECK(WHAT) do { if (!(WHAT)) { fprintf(stderr, "line %d: %s\n", __LINE__, #WHAT); exit(1); } } while (0)
#define CALL(WHAT) do { enum clnt_stat s = (WHAT); if (s != RPC_SUCCESS) { \
	fprintf(stderr, "line %d: %s: %s\n", __LINE__, #WHAT, clnt_sperrno(s)); exit(1); } } while (0)

static char **arguments;
static const struct timeval PATIENCE = { 25, 0 };

static CLIENT *connected(rpcprog_t program, rpcvers_t version)
{
	int sock = RPC_ANYSOCK;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	CLIENT *client;
	if (!strcmp(arguments[1], "unix")) {
		strcpy(un.sun_path, arguments[2]);
		client = clntunix_create(&un, program, version, &sock, 0, 0);
	} else {
		in.sin_port = htons(atoi(arguments[2]));
		if (!strcmp(arguments[1], "tcp"))
			client = clnttcp_create(&in, program, version, &sock, 0, 0);
		else
			client = clntudp_create(&in, program, version, (struct timeval){ 1, 0 }, &sock);
	}
	if (!client) {
		clnt_pcreateerror(arguments[1]);
		exit(1);
	}
	return client;
}

static void all_types(CLIENT *client)
{
	node third = { 3, NULL }, second = { 2, &third }, first = { 1, &second };
	scalars one = { -7, 200, -32768, 65535, -2147483647 - 1, 4294967295u, 70000, -9223372036854775807LL - 1,
		18446744073709551615ULL, 1.5, -2.25, TRUE, BLUE };
	int some[] = { 10, 20, 30, 40, 50 };
	color colours[] = { GREEN, RED };
	name_t names[] = { "", "two", "three" };
	everything sent = { one, &one, "digest", { 5, "\1\2\3\4\5" }, "sixteen letters!", "free text", { 1, -2, 3 },
		{ 5, some }, { 2, colours }, { 3, names }, &first, 42 }, got = { 0 };
	memcpy(sent.fixed, "digest", 6);
	CALL(echo_all_1(sent, &got, client));
	CHECK(got.one.c == -7 && got.one.uc == 200 && got.one.s == -32768 && got.one.us == 65535);
	CHECK(got.one.i == one.i && got.one.ui == one.ui && got.one.l == 70000 && got.one.h == one.h && got.one.uh == one.uh);
	CHECK(got.one.f == 1.5 && got.one.d == -2.25 && got.one.b == TRUE && got.one.colour == BLUE);
	CHECK(got.maybe && got.maybe->uh == one.uh && !memcmp(got.fixed, "digest", 6));
	CHECK(got.bytes.bytes_len == 5 && !memcmp(got.bytes.bytes_val, "\1\2\3\4\5", 5));
	CHECK(!strcmp(got.name, "sixteen letters!") && !strcmp(got.free, "free text") && got.row[1] == -2);
	CHECK(got.some.numbers_len == 5 && got.some.numbers_val[4] == 50);
	CHECK(got.colours.colours_len == 2 && got.colours.colours_val[0] == GREEN);
	CHECK(got.names.names_len == 3 && !strcmp(got.names.names_val[2], "three"));
	CHECK(got.chain->next->next->value == 3 && !got.chain->next->next->next && got.type == 42);

	outcome o = { .kind = GREEN, .outcome_u.text = "green" }, o2 = { 0 };
	CALL(echo_outcome_1(o, &o2, client));
	CHECK(o2.kind == GREEN && !strcmp(o2.outcome_u.text, "green"));
	answer a = { .status = 17, .answer_u.reason = "because" }, a2 = { 0 };
	CALL(echo_answer_1(a, &a2, client));
	CHECK(a2.status == 17 && !strcmp(a2.answer_u.reason, "because"));
	answer b = { .status = -1 }, b2 = { 0 };
	CALL(echo_answer_1(b, &b2, client));
	CHECK(b2.status == -1);
	answer c = { .status = 0, .answer_u.all = &sent }, c2 = { 0 };
	CALL(echo_answer_1(c, &c2, client));
	CHECK(c2.status == 0 && c2.answer_u.all->type == 42);
	flag f = { .set = TRUE, .flag_u.when = 1LL << 40 }, f2 = { 0 };
	CALL(echo_flag_1(f, &f2, client));
	CHECK(f2.set == TRUE && f2.flag_u.when == 1LL << 40);
	char *text = NULL;
	CALL(echo_string_1("hello", &text, client));
	CHECK(!strcmp(text, "hello"));
	list chain = NULL;
	CALL(echo_list_1(&first, &chain, client));
	CHECK(chain->next->value == 2);
	tree leaf = { "leaf", { 0, NULL } }, root = { "root", { 1, &leaf } }, grown = { 0 };
	CALL(echo_tree_1(root, &grown, client));
	CHECK(grown.branches.forest_len == 1 && !strcmp(grown.branches.forest_val[0].label, "leaf"));
	seal d = { "abcde" }, d2 = { "" };
	CALL(echo_seal_1(d, &d2, client));
	CHECK(!memcmp(d.inner, d2.inner, 6));
	numbers n = { 2, some }, n2 = { 0 };
	CALL(echo_numbers_1(n, &n2, client));
	CHECK(n2.numbers_len == 2 && n2.numbers_val[1] == 20);
}

static enum clnt_stat raw(CLIENT *client, rpcproc_t procedure)
{
	int word = 1;
	return clnt_call(client, procedure, (xdrproc_t)xdr_int, (char *)&word, (xdrproc_t)xdr_void, NULL, PATIENCE);
}

static void errors(CLIENT *client)
{
	struct rpc_err error;
	char *text = NULL;
	CHECK(raw(client, 99) == RPC_PROCUNAVAIL);
	CHECK(raw(client, ECHO_ALL) == RPC_CANTDECODEARGS);
	CHECK(echo_string_1("panic", &text, client) == RPC_SYSTEMERROR);
	CHECK(echo_string_1("forbidden", &text, client) == RPC_AUTHERROR);
	clnt_geterr(client, &error);
	CHECK(error.re_why == AUTH_TOOWEAK);
	CLIENT *other = connected(EVERY_PROGRAM + 1, 1);
	CHECK(raw(other, 0) == RPC_PROGUNAVAIL);
	clnt_destroy(other);
	other = connected(EVERY_PROGRAM, 7);
	CHECK(raw(other, 0) == RPC_PROGVERSMISMATCH);
	clnt_geterr(other, &error);
	CHECK(error.re_vers.low == 1 && error.re_vers.high == 2);
	clnt_destroy(other);
	CALL(every_null_1(NULL, client));
}

int main(int argc, char **argv)
{
	arguments = argv;
	CLIENT *client = connected(EVERY_PROGRAM, EVERY_V1);
	all_types(client);
	errors(client);
	client->cl_auth = authunix_create_default();
	all_types(client);

	/* Batching: no timeout and no results, and then a call that waits. */
	if (strcmp(argv[1], "udp")) {
		int before, after, minus = -3;
		struct timeval none = { 0, 0 };
		CALL(count_1(&before, client));
		for (int i = 0; i < 1000; i++)
			CALL(clnt_call(client, ADD, (xdrproc_t)xdr_int, (char *)&minus, NULL, NULL, none));
		CALL(count_1(&after, client));
		CHECK(after - before == 3000);
		/* Longer than the buffers of libtirpc: several fragments. */
		char *text = malloc(1000001);
		memset(text, 'x', 1000000);
		text[1000000] = 0;
		answer long_one = { .status = 1, .answer_u.reason = text }, echoed = { 0 };
		CALL(echo_answer_1(long_one, &echoed, client));
		CHECK(!strcmp(text, echoed.answer_u.reason));
	}
	CLIENT *second = connected(EVERY_PROGRAM, EVERY_V2);
	int sum;
	CALL(sum_2(40, 2, &sum, second));
	CHECK(sum == 42);
	puts("every type is the same");
	return 0;
}
