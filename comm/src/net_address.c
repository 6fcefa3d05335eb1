// Addresses of hosts and listening sockets.
#include "net.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 64 };

static void
from_socket(const struct sockaddr *socket_address, tt_net_address *out)
{
    *out = (tt_net_address){0};
    if (socket_address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)socket_address;
        memcpy(out->bytes, &v4->sin_addr, 4);
        out->port = ntohs(v4->sin_port);
        out->family = 4;
    } else if (socket_address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)socket_address;
        memcpy(out->bytes, &v6->sin6_addr, 16);
        out->port = ntohs(v6->sin6_port);
        out->family = 6;
    }
}

socklen_t
tti_net_socket_address(const tt_net_address *address, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (address->family == 6) {
        struct sockaddr_in6 *v6 = (void *)out;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(address->port);
        memcpy(&v6->sin6_addr, address->bytes, 16);
        return sizeof *v6;
    }
    struct sockaddr_in *v4 = (void *)out;
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address->port);
    memcpy(&v4->sin_addr, address->bytes, 4);
    return sizeof *v4;
}

tt_status
tt_net_resolve(const char *host, uint16_t port, tt_net_address *out, tt_error *err)
{
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fault = getaddrinfo(host, NULL, &wanted, &found);
    *out = (tt_net_address){0};
    if (fault != 0)
        return tt_error_set(err, TT_NOTFOUND, host,
                            "check the spelling, /etc/hosts and the name server",
                            "no address is known for this host: %s", gai_strerror(fault));
    from_socket(found->ai_addr, out);
    out->port = port;
    freeaddrinfo(found);
    return TT_OK;
}

tt_status
tt_net_listen(tt_net_address *address, int *fd, tt_error *err)
{
    struct sockaddr_storage where;
    socklen_t length = tti_net_socket_address(address, &where);
    char text[TT_NET_ADDRESS_TEXT];
    const int on = 1;
    *fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int done = *fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
               bind(*fd, (struct sockaddr *)&where, length) == 0 && listen(*fd, BACKLOG) == 0;
    length = sizeof where;
    if (done && getsockname(*fd, (struct sockaddr *)&where, &length) == 0) {
        from_socket((struct sockaddr *)&where, address);
        return TT_OK;
    }
    int fault = errno;
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    return tt_error_set(err, TT_IO, tt_net_text(address, text),
                        "choose an address of this host, and a port that is free",
                        "cannot listen there: %s", tt_errno_text(fault));
}

// A socket without connections: nothing is sent.
tt_status
tt_net_route(const tt_net_address *to, tt_net_address *out, tt_error *err)
{
    struct sockaddr_storage where;
    socklen_t length = tti_net_socket_address(to, &where);
    char text[TT_NET_ADDRESS_TEXT];
    int fd = socket(where.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (((struct sockaddr_in *)&where)->sin_port == 0)
        ((struct sockaddr_in *)&where)->sin_port =
            htons(9); // some port; at one place in both kinds
    int done = fd >= 0 && connect(fd, (struct sockaddr *)&where, length) == 0;
    length = sizeof where;
    done = done && getsockname(fd, (struct sockaddr *)&where, &length) == 0;
    int fault = errno;
    if (fd >= 0)
        (void)close(fd);
    if (!done)
        return tt_error_set(err, TT_IO, tt_net_text(to, text),
                            "see the routes of this host (ip route)",
                            "there is no way to that host: %s", tt_errno_text(fault));
    from_socket((struct sockaddr *)&where, out);
    out->port = 0;
    return TT_OK;
}

const char *
tt_net_text(const tt_net_address *address, char out[TT_NET_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?";
    (void)inet_ntop(address->family == 6 ? AF_INET6 : AF_INET, address->bytes, host, sizeof host);
    (void)snprintf(out, TT_NET_ADDRESS_TEXT, address->family == 6 ? "[%s]:%u" : "%s:%u", host,
                   address->port);
    return out;
}

int
tt_net_is_loopback(const tt_net_address *address)
{
    static const uint8_t v6[16] = {[15] = 1};
    return address->family == 6 ? memcmp(address->bytes, v6, sizeof v6) == 0
                                : address->bytes[0] == 127;
}
