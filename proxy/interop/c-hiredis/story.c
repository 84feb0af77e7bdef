/* The story told through hiredis, with its synchronous calls. */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const char *step, *key;
static char host[256], token[64];
static int port;
static long long fence;
static redisContext *connection;

static void die(const char *format, ...) {
	va_list values;
	printf("fail %s ", step);
	va_start(values, format);
	vprintf(format, values);
	va_end(values);
	printf("\n");
	exit(1);
}

static void ok(void) { printf("ok %s\n", step); }

/* address splits host:port of an environment variable. */
static void address(const char *name, char *host, size_t size, int *port) {
	const char *text = getenv(name), *colon = text ? strrchr(text, ':') : NULL;
	if (!colon || (size_t)(colon - text) >= size) die("%s is no address", name);
	memcpy(host, text, colon - text);
	host[colon - text] = 0;
	*port = atoi(colon + 1);
}

static redisContext *dial(const char *host, int port) {
	struct timeval patience = {20, 0};
	redisContext *c = redisConnectWithTimeout(host, port, patience);
	if (c && !c->err) redisSetTimeout(c, patience);
	return c;
}

/* ask ends the story if there is no reply; an error reply is a reply. */
static redisReply *ask(const char *format, ...) {
	va_list values;
	va_start(values, format);
	redisReply *r = redisvCommand(connection, format, values);
	va_end(values);
	if (!r) die("%s: %s", format, connection->errstr);
	return r;
}

static void want_integer(redisReply *r, long long least, long long most) {
	if (r->type != REDIS_REPLY_INTEGER || r->integer < least || r->integer > most)
		die("got type %d, integer %lld, text %s", r->type, r->integer, r->str ? r->str : "-");
	freeReplyObject(r);
}

static void want_text(redisReply *r, int type, const char *text) {
	if (r->type != type || (text && strcmp(r->str, text))) die("got type %d, text %s", r->type, r->str ? r->str : "-");
	freeReplyObject(r);
}

static void want_nil(redisReply *r) {
	if (r->type != REDIS_REPLY_NIL) die("got type %d instead of nil", r->type);
	freeReplyObject(r);
}

static void grant(long long ttl) {
	redisReply *r = ask("DLOCK %s %lld", key, ttl);
	if (r->type != REDIS_REPLY_ARRAY || r->elements != 3) die("a grant has three elements, got type %d %s", r->type, r->str ? r->str : "-");
	redisReply **e = r->element;
	if (e[0]->type != REDIS_REPLY_STRING || e[0]->len != 27) die("token");
	if (e[1]->type != REDIS_REPLY_INTEGER || e[1]->integer <= 0 || e[1]->integer > ttl) die("validity %lld", e[1]->integer);
	if (e[2]->type != REDIS_REPLY_INTEGER || e[2]->integer <= 1LL << 50) die("fence %lld", e[2]->integer);
	snprintf(token, sizeof token, "%s", e[0]->str);
	fence = e[2]->integer;
	freeReplyObject(r);
}

static void password(void) {
	char there[256];
	int at;
	const char *secret = getenv("REDLOCKD_PASSWORD");
	if (!secret) {
		printf("skip password the daemon has none\n");
		return;
	}
	address("REDLOCKD_PASSWORD_ADDR", there, sizeof there, &at);
	redisContext *mine = connection;
	connection = dial(there, at);
	if (!connection || connection->err) die("no connection");
	redisReply *r = ask("PING");
	if (r->type != REDIS_REPLY_ERROR || strncmp(r->str, "NOAUTH", 6)) die("without a password: %s", r->str);
	freeReplyObject(r);
	r = ask("AUTH wrong");
	if (r->type != REDIS_REPLY_ERROR || strncmp(r->str, "WRONGPASS", 9)) die("a wrong password: %s", r->str);
	freeReplyObject(r);
	want_text(ask("AUTH %s", secret), REDIS_REPLY_STATUS, "OK");
	want_text(ask("PING"), REDIS_REPLY_STATUS, "PONG");
	redisFree(connection);
	connection = mine;
	ok();
}

