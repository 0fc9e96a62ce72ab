// SPDX-License-Identifier: Apache-2.0
// A report as one HTML file that needs nothing else: opens from a mail, asks the network for nothing, and
// runs no script but its own.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace msprobe::report {

/// A style or a script.
struct PagePart {
  std::string_view text;
  std::string_view sha256;  // of the text, in hex
};

/// `frame` has the marks {{policy}}, {{styles}}, {{text}}, {{data}} and {{scripts}}.
struct Page {
  std::string_view frame;
  std::span<const PagePart> styles;
  std::span<const PagePart> scripts;
  std::string text;  // safe to show; readers see it until the scripts have drawn the page, or without scripts
};

using PageSink = std::function<void(std::string_view)>;

/// `write_data` is called where the data belong, for write_page_data().
void write_page(const Page& page, const std::function<void()>& write_data, const PageSink& sink);

/// A raw deflate stream for the page's function unpack(id).
void write_page_data(const std::string& id, std::string_view deflated, const PageSink& sink);

/// `raw` as one deflate stream.
std::string deflate_all(std::string_view raw);

}  // namespace msprobe::report
