// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/limits.hpp"
#include "formats/pickle_containers.hpp"
#include "formats/pickle_opcodes.hpp"
#include "formats/pickle_stack.hpp"
#include "formats/pickle_stream.hpp"
#include "formats/pickle_text.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace msprobe::formats {
namespace {

using Op = PickleOp;

// No module of Python has a longer name; longer texts are treated as any other value.
constexpr std::size_t kLongestName = 512;
constexpr std::string_view kUnknownName = "?";
// The limit for a line with a name, which may be spelled with escapes of ten characters each.
constexpr std::size_t kLongestLine = 16 * kLongestName;

constexpr PickleRef kOther = kNoPickleRef;  // a value of Python's own that is not a text
constexpr PickleRef kResult{0xfffffffe};    // the result of a call, or a persistent value

class PickleScanner {
 public:
  PickleScanner(const ByteSource& source, std::uint64_t offset, const ScanLimits& limits)
      : source_(source),
        limits_(limits),
        allowance_(limits.file_size == 0 ? source.size() : limits.file_size),
        stream_(source, offset, UINT64_MAX, Straddling::noticed),
        stack_(stream_, limits.max_stack),
        memo_(stream_) {}

  PickleScan run(std::uint64_t until) {
    try {
      do {
        stack_.clear();
        while (step()) {
        }
        // Python's readers continue at the end of the frame, which may be somewhere else.
        stream_.end_of_pickle();
      } while (stream_.position() < until);
    } catch (const FormatError& error) {
      note_failure(error);
    }
    found_.straddles = stream_.straddled();
    found_.end = stream_.position();
    return std::move(found_);
  }

 private:
  /// A value on the stack or in the memo.
  struct StackValue {
    std::uint64_t at = 0;  // a text: its offset in texts_; a global: its index in found_.globals
    std::uint32_t length = 0;
    bool is_global = false;
  };

  /// An opcode and its operands in the file.
  struct ScannedOperation {
    Op op = Op::stop;
    std::uint64_t number = 0;         // a key or a code
    std::optional<std::string> text;  // nothing if it is too long or malformed
    std::string module;
  };

  void note_failure(const FormatError& error) {
    if (found_.failure.empty()) found_.failure = error.what();
  }

  // Records the first failure; the search continues.
  void note(const std::string& reason) {
    if (!found_.failure.empty()) return;
    try {
      stream_.fail(reason);
    } catch (const FormatError& error) {
      note_failure(error);
    }
  }

  bool step() {
    begin_ = stream_.position();
    constexpr std::uint64_t kOften = 0xfffff;
    if ((++steps_ & kOften) == 0) check_interrupt();
    ScannedOperation operation;
    operation.op = static_cast<Op>(stream_.u8());
    if (operation.op == Op::stop) {
      if (!lost_) unless_it_fails([&] { stack_.last(1); });
      return false;
    }
    read_operand(operation);
    if (stream_.straddled()) note("a value reaches beyond its frame");
    if (!lost_) {
      unless_it_fails([&] {
        charge(1);
        charge_stores();
      });
    }
    unless_it_fails([&] { apply(operation); });
    return true;
  }

  // After a failure the values on the stack are unknown, but the opcodes still are known.
  template <typename Action>
  void unless_it_fails(Action action) {
    try {
      action();
    } catch (const FormatError& error) {
      note_failure(error);
      lost_ = true;
    }
  }

  // Stops the search at a place where Python would continue.
  [[noreturn]] void give_up(const std::string& reason) {
    found_.acts = true;
    stream_.fail(reason);
  }

  void charge(std::uint64_t amount) {
    if (amount > limits_.max_steps - spent_)
      give_up(fmt::format("more than {} steps are not followed", limits_.max_steps));
    spent_ += amount;
  }

  void charge_memory(std::uint64_t bytes) {
    if (!allowance_.take(bytes)) give_up("its names need too much memory for a file of this size");
  }

  // Many operations grow the stack and the memo, so their memory is charged here at once.
  void charge_stores() {
    const std::uint64_t memory = stack_.memory() + memo_.memory();
    if (memory <= stores_) return;
    charge_memory(memory - stores_);
    stores_ = memory;
  }

