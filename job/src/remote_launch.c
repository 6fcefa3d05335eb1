// The remote shells of a job's hosts: see remote.h.
#include "job_internal.h"
#include "remote.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 64, COMMAND_BYTES = 4096 };

extern char **environ;

// What the host is to run: in quotes, for its shell reads it.
static tt_status
host_command(const tti_remote *remote, char *out, size_t size, tt_error *err)
{
    char own[2048];
    const char *program = remote->job->spec.program;
    if (program == NULL) {
        ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
        own[TT_MAX(length, 0)] = '\0';
        program = own;
    }
    if (program[0] == '\0' || strchr(program, '\'') != NULL)
        return tt_error_set(err, TT_INVALID, "cluster.program", "name the program on the hosts",
                            "there is no path of the program to run on hosts");
    (void)snprintf(out, size, "exec '%s' node", program);
    return TT_OK;
}

// Words of the remote shell's command, separated by blanks; `text` is changed.
static uint32_t
split(char *text, char **words)
{
    uint32_t count = 0;
    char *rest = text;
    for (char *word; count < WORDS_MAX && (word = strtok_r(rest, " \t", &rest)) != NULL;)
        words[count++] = word;
    return count;
}

// It is in a group of its own: Ctrl-C is for the program.
static int
spawn(char **words, int input, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    (void)sigemptyset(&none);
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    (void)sigaddset(&defaults, SIGINT);
    (void)sigaddset(&defaults, SIGTERM);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
    int fault = posix_spawnp(pid, words[0], &actions, &attributes, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return fault;
}

static tt_status
invite(const tti_remote *remote, uint32_t h, char *text, tt_error *err)
{
    char directory[4096];
    tti_invitation in = {.key = remote->key,
                         .job_id = remote->job_id,
                         .host = h,
                         .host_count = remote->host_count,
                         .node_count = remote->node_count,
                         .is_open = remote->is_open,
                         .master = remote->hosts_address,
                         .address = remote->host[h].address,
                         .timeout_s = remote->job->spec.failure_timeout,
                         .host_of = remote->host_of,
                         .directory = getcwd(directory, sizeof directory),
                         .text = text};
    tt_archive bytes = {0};
    in.port = tt_mem_zalloc(remote->node_count, 2 * sizeof *in.port);
    // One that is launched again listens where the others know it.
    for (uint32_t n = 0; in.port != NULL && n < remote->node_count; n++) {
        in.port[n] = remote->address[n].port;
        in.port[remote->node_count + n] = remote->control[n].port;
    }
    tt_status status = in.port != NULL && in.directory != NULL ? TT_OK : TT_NOMEM;
    if (status == TT_OK) {
        tti_invitation_write(&in, &bytes);
        status = bytes.status;
    }
    const int room = (int)bytes.count + 4096;
    int socket = remote->host[h].input;
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    // Of a shell that has ended already it is found out what its code was.
    if (status == TT_OK &&
        send(socket, bytes.bytes, bytes.count, MSG_NOSIGNAL | MSG_DONTWAIT) !=
            (ssize_t)bytes.count &&
        errno != EPIPE && errno != ECONNRESET)
        status = TT_IO;
    if (bytes.bytes != NULL)
        explicit_bzero(bytes.bytes, bytes.count);
    tt_archive_fini(&bytes);
    tt_mem_free(in.port);
    tt_net_key_forget(&in.key);
    return status == TT_OK ? TT_OK
                           : tt_error_set(err, status, remote->host[h].name, NULL,
                                          "the job cannot be sent to this host");
}

static tt_status
start_shell(tti_remote *remote, uint32_t h, char *shell, tt_error *err)
{
    tti_remote_host *host = &remote->host[h];
    char command[COMMAND_BYTES], *words[WORDS_MAX + 3];
    int pair[2];
    pid_t pid = 0;
    TT_TRY(host_command(remote, command, sizeof command, err));
    uint32_t count = split(shell, words);
    if (count == 0)
        return tt_error_set(err, TT_INVALID, "cluster.remote_shell", "for example: ssh",
                            "the remote shell has no name");
    words[count] = (char *)(uintptr_t)host->name;
    words[count + 1] = command;
    words[count + 2] = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return tt_error_set(err, TT_IO, NULL, NULL, "no sockets for the hosts: %s",
                            tt_errno_text(errno));
    int fault = spawn(words, pair[1], &pid);
    (void)close(pair[1]);
    if (fault != 0) {
        (void)close(pair[0]);
        return tt_error_set(err, TT_IO, "cluster.remote_shell", "install it, or name another one",
                            "%s cannot be started: %s", words[0], tt_errno_text(fault));
    }
    host->shell = pid;
    host->input = pair[0];
    return TT_OK;
}

tt_status
tti_remote_launch(tti_remote *remote, uint32_t h, tt_error *err)
{
    char *text = NULL, *shell = tt_mem_strdup(remote->job->spec.remote_shell);
    size_t bytes;
    tt_status status = shell != NULL ? TT_OK : TT_NOMEM;
    if (status == TT_OK)
        status = tti_job_resolved_text(remote->job, &text, &bytes, err);
    else
        (void)tt_error_set(err, status, NULL, NULL, "no memory for the hosts");
    if (status == TT_OK)
        status = start_shell(remote, h, shell, err);
    if (status == TT_OK)
        status = invite(remote, h, text, err);
    remote->host[h].launched_ns = tt_clock_monotonic_ns();
    free(text);
    tt_mem_free(shell);
    return status;
}

// Of a shell that is somebody else's child, only that nobody is at the other end of its input.
static int
is_line_dead(const tti_remote_host *host)
{
    struct pollfd line = {.fd = host->input};
    return poll(&line, 1, 0) > 0 && (line.revents & (POLLHUP | POLLERR)) != 0;
}

void
tti_remote_let_go(tti_remote_host *host)
{
    if (host->input >= 0)
        (void)close(host->input);
    host->input = -1;
    host->shell = 0;
    host->is_foreign = 0;
}

int
tti_remote_has_ended(tti_remote_host *host, char *how, size_t size)
{
    int status = 0;
    if (host->shell == 0)
        return 0;
    if (host->is_foreign ? !is_line_dead(host)
                         : waitpid(host->shell, &status, WNOHANG) != host->shell)
        return 0;
    if (host->is_foreign)
        (void)snprintf(how, size, "its remote shell has ended");
    else if (WIFSIGNALED(status))
        (void)snprintf(how, size, "its remote shell was ended by signal %d", WTERMSIG(status));
    else
        (void)snprintf(how, size, "its remote shell ended with code %d", WEXITSTATUS(status));
    tti_remote_let_go(host);
    return 1;
}

void
tti_remote_abandon(tti_remote_host *host)
{
    if (host->shell != 0 && !(host->is_foreign && is_line_dead(host)))
        (void)kill(-host->shell, SIGKILL);
    if (host->shell != 0 && !host->is_foreign)
        (void)waitpid(host->shell, NULL, 0);
    tti_remote_let_go(host);
}
