// SPDX-License-Identifier: Apache-2.0
// The names by which msprobe rates pickles: facts about Python, its library and the packages around PyTorch.
// Each table is a list of words separated by blanks.
#pragma once

#include <string_view>

namespace msprobe::formats {

/// Modules of Python's own library, of any version from 2.7 on, without underscores around them. Data need
/// nothing from them except the names in kKnownNames and kPlainNames.
extern const std::string_view kStandardModules;

/// The standard modules that only compute: they call none of their arguments and touch no file.
extern const std::string_view kComputingModules;

/// Modules that run code, processes or pickles, in any package.
extern const std::string_view kRunningModules;

/// Packages and modules, with everything below them, that run, import, load or fetch what their arguments
/// name.
extern const std::string_view kActingModules;

/// Names of functions and types that act in this way in any module, without underscores around them.
extern const std::string_view kActingNames;

/// How the names of such functions begin, up to an underscore or a capital letter.
extern const std::string_view kActingVerbs;

/// Whole names that act in this way, in modules that also hold harmless ones.
extern const std::string_view kDangerousNames;

/// Names that build saved tensors, arrays, plain values and containers.
extern const std::string_view kKnownNames;

/// Classes whose objects are only attributes if a pickle makes them without calling the class (NEWOBJ).
extern const std::string_view kDataClasses;

/// Names that occur in harmless files but can do more than hold data.
extern const std::string_view kPlainNames;

}  // namespace msprobe::formats