  std::optional<std::string> text_of(std::uint64_t length) {
    if (length > kLongestName) {
      stream_.skip(length);
      return {};
    }
    return std::string(stream_.characters(length));
  }

  // Python stops at a malformed number, so the search need not: the opcode alone determines the kind of
  // value.
  void skip_line() { stream_.short_line(0); }

  std::optional<std::string> line_of(std::size_t longest) {
    const auto line = stream_.short_line(longest);
    if (!line) return {};
    return std::string(*line);
  }

  // Throws only if the end of the operand cannot be found.
  void read_operand(ScannedOperation& operation) {
    switch (operation.op) {
      case Op::binint1:
      case Op::proto:
        return stream_.skip(1);
      case Op::binint2:
        return stream_.skip(2);
      case Op::binint:
        return stream_.skip(4);
      case Op::binfloat:
        return stream_.skip(8);
      case Op::int_line:
      case Op::long_line:
      case Op::real_line:
      case Op::persid:
        return skip_line();
      case Op::long1:
      case Op::short_binbytes:
        return stream_.skip(stream_.u8());
      case Op::long4:
      case Op::binbytes:
        return stream_.skip(stream_.little<std::uint32_t>());
      case Op::binbytes8:
      case Op::bytearray8:
        return stream_.skip(stream_.little<std::uint64_t>());
      case Op::short_binunicode:
      case Op::short_binstring:
        operation.text = text_of(stream_.u8());
        return;
      case Op::binunicode:
      case Op::binstring:
        operation.text = text_of(stream_.little<std::uint32_t>());
        return;
      case Op::binunicode8:
        operation.text = text_of(stream_.little<std::uint64_t>());
        return;
      case Op::string_line:
        operation.text = line_of(kLongestLine);
        if (operation.text) operation.text = decode_quoted(*operation.text);
        return;
      case Op::unicode_line:
        operation.text = line_of(kLongestLine);
        if (operation.text) operation.text = decode_raw_unicode(*operation.text);
        return;
      case Op::global:
      case Op::inst:
        operation.module = line_of(kLongestLine).value_or(std::string(kUnknownName));
        return read_last_line(operation);
      case Op::put:
      case Op::get:
        operation.text = line_of(kLongestKey);
        return;
      case Op::binput:
      case Op::binget:
      case Op::ext1:
        operation.number = stream_.u8();
        return;
      case Op::ext2:
        operation.number = stream_.little<std::uint16_t>();
        return;
      case Op::long_binput:
      case Op::long_binget:
      case Op::ext4:
        operation.number = stream_.little<std::uint32_t>();
        return;
      case Op::frame:
        return stream_.begin_frame(stream_.little<std::uint64_t>());
      default:
        if (!has_no_operand(operation.op))
          stream_.fail(fmt::format("unknown opcode 0x{:02x}", static_cast<unsigned>(operation.op)));
    }
  }

  // Python's reader in Python (not that in C) takes the end of the file for the end of the line, and the last
  // character for the newline.
  void read_last_line(ScannedOperation& operation) {
    const std::uint64_t begin = stream_.position();
    try {
      operation.text = line_of(kLongestLine);
    } catch (const FormatError&) {
      std::string rest =
          read_text(source_, begin, std::min<std::uint64_t>(source_.size() - begin, kLongestLine));
      if (!rest.empty()) rest.pop_back();
      operation.text = rest;
      unless_it_fails([&] { apply(operation); });
      throw;
    }
  }

  static bool has_no_operand(Op op) {
    constexpr std::string_view kBare =
        "(012NRQabdeot)]}lsu\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98";
    return kBare.find(static_cast<char>(op)) != std::string_view::npos;
  }