/* pipeline appends a hundred commands before it reads the first reply. */
static void pipeline(void) {
	void *reply;
	int i;
	for (i = 0; i < 100; i++) redisAppendCommand(connection, "DLOCK %s:%d 30000 TOKEN interop-token", key, i);
	for (i = 0; i < 100; i++) {
		if (redisGetReply(connection, &reply) != REDIS_OK) die("grant %d: %s", i, connection->errstr);
		redisReply *r = reply;
		if (r->type != REDIS_REPLY_ARRAY || r->elements != 3 || strcmp(r->element[0]->str, "interop-token")) die("grant %d", i);
		freeReplyObject(r);
	}
	for (i = 0; i < 100; i++) redisAppendCommand(connection, "DUNLOCK %s:%d interop-token", key, i);
	for (i = 0; i < 100; i++) {
		if (redisGetReply(connection, &reply) != REDIS_OK) die("release %d: %s", i, connection->errstr);
		want_integer(reply, 1, 1);
	}
	ok();
}

static void wait_for(const char *what) {
	char answer[64] = "";
	printf("wait %s\n", what);
	if (!fgets(answer, sizeof answer, stdin) || strncmp(answer, what, strlen(what))) die("the driver did not answer %s", what);
}

/* reconnect: hiredis has a call for it, and leaves the moment to its user. */
static void reconnect(void) {
	wait_for("restart");
	for (int i = 0; i < 200; i++) {
		redisReply *r = redisCommand(connection, "PING");
		if (r) {
			freeReplyObject(r);
			break;
		}
		usleep(50000);
		redisReconnect(connection);
	}
	grant(30000);
	want_integer(ask("DUNLOCK %s %s", key, token), 1, 1);
	ok();
}

int main(void) {
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("library %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
	step = "connect";
	key = getenv("REDLOCKD_KEY");
	address("REDLOCKD_ADDR", host, sizeof host, &port);
	connection = dial(host, port);
	if (!connection || connection->err) die("%s", connection ? connection->errstr : "no memory");
	want_text(ask("ECHO hello"), REDIS_REPLY_STRING, "hello");
	ok();
	step = "ping";
	want_text(ask("PING"), REDIS_REPLY_STATUS, "PONG");
	redisReply *info = ask("CLIENT INFO");
	const char *resp = info->str ? strstr(info->str, "resp=") : NULL;
	if (!resp) die("CLIENT INFO");
	printf("protocol %c\n", resp[5]);
	freeReplyObject(info);
	ok();
	step = "password";
	password();
	step = "dlock";
	grant(30000);
	ok();
	step = "taken";
	want_nil(ask("DLOCK %s 30000", key));
	ok();
	step = "dunlock";
	want_integer(ask("DUNLOCK %s not-the-token", key), 0, 0);
	want_integer(ask("DUNLOCK %s %s", key, token), 1, 1);
	ok();
	step = "dextend";
	long long before = fence;
	grant(20000);
	if (fence <= before) die("the fence does not rise: %lld, %lld", before, fence);
	want_integer(ask("DEXTEND %s %s 40000", key, token), 30001, 40000);
	want_nil(ask("DEXTEND %s not-the-token 40000", key));
	want_integer(ask("DUNLOCK %s %s", key, token), 1, 1);
	ok();
	step = "dnextid";
	redisReply *first = ask("DNEXTID %s", key);
	want_integer(ask("DNEXTID %s", key), first->integer + 1, 1LL << 62);
	want_integer(first, 1, 1LL << 62);
	ok();
	step = "error";
	redisReply *error = ask("DLOCK %s 5", key);
	if (error->type != REDIS_REPLY_ERROR || strncmp(error->str, "ERR ttl", 7)) die("got type %d, text %s", error->type, error->str ? error->str : "-");
	freeReplyObject(error);
	want_text(ask("PING"), REDIS_REPLY_STATUS, "PONG");
	ok();
	step = "pipeline";
	pipeline();
	step = "reconnect";
	reconnect();
	step = "close";
	redisFree(connection);
	wait_for("gone");
	ok();
	return 0;
}
