/* A deployment for measuring proxies: it answers chat completions at once, at next to no cost.
 *
 *   upstream PORT
 *
 * HTTP/1.1 on 127.0.0.1, one thread. A request that streams is answered with events, each sent by itself; the model's
 * name says how many and how far apart: "mock-64-10" is 64 events of text, 10 ms apart, then the finish reason, the
 * usage and [DONE] without a pause. Any other POST is answered with one completion, after as many milliseconds where the
 * name has no events ("mock-0-16"), and a GET with a list of models. Of the requests that name a third number, so many in
 * a hundred are refused with status 400 ("mock-0-0-20").
 *
 * Nothing is ever queued for sending: an answer is far smaller than a socket's buffer. A client for which that does not
 * hold is cut off, which the load generator counts.
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
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define ID "\"id\":\"chatcmpl-BkT7Qm2xZr9WcN4vLpYs8HdFgJ1aE\",\"created\":1750000000,\"model\":\"mock\","
#define CHUNK "data: {" ID "\"object\":\"chat.completion.chunk\",\"system_fingerprint\":\"fp_mock\",\"choices\":["
#define CHOICE(delta, reason) "{\"index\":0,\"delta\":" delta ",\"logprobs\":null,\"finish_reason\":" reason "}"
#define USAGE "\"usage\":{\"prompt_tokens\":230,\"completion_tokens\":64,\"total_tokens\":294}"

static const char COMPLETION[] =
    "{" ID "\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
    "\"A level that hangs still shows how far the ground has tilted since it was put there; one that is carried about "
    "shows only who carried it. So it is hung up once, it is read often, and whatever it says is written down with the "
    "hours and the weather beside it.\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}]," USAGE "}";
static const char REFUSAL[] =
    "{\"error\":{\"message\":\"'temperature' must lie in [0, 2].\",\"type\":\"invalid_request_error\","
    "\"param\":\"temperature\",\"code\":\"invalid_value\"}}";
static const char MODELS[] =
    "{\"object\":\"list\",\"status\":\"ok\",\"is_generation\":true,\"model_path\":\"mock\",\"tokenizer_path\":\"\","
    "\"served_model_name\":\"mock\",\"data\":[{\"id\":\"mock\",\"object\":\"model\",\"created\":1750000000,"
    "\"owned_by\":\"mock\"}]}";
static const char STREAM_HEAD[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";
static const char TEXT[] = CHUNK CHOICE("{\"content\":\" level\"}", "null") "],\"usage\":null}\n\n";
static const char FINISH[] = CHUNK CHOICE("{}", "\"stop\"") "],\"usage\":null}\n\n";
static const char TOTALS[] = CHUNK "]," USAGE "}\n\n";
static const char DONE[] = "data: [DONE]\n\n";

struct client {
    int fd;
    char *in;
    size_t size, room;
    int whole;                /* what is due is an answer in one piece */
    long texts;               /* events of text that are left; below 0: nothing is being streamed */
    uint64_t pace, due;       /* nanoseconds */
    struct client *sooner, *later;
};

/* Streams by the time of their next event. A list will do: streams of the same pace are put at its end at once. */
static struct client times = { .sooner = &times, .later = &times };
static int poller;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void unschedule(struct client *c) {
    c->sooner->later = c->later;
    c->later->sooner = c->sooner;
    c->sooner = c->later = c;
}

static void schedule(struct client *c, uint64_t due) {
    struct client *before = times.sooner;
    while (before != &times && before->due > due) before = before->sooner;
    c->due = due;
    c->sooner = before;
    c->later = before->later;
    c->sooner->later = c->later->sooner = c;
}

static void drop(struct client *c) {
    unschedule(c);
    close(c->fd);
    free(c->in);
    free(c);
}

