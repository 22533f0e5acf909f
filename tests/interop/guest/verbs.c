/*
 * One end of a connection over libibverbs and librdmacm, told step by step what to do. The other end
 * is crates/cli/tests/interop.
 *
 *   verbs [options] server PORT STEP...
 *   verbs [options] client ADDRESS PORT STEP...
 *
 *   -r COUNT    receives that are posted before set-up          -o DEPTH    reads under way (ORD)
 *   -b BYTES    the size of each receive, the first excepted    -i DEPTH    reads served (IRD)
 *   -d TEXT     private data of the request or reply            -n          no exchange of regions
 *
 * After set-up each end sends a message with its regions, the client first: for each region its
 * address (8 bytes), tag (4) and length (4), big endian.
 *
 *   region   a  read and write   b  read   c  write   d  read and write, of another protection domain
 *            e  read and write, for one message with invalidate
 *            x  the peer's a with another tag
 *
 *   steps, in order; R is a region, the bytes of a message are a pattern that starts from SEED
 *   write:R:OFFSET:LENGTH:SEED      write to the peer's region, wait for the completion
 *   read:R:OFFSET:LENGTH:SEED       read from the peer's region and compare
 *   failread:R:OFFSET:LENGTH        read from the peer's region; its completion must be an error
 *   reads:COUNT:LENGTH:SEED         as many reads of the peer's a at once
 *   send:LENGTH:SEED, sendse:...    send, with a solicited event
 *   sendinv:R:LENGTH:SEED           send and invalidate the peer's region
 *   recv:LENGTH:SEED                wait for a message and compare
 *   failrecv                        wait for the completion of a receive, which must be an error
 *   expect:R:OFFSET:LENGTH:SEED     compare the own region
 *   fill:R:OFFSET:LENGTH:SEED       write the pattern into the own region
 *   say:WORD                        print it
 *   rejected                        the peer must refuse the connection
 *   reject                          refuse the connection
 *   close                           disconnect
 *   ended                           wait until the connection has ended
 *
 * A step with "try" before its name, e.g. trywrite, may complete with an error: what the peer refuses may
 * come back before the own completion.
 *
 * Prints a line with "ok" or "failed: ..." at the end.
 */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REGIONS 5
#define REGION_LEN (256 * 1024)
#define SCRATCH_LEN (4 * 1024 * 1024)
#define MAX_RECEIVES 64
#define LIMIT_SECONDS 30
#define HELLO_LEN (REGIONS * sizeof(struct advert))

struct advert {
	uint64_t address;
	uint32_t tag;
	uint32_t length;
} __attribute__((packed));

static struct {
	int receives, receive_len, ord, ird, no_hello;
	const char *private_data;
} option = { .receives = 16, .receive_len = 128 * 1024, .ord = 8, .ird = 8 };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct ibv_pd *domain, *other_domain;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_mr *regions[REGIONS], *scratch_mr, *receive_mr;
static unsigned char *memory[REGIONS], *scratch, *receives;
static struct advert theirs[REGIONS];
static int ended, may_fail;

static void fail(const char *format, ...)
{
	va_list list;

	printf("failed: ");
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
	exit(1);
}

static void need(int ok, const char *what)
{
	if (!ok)
		fail("%s: %s", what, strerror(errno));
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static unsigned char pattern(size_t at, unsigned seed)
{
	return (unsigned char)(at * 31 + seed) ^ (unsigned char)(at >> 8);
}

static void fill(unsigned char *bytes, size_t len, unsigned seed)
{
	for (size_t at = 0; at < len; at++)
		bytes[at] = pattern(at, seed);
}

static void compare(const char *what, const unsigned char *bytes, size_t len, unsigned seed)
{
	for (size_t at = 0; at < len; at++)
		if (bytes[at] != pattern(at, seed))
			fail("%s: byte %zu is %02x instead of %02x", what, at, bytes[at], pattern(at, seed));
}

/* The next event of the connection manager, which must be `wanted`, or nothing before the time is up. */
static struct rdma_cm_event *event(enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *found;
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };

	if (poll(&ready, 1, LIMIT_SECONDS * 1000) != 1)
		fail("no %s within %d s", rdma_event_str(wanted), LIMIT_SECONDS);
	need(!rdma_get_cm_event(channel, &found), "rdma_get_cm_event");
	if (found->event != wanted)
		fail("%s (%d) instead of %s", rdma_event_str(found->event), found->status, rdma_event_str(wanted));
	return found;
}

