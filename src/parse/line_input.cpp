// SPDX-License-Identifier: Apache-2.0
#include "parse/line_input.hpp"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <new>
#include <string_view>
#include <utility>

#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/versions.hpp"

namespace msprobe::parse {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr int kHistory = 1000;
constexpr off_t kLargestHistory = off_t{4} << 20;

/// Waits until something can be read, or a signal to stop came. A signal that comes just before the wait
/// begins, or that another thread takes, does not interrupt it, so it lasts a tenth of a second at most.
void wait_for_input(int descriptor) {
  constexpr int kMilliseconds = 100;
  pollfd input{descriptor, POLLIN, 0};
  while (!interrupted()) {
    const int ready = ::poll(&input, 1, kMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return;
  }
}

/// A read() that a signal to stop interrupts. 0 at the end of the input.
std::size_t read_some(int descriptor, char* data, std::size_t size) {
  while (true) {
    wait_for_input(descriptor);
    check_interrupt();
    const ssize_t got = ::read(descriptor, data, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw IoError("standard input", std::strerror(errno));
  }
}

class DescriptorLines final : public LineInput {
 public:
  explicit DescriptorLines(int descriptor) : descriptor_(descriptor) {}

  std::optional<std::string> next() override {
    while (true) {
      if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
        std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        if (line.ends_with('\r')) line.pop_back();
        return line;
      }
      if (pending_.size() > kLongestLine)
        throw FormatError("standard input", "a line too long for a command");
      std::array<char, 4096> buffer{};
      const std::size_t got = read_some(descriptor_, buffer.data(), buffer.size());
      if (got == 0) break;
      pending_.append(buffer.data(), got);
    }
    if (pending_.empty()) return std::nullopt;
    return std::exchange(pending_, {});
  }

 private:
  int descriptor_;
  std::string pending_;
};

// The library's own reader continues after a signal; here Ctrl-C must end it.
int read_character(EditLine*, wchar_t* out) {
  std::mbstate_t state{};
  while (true) {
    wait_for_input(STDIN_FILENO);
    if (interrupted()) return -1;
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return static_cast<int>(got);
    switch (std::mbrtowc(out, &byte, 1, &state)) {
      case static_cast<std::size_t>(-2):
        continue;  // the rest of the character follows
      case static_cast<std::size_t>(-1):
        state = {};
        continue;  // not a character of this locale
      default:
        return 1;
    }
  }
}

/// Creates the missing folders of `file`'s path, readable by the user only.
void make_private_folders(const std::string& file) {
  for (std::size_t slash = file.find('/', 1); slash != std::string::npos; slash = file.find('/', slash + 1))
    ::mkdir(file.substr(0, slash).c_str(), S_IRWXU);
}

class TerminalLines final : public LineInput {
 public:
  TerminalLines(std::string prompt, std::string history_file)
      : prompt_(std::move(prompt)), history_file_(std::move(history_file)) {
    std::setlocale(LC_CTYPE, "");
    // The tables of other encodings are files of the system's C library, which a static program cannot load.
    const std::string_view encoding = nl_langinfo(CODESET);
    if (encoding != "UTF-8" && linked_statically()) std::setlocale(LC_CTYPE, "C");
    edit_ = el_init("msprobe", stdin, stdout, stderr);
    history_ = history_init();
    if (edit_ == nullptr || history_ == nullptr) {
      close();
      throw Error("the line editor cannot be started on this terminal");
    }
    HistEvent event{};
    history(history_, &event, H_SETSIZE, kHistory);
    history(history_, &event, H_SETUNIQUE, 1);
    load_history();
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &TerminalLines::prompt);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
    el_set(edit_, EL_GETCFN, &read_character);
  }
  TerminalLines(const TerminalLines&) = delete;
  TerminalLines& operator=(const TerminalLines&) = delete;
  ~TerminalLines() override {
    save_history();
    close();
  }

  std::optional<std::string> next() override {
    check_interrupt();
    int length = 0;
    const char* text = el_gets(edit_, &length);
    if (text == nullptr || length <= 0) {
      std::fputc('\n', stdout);
      std::fflush(stdout);
      check_interrupt();
      return std::nullopt;
    }
    std::string line(text, static_cast<std::size_t>(length));
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) {
      HistEvent event{};
      history(history_, &event, H_ENTER, line.c_str());
      entered_ = true;
    }
    return line;
  }

 private:
  static char* prompt(EditLine* edit) {
    TerminalLines* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return self->prompt_.data();
  }

  // The history is read only from a regular file of this user: other users must not supply commands, and a
  // pipe must not block the shell.
  void load_history() {
    struct stat status {};
    if (history_file_.empty() || ::lstat(history_file_.c_str(), &status) != 0) return;
    if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || status.st_size > kLargestHistory) return;
    HistEvent event{};
    history(history_, &event, H_LOAD, history_file_.c_str());
  }

  // If the history cannot be saved, the shell works without one. The file is replaced as a whole, never
  // written through a link, and only this user may read it.
  void save_history() noexcept {
    if (history_file_.empty() || !entered_) return;
    try {
      make_private_folders(history_file_);
      const std::string temporary = history_file_ + "." + std::to_string(::getpid());
      const int descriptor =
          ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
      if (descriptor < 0) return;
      std::FILE* file = ::fdopen(descriptor, "w");
      if (file == nullptr) {
        ::close(descriptor);
      } else {
        HistEvent event{};
        const bool written = history(history_, &event, H_SAVE_FP, file) >= 0;
        const bool closed = std::fclose(file) == 0;
        if (written && closed && std::rename(temporary.c_str(), history_file_.c_str()) == 0) return;
      }
      ::unlink(temporary.c_str());
    } catch (const std::bad_alloc&) {
      return;
    }
  }

  void close() {
    // The order matters, because the editor still refers to the history.
    if (edit_ != nullptr) el_end(edit_);
    if (history_ != nullptr) history_end(history_);
  }

  std::string prompt_;
  std::string history_file_;
  bool entered_ = false;  // the file lacks some of the lines
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineInput> descriptor_lines(int descriptor) {
  return std::make_unique<DescriptorLines>(descriptor);
}

std::unique_ptr<LineInput> terminal_lines(const std::string& prompt, const std::string& history_file) {
  return std::make_unique<TerminalLines>(prompt, history_file);
}

std::string history_file() {
  constexpr const char* kFile = "/msprobe/parse_history";
  // The XDG specification says to ignore relative paths.
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return std::string(state) + kFile;
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.local/state" + kFile;
  return {};
}

}  // namespace msprobe::parse