  void apply(const ScannedOperation& operation) {
    switch (operation.op) {
      case Op::global:
        return push(add_global(operation.module, operation.text));
      case Op::inst: {
        const PickleRef callee = add_global(operation.module, operation.text);
        if (lost_) return;
        replace_since_mark(kResult);
        mark_called(callee, false);
        return;
      }
      case Op::stack_global:
        return push(global_from_stack());
      case Op::ext1:
      case Op::ext2:
      case Op::ext4:
        // The opcode has a number instead of a name; only the program that registered the number knows the
        // name.
        return push(add_global("copyreg", fmt::format("_inverted_registry[{}]", operation.number)));
      default:
        if (!lost_) move(operation);
    }
  }

  void push(PickleRef ref) {
    if (!lost_) stack_.push(ref);
  }

  void move(const ScannedOperation& operation) {
    switch (operation.op) {
      case Op::proto:
      case Op::frame:
        return;
      case Op::mark:
        return stack_.mark();
      case Op::pop:
        return stack_.pop_value_or_mark();
      case Op::pop_mark:
        return stack_.drop_to_mark();
      case Op::dup:
        return stack_.push(stack_.top());
      case Op::put:
        return memo_.put(key_of(operation), stack_.top());
      case Op::binput:
      case Op::long_binput:
        return memo_.put(operation.number, stack_.top());
      case Op::memoize:
        return memo_.append(stack_.top());
      case Op::get:
        return stack_.push(memo_.get(key_of(operation)));
      case Op::binget:
      case Op::long_binget:
        return stack_.push(memo_.get(operation.number));
      default:
        return call(operation);
    }
  }

  std::uint64_t key_of(const ScannedOperation& operation) {
    const auto key = operation.text ? decode_key(*operation.text) : std::nullopt;
    // Python accepts some texts as numbers that this reader does not.
    constexpr std::string_view kOfNumbers("0123456789_+- \t\v\f\r\0", 19);
    const bool python_fails =
        operation.text && operation.text->find_first_not_of(kOfNumbers) != std::string::npos;
    if (!key && python_fails) stream_.fail("a number is malformed");
    if (!key) give_up("a number is malformed");
    return *key;
  }

  void call(const ScannedOperation& operation) {
    switch (operation.op) {
      case Op::reduce:
      case Op::newobj:
        mark_called(stack_.last(2)[0], false, operation.op == Op::reduce);
        return replace_last(2, kResult);
      case Op::newobj_ex:
        mark_called(stack_.last(3)[0], true);
        return replace_last(3, kResult);
      case Op::obj:
        if (stack_.since_mark().empty()) stream_.fail("stack underflow");
        mark_called(stack_.since_mark()[0], false);
        return replace_since_mark(kResult);
      case Op::build:
        mark_changed(stack_.last(2)[0]);
        return stack_.drop(1);
      case Op::binpersid:
        return replace_last(1, kResult);
      default:
        return make(operation);
    }
  }

  void make(const ScannedOperation& operation) {
    switch (operation.op) {
      case Op::tuple1:
      case Op::readonly_buffer:
        return replace_last(1);
      case Op::tuple2:
        return replace_last(2);
      case Op::tuple3:
        return replace_last(3);
      case Op::tuple:
      case Op::list:
      case Op::dict:
      case Op::frozenset:
        return replace_since_mark();
      case Op::append:
        mark_changed(stack_.last(2)[0]);
        return stack_.drop(1);
      case Op::setitem:
        mark_changed(stack_.last(3)[0]);
        return stack_.drop(2);
      case Op::appends:
      case Op::additems:
      case Op::setitems:
        mark_changed(stack_.below_mark());
        return stack_.drop_to_mark();
      case Op::persid:
        return stack_.push(kResult);
      default:
        return stack_.push(operation.text ? add_text(*operation.text) : kOther);
    }
  }

  void replace_last(std::size_t count, PickleRef by = kOther) {
    stack_.drop(count);
    stack_.push(by);
  }

  void replace_since_mark(PickleRef by = kOther) {
    stack_.drop_to_mark();
    stack_.push(by);
  }

  PickleRef add_held(StackValue held) {
    charge_memory(sizeof(StackValue));
    held_.push_back(held);
    return static_cast<PickleRef>(held_.size() - 1);
  }

