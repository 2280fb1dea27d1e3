/* Load on a proxy: so many connections, each sending the same request again as soon as it has been answered.
 *
 *   load PORT CONNECTIONS SECONDS RAMP_MS EVENTS CLIENTS < REQUESTS
 *
 * The requests are the bytes of standard input, head and body: one of each client, all equally long; they are sent in
 * turn, whatever the connection. An answer of status 400 is whole, and also counted as refused. Connections are opened spread over RAMP_MS; after SECONDS
 * no request is sent, and what is under way is waited for (30 s at most). EVENTS is how many events a whole stream has,
 * 0 for an answer that is none. Prints one line of JSON; times in microseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GRACE 30000000u
enum part { HEAD, SIZED, CHUNK_SIZE, EXTENSION, CHUNK, CHUNK_END, TRAILER, UNTIL_CLOSE, WHOLE };

struct connection {
    int fd, busy;
    uint64_t began, first;       /* when the request was sent, and when its first event came */
    enum part part;
    size_t left;                 /* bytes of the body or of the chunk */
    long events;
    unsigned matched, line, status;
    size_t head_size;
    char head[8192];
};

struct times { uint32_t *taken; size_t count, room; };

static struct { long answers, refused, failed, odd, events, open; } sum;
static struct times whole_times, first_times;
static char requests[1 << 22];
static size_t request_size, clients, asked;
static struct sockaddr_in address;
static uint64_t deadline;
static long expected;
static int poller;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static void note(struct times *times, uint64_t taken) {
    if (times->count == times->room) {
        times->room = times->room * 2 + 1024;
        times->taken = realloc(times->taken, times->room * sizeof(uint32_t));
    }
    times->taken[times->count++] = (uint32_t)taken;
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *name, struct times *times) {
    qsort(times->taken, times->count, sizeof(uint32_t), by_size);
    if (!times->count) printf(", \"%s\": null", name);
    else printf(", \"%s\": {\"p50\": %u, \"p99\": %u}", name,
                times->taken[times->count / 2], times->taken[times->count * 99 / 100]);
}

static void hang_up(struct connection *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    sum.open--;
}

/* Send the request, on a new connection if there is none; past the deadline give the connection up. */
static void ask(struct connection *c) {
    int on = 1;
    if (now() >= deadline) { hang_up(c); return; }
    if (c->fd < 0) {
        c->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) { sum.failed++; hang_up(c); return; }
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &(struct epoll_event){ .events = EPOLLIN, .data.ptr = c });
    }
    c->busy = 1;
    c->began = now();
    c->part = HEAD;
    c->first = 0;
    c->events = c->matched = c->status = 0;
    c->head_size = 0;
    const char *request = requests + asked++ % clients * request_size;
    if (send(c->fd, request, request_size, MSG_NOSIGNAL) != (ssize_t)request_size) { sum.failed++; hang_up(c); }
}

static void answered(struct connection *c) {
    uint64_t end = now();
    c->busy = 0;
    if (c->status != 200 && c->status != 400) { sum.failed++; return; }
    sum.answers++;
    if (c->status == 400) { sum.refused++; return; }
    sum.events += c->events;
    sum.odd += c->events != expected;
    note(&whole_times, end - c->began);
    if (c->first) note(&first_times, c->first - c->began);
}

/* Count the events that begin in a piece of the body; one may begin in this piece and go on in the next. */
static void count_events(struct connection *c, const char *bytes, size_t size) {
    static const char sign[] = "data: ";
    for (size_t i = 0; i < size; i++) {
        c->matched = bytes[i] == sign[c->matched] ? c->matched + 1 : bytes[i] == 'd';
        if (c->matched < sizeof sign - 1) continue;
        c->matched = 0;
        if (!c->events++) c->first = now();
    }
}

