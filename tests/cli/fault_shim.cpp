// SPDX-License-Identifier: Apache-2.0
// Preloaded into the program by faults.py: makes one call of the system's, or all from one on, fail.
// MSPROBE_TEST_FAULT is KIND:NUMBER:HOW; the calls of the kind are counted from main() on. HOW is `once`,
// `on` (that call and all that follow), `kill` (the process ends there), or with the number 0 the name of a
// file that gets the number of calls. With MSPROBE_TEST_NAMED the file system knows no files without a name.
// With it the names of both sizes of offsets are one, and both are needed here.
#undef _FILE_OFFSET_BITS
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

constexpr size_t kMaxName = 16;

char g_kind[kMaxName];  // empty: nothing is counted
const char* g_how = "";
long g_number = 0;
bool g_named = false;
std::atomic<long> g_calls{0};

/// Is this call of `kind` to fail?
bool fails(const char* kind, int error) {
  if (strcmp(kind, g_kind) != 0) return false;
  const long call = ++g_calls;
  if (g_number == 0 || call < g_number || (call > g_number && strcmp(g_how, "on") != 0)) return false;
  if (strcmp(g_how, "kill") == 0) kill(getpid(), SIGKILL);
  errno = error;
  return true;
}

/// Does the file system not know what is asked for?
bool refused(int flags) {
  if (!g_named || (flags & O_TMPFILE) != O_TMPFILE) return false;
  errno = EOPNOTSUPP;
  return true;
}

