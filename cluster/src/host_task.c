// Whether a process is being killed, before it is gone: what /proc says of it.
#include "host_calls.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// Words of /proc/PID/stat behind the name until the status that waitpid will give (proc(5), field
// 52), which is there from the moment of the signal.
enum { WORDS_BEFORE_STATUS = 49 };

int
tti_host_is_killed(pid_t pid)
{
    char path[40], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[bytes] = '\0';
    const char *name_end = strrchr(text, ')');
    if (name_end == NULL || name_end[1] != ' ')
        return 0;
    const char *word = name_end + 2;
    for (int i = 0; i < WORDS_BEFORE_STATUS && word != NULL; i++) {
        word = strchr(word, ' ');
        word = word != NULL ? word + 1 : NULL;
    }
    int status = word != NULL ? (int)strtol(word, NULL, 10) : 0;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}