static int put(struct client *c, const char *bytes, size_t size) {
    return send(c->fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static int put_json(struct client *c, const char *status, const char *json) {
    char answer[2048];
    static const char head[] = "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s";
    int size = snprintf(answer, sizeof answer, head, status, strlen(json), json);
    return put(c, answer, (size_t)size);
}

static int put_event(struct client *c, const char *event, const char *after) {
    char chunk[1024];
    int size = snprintf(chunk, sizeof chunk, "%zx\r\n%s\r\n%s", strlen(event), event, after);
    return put(c, chunk, (size_t)size);
}

/* Send a whole answer, or the next event, and behind the last text all that ends a stream. */
static int go_on(struct client *c) {
    unschedule(c);
    if (c->whole) {
        c->whole = 0;
        return put_json(c, "200 OK", COMPLETION);
    }
    if (c->texts-- > 0) {
        if (!put_event(c, TEXT, "")) return 0;
        schedule(c, c->due + c->pace);
        return 1;
    }
    return put_event(c, FINISH, "") && put_event(c, TOTALS, "") && put_event(c, DONE, "0\r\n\r\n");
}

/* The number that a header holds, 0 without it; `head` ends with a zero. */
static long header_number(const char *head, const char *name) {
    const char *found = strcasestr(head, name);
    return found ? strtol(found + strlen(name), NULL, 10) : 0;
}

/* How long the request at the start of `in` is, 0 while it is not whole. */
static size_t request_size(struct client *c) {
    char *body = memmem(c->in, c->size, "\r\n\r\n", 4);
    if (!body) return 0;
    *body = 0;
    size_t head = (size_t)(body - c->in) + 4, size = head + (size_t)header_number(c->in, "\r\ncontent-length:");
    int chunked = strcasestr(c->in, "\r\ntransfer-encoding: chunked") != NULL;
    *body = '\r';
    if (chunked) {
        char *end = memmem(c->in + head - 2, c->size - head + 2, "\r\n0\r\n\r\n", 7);
        return end ? (size_t)(end - c->in) + 7 : 0;
    }
    return size <= c->size ? size : 0;
}

static int answer(struct client *c, size_t size) {
    int streams = memmem(c->in, size, "\"stream\":true", 13) || memmem(c->in, size, "\"stream\": true", 14);
    if (strncmp(c->in, "POST", 4)) return put_json(c, "200 OK", MODELS);
    char *shape = memmem(c->in, size, "\"mock-", 6);
    c->texts = shape ? strtol(shape + 6, &shape, 10) : 0;
    c->pace = shape ? (uint64_t)strtol(shape + 1, &shape, 10) * 1000000u : 0;
    if (!streams) {
        static unsigned asked;
        unsigned refused = shape && *shape == '-' ? (unsigned)strtol(shape + 1, NULL, 10) : 0;
        if (asked++ * refused % 100 < refused) return put_json(c, "400 Bad Request", REFUSAL);
        if (!c->pace) return put_json(c, "200 OK", COMPLETION);
        c->whole = 1;
        schedule(c, now() + c->pace);
        return 1;
    }
    schedule(c, now());
    return put(c, STREAM_HEAD, sizeof STREAM_HEAD - 1);
}

static int hear(struct client *c) {
    if (c->room - c->size < 8192) {
        c->room = c->room * 2 + 16384;
        c->in = realloc(c->in, c->room);
    }
    ssize_t got = recv(c->fd, c->in + c->size, c->room - c->size, 0);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    c->size += (size_t)got;
    size_t size = request_size(c);  /* nobody here sends a second request before the first is answered */
    if (!size) return 1;
    int well = answer(c, size);
    memmove(c->in, c->in + size, c->size - size);
    c->size -= size;
    return well;
}

static void welcome(int listening) {
    int fd, on = 1;
    while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct client *c = calloc(1, sizeof *c);
        *c = (struct client){ .fd = fd, .texts = -1, .sooner = c, .later = c };
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &(struct epoll_event){ .events = EPOLLIN, .data.ptr = c });
    }
}

static void stream_what_is_due(int timer) {
    uint64_t until = now();
    while (times.later != &times && times.later->due <= until) {
        struct client *c = times.later;
        if (!go_on(c)) drop(c);
    }
    uint64_t due = times.later == &times ? 0 : times.later->due;  /* 0: no alarm */
    struct itimerspec alarm = { .it_value = { (time_t)(due / 1000000000u), (long)(due % 1000000000u) } };
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &alarm, NULL);
}

static int listen_on(int port) {
    struct sockaddr_in address = { AF_INET, htons((uint16_t)port), { htonl(INADDR_LOOPBACK) }, { 0 } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096)) {
        perror("upstream");
        exit(1);
    }
    return fd;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    int listening = listen_on(atoi(arguments[1])), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    int told[2] = { listening, timer };
    poller = epoll_create1(0);
    for (int i = 0; i < 2; i++)
        epoll_ctl(poller, EPOLL_CTL_ADD, told[i], &(struct epoll_event){ .events = EPOLLIN, .data.ptr = &told[i] });
    for (;;) {
        struct epoll_event events[256];
        int many = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < many; i++) {
            struct client *c = events[i].data.ptr;
            if (events[i].data.ptr == &told[0]) welcome(listening);
            else if (events[i].data.ptr != &told[1] && !hear(c)) drop(c);
        }
        stream_what_is_due(timer);
    }
}