// The function that this one stands before; without the lock of a static variable, which waits by syscall()
// itself.
#define MSPROBE_NEXT(name)                                           \
  static std::atomic<void*> found{nullptr};                          \
  if (found.load() == nullptr) found.store(dlsym(RTLD_NEXT, #name)); \
  auto* const real = reinterpret_cast<decltype(::name)*>(found.load())

void read_request() {
  g_named = getenv("MSPROBE_TEST_NAMED") != nullptr;
  const char* request = getenv("MSPROBE_TEST_FAULT");
  if (request == nullptr) return;
  const char* number = strchr(request, ':');
  const char* how = number == nullptr ? nullptr : strchr(number + 1, ':');
  const auto length = number == nullptr ? kMaxName : static_cast<size_t>(number - request);
  if (how == nullptr || length >= kMaxName) abort();
  g_number = atol(number + 1);
  g_how = how + 1;
  memcpy(g_kind, request, length);
}

__attribute__((destructor)) void write_count() {
  if (g_kind[0] == '\0' || g_number != 0) return;
  g_kind[0] = '\0';
  if (FILE* out = fopen(g_how, "w")) {
    fprintf(out, "%ld\n", g_calls.load());
    fclose(out);
  }
}

using Main = int(int, char**, char**);
Main* g_main = nullptr;

int counted_main(int count, char** arguments, char** variables) {
  read_request();
  return g_main(count, arguments, variables);
}

}  // namespace

extern "C" {

int __libc_start_main(Main* main, int count, char** arguments, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  g_main = main;
  auto* const start = reinterpret_cast<Start*>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(counted_main, count, arguments, init, fini, rtld_fini, stack_end);
}

void* malloc(size_t size) {
  return fails("malloc", ENOMEM) ? nullptr : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return fails("malloc", ENOMEM) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return fails("malloc", ENOMEM) ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return fails("malloc", ENOMEM) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (fails("malloc", ENOMEM)) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}

void* mmap(void* address, size_t size, int protection, int flags, int descriptor, off_t offset) {
  MSPROBE_NEXT(mmap);
  return fails("mmap", ENOMEM) ? MAP_FAILED : real(address, size, protection, flags, descriptor, offset);
}
void* mmap64(void* address, size_t size, int protection, int flags, int descriptor, off64_t offset) {
  return mmap(address, size, protection, flags, descriptor, offset);
}

ssize_t read(int descriptor, void* out, size_t size) {
  MSPROBE_NEXT(read);
  return fails("read", EIO) ? -1 : real(descriptor, out, size);
}
ssize_t pread(int descriptor, void* out, size_t size, off_t offset) {
  MSPROBE_NEXT(pread);
  return fails("read", EIO) ? -1 : real(descriptor, out, size, offset);
}
ssize_t pread64(int descriptor, void* out, size_t size, off64_t offset) {
  return pread(descriptor, out, size, offset);
}
struct dirent* readdir(DIR* folder) {
  MSPROBE_NEXT(readdir);
  return fails("readdir", EIO) ? nullptr : real(folder);
}
struct dirent64* readdir64(DIR* folder) {
  MSPROBE_NEXT(readdir64);
  return fails("readdir", EIO) ? nullptr : real(folder);
}

// A message that cannot be written would tell nothing, so standard error works.
ssize_t write(int descriptor, const void* bytes, size_t size) {
  MSPROBE_NEXT(write);
  return descriptor != STDERR_FILENO && fails("write", ENOSPC) ? -1 : real(descriptor, bytes, size);
}
ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  MSPROBE_NEXT(pwrite);
  return fails("write", ENOSPC) ? -1 : real(descriptor, bytes, size, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t offset) {
  return pwrite(descriptor, bytes, size, offset);
}
ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* there, size_t size, unsigned flags) {
  MSPROBE_NEXT(copy_file_range);
  return fails("write", ENOSPC) ? -1 : real(from, at, to, there, size, flags);
}

#define MSPROBE_MODE(flags, mode)                  \
  mode_t mode = 0;                                 \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {    \
    va_list more;                                  \
    va_start(more, flags);                         \
    mode = static_cast<mode_t>(va_arg(more, int)); \
    va_end(more);                                  \
  }                                                \
  static_assert(sizeof(int) >= sizeof(mode_t))

int open(const char* path, int flags, ...) {
  MSPROBE_NEXT(open);
  MSPROBE_MODE(flags, mode);
  return refused(flags) || fails("open", EMFILE) ? -1 : real(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MSPROBE_NEXT(open64);
  MSPROBE_MODE(flags, mode);
  return refused(flags) || fails("open", EMFILE) ? -1 : real(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MSPROBE_NEXT(openat);
  MSPROBE_MODE(flags, mode);
  return refused(flags) || fails("open", EMFILE) ? -1 : real(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MSPROBE_NEXT(openat64);
  MSPROBE_MODE(flags, mode);
  return refused(flags) || fails("open", EMFILE) ? -1 : real(folder, path, flags, mode);
}
DIR* opendir(const char* path) {
  MSPROBE_NEXT(opendir);
  return fails("open", EMFILE) ? nullptr : real(path);
}
DIR* fdopendir(int descriptor) {
  MSPROBE_NEXT(fdopendir);
  return fails("open", EMFILE) ? nullptr : real(descriptor);
}
int mkostemp(char* name, int flags) {
  MSPROBE_NEXT(mkostemp);
  return fails("open", EMFILE) ? -1 : real(name, flags);
}
int mkostemp64(char* name, int flags) {
  return mkostemp(name, flags);
}
long syscall(long number, ...) {
  MSPROBE_NEXT(syscall);
  va_list more;
  va_start(more, number);
  long words[6];
  for (long& word : words) word = va_arg(more, long);
  va_end(more);
  if (number == SYS_openat2 && fails("open", EMFILE)) return -1;
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

int rename(const char* from, const char* to) {
  MSPROBE_NEXT(rename);
  return fails("rename", EACCES) ? -1 : real(from, to);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  MSPROBE_NEXT(linkat);
  return fails("rename", EACCES) ? -1 : real(from_folder, from, to_folder, to, flags);
}
int mkdir(const char* path, mode_t mode) {
  MSPROBE_NEXT(mkdir);
  return fails("rename", EACCES) ? -1 : real(path, mode);
}

}  // extern "C"
