// SPDX-License-Identifier: Apache-2.0
// Recognizes files in a model's folder that are neither tensors nor pickles: text, code, vocabularies. The
// first bytes identify them. Code is also identified by its name, since Python and shells find it in that
// way.
#pragma once

#include <string>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// "Python source", "machine code"; empty for anything else. `name` may be a path.
std::string code_kind(const ByteSource& file, std::string_view name);

/// Is the whole file UTF-8, without control characters except those that lay out text? True for an empty
/// file.
bool is_text(const ByteSource& file);

/// True if the file, up to its end, is a vocabulary as sentencepiece_model.proto of Google's SentencePiece
/// describes it.
bool is_sentencepiece(const ByteSource& file);

}  // namespace msprobe::inspect
