// SPDX-License-Identifier: Apache-2.0
#include "database/output_database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <span>

#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::database {
namespace {

// There is no journal, because an unfinished file has no name.
constexpr const char* kSetUp = R"(
PRAGMA page_size = 4096;
PRAGMA encoding = 'UTF-8';
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA cache_size = -32768;
PRAGMA temp_store = FILE;
BEGIN;
)";

/// The bytes in the header that let readers use a write-ahead log.
constexpr std::uint64_t kJournalBytes = 18;
constexpr std::string_view kWriteAhead = "\2\2";

struct ConnectionCloser {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};

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

constexpr sqlite3_io_methods kMethods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate =
        [](sqlite3_file* file, sqlite3_int64 size) {
          return static_cast<std::uint64_t>(size) >= of(file).file->size() ? SQLITE_OK
                                                                           : SQLITE_IOERR_TRUNCATE;
        },
    .xSync = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xFileSize =
        [](sqlite3_file* file, sqlite3_int64* size) {
          *size = static_cast<sqlite3_int64>(of(file).file->size());
          return SQLITE_OK;
        },
    .xLock = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xUnlock = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xCheckReservedLock =
        [](sqlite3_file*, int* reserved) {
          *reserved = 0;
          return SQLITE_OK;
        },
    .xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; },
    .xSectorSize = [](sqlite3_file*) { return 4096; },
    .xDeviceCharacteristics = [](sqlite3_file*) { return 0; },
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

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

}  // namespace

void Statement::Closer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

/// Also a file system for SQLite with one file, which has no name yet, and temporary ones.
struct OutputDatabase::Impl {
  explicit Impl(const std::string& path)
      : file(path), name(fmt::format("msprobe-{}", static_cast<const void*>(this))) {
    vfs.iVersion = 1;
    vfs.szOsFile = sizeof(OpenFile);
    vfs.mxPathname = 512;
    vfs.zName = name.c_str();
    vfs.pAppData = this;
    vfs.xOpen = [](sqlite3_vfs* self, const char*, sqlite3_file* place, int flags, int* out_flags) {
      auto* impl = static_cast<Impl*>(self->pAppData);
      place->pMethods = nullptr;
      return guarded(impl->failure, SQLITE_CANTOPEN, [&] {
        auto* open = new (place) OpenFile{{nullptr}, &impl->file, nullptr, &impl->failure};
        if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
          open->temporary = new OutputFile(OutputFile::unnamed());
          open->file = open->temporary;
        }
        open->base.pMethods = &kMethods;
        if (out_flags != nullptr) *out_flags = flags;
        return SQLITE_OK;
      });
    };
    vfs.xDelete = [](sqlite3_vfs*, const char*, int) { return SQLITE_OK; };
    vfs.xAccess = [](sqlite3_vfs*, const char*, int, int* result) {
      *result = 0;
      return SQLITE_OK;
    };
    vfs.xFullPathname = same_path;
    vfs.xRandomness = no_randomness;
    vfs.xSleep = [](sqlite3_vfs*, int) { return 0; };
    vfs.xCurrentTime = [](sqlite3_vfs*, double* now) {
      *now = 0;
      return SQLITE_OK;
    };
    vfs.xGetLastError = [](sqlite3_vfs*, int, char*) { return 0; };
    sqlite3_vfs_register(&vfs, 0);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    connection.reset();  // before the file that it writes into
    sqlite3_vfs_unregister(&vfs);
  }

  /// Throws the reason why a call of SQLite failed, if it is known.
  void rethrow() const {
    if (failure) std::rethrow_exception(failure);
  }

  OutputFile file;
  std::string name;
  sqlite3_vfs vfs{};
  std::exception_ptr failure;  // of the system; SQLite reports only that something failed
  std::unique_ptr<sqlite3, ConnectionCloser> connection;
  bool failed = false;
};

OutputDatabase::OutputDatabase(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  sqlite3* opened = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int status = sqlite3_open_v2("output", &opened, flags, impl_->name.c_str());
  impl_->connection.reset(opened);
  check(status);
  execute(kSetUp);
}

OutputDatabase::~OutputDatabase() = default;

void OutputDatabase::check(int status) const {
  if (status == SQLITE_OK || status == SQLITE_DONE || status == SQLITE_ROW) return;
  const std::string& path = impl_->file.path();
  impl_->failed = true;
  impl_->rethrow();
  if (status == SQLITE_NOMEM) throw std::bad_alloc();
  if (status == SQLITE_CONSTRAINT_PRIMARYKEY || status == SQLITE_CONSTRAINT)
    throw FormatError(display(path), "two of its rows would have the same name");
  if (status == SQLITE_TOOBIG) throw FormatError(display(path), "a value of a row is too large for SQLite");
  throw IoError(display(path), impl_->connection == nullptr ? "SQLite cannot begin"
                                                            : sqlite3_errmsg(impl_->connection.get()));
}

void OutputDatabase::execute(const char* sql) const {
  check(sqlite3_exec(impl_->connection.get(), sql, nullptr, nullptr, nullptr));
}

Statement OutputDatabase::prepare(const char* sql) const {
  sqlite3_stmt* statement = nullptr;
  check(sqlite3_prepare_v2(impl_->connection.get(), sql, -1, &statement, nullptr));
  return Statement(statement);
}

bool OutputDatabase::failed() const {
  return impl_->failed;
}

void OutputDatabase::commit(bool write_ahead) {
  execute("COMMIT");
  impl_->connection.reset();
  impl_->rethrow();
  if (write_ahead) impl_->file.write_at(kJournalBytes, kWriteAhead);
  impl_->file.commit();
}

std::string column_text(std::string_view value) {
  return is_utf8(value) ? std::string(value) : display(value);
}

Values& Values::text(std::string_view value) {
  return is_utf8(value) ? ascii(value) : bind(column_text(value), false);
}

Values& Values::ascii(std::string_view value) {
  return bind(value, true);
}

Values& Values::number(std::int64_t value) {
  database_.check(sqlite3_bind_int64(statement_, ++column_, value));
  return *this;
}

Values& Values::number(const std::optional<double>& value) {
  if (!value) return null();
  database_.check(sqlite3_bind_double(statement_, ++column_, *value));
  return *this;
}

void Values::run() {
  check_interrupt();
  sqlite3_step(statement_);
  database_.check(sqlite3_reset(statement_));
}

Values& Values::bind(std::string_view value, bool lasts) {
  database_.check(sqlite3_bind_text64(statement_, ++column_, value.data() == nullptr ? "" : value.data(),
                                      value.size(), lasts ? SQLITE_STATIC : SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Values& Values::null() {
  database_.check(sqlite3_bind_null(statement_, ++column_));
  return *this;
}

}  // namespace msprobe::database
