// Sockets of memory: see fake_socket.h.
#include "fake_socket.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct stream {
    size_t begin, end;
    unsigned char bytes[FAKE_SOCKET_BYTES];
} stream;

typedef struct fake_socket {
    stream in, out;
} fake_socket;

static fake_socket sockets[FAKE_SOCKET_COUNT];

static fake_socket *
find(int descriptor)
{
    return descriptor >= FAKE_SOCKET && descriptor < FAKE_SOCKET + FAKE_SOCKET_COUNT
               ? &sockets[descriptor - FAKE_SOCKET]
               : NULL;
}

static size_t
put(stream *s, const void *bytes, size_t size)
{
    size_t room = sizeof s->bytes - s->end, count = size < room ? size : room;
    memcpy(s->bytes + s->end, bytes, count);
    s->end += count;
    return count;
}

static size_t
take(stream *s, void *bytes, size_t size)
{
    size_t there = s->end - s->begin, count = size < there ? size : there;
    memcpy(bytes, s->bytes + s->begin, count);
    s->begin += count;
    return count;
}

void
fake_socket_reset(void)
{
    for (int i = 0; i < FAKE_SOCKET_COUNT; i++)
        sockets[i].in.begin = sockets[i].in.end = sockets[i].out.begin = sockets[i].out.end = 0;
}

void
fake_socket_put(int descriptor, const void *bytes, size_t size)
{
    if (size > 0)
        (void)put(&find(descriptor)->in, bytes, size);
}

size_t
fake_socket_take(int descriptor, void *bytes, size_t size)
{
    return take(&find(descriptor)->out, bytes, size);
}

// ---- what stands in for the system -------------------------------------------------------------

ssize_t
recv(int descriptor, void *bytes, size_t size, int flags)
{
    (void)flags;
    fake_socket *s = find(descriptor);
    size_t count = s != NULL ? take(&s->in, bytes, size) : 0;
    errno = s != NULL ? EAGAIN : EBADF;
    return count > 0 ? (ssize_t)count : -1;
}

ssize_t
send(int descriptor, const void *bytes, size_t size, int flags)
{
    (void)flags;
    fake_socket *s = find(descriptor);
    errno = s != NULL ? EAGAIN : EBADF;
    size_t count = s != NULL ? put(&s->out, bytes, size) : 0;
    return count > 0 ? (ssize_t)count : -1;
}

int
close(int descriptor)
{
    return find(descriptor) != NULL ? 0 : (int)syscall(SYS_close, descriptor);
}

int
epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event)
{
    if (find(descriptor) != NULL)
        return 0;
    return (int)syscall(SYS_epoll_ctl, epoll, operation, descriptor, event);
}
