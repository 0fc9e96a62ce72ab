// SPDX-License-Identifier: Apache-2.0
#include "report/page.hpp"

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "archive/deflate.hpp"
#include "report/xml_text.hpp"
#include "support/interrupt.hpp"
#include "support/parallel.hpp"

namespace msprobe::report {
namespace {

constexpr std::size_t kBytesInBlock = std::size_t{1} << 20;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 0x3F];
    }
  }
  return out;
}

/// The policy lists the hash of each script and style; the browser then refuses all others.
std::string hashes_of(std::span<const PagePart> parts) {
  std::string sources;
  for (const PagePart& part : parts) {
    std::string hash;
    for (std::size_t i = 0; i + 1 < part.sha256.size(); i += 2) {
      hash += static_cast<char>(std::stoi(std::string(part.sha256.substr(i, 2)), nullptr, 16));
    }
    sources += " 'sha256-" + base64(hash) + "'";
  }
  return sources;
}

}  // namespace

/// The data are in script elements that the browser does not interpret; base64 has no characters that could
/// end such an element.
void write_page_data(const std::string& id, std::string_view deflated, const PageSink& sink) {
  constexpr std::size_t kAtOnce = std::size_t{3} << 18;  // a multiple of three: base64 can be put together
  sink("<script type=\"application/octet-stream\" id=\"" + id + "\">");
  for (std::size_t at = 0; at < deflated.size(); at += kAtOnce) {
    check_interrupt();
    sink(base64(deflated.substr(at, kAtOnce)));
  }
  sink("</script>\n");
}

std::string deflate_all(std::string_view raw) {
  const std::size_t count = (raw.size() + kBytesInBlock - 1) / kBytesInBlock;
  std::vector<archive::DeflatedBlock> blocks(count);
  parallel_for(count, [&](std::size_t i) {
    archive::deflate_block(raw.substr(i * kBytesInBlock, kBytesInBlock), blocks[i]);
  });
  std::string out;
  for (const archive::DeflatedBlock& block : blocks) out += block.bytes;
  out += archive::kLastDeflateBlock;
  return out;
}

void write_page(const Page& page, const std::function<void()>& write_data, const PageSink& sink) {
  std::string_view rest = page.frame;
  const auto upto = [&](std::string_view mark) {
    const std::size_t at = rest.find(mark);
    if (at == std::string_view::npos) throw std::logic_error("the page's frame lacks " + std::string(mark));
    sink(rest.substr(0, at));
    rest.remove_prefix(at + mark.size());
  };
  const auto put = [&](std::span<const PagePart> parts, const std::string& element) {
    for (const PagePart& part : parts) {
      sink("<" + element + ">");
      sink(part.text);
      sink("</" + element + ">\n");
    }
  };
  upto("{{policy}}");
  sink("default-src 'none'; script-src" + hashes_of(page.scripts) + "; style-src" + hashes_of(page.styles) +
       "; img-src data:; base-uri 'none'; form-action 'none'");
  upto("{{styles}}");
  put(page.styles, "style");
  upto("{{text}}");
  std::string text;
  append_xml_text(text, page.text);
  sink(text);
  upto("{{data}}");
  write_data();
  upto("{{scripts}}");
  put(page.scripts, "script");
  sink(rest);
}

}  // namespace msprobe::report
