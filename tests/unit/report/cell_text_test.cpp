// SPDX-License-Identifier: Apache-2.0
#include "report/cell_text.hpp"

#include <doctest/doctest.h>

#include <string>

#include "report/writers.hpp"
#include "support/text.hpp"

namespace msprobe::report_cell_text_test {

using namespace msprobe;
using namespace msprobe::report;

TEST_CASE("a spreadsheet would take these for formulas") {
  for (const char* text : {"=1+1", "+cmd", "-x", "@SUM(A1)", "%0", "=", "-", "a;=b", "1;=b", "-1;=x", "-1;a",
                           "\xEF\xBC\x9D"
                           "1",
                           "\xEF\xBC\x8B"
                           "1",
                           "\xEF\xBC\x8D"
                           "1",
                           "\xEF\xBC\xA0"
                           "A",
                           "\xEF\xBC\x85",
                           "x;\xEF\xBC\x9D"
                           "1",
                           "-1.5e", "=-1", "-1;;", "+1;-2;x",
                           // Characters before the sign are dropped or passed over.
                           " =1", "   @a", "a; =b", "\t=1", "\r=1", "\n=1", "\r\n\t +x", "\x01=1",
                           "\xEF\xBB\xBF=1", "\xC2\xA0=1", "\xE2\x80\x8B=1",
                           "\xE3\x80\x80\xEF\xBC\x9D"
                           "1",
                           "a;\xEF\xBB\xBF=1"}) {
    CAPTURE(text);
    CHECK(looks_like_formula(text));
    CHECK_FALSE(is_safe_text(text, traits_of(text)));
  }
}

TEST_CASE("these are no formulas") {
  for (const char* text :
       {"",     "a=b", "a",   "-1.5",         "-inf", "+1e5", "-nan", "1;-2", "-1;-2;+3", " a=1",
        "a; b", ";",   "a;b", "\xE4\xB8\xAD", "1-2",  "\t1",  " -1",  " ",    "\r\n",     "\xEF\xBB\xBF"}) {
    CAPTURE(text);
    CHECK_FALSE(looks_like_formula(text));
    CHECK(safe_text(text) == text);
  }
}

TEST_CASE("safe text begins no part with a formula") {
  CHECK(safe_text("=1+1") == "'=1+1");
  CHECK(safe_text("a;=b;@c") == "a;'=b;'@c");
  CHECK(safe_text("-1;x") == "'-1;x");
  CHECK(safe_text("\xEF\xBC\x9D"
                  "1") ==
        "'\xEF\xBC\x9D"
        "1");
  CHECK(safe_text("\t=1;\xEF\xBB\xBF=2") == "'\t=1;'\xEF\xBB\xBF=2");
  CHECK(safe_text("=\xFF") == "'=\xEF\xBF\xBD");
  for (const char* text : {"=1", "a;=b", "-1;=x;@", ";;=", "%;%"})
    CHECK_FALSE(looks_like_formula(safe_text(text)));
}

TEST_CASE("text that is called safe is what safe_text gives") {
  // Every text of up to three of these pieces.
  const std::string pieces[] = {"",  "=",  "-",           "1", ";", "a", ",", "\xFF", "\xEF\xBC\x8B",
                                " ", "\n", "\xEF\xBB\xBF"};
  for (const auto& a : pieces) {
    for (const auto& b : pieces) {
      for (const auto& c : pieces) {
        const std::string text = a + b + c;
        if (is_safe_text(text, traits_of(text))) CHECK(safe_text(text) == text);
        CHECK_FALSE(looks_like_formula(safe_text(text)));
        CHECK(is_utf8(safe_text(text)));
      }
    }
  }
}

}  // namespace msprobe::report_cell_text_test
