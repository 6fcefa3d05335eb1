// Sockets of memory, in place of the system's: recv, send, close and epoll_ctl of a program that is
// linked with this work on them when the descriptor is one of theirs. What a fuzz target feeds to a
// connection then costs no system call, of which ten million inputs would make a billion.
#ifndef TT_FAKE_SOCKET_H
#define TT_FAKE_SOCKET_H

#include <stddef.h>

enum { FAKE_SOCKET = 1 << 20, FAKE_SOCKET_COUNT = 2, FAKE_SOCKET_BYTES = 64 << 10 };

// Nothing is in any of them.
void fake_socket_reset(void);
// From now on socket FAKE_SOCKET + i has these bytes, too, to be received. More than there is room
// for is lost.
void fake_socket_put(int descriptor, const void *bytes, size_t size);
// What was sent over it: at most `size` bytes; how many.
size_t fake_socket_take(int descriptor, void *bytes, size_t size);

#endif
