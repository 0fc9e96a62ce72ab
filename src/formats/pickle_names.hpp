// SPDX-License-Identifier: Apache-2.0
// The names by which pickles are rated: facts about Python, its library and the packages around PyTorch. Each
// table is words with blanks between them.
#pragma once

#include <string_view>

namespace msprobe::formats {

/// Modules of Python's own library, of any version from 2.7 on, without underscores around them. Nothing in
/// them is needed to load data but what kKnownNames and kPlainNames have.
extern const std::string_view kStandardModules;

/// Of those: modules that only compute. They call nothing that they are given and touch no file.
extern const std::string_view kComputingModules;

/// Modules that run code, processes or pickles, under whatever package they stand.
extern const std::string_view kRunningModules;

/// Packages and modules, with everything below them, that run, import, load or fetch what they are told to.
extern const std::string_view kActingModules;

/// Names of functions and types that act so wherever they stand, without underscores around them.
extern const std::string_view kActingNames;

/// How the names of such functions begin, up to an underscore or a capital letter.
extern const std::string_view kActingVerbs;

/// Whole names that act so, in modules that also hold harmless ones.
extern const std::string_view kDangerousNames;

/// What saved tensors, arrays, plain values and containers are made of.
extern const std::string_view kKnownNames;

/// Classes whose objects are mere attributes, where a pickle makes them without calling them (NEWOBJ).
extern const std::string_view kDataClasses;

/// Met in files that mean no harm, but able to do more than hold data.
extern const std::string_view kPlainNames;

}  // namespace msprobe::formats
