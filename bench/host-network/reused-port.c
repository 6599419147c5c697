/* Answers with the name of its pod at the port of its first argument, which others may share. */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void end(int signal) {
  (void)signal;
  _exit(0);
}

int main(int count, char **arguments) {
  const char *name = getenv("POD_NAME");
  if (count < 2 || name == NULL) return 2;
  /* Process 1 of a container: what it does not handle does not end it. */
  signal(SIGTERM, end);
  signal(SIGPIPE, SIG_IGN);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
  int yes = 1;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  /* SO_REUSEADDR: connections of a program before, closed a minute ago, are in nobody's way. */
  if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0)
    return 3;
  if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 16) != 0) return 4;
  for (;;) {
    char asked[4096], answer[4096];
    int client = accept(listener, NULL, NULL);
    if (client < 0) continue;
    ssize_t got = read(client, asked, sizeof asked);
    int length = snprintf(answer, sizeof answer,
                          "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(name), name);
    if (got > 0 && write(client, answer, (size_t)length) < 0) perror("write");
    close(client);
  }
}
