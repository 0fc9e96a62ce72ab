// SPDX-License-Identifier: Apache-2.0
#include "database/output_vfs.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>

namespace msprobe::database {

struct OutputVfs::Impl {
  OutputFile* file = nullptr;
  std::string name;
  sqlite3_vfs vfs{};
  std::exception_ptr failure;
};

namespace {

/// SQLite's data about an open file; the functions below create and destroy it.
struct OpenFile {
  sqlite3_file base;
  OutputFile* file;
  OutputFile* temporary;  // the same, if this object must delete it
  std::exception_ptr* failure;
};

OpenFile& of(sqlite3_file* file) {
  return *reinterpret_cast<OpenFile*>(file);
}

/// Stops exceptions, because none may pass through SQLite.
template <typename Body>
int guarded(std::exception_ptr& failure, int status, Body&& body) {
  try {
    return body();
  } catch (...) {
    if (!failure) failure = std::current_exception();
    return status;
  }
}

int close_file(sqlite3_file* file) {
  delete of(file).temporary;
  return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* out, int count, sqlite3_int64 offset) {
  OpenFile& open = of(file);
  return guarded(*open.failure, SQLITE_IOERR_READ, [&] {
    const std::uint64_t begin = static_cast<std::uint64_t>(offset);
    const std::uint64_t size = open.file->size();
    const std::uint64_t there = begin >= size ? 0 : std::min<std::uint64_t>(size - begin, count);
    auto* bytes = static_cast<char*>(out);
    if (there > 0) open.file->read_at(begin, std::span(bytes, there));
    if (there == static_cast<std::uint64_t>(count)) return SQLITE_OK;
    std::memset(bytes + there, 0, static_cast<std::size_t>(count) - there);
    return SQLITE_IOERR_SHORT_READ;
  });
}

int write_file(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  OpenFile& open = of(file);
  return guarded(*open.failure, SQLITE_IOERR_WRITE, [&] {
    std::string_view text(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
    const std::uint64_t begin = static_cast<std::uint64_t>(offset);
    // Pages may come in any order; missing ones are written later.
    if (begin > open.file->size()) open.file->write(std::string(begin - open.file->size(), '\0'));
    const std::size_t inside =
        static_cast<std::size_t>(std::min<std::uint64_t>(text.size(), open.file->size() - begin));
    if (inside > 0) open.file->write_at(begin, text.substr(0, inside));
    text.remove_prefix(inside);
    if (!text.empty()) open.file->write(text);
    return SQLITE_OK;
  });
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  return static_cast<std::uint64_t>(size) >= of(file).file->size() ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(of(file).file->size());
  return SQLITE_OK;
}

int nothing_to_sync(sqlite3_file*, int) {
  return SQLITE_OK;
}
int nothing_to_lock(sqlite3_file*, int) {
  return SQLITE_OK;
}
int not_reserved(sqlite3_file*, int* reserved) {
  *reserved = 0;
  return SQLITE_OK;
}
int no_control(sqlite3_file*, int, void*) {
  return SQLITE_NOTFOUND;
}
int sector_size(sqlite3_file*) {
  return 4096;
}
int no_characteristics(sqlite3_file*) {
  return 0;
}

constexpr sqlite3_io_methods kMethods = {
    1,
    close_file,
    read_file,
    write_file,
    truncate_file,
    nothing_to_sync,
    size_of_file,
    nothing_to_lock,
    nothing_to_lock,
    not_reserved,
    no_control,
    sector_size,
    no_characteristics,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

int delete_nothing(sqlite3_vfs*, const char*, int) {
  return SQLITE_OK;
}
int never_there(sqlite3_vfs*, const char*, int, int* result) {
  *result = 0;
  return SQLITE_OK;
}
int same_path(sqlite3_vfs*, const char* name, int room, char* out) {
  const std::size_t size = std::strlen(name) + 1;
  if (size > static_cast<std::size_t>(room)) return SQLITE_CANTOPEN;
  std::memcpy(out, name, size);
  return SQLITE_OK;
}
/// Without random numbers, equal data gives equal files.
int no_randomness(sqlite3_vfs*, int count, char* out) {
  std::memset(out, 0, static_cast<std::size_t>(count));
  return count;
}
int no_sleep(sqlite3_vfs*, int) {
  return 0;
}
int no_time(sqlite3_vfs*, double* now) {
  *now = 0;
  return SQLITE_OK;
}
int no_last_error(sqlite3_vfs*, int, char*) {
  return 0;
}

}  // namespace

OutputVfs::OutputVfs(OutputFile& file) : impl_(std::make_unique<Impl>()) {
  impl_->file = &file;
  impl_->name = fmt::format("msprobe-{}", static_cast<const void*>(impl_.get()));
  sqlite3_vfs& vfs = impl_->vfs;
  vfs.iVersion = 1;
  vfs.szOsFile = sizeof(OpenFile);
  vfs.mxPathname = 512;
  vfs.zName = impl_->name.c_str();
  vfs.pAppData = impl_.get();
  vfs.xOpen = [](sqlite3_vfs* self, const char*, sqlite3_file* place, int flags, int* out_flags) {
    auto* impl = static_cast<Impl*>(self->pAppData);
    place->pMethods = nullptr;
    return guarded(impl->failure, SQLITE_CANTOPEN, [&] {
      auto* open = new (place) OpenFile{{nullptr}, impl->file, nullptr, &impl->failure};
      if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
        open->temporary = new OutputFile(OutputFile::unnamed());
        open->file = open->temporary;
      }
      open->base.pMethods = &kMethods;
      if (out_flags != nullptr) *out_flags = flags;
      return SQLITE_OK;
    });
  };
  vfs.xDelete = delete_nothing;
  vfs.xAccess = never_there;
  vfs.xFullPathname = same_path;
  vfs.xRandomness = no_randomness;
  vfs.xSleep = no_sleep;
  vfs.xCurrentTime = no_time;
  vfs.xGetLastError = no_last_error;
  sqlite3_vfs_register(&vfs, 0);
}

OutputVfs::~OutputVfs() {
  sqlite3_vfs_unregister(&impl_->vfs);
}

const std::string& OutputVfs::name() const {
  return impl_->name;
}

void OutputVfs::rethrow() const {
  if (impl_->failure) std::rethrow_exception(impl_->failure);
}

}  // namespace msprobe::database