static void show_private_data(struct rdma_cm_event *from)
{
	const char *data = from->param.conn.private_data;

	printf("private data: %.*s\n", (int)from->param.conn.private_data_len, data ? data : "");
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *bytes, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, bytes, len, access);

	need(mr != NULL, "ibv_reg_mr");
	return mr;
}

static void *pages(size_t len)
{
	void *bytes = aligned_alloc(4096, len);

	need(bytes != NULL, "aligned_alloc");
	memset(bytes, 0, len);
	return bytes;
}

static void post_receive(int slot, int len)
{
	struct ibv_sge piece = { .addr = (uintptr_t)(receives + (size_t)slot * option.receive_len), .length = len,
				 .lkey = receive_mr->lkey };
	struct ibv_recv_wr work = { .wr_id = slot, .sg_list = &piece, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(id->qp, &work, &bad);
	need(!errno, "ibv_post_recv");
}

static void make_resources(void)
{
	const int rw = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	const int access[REGIONS] = { rw, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, rw, rw };
	struct ibv_qp_init_attr attributes = { .qp_type = IBV_QPT_RC };
	int room;

	domain = ibv_alloc_pd(id->verbs);
	other_domain = ibv_alloc_pd(id->verbs);
	need(domain && other_domain, "ibv_alloc_pd");
	for (int at = 0; at < REGIONS; at++) {
		memory[at] = pages(REGION_LEN);
		fill(memory[at], REGION_LEN, at);
		regions[at] = reg(at == 3 ? other_domain : domain, memory[at], REGION_LEN, access[at]);
	}
	scratch = pages(SCRATCH_LEN);
	scratch_mr = reg(domain, scratch, SCRATCH_LEN, IBV_ACCESS_LOCAL_WRITE);
	/* The first receive takes the peer's regions. */
	room = option.receive_len < (int)HELLO_LEN ? (int)HELLO_LEN : option.receive_len;
	receives = pages(((size_t)MAX_RECEIVES * option.receive_len + room + 4095) / 4096 * 4096);
	receive_mr = reg(domain, receives, (size_t)MAX_RECEIVES * option.receive_len + room, IBV_ACCESS_LOCAL_WRITE);

	send_cq = ibv_create_cq(id->verbs, 256, NULL, NULL, 0);
	recv_cq = ibv_create_cq(id->verbs, 256, NULL, NULL, 0);
	need(send_cq && recv_cq, "ibv_create_cq");
	attributes.send_cq = send_cq;
	attributes.recv_cq = recv_cq;
	attributes.cap.max_send_wr = 128;
	attributes.cap.max_recv_wr = MAX_RECEIVES + 1;
	attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
	need(!rdma_create_qp(id, domain, &attributes), "rdma_create_qp");
	for (int slot = 0; slot < option.receives; slot++)
		post_receive(slot, slot == 0 && !option.no_hello ? room : option.receive_len);
}

static struct rdma_conn_param parameters(void)
{
	struct rdma_conn_param parameters = { .responder_resources = option.ird, .initiator_depth = option.ord,
					      .retry_count = 7, .rnr_retry_count = 7 };

	if (option.private_data) {
		parameters.private_data = option.private_data;
		parameters.private_data_len = strlen(option.private_data);
	}
	return parameters;
}

static void connect_to(const char *address, int port, int must_fail)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rdma_conn_param with = parameters();
	struct rdma_cm_event *done;

	need(inet_pton(AF_INET, address, &to.sin_addr) == 1, "the address");
	need(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000), "rdma_resolve_addr");
	rdma_ack_cm_event(event(RDMA_CM_EVENT_ADDR_RESOLVED));
	need(!rdma_resolve_route(id, 5000), "rdma_resolve_route");
	rdma_ack_cm_event(event(RDMA_CM_EVENT_ROUTE_RESOLVED));
	make_resources();
	need(!rdma_connect(id, &with), "rdma_connect");
	done = event(must_fail ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_ESTABLISHED);
	show_private_data(done);
	rdma_ack_cm_event(done);
}

static void serve(int port, int reject)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = INADDR_ANY };
	struct rdma_conn_param with = parameters();
	struct rdma_cm_id *listener;
	struct rdma_cm_event *request;

	need(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, (struct sockaddr *)&at), "rdma_bind_addr");
	need(!rdma_listen(listener, 4), "rdma_listen");
	printf("listening\n");
	fflush(stdout);
	request = event(RDMA_CM_EVENT_CONNECT_REQUEST);
	id = request->id;
	show_private_data(request);
	rdma_ack_cm_event(request);
	if (reject) {
		need(!rdma_reject(id, with.private_data, with.private_data_len), "rdma_reject");
		return;
	}
	make_resources();
	need(!rdma_accept(id, &with), "rdma_accept");
	rdma_ack_cm_event(event(RDMA_CM_EVENT_ESTABLISHED));
}

