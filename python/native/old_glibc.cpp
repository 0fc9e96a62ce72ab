// SPDX-License-Identifier: Apache-2.0
// Lets the module, compiled on a new system, load on old ones (glibc 2.17). The linker's --wrap redirects
// every use of a function that has a newer version, also inside the static C++ library, to the functions
// here. They call the old version or the kernel. python/meson.build has the list; packaging/needs_glibc.py
// checks that no newer version remains.
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifdef __x86_64__
#define OLDEST "GLIBC_2.2.5"
constexpr int kStatVersion = 1;
#else
#define OLDEST "GLIBC_2.17"
constexpr int kStatVersion = 0;
#endif

// `old_NAME` is the function NAME in the oldest version that this processor has.
#define OLD_VERSION(result, name, ...)                \
  result old_##name(__VA_ARGS__);                     \
  __asm__(".symver old_" #name "," #name "@" OLDEST); \
  result __wrap_##name(__VA_ARGS__);

extern "C" {

// Old systems do not say whether the process has other threads, so the variable says that it has.
extern char __wrap___libc_single_threaded;
char __wrap___libc_single_threaded = 0;

OLD_VERSION(int, pthread_create, pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)
OLD_VERSION(int, pthread_detach, pthread_t)
OLD_VERSION(int, pthread_join, pthread_t, void**)
OLD_VERSION(int, pthread_once, pthread_once_t*, void (*)())
OLD_VERSION(int, pthread_key_create, pthread_key_t*, void (*)(void*))
OLD_VERSION(int, pthread_key_delete, pthread_key_t)
OLD_VERSION(void*, pthread_getspecific, pthread_key_t)
OLD_VERSION(int, pthread_setspecific, pthread_key_t, const void*)
OLD_VERSION(int, pthread_rwlock_rdlock, pthread_rwlock_t*)
OLD_VERSION(int, pthread_rwlock_wrlock, pthread_rwlock_t*)
OLD_VERSION(int, pthread_rwlock_unlock, pthread_rwlock_t*)
OLD_VERSION(int, pthread_sigmask, int, const sigset_t*, sigset_t*)
OLD_VERSION(double, hypot, double, double)
OLD_VERSION(double, exp, double)
OLD_VERSION(double, pow, double, double)
OLD_VERSION(void*, dlsym, void*, const char*)
OLD_VERSION(void*, dlopen, const char*, int)

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*),
                          void* argument) {
  return old_pthread_create(thread, attributes, begin, argument);
}
int __wrap_pthread_detach(pthread_t thread) {
  return old_pthread_detach(thread);
}
int __wrap_pthread_join(pthread_t thread, void** result) {
  return old_pthread_join(thread, result);
}
int __wrap_pthread_once(pthread_once_t* control, void (*routine)()) {
  return old_pthread_once(control, routine);
}
int __wrap_pthread_key_create(pthread_key_t* key, void (*end)(void*)) {
  return old_pthread_key_create(key, end);
}
int __wrap_pthread_key_delete(pthread_key_t key) {
  return old_pthread_key_delete(key);
}
void* __wrap_pthread_getspecific(pthread_key_t key) {
  return old_pthread_getspecific(key);
}
int __wrap_pthread_setspecific(pthread_key_t key, const void* value) {
  return old_pthread_setspecific(key, value);
}
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  return old_pthread_rwlock_rdlock(lock);
}
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  return old_pthread_rwlock_wrlock(lock);
}
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  return old_pthread_rwlock_unlock(lock);
}
int __wrap_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  return old_pthread_sigmask(how, set, before);
}
double __wrap_exp(double x) {
  return old_exp(x);
}
double __wrap_pow(double base, double exponent) {
  return old_pow(base, exponent);
}
double __wrap_hypot(double x, double y) {
  return old_hypot(x, y);
}
void* __wrap_dlopen(const char* path, int flags) {
  return old_dlopen(path, flags);
}
void* __wrap_dlsym(void* handle, const char* name) {
  return old_dlsym(handle, name);
}

// Before 2.33, stat() was an inline function that called these.
int __xstat(int version, const char* path, struct stat* status);
int __lxstat(int version, const char* path, struct stat* status);
int __fxstat(int version, int file, struct stat* status);
int __xstat64(int version, const char* path, struct stat64* status);
int __lxstat64(int version, const char* path, struct stat64* status);
int __fxstat64(int version, int file, struct stat64* status);
int __wrap_stat(const char* path, struct stat* status);
int __wrap_lstat(const char* path, struct stat* status);
int __wrap_fstat(int file, struct stat* status);
int __wrap_stat64(const char* path, struct stat64* status);
int __wrap_lstat64(const char* path, struct stat64* status);
int __wrap_fstat64(int file, struct stat64* status);
int __wrap_stat(const char* path, struct stat* status) {
  return __xstat(kStatVersion, path, status);
}
int __wrap_lstat(const char* path, struct stat* status) {
  return __lxstat(kStatVersion, path, status);
}
int __wrap_fstat(int file, struct stat* status) {
  return __fxstat(kStatVersion, file, status);
}
int __wrap_stat64(const char* path, struct stat64* status) {
  return __xstat64(kStatVersion, path, status);
}
int __wrap_lstat64(const char* path, struct stat64* status) {
  return __lxstat64(kStatVersion, path, status);
}
int __wrap_fstat64(int file, struct stat64* status) {
  return __fxstat64(kStatVersion, file, status);
}

ssize_t __wrap_copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t length,
                               unsigned flags);
ssize_t __wrap_copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t length,
                               unsigned flags) {
  return ::syscall(SYS_copy_file_range, from, from_at, to, to_at, length, flags);
}

int __wrap_getentropy(void* buffer, size_t length);
int __wrap_getentropy(void* buffer, size_t length) {
  long got = ::syscall(SYS_getrandom, buffer, length, 0);
  if (got < 0 && errno == ENOSYS) {  // before Linux 3.17
    const int file = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
      got = ::read(file, buffer, length);
      ::close(file);
    }
  }
  return got >= 0 && static_cast<size_t>(got) == length ? 0 : -1;
}

std::uint32_t __wrap_arc4random();
std::uint32_t __wrap_arc4random() {
  std::uint32_t value = 0;
  if (__wrap_getentropy(&value, sizeof value) != 0) std::abort();  // as glibc does
  return value;
}

// If the function is missing (2.17), objects that a thread leaves behind, one or two strings, are not freed
// at its end.
int __wrap___cxa_thread_atexit_impl(void (*end)(void*), void* object, void* module);
int __wrap___cxa_thread_atexit_impl(void (*end)(void*), void* object, void* module) {
  using Register = int (*)(void (*)(void*), void*, void*);
  static const auto real = reinterpret_cast<Register>(old_dlsym(nullptr, "__cxa_thread_atexit_impl"));
  return real == nullptr ? 0 : real(end, object, module);
}

}  // extern "C"
