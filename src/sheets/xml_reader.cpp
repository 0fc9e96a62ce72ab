// SPDX-License-Identifier: Apache-2.0
#include "sheets/xml_reader.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <new>

#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::sheets {
namespace {

constexpr int kDeepest = 64;                                     // element
constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30;  // bytes of a part
constexpr std::uint64_t kLongestToken = std::uint64_t{1} << 20;  // bytes of one tag or comment

std::string_view local(const char* name) {
  const std::string_view whole(name);
  const std::size_t colon = whole.rfind(':');
  return colon == std::string_view::npos ? whole : whole.substr(colon + 1);
}

/// No exception may cross the parser, which is C code. So an exception is kept, and thrown again after the
/// parser has returned.
class Reading {
 public:
  Reading(XmlHandler& handler, std::string place)
      : handler_(handler), place_(std::move(place)), parser_(XML_ParserCreate(nullptr)) {
    if (!parser_) throw std::bad_alloc();
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        [](void* self, const char* name, const char** pairs) {
          static_cast<Reading*>(self)->guard([&](Reading& me) { me.start(name, pairs); });
        },
        [](void* self, const char* name) {
          static_cast<Reading*>(self)->guard([&](Reading& me) {
            --me.depth_;
            me.handler_.end(local(name));
          });
        });
    XML_SetCharacterDataHandler(parser_.get(), [](void* self, const char* text, int size) {
      static_cast<Reading*>(self)->guard([&](Reading& me) {
        me.handler_.text({text, static_cast<std::size_t>(size)});
      });
    });
    XML_SetStartDoctypeDeclHandler(parser_.get(), [](void* self, const char*, const char*, const char*, int) {
      static_cast<Reading*>(self)->guard(
          [](Reading& me) { me.fail("a document type declaration is not accepted"); });
    });
  }

  void feed(std::span<const std::byte> bytes, bool last) {
    check_interrupt();
    given_ += bytes.size();
    const auto status = XML_Parse(parser_.get(), reinterpret_cast<const char*>(bytes.data()),
                                  static_cast<int>(bytes.size()), last ? 1 : 0);
    if (failure_) std::rethrow_exception(failure_);
    if (status == XML_STATUS_ERROR) {
      const XML_Error error = XML_GetErrorCode(parser_.get());
      if (error == XML_ERROR_NO_MEMORY) throw std::bad_alloc();
      fail(fmt::format("line {}: {}", XML_GetCurrentLineNumber(parser_.get()), XML_ErrorString(error)));
    }
    // The parser keeps only a tag that has not ended.
    const XML_Index done = XML_GetCurrentByteIndex(parser_.get());
    if (done >= 0 && given_ - std::min(given_, static_cast<std::uint64_t>(done)) > kLongestToken)
      fail("a tag or comment of more than " + human_bytes(kLongestToken));
  }

 private:
  struct Free {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };

  template <typename Work>
  void guard(const Work& work) noexcept {
    if (failure_) return;
    try {
      work(*this);
    } catch (...) {
      failure_ = std::current_exception();
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  void start(const char* name, const char* const* pairs) {
    if (++depth_ > kDeepest) fail("elements are nested too deeply");
    handler_.start(local(name), Attributes(pairs));
  }

  [[noreturn]] void fail(const std::string& reason) const { throw FormatError(place_, reason); }

  XmlHandler& handler_;
  std::string place_;
  std::unique_ptr<XML_ParserStruct, Free> parser_;
  std::exception_ptr failure_;
  std::uint64_t given_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string_view Attributes::get(std::string_view name) const {
  for (const char* const* pair = pairs_; *pair != nullptr; pair += 2) {
    if (local(*pair) == name) return pair[1];
  }
  return {};
}

void read_xml(const archive::ZipReader& zip, const archive::ZipEntry& entry, const std::string& workbook,
              XmlHandler& handler) {
  const std::string place = display(workbook) + ": " + display(entry.name);
  if (entry.size > kMostUnpacked) {
    throw FormatError(place, fmt::format("refused: {} unpacked, at most {} are accepted",
                                         human_bytes(entry.size), human_bytes(kMostUnpacked)));
  }
  Reading reading(handler, place);
  zip.stream(entry, [&](std::span<const std::byte> bytes) { reading.feed(bytes, false); });
  reading.feed({}, true);
}

}  // namespace msprobe::sheets
