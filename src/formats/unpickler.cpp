// SPDX-License-Identifier: Apache-2.0
#include "formats/unpickler.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "formats/pickle_builder.hpp"
#include "formats/pickle_opcodes.hpp"
#include "formats/pickle_stack.hpp"
#include "formats/pickle_stream.hpp"
#include "formats/pickle_text.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using Op = PickleOp;

constexpr std::uint8_t kNewestProtocol = 5;

class Unpickler {
 public:
  Unpickler(const ByteSource& source, std::uint64_t offset, const PickleLimits& limits)
      : stream_(source, offset, limits.max_bytes),
        stack_(stream_, limits.max_stack),
        memo_(stream_),
        builder_(stream_, source, limits) {}

  Pickle run() {
    while (true) {
      builder_.charge(1);
      const auto op = static_cast<Op>(stream_.u8());
      if (op == Op::stop) break;
      apply(op);
      charge_stores();
    }
    stream_.end_of_pickle();
    return builder_.finish(stack_.result(), stream_.position());
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { stream_.fail(reason); }

  // The stack and the memo grow in many places.
  void charge_stores() {
    const std::uint64_t memory = stack_.memory() + memo_.memory();
    if (memory <= stores_) return;
    builder_.charge_memory(memory - stores_);
    stores_ = memory;
  }

  PickleKind kind(PickleRef ref) const { return builder_.kind(ref); }

  std::uint64_t key_line() {
    const auto key = decode_key(stream_.line());
    if (!key) fail("a number is malformed");
    return *key;
  }

  // Little-endian two's complement.
  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) return stack_.push(builder_.characters(PickleKind::big_integer, bytes));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
    }
    const bool negative = !bytes.empty() && (static_cast<std::uint8_t>(bytes.back()) & 0x80U) != 0;
    if (negative && bytes.size() < 8) value |= ~std::uint64_t{0} << (8 * bytes.size());
    stack_.push(builder_.integer(static_cast<std::int64_t>(value)));
  }

  void push_number_line(std::string_view line) {
    builder_.charge(line.size());  // long numbers take time
    const auto bytes = decode_integer(line);
    if (!bytes) fail("a number is malformed");
    push_long(*bytes);
  }

  void push_int_line() {
    const std::string_view line = stream_.line();
    if (line == "00" || line == "01") return stack_.push(builder_.boolean(line == "01"));
    push_number_line(line);
  }

  void push_long_line() {
    std::string_view line = stream_.line();
    if (line.ends_with('L')) line.remove_suffix(1);
    push_number_line(line);
  }

  void apply(Op op) {
    switch (op) {
      case Op::none:
        return stack_.push(builder_.none());
      case Op::newtrue:
      case Op::newfalse:
        return stack_.push(builder_.boolean(op == Op::newtrue));
      case Op::binint:
        return stack_.push(builder_.integer(static_cast<std::int32_t>(stream_.little<std::uint32_t>())));
      case Op::binint1:
        return stack_.push(builder_.integer(stream_.u8()));
      case Op::binint2:
        return stack_.push(builder_.integer(stream_.little<std::uint16_t>()));
      case Op::long1:
        return push_long(stream_.characters(stream_.u8()));
      case Op::long4: {
        const auto length = stream_.little<std::uint32_t>();
        if (length > 0x7fffffff) fail("a negative length");
        return push_long(stream_.characters(length));
      }
      case Op::int_line:
        return push_int_line();
      case Op::long_line:
        return push_long_line();
      case Op::real_line: {
        const auto value = parse_number(stream_.line());
        if (!value) fail("a number is malformed");
        return stack_.push(builder_.real(std::bit_cast<std::uint64_t>(*value)));
      }
      case Op::binfloat:
        return stack_.push(builder_.real(__builtin_bswap64(stream_.little<std::uint64_t>())));
      default:
        return push_text(op);
    }
  }

  void push_characters(PickleKind kind, std::uint64_t length) {
    stack_.push(builder_.characters(kind, stream_.characters(length)));
  }

  void push_decoded(const std::optional<std::string>& text) {
    if (!text) fail("a string is malformed");
    stack_.push(builder_.characters(PickleKind::text, *text));
  }

  void push_text(Op op) {
    switch (op) {
      case Op::binunicode:
        return push_characters(PickleKind::text, stream_.little<std::uint32_t>());
      case Op::short_binunicode:
      case Op::short_binstring:
        return push_characters(PickleKind::text, stream_.u8());
      case Op::binunicode8:
        return push_characters(PickleKind::text, stream_.little<std::uint64_t>());
      case Op::binstring: {
        const auto length = stream_.little<std::uint32_t>();
        if (length > 0x7fffffff) fail("a negative length");
        return push_characters(PickleKind::text, length);
      }
      case Op::binbytes:
        return push_characters(PickleKind::bytes, stream_.little<std::uint32_t>());
      case Op::short_binbytes:
        return push_characters(PickleKind::bytes, stream_.u8());
      case Op::binbytes8:
      case Op::bytearray8:
        return push_characters(PickleKind::bytes, stream_.little<std::uint64_t>());
      case Op::string_line:
        return push_decoded(decode_quoted(stream_.line()));
      case Op::unicode_line:
        return push_decoded(decode_raw_unicode(stream_.line()));
      default:
        return move_stack(op);
    }
  }

  void move_stack(Op op) {
    switch (op) {
      case Op::mark:
        builder_.charge(1);  // a mark takes memory that max_stack does not see
        return stack_.mark();
      case Op::pop:
        return stack_.pop_value_or_mark();
      case Op::pop_mark:
        return stack_.drop_to_mark();
      case Op::dup:
        return stack_.push(stack_.top());
      case Op::put:
        return memo_.put(key_line(), stack_.top());
      case Op::binput:
        return memo_.put(stream_.u8(), stack_.top());
      case Op::long_binput:
        return memo_.put(stream_.little<std::uint32_t>(), stack_.top());
      case Op::memoize:
        return memo_.append(stack_.top());
      case Op::get:
        return stack_.push(memo_.get(key_line()));
      case Op::binget:
        return stack_.push(memo_.get(stream_.u8()));
      case Op::long_binget:
        return stack_.push(memo_.get(stream_.little<std::uint32_t>()));
      case Op::proto: {
        const std::uint8_t version = stream_.u8();
        if (version > kNewestProtocol) fail(fmt::format("unknown protocol {}", version));
        return;
      }
      case Op::frame:
        return stream_.begin_frame(stream_.little<std::uint64_t>());
      default:
        return fill_container(op);
    }
  }

  void replace_since_mark(PickleRef made) {
    stack_.drop_to_mark();
    stack_.push(made);
  }

  void replace_last(std::size_t count) {
    const PickleRef made = builder_.tuple(stack_.last(count));
    stack_.drop(count);
    stack_.push(made);
  }

  void fill_container(Op op) {
    switch (op) {
      case Op::empty_tuple:
        return stack_.push(builder_.tuple({}));
      case Op::empty_list:
        return stack_.push(builder_.container(PickleKind::list));
      case Op::empty_dict:
        return stack_.push(builder_.container(PickleKind::dict));
      case Op::empty_set:
        return stack_.push(builder_.container(PickleKind::set));
      case Op::tuple1:
        return replace_last(1);
      case Op::tuple2:
        return replace_last(2);
      case Op::tuple3:
        return replace_last(3);
      case Op::tuple:
        return replace_since_mark(builder_.tuple(stack_.since_mark()));
      case Op::list:
        return replace_since_mark(builder_.container(PickleKind::list, stack_.since_mark()));
      case Op::frozenset:
        return replace_since_mark(builder_.container(PickleKind::set, stack_.since_mark()));
      case Op::dict:
        if (stack_.since_mark().size() % 2 != 0) fail("a key without a value");
        return replace_since_mark(builder_.container(PickleKind::dict, stack_.since_mark()));
      case Op::append: {
        const PickleRef item = stack_.pop();
        return builder_.append_to(stack_.top(), std::span(&item, 1), PickleKind::list);
      }
      case Op::appends:
      case Op::additems:
        builder_.append_to(stack_.below_mark(), stack_.since_mark(),
                           op == Op::appends ? PickleKind::list : PickleKind::set);
        return stack_.drop_to_mark();
      case Op::setitem: {
        const auto pair = stack_.last(2);
        const std::array both = {pair[0], pair[1]};
        stack_.drop(2);
        return builder_.set_in(stack_.top(), both);
      }
      case Op::setitems:
        builder_.set_in(stack_.below_mark(), stack_.since_mark());
        return stack_.drop_to_mark();
      default:
        return call_or_refuse(op);
    }
  }

  PickleRef global_from_lines() {
    const std::uint64_t offset = stream_.position() - 1;
    std::string module(stream_.line());
    return builder_.global(std::move(module), std::string(stream_.line()), offset);
  }

  PickleRef global_from_stack() {
    const auto names = stack_.last(2);
    if (kind(names[0]) != PickleKind::text || kind(names[1]) != PickleKind::text)
      fail("a global without a name");
    // Each mention copies two strings that may come from the memo, so their length counts.
    builder_.charge((builder_.so_far().raw(names[0]).size() + builder_.so_far().raw(names[1]).size()) / 16);
    std::string module(builder_.so_far().text(names[0]));
    std::string name(builder_.so_far().text(names[1]));
    stack_.drop(2);
    return builder_.global(std::move(module), std::move(name), stream_.position() - 1);
  }

  void call_or_refuse(Op op) {
    switch (op) {
      case Op::global:
        return stack_.push(global_from_lines());
      case Op::stack_global:
        return stack_.push(global_from_stack());
      case Op::persid:
        return stack_.push(builder_.persistent(builder_.characters(PickleKind::text, stream_.line())));
      case Op::binpersid:
        return stack_.push(builder_.persistent(stack_.pop()));
      case Op::reduce:
      case Op::newobj: {
        const PickleRef args = stack_.pop();
        const PickleRef callable = stack_.pop();
        return stack_.push(builder_.call(callable, args));
      }
      case Op::newobj_ex: {
        const PickleRef kwargs = stack_.pop();
        const PickleRef args = stack_.pop();
        const PickleRef callable = stack_.pop();
        if (kind(kwargs) != PickleKind::dict) fail("a call without a dict of keywords");
        return stack_.push(builder_.call(callable, args, kwargs));
      }
      case Op::inst: {
        const PickleRef callable = global_from_lines();
        const PickleRef args = builder_.tuple(stack_.since_mark());
        stack_.drop_to_mark();
        return stack_.push(builder_.call(callable, args));
      }
      case Op::obj: {
        const auto values = stack_.since_mark();
        if (values.empty()) fail("stack underflow");
        const PickleRef callable = values[0];
        const PickleRef args = builder_.tuple(values.subspan(1));
        stack_.drop_to_mark();
        return stack_.push(builder_.call(callable, args));
      }
      case Op::build: {
        const PickleRef state = stack_.pop();
        return builder_.set_state(stack_.top(), state);
      }
      case Op::ext1:
      case Op::ext2:
      case Op::ext4:
        fail("refused: it uses Python's extension registry");
      case Op::next_buffer:
      case Op::readonly_buffer:
        fail("refused: it refers to buffers outside the file");
      default:
        fail(fmt::format("unknown opcode 0x{:02x}", static_cast<unsigned>(op)));
    }
  }

  PickleStream stream_;
  std::uint64_t stores_ = 0;  // charged for the stack and the memo
  PickleStack stack_;
  PickleMemo memo_;
  PickleBuilder builder_;
};

}  // namespace

Pickle load_pickle(const ByteSource& source, std::uint64_t offset, const PickleLimits& limits) {
  return Unpickler(source, offset, limits).run();
}

}  // namespace msprobe::formats
