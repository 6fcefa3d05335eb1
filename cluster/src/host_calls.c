// Messages with descriptors.
#include "host_calls.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

typedef union descriptor_space {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(TT_HOST_DESCRIPTORS_MAX * sizeof(int))];
} descriptor_space;

int
tti_host_send(int socket, const void *what, size_t size, const int *descriptors, uint32_t count)
{
    descriptor_space space = {0};
    struct iovec part = {(void *)(uintptr_t)what, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &space;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                 .cmsg_level = SOL_SOCKET,
                                 .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

int
tti_host_receive(int socket, void *what, size_t size, int *descriptors, uint32_t *count)
{
    descriptor_space space;
    struct iovec part = {what, size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof space};
    ssize_t got;
    *count = 0;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)size)
        return 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head != NULL;
         head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
            *count = (uint32_t)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(descriptors, CMSG_DATA(head), *count * sizeof(int));
        }
    return 1;
}
