/*
 * Stands between a program and its disk, preloaded (LD_PRELOAD): counts what it does to files below
 * a folder, writes it down with its contents, delays its syncs, lets its writes fail, and kills the
 * program at a step that a test chooses. What it is to do, and what it counts, lies in a file that
 * the test and the program share; `disk.ts` knows the places.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { LEFT, STEPS, DELAY, BEGUN, ENDED, BYTES, WRITES, BY_MAIN, FAIL_WRITE, FAIL_SYNC, HOLD, FAIL_EVERY, WORDS };
enum { CREATE = 1, WRITE, TRUNCATE, UNLINK, RENAME, MKDIR, SYNC, SYNCED, MARK, LOST };

struct record {
  uint32_t kind, thread;
  uint64_t inode, offset;
  uint32_t path, data;
};

#define MOST_FILES 65536
/* 1: a file below the folder, 2: the one in which the program marks moments. */
static unsigned char ours[MOST_FILES];
static volatile uint64_t *words;
static uint64_t nothing[WORDS];
static const char *folder;
static size_t folder_length;
static int log_file = -1;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) __extension__({ if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name); real_##name; })
static int (*real_open)(const char *, int, ...);
static int (*real_open64)(const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static ssize_t (*real_pwritev64)(int, const struct iovec *, int, off64_t);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static int (*real_ftruncate64)(int, off64_t);
static int (*real_unlink)(const char *);
static int (*real_rename)(const char *, const char *);
static int (*real_mkdir)(const char *, mode_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void begin(void) {
  const char *control = getenv("DISK_CONTROL"), *log = getenv("DISK_LOG");
  words = nothing;
  folder = getenv("DISK_FOLDER");
  if (!folder) return;
  folder_length = strlen(folder);
  if (control) {
    int file = syscall(SYS_openat, AT_FDCWD, control, O_RDWR | O_CLOEXEC, 0);
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) words = shared;
    syscall(SYS_close, file);
  }
  if (log) log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void add(int word, uint64_t by) { __atomic_add_fetch(&words[word], by, __ATOMIC_SEQ_CST); }

/* Before each step that can be seen outside of the program: it may end here instead. */
static void step(void) {
  uint64_t left = words[LEFT];
  add(STEPS, 1);
  while (left > 0 && !__atomic_compare_exchange_n(&words[LEFT], &left, left - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    ;
  if (left != 1) return;
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static int below(const char *path) {
  if (!folder || strncmp(path, folder, folder_length) != 0) return 0;
  if (path[folder_length] != '/' && path[folder_length] != 0) return 0;
  size_t length = strlen(path);
  return length > 5 && strcmp(path + length - 5, "/told") == 0 ? 2 : 1;
}

/* libuv closes by the system call, which is not seen here: the number may be a socket's by now. */
static int watched(int file) {
  if (file < 0 || file >= MOST_FILES || !ours[file]) return 0;
  struct stat found;
  if (fstat(file, &found) != 0 || !(S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))) ours[file] = 0;
  return ours[file];
}

static int is_socket(int file) {
  struct stat found;
  return words != nothing && fstat(file, &found) == 0 && S_ISSOCK(found.st_mode);
}

static uint64_t inode_of(int file) {
  struct stat found;
  return fstat(file, &found) == 0 ? found.st_ino : 0;
}

static uint64_t inode_at(const char *path) {
  struct stat found;
  return lstat(path, &found) == 0 ? found.st_ino : 0;
}

static void say(uint32_t kind, uint64_t inode, uint64_t offset, const char *path, size_t path_length, const void *data, size_t length) {
  if (log_file < 0) return;
  struct record record = {kind, gettid(), inode, offset, path_length, length};
  struct iovec parts[3] = {{&record, sizeof record}, {(void *)path, path_length}, {(void *)data, length}};
  syscall(SYS_writev, log_file, parts, 3);
}

static void note(uint64_t bytes) {
  add(WRITES, 1);
  add(BYTES, bytes);
  if (gettid() == getpid()) add(BY_MAIN, 1);
}

static int opened(int (*act)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  int kind = below(path);
  if (!kind) {
    int file = act(path, flags, mode);
    if (file >= 0 && file < MOST_FILES) ours[file] = 0;
    return file;
  }
  pthread_mutex_lock(&order);
  int missing = (flags & O_CREAT) && access(path, F_OK) != 0;
  int file = act(path, flags, mode);
  int why = errno;
  if (file >= 0) {
    if (file < MOST_FILES) ours[file] = kind;
    if (missing && kind == 1) say(CREATE, inode_of(file), 0, path, strlen(path), NULL, 0);
    else if ((flags & O_TRUNC) && kind == 1) say(TRUNCATE, inode_of(file), 0, NULL, 0, NULL, 0);
  }
  pthread_mutex_unlock(&order);
  errno = why;
  return file;
}

static mode_t mode_in(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return opened(REAL(open), path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return opened(REAL(open64), path, flags, mode);
}

int close(int file) {
  if (watched(file)) ours[file] = 0;
  return REAL(close)(file);
}

static int refuses(int word) {
  int why = words[word];
  if (why) errno = why;
  return why != 0;
}

static ssize_t written(int file, const void *bytes, size_t length, off64_t offset) {
  step();
  note(length);
  if (refuses(FAIL_WRITE)) return -1;
  pthread_mutex_lock(&order);
  if (watched(file) == 2) say(MARK, 0, 0, NULL, 0, bytes, length);
  else {
    uint64_t at = offset;
    struct stat found;
    if (offset < 0 && fstat(file, &found) == 0)
      at = fcntl(file, F_GETFL) & O_APPEND ? (uint64_t)found.st_size : (uint64_t)lseek64(file, 0, SEEK_CUR);
    say(WRITE, inode_of(file), at, NULL, 0, bytes, length);
  }
  ssize_t done = offset < 0 ? REAL(write)(file, bytes, length) : REAL(pwrite64)(file, bytes, length, offset);
  int why = errno;
  pthread_mutex_unlock(&order);
  errno = why;
  return done;
}

ssize_t write(int file, const void *bytes, size_t length) {
  if (watched(file)) return written(file, bytes, length, -1);
  if (is_socket(file)) step();
  return REAL(write)(file, bytes, length);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
  return watched(file) ? written(file, bytes, length, offset) : REAL(pwrite64)(file, bytes, length, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) { return pwrite64(file, bytes, length, offset); }

ssize_t writev(int file, const struct iovec *parts, int count) {
  /* A short write: the program goes on with the rest. */
  if (watched(file)) return count > 0 ? written(file, parts[0].iov_base, parts[0].iov_len, -1) : 0;
  if (is_socket(file)) step();
  return REAL(writev)(file, parts, count);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
  if (!watched(file)) return REAL(pwritev64)(file, parts, count, offset);
  size_t length = 0;
  for (int i = 0; i < count; i++) length += parts[i].iov_len;
  char *all = malloc(length), *at = all;
  for (int i = 0; i < count; i++) at = mempcpy(at, parts[i].iov_base, parts[i].iov_len);
  ssize_t done = written(file, all, length, offset);
  int why = errno;
  free(all);
  errno = why;
  return done;
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) { return pwritev64(file, parts, count, offset); }

ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
  if (words != nothing) step();
  return REAL(sendmsg)(file, message, flags);
}

int ftruncate64(int file, off64_t length) {
  if (!watched(file)) return REAL(ftruncate64)(file, length);
  step();
  note(0);
  if (refuses(FAIL_WRITE)) return -1;
  pthread_mutex_lock(&order);
  say(TRUNCATE, inode_of(file), length, NULL, 0, NULL, 0);
  int done = REAL(ftruncate64)(file, length);
  pthread_mutex_unlock(&order);
  return done;
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

int unlink(const char *path) {
  if (below(path) != 1) return REAL(unlink)(path);
  step();
  pthread_mutex_lock(&order);
  uint64_t inode = inode_at(path);
  int done = REAL(unlink)(path);
  int why = errno;
  if (done == 0) say(UNLINK, inode, 0, path, strlen(path), NULL, 0);
  pthread_mutex_unlock(&order);
  errno = why;
  return done;
}

int rename(const char *from, const char *to) {
  if (below(from) != 1) return REAL(rename)(from, to);
  step();
  pthread_mutex_lock(&order);
  uint64_t inode = inode_at(from);
  int done = REAL(rename)(from, to);
  int why = errno;
  if (done == 0) say(RENAME, inode, 0, from, strlen(from), to, strlen(to));
  pthread_mutex_unlock(&order);
  errno = why;
  return done;
}

int mkdir(const char *path, mode_t mode) {
  if (below(path) != 1) return REAL(mkdir)(path, mode);
  step();
  pthread_mutex_lock(&order);
  int done = REAL(mkdir)(path, mode);
  int why = errno;
  if (done == 0) say(MKDIR, inode_at(path), 0, path, strlen(path), NULL, 0);
  pthread_mutex_unlock(&order);
  errno = why;
  return done;
}

static int synced(int (*act)(int), int file) {
  if (!watched(file)) return act(file);
  step();
  uint64_t inode = inode_of(file), delay = words[DELAY];
  add(BEGUN, 1);
  if (gettid() == getpid()) add(BY_MAIN, 1);
  pthread_mutex_lock(&order);
  say(SYNC, inode, 0, NULL, 0, NULL, 0);
  pthread_mutex_unlock(&order);
  if (delay > 0) {
    struct timespec wait = {delay / 1000000, delay % 1000000 * 1000};
    nanosleep(&wait, NULL);
  }
  while (words[HOLD]) usleep(1000);
  /*
   * Where all is written down, power cuts are made from what is written, and nothing has to be
   * synced in truth. SQLite takes no notice of a folder's failed sync: on Linux' file systems a new
   * file that is synced has its name.
   */
  struct stat found;
  int is_file = fstat(file, &found) == 0 && S_ISREG(found.st_mode);
  int unlucky = is_file && words[FAIL_EVERY] && words[BEGUN] % words[FAIL_EVERY] == 0;
  if (unlucky) errno = EIO;
  int done = unlucky || refuses(FAIL_SYNC) ? -1 : log_file < 0 ? act(file) : 0;
  int why = errno;
  pthread_mutex_lock(&order);
  say(done == 0 ? SYNCED : LOST, inode, 0, NULL, 0, NULL, 0);
  pthread_mutex_unlock(&order);
  add(ENDED, 1);
  errno = why;
  return done;
}

int fsync(int file) { return synced(REAL(fsync), file); }

int fdatasync(int file) { return synced(REAL(fdatasync), file); }