/* Take the head's next bytes; give how many they were. */
static size_t take_head(struct connection *c, const char *bytes, size_t size) {
    size_t before = c->head_size, room = sizeof c->head - 1 - before, taken = size < room ? size : room;
    memcpy(c->head + before, bytes, taken);
    c->head[c->head_size = before + taken] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (!end) return taken;
    end[2] = 0;
    c->status = (unsigned)atoi(c->head + 9);
    char *length = strcasestr(c->head, "\r\ncontent-length:");
    c->left = length ? strtoul(length + 17, NULL, 10) : 0;
    if (strcasestr(c->head, "\r\ntransfer-encoding: chunked")) c->part = CHUNK_SIZE;
    else c->part = !length ? UNTIL_CLOSE : c->left ? SIZED : WHOLE;
    return (size_t)(end + 4 - c->head) - before;
}

/* Take one byte of what stands around chunks. */
static void take_framing(struct connection *c, char byte) {
    static const char digits[] = "0123456789abcdef";
    const char *digit = byte ? strchr(digits, byte | 0x20) : NULL;
    if (c->part == CHUNK_SIZE && digit) c->left = c->left * 16 + (size_t)(digit - digits);
    if (c->part == CHUNK_SIZE && byte == ';') c->part = EXTENSION;
    if (byte != '\n') { c->line += byte != '\r'; return; }
    if (c->part == CHUNK_SIZE || c->part == EXTENSION) c->part = c->left ? CHUNK : TRAILER;
    else if (c->part == CHUNK_END) c->part = CHUNK_SIZE;
    else if (!c->line) c->part = WHOLE;
    c->line = 0;
}

static void take(struct connection *c, const char *bytes, size_t size) {
    while (size && c->part != WHOLE) {
        size_t taken = 1;
        if (c->part == HEAD) taken = take_head(c, bytes, size);
        else if (c->part == CHUNK || c->part == SIZED) {
            taken = size < c->left ? size : c->left;
            count_events(c, bytes, taken);
            c->left -= taken;
            if (!c->left) c->part = c->part == SIZED ? WHOLE : CHUNK_END;
        } else if (c->part == UNTIL_CLOSE) count_events(c, bytes, taken = size);
        else take_framing(c, *bytes);
        if (!taken) { sum.failed++; c->busy = 0; c->part = WHOLE; }  /* a head without an end */
        bytes += taken;
        size -= taken;
    }
}

static void hear(struct connection *c) {
    char bytes[65536];
    ssize_t got = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0) take(c, bytes, (size_t)got);
    else {
        close(c->fd);
        c->fd = -1;
        if (c->part == UNTIL_CLOSE) c->part = WHOLE;
        else if (c->busy) { sum.failed++; c->busy = 0; }
    }
    if (c->part != WHOLE && got > 0) return;
    if (c->busy) answered(c);
    if (sum.failed < 1000) ask(c);
    else hang_up(c);
}

int main(int count, char **arguments) {
    if (count != 7) return 2;
    long many = atol(arguments[2]), begun = 0;
    uint64_t start = now(), ramp = (uint64_t)atol(arguments[4]) * 1000u;
    address = (struct sockaddr_in){ AF_INET, htons((uint16_t)atoi(arguments[1])), { htonl(INADDR_LOOPBACK) }, { 0 } };
    deadline = start + (uint64_t)(atof(arguments[3]) * 1e6);
    expected = atol(arguments[5]);
    clients = (size_t)atol(arguments[6]);
    request_size = fread(requests, 1, sizeof requests, stdin) / clients;
    poller = epoll_create1(0);
    struct connection *connections = calloc((size_t)many, sizeof *connections);
    sum.open = many;
    while (sum.open && now() < deadline + GRACE) {
        for (; begun < many && now() - start >= ramp * (uint64_t)begun / (uint64_t)many; begun++) {
            connections[begun].fd = -1;
            ask(&connections[begun]);
        }
        struct epoll_event events[256];
        int ready = epoll_wait(poller, events, 256, begun < many ? 1 : 1000);
        for (int i = 0; i < ready; i++) hear(events[i].data.ptr);
    }
    printf("{\"answers\": %ld, \"refused\": %ld, \"failed\": %ld, \"odd\": %ld, \"unfinished\": %ld, \"events\": %ld, \"seconds\": %.3f",
           sum.answers, sum.refused, sum.failed, sum.odd, sum.open, sum.events, (double)(now() - start) / 1e6);
    print_times("whole", &whole_times);
    print_times("first", &first_times);
    puts("}");
}