  PickleRef add_text(const std::string& text) {
    charge_memory(2 * std::uint64_t{text.size()});
    texts_ += text;
    return add_held({.at = texts_.size() - text.size(), .length = static_cast<std::uint32_t>(text.size())});
  }

  const StackValue* held(PickleRef ref) const {
    return ref == kOther || ref == kResult ? nullptr : &held_[static_cast<std::size_t>(ref)];
  }

  std::optional<std::string> text_at(PickleRef ref) const {
    const StackValue* found = held(ref);
    if (found == nullptr || found->is_global) return {};
    return texts_.substr(static_cast<std::size_t>(found->at), found->length);
  }

  PickleRef global_from_stack() {
    if (lost_) return add_global({}, {});
    const auto names = stack_.last(2);
    const auto module = text_at(names[0]);
    const auto name = text_at(names[1]);
    stack_.drop(2);
    return add_global(module, name);
  }

  PickleRef add_global(const std::optional<std::string>& module, const std::optional<std::string>& name) {
    PickleGlobal mention;
    mention.module = module.value_or(std::string(kUnknownName));
    mention.name = name.value_or(std::string(kUnknownName));
    mention.offset = begin_;
    // A name that cannot be read is the result of a call, unless the stack was lost; then it may be harmless.
    mention.computed = !lost_ && (!module || !name);
    // Both strings may come from the memo again and again.
    const std::size_t length = mention.module.size() + mention.name.size();
    std::pair key(mention.module, mention.name);
    auto known = index_.find(key);
    if (!lost_) charge(known == index_.end() ? length : length / 16);
    if (known == index_.end()) {
      if (index_.size() >= limits_.max_globals) {
        note(fmt::format("more than {} names are not kept", limits_.max_globals));
        return kOther;
      }
      if (!lost_) charge_memory(kPickleGlobalBytes + 2 * std::uint64_t{length});
      known = index_.emplace(std::move(key), found_.globals.size()).first;
      found_.globals.push_back(std::move(mention));
      found_.initialized.push_back(false);
    } else if (mention.computed) {
      found_.globals[known->second].computed = true;
    }
    return lost_ ? kOther : add_held({.at = known->second, .is_global = true});
  }

  void mark_called(PickleRef callee, bool with_keywords, bool initializes = true) {
    const StackValue* found = held(callee);
    if (callee == kResult) found_.acts = found_.calls_results = true;
    if (found == nullptr || !found->is_global) return;
    PickleGlobal& global = found_.globals[static_cast<std::size_t>(found->at)];
    if (initializes) found_.initialized[static_cast<std::size_t>(found->at)] = true;
    if (!with_keywords && container_of_name(global.full_name()) != nullptr) return;
    global.called = true;
    found_.acts = true;
  }

  // BUILD and APPEND call methods of the object that they change. If a pickle can set the methods of a class,
  // they call whatever it set.
  void mark_changed(PickleRef target) {
    const StackValue* found = held(target);
    if (target == kResult) found_.acts = true;
    if (found == nullptr || !found->is_global) return;
    found_.globals[static_cast<std::size_t>(found->at)].called = true;
    found_.acts = found_.changes_globals = true;
  }

  const ByteSource& source_;
  ScanLimits limits_;
  MemoryAllowance allowance_;
  std::uint64_t stores_ = 0;  // charged for the stack and the memo
  PickleStream stream_;
  PickleStack stack_;
  PickleMemo memo_;
  PickleScan found_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
  std::deque<StackValue> held_;
  std::string texts_;
  std::uint64_t begin_ = 0;  // of the opcode at hand
  std::uint64_t steps_ = 0;
  std::uint64_t spent_ = 0;
  bool lost_ = false;
};

}  // namespace

PickleScan scan_pickle(const ByteSource& source, std::uint64_t offset, std::uint64_t until,
                       const ScanLimits& limits) {
  return PickleScanner(source, offset, limits).run(until);
}

bool is_importable(const PickleGlobal& global) {
  if (global.computed && global.module == kUnknownName) return true;
  return !global.module.empty() && std::ranges::all_of(global.module, is_of_python_name);
}

}  // namespace msprobe::formats