static struct ibv_wc completion(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc done;
	double until = now() + LIMIT_SECONDS;

	for (;;) {
		int count = ibv_poll_cq(cq, 1, &done);

		need(count >= 0, "ibv_poll_cq");
		if (count == 1)
			return done;
		if (now() > until)
			fail("%s: no completion within %d s", what, LIMIT_SECONDS);
		usleep(100);
	}
}

static struct ibv_wc good(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc done = completion(cq, what);

	if (done.status != IBV_WC_SUCCESS && !may_fail)
		fail("%s: %s", what, ibv_wc_status_str(done.status));
	return done;
}

static void post(enum ibv_wr_opcode opcode, size_t at, uint32_t len, uint64_t remote, uint32_t tag, int flags)
{
	struct ibv_sge piece = { .addr = (uintptr_t)(scratch + at), .length = len, .lkey = scratch_mr->lkey };
	struct ibv_send_wr work = { .opcode = opcode, .sg_list = &piece, .num_sge = 1,
				    .send_flags = IBV_SEND_SIGNALED | flags }, *bad;

	/* libsiw takes the tag of an invalidation from the field of one-sided operations. */
	work.wr.rdma.remote_addr = remote;
	work.wr.rdma.rkey = tag;
	if (opcode == IBV_WR_SEND_WITH_INV)
		work.invalidate_rkey = tag;
	errno = abs(ibv_post_send(id->qp, &work, &bad));
	need(!errno, "ibv_post_send");
}

static void exchange_regions(int client)
{
	struct advert *mine = (struct advert *)scratch;
	struct ibv_wc done;

	for (int turn = 0; turn < 2; turn++) {
		if (turn == !client) {
			for (int at = 0; at < REGIONS; at++) {
				mine[at].address = htobe64((uintptr_t)memory[at]);
				mine[at].tag = htobe32(regions[at]->rkey);
				mine[at].length = htobe32(REGION_LEN);
			}
			post(IBV_WR_SEND, 0, HELLO_LEN, 0, 0, 0);
			good(send_cq, "sending the regions");
		} else {
			done = good(recv_cq, "the peer's regions");
			if (done.byte_len != HELLO_LEN)
				fail("the peer's regions take %u bytes", done.byte_len);
			memcpy(theirs, receives + done.wr_id * option.receive_len, HELLO_LEN);
		}
	}
}

static void wait_for_end(void)
{
	struct rdma_cm_event *done;

	if (ended)
		return;
	done = event(RDMA_CM_EVENT_DISCONNECTED);
	rdma_ack_cm_event(done);
	ended = 1;
}

/* The arguments of a step, behind its name. */
static char *argument(char **rest)
{
	char *found = strsep(rest, ":");

	if (!found)
		fail("a step has too few arguments");
	return found;
}

static unsigned long number(char **rest)
{
	return strtoul(argument(rest), NULL, 0);
}

static int region_of(char **rest, uint32_t *tag, uint64_t *address)
{
	char name = argument(rest)[0];
	int at = name == 'x' ? 0 : name - 'a';

	if (at < 0 || at >= REGIONS)
		fail("no region %c", name);
	*address = be64toh(theirs[at].address);
	*tag = be32toh(theirs[at].tag) ^ (name == 'x' ? 0x55555500 : 0);
	return at;
}

/* A part of the scratch memory that was not used lately: siw reports a send as done while the network may still read it. */
static size_t fresh(size_t len)
{
	static size_t next;
	size_t at = next + len > SCRATCH_LEN ? 0 : next;

	next = (at + len + 4095) / 4096 * 4096;
	return at;
}

static void one_sided(const char *what, char *rest)
{
	uint32_t tag;
	uint64_t address;
	enum ibv_wr_opcode opcode = strcmp(what, "write") ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	unsigned long len;
	size_t at;
	struct ibv_wc done;

	region_of(&rest, &tag, &address);
	address += number(&rest);
	len = number(&rest);
	at = fresh(len);
	if (opcode == IBV_WR_RDMA_WRITE)
		fill(scratch + at, len, number(&rest));
	else
		memset(scratch + at, 0xee, len);
	post(opcode, at, len, address, tag, 0);
	if (!strcmp(what, "failread")) {
		done = completion(send_cq, what);
		if (done.status == IBV_WC_SUCCESS)
			fail("a read that should be refused was answered");
		printf("failread: %s\n", ibv_wc_status_str(done.status));
		return;
	}
	good(send_cq, what);
	if (opcode == IBV_WR_RDMA_READ)
		compare(what, scratch + at, len, number(&rest));
}

