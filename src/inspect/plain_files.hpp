// SPDX-License-Identifier: Apache-2.0
// Files that are neither tensors nor pickles, as they lie in the folder of a model: text, code, vocabularies.
// They are known by their first bytes, and code also by its name, since that is how Python and shells find
// it.
#pragma once

#include <string>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// "Python source", "machine code"; empty for what is no code. `name` may be a path.
std::string code_kind(const ByteSource& file, std::string_view name);

/// Is all of it UTF-8 without control characters but those that lay out text? An empty file is.
bool is_text(const ByteSource& file);

/// The vocabulary that sentencepiece_model.proto of Google's SentencePiece describes, read to its end.
bool is_sentencepiece(const ByteSource& file);

}  // namespace msprobe::inspect