static void many_reads(char *rest)
{
	unsigned long count = number(&rest), len = number(&rest), seed = number(&rest);

	memset(scratch, 0xee, SCRATCH_LEN);
	for (unsigned long at = 0; at < count; at++)
		post(IBV_WR_RDMA_READ, at * len, len, be64toh(theirs[0].address), be32toh(theirs[0].tag), 0);
	for (unsigned long at = 0; at < count; at++)
		good(send_cq, "reads");
	for (unsigned long at = 0; at < count; at++)
		compare("reads", scratch + at * len, len, seed);
}

static void send_message(const char *what, char *rest)
{
	int invalidate = !strcmp(what, "sendinv");
	uint32_t tag = 0;
	uint64_t address;
	unsigned long len;
	size_t at;

	if (invalidate)
		region_of(&rest, &tag, &address);
	len = number(&rest);
	at = fresh(len);
	fill(scratch + at, len, number(&rest));
	post(invalidate ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND, at, len, 0, tag,
	     strcmp(what, "sendse") ? 0 : IBV_SEND_SOLICITED);
	good(send_cq, what);
}

static void receive_message(char *rest)
{
	unsigned long len = number(&rest);
	struct ibv_wc done = good(recv_cq, "recv");

	if (done.byte_len != len)
		fail("recv: %u bytes instead of %lu", done.byte_len, len);
	compare("recv", receives + done.wr_id * option.receive_len, len, number(&rest));
}

static void fail_receive(void)
{
	struct ibv_wc done = completion(recv_cq, "failrecv");

	if (done.status == IBV_WC_SUCCESS)
		fail("a message that should be refused was received");
	printf("failrecv: %s\n", ibv_wc_status_str(done.status));
}

static void own_region(const char *what, char *rest)
{
	unsigned char *bytes = memory[argument(&rest)[0] - 'a'];
	unsigned long len;

	bytes += number(&rest);
	len = number(&rest);
	if (!strcmp(what, "fill"))
		fill(bytes, len, number(&rest));
	else
		compare("expect", bytes, len, number(&rest));
}

static void do_step(char *rest)
{
	const char *name = strsep(&rest, ":");

	may_fail = !strncmp(name, "try", 3);
	if (may_fail)
		name += 3;
	if (!strcmp(name, "write") || !strcmp(name, "read") || !strcmp(name, "failread"))
		one_sided(name, rest);
	else if (!strcmp(name, "reads"))
		many_reads(rest);
	else if (!strcmp(name, "send") || !strcmp(name, "sendse") || !strcmp(name, "sendinv"))
		send_message(name, rest);
	else if (!strcmp(name, "recv"))
		receive_message(rest);
	else if (!strcmp(name, "failrecv"))
		fail_receive();
	else if (!strcmp(name, "expect") || !strcmp(name, "fill"))
		own_region(name, rest);
	else if (!strcmp(name, "say")) {
		printf("%s\n", argument(&rest));
		fflush(stdout);
	} else if (!strcmp(name, "close"))
		need(!rdma_disconnect(id), "rdma_disconnect");
	else if (!strcmp(name, "ended"))
		wait_for_end();
	else
		fail("no step %s", name);
}

int main(int argc, char **argv)
{
	int letter, client, reject, rejected;

	while ((letter = getopt(argc, argv, "+r:b:o:i:d:n")) != -1) {
		switch (letter) {
		case 'r': option.receives = atoi(optarg); break;
		case 'b': option.receive_len = atoi(optarg); break;
		case 'o': option.ord = atoi(optarg); break;
		case 'i': option.ird = atoi(optarg); break;
		case 'd': option.private_data = optarg; break;
		case 'n': option.no_hello = 1; break;
		default: return 2;
		}
	}
	argv += optind;
	argc -= optind;
	if (argc < 2 || option.receives > MAX_RECEIVES)
		fail("usage: verbs [options] server PORT STEP... | client ADDRESS PORT STEP...");
	client = !strcmp(argv[0], "client");
	channel = rdma_create_event_channel();
	need(channel != NULL, "rdma_create_event_channel");
	rejected = client && argc > 3 && !strcmp(argv[3], "rejected");
	reject = !client && argc > 2 && !strcmp(argv[2], "reject");
	if (client)
		connect_to(argv[1], atoi(argv[2]), rejected);
	else
		serve(atoi(argv[1]), reject);
	if (!reject && !rejected) {
		if (!option.no_hello)
			exchange_regions(client);
		for (int at = client ? 3 : 2; at < argc; at++)
			do_step(argv[at]);
	}
	printf("ok\n");
	return 0;
}
