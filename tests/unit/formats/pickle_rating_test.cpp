// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_rating.hpp"

#include <doctest/doctest.h>

#include <string_view>
#include <utility>

namespace msprobe::formats::pickle_rating_test {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

}  // namespace

TEST_CASE("what runs code is dangerous, by whatever road") {
  for (const auto& [module, name] : {
           Name{"os", "system"},
           Name{"posix", "system"},
           Name{"nt", "system"},
           Name{"subprocess", "Popen"},
           Name{"sys", "modules"},
           Name{"socket", "socket"},
           Name{"shutil", "rmtree"},
           Name{"runpy", "_run_code"},
           Name{"builtins", "eval"},
           Name{"__builtin__", "eval"},
           Name{"builtins", "exec"},
           Name{"builtins", "getattr"},
           Name{"builtins", "__import__"},
           Name{"importlib", "import_module"},
           Name{"importlib.util", "spec_from_file_location"},
           Name{"os.path", "join"},
           Name{"pty", "spawn"},
           Name{"marshal", "loads"},
           Name{"ctypes", "CDLL"},
           Name{"operator", "methodcaller"},
           Name{"numpy", "f2py.crackfortran.myeval"},
           Name{"functools", "partial"},
           Name{"types", "FunctionType"},
           Name{"_io", "open"},
           Name{"torch", "load"},
           Name{"torch.hub", "load"},
           Name{"torch.storage", "_load_from_bytes"},
           Name{"torch.jit.unsupported_tensor_ops", "execWrapper"},
           Name{"numpy.testing._private.utils", "runstring"},
           Name{"torch", "serialization.os.system"},
           Name{"collections", "OrderedDict.__init__"},
           Name{"numpy", "__builtins__"},
           // Through a module that has imported another.
           Name{"codecs", "builtins.eval"},
           Name{"random", "_os.system"},
           Name{"random", "_os"},
           Name{"datetime", "sys"},
           Name{"torch.nn.functional", "importlib.import_module"},
           Name{"pkg.vendored.subprocess", "Anything"},
           Name{"pandas.io.pickle", "Anything"},
           // Names of Python's own library that no data needs.
           Name{"operator", "call"},
           Name{"_functools", "partial"},
           Name{"_io", "open_code"},
           Name{"_pyio", "open"},
           Name{"_imp", "create_dynamic"},
           Name{"_ctypes", "dlopen"},
           Name{"_frozen_importlib", "x"},
           Name{"_frozen_importlib_external", "x"},
           Name{"_interpreters", "x"},
           Name{"pipes", "Template"},
           Name{"atexit", "register"},
           Name{"compileall", "compile_dir"},
           Name{"collections", "namedtuple"},
           Name{"builtins", "iter"},
           Name{"pathlib", "PosixPath.write_text"},
           Name{"uuid", "UUID.x"},
           // Names of Python 2.
           Name{"__builtin__", "reduce"},
           Name{"itertools", "imap"},
           Name{"SocketServer", "TCPServer"},
           Name{"_winreg", "SetValue"},
           Name{"copy_reg", "add_extension"},
           // The name alone gives the rating.
           Name{"osmosis", "system"},
           Name{"some.package", "load_model"},
           Name{"some.package", "_loadFrom"},
           Name{"some.package", "Popen"},
           Name{"torch.storage", "UntypedStorage.from_file"},
           Name{"torch", "compile"},
           Name{"numpy.distutils.core", "Anything"},
           Name{"numpy.lib.npyio", "NpzFile"},
           Name{"numpy.core", "_ufunc_reconstruct"},
       }) {
    CAPTURE(module);
    CAPTURE(name);
    CHECK(rate_global(module, name) == Rating::dangerous);
  }
}

TEST_CASE("what tensors, arrays and containers are made of is ok") {
  for (const auto& [module, name] : {
           Name{"torch._utils", "_rebuild_tensor_v2"},
           Name{"torch._utils", "_rebuild_parameter"},
           Name{"torch", "FloatStorage"},
           Name{"torch.cuda", "HalfStorage"},
           Name{"torch.storage", "UntypedStorage"},
           Name{"torch", "bfloat16"},
           Name{"torch", "float8_e4m3fn"},
           Name{"torch", "Size"},
           Name{"torch_npu.utils.storage", "_rebuild_npu_tensor"},
           Name{"collections", "OrderedDict"},
           Name{"__builtin__", "set"},
           Name{"numpy", "dtype"},
           Name{"numpy._core.multiarray", "_reconstruct"},
           Name{"argparse", "Namespace"},
           Name{"datetime", "datetime"},
           Name{"decimal", "Decimal"},
           Name{"uuid", "UUID"},
           Name{"pathlib", "PosixPath"},
           Name{"copy_reg", "_reconstructor"},
       }) {
    CAPTURE(module);
    CAPTURE(name);
    CHECK(rate_global(module, name) == Rating::ok);
  }
}

TEST_CASE("everything else is unknown, also where it looks like a friend") {
  for (const auto& [module, name] : {
           Name{"torch.nn.modules.linear", "Linear"},
           Name{"megatron.core.enums", "ModelType"},
           Name{"osmosis", "system"},
           Name{"system", "os"},
           Name{"torch", "Float"},
           Name{"torchx", "FloatStorage"},
           Name{"evil", "_rebuild_tensor_v2"},
           Name{"torch._utils", "_rebuild_tensor_v2.func"},
           Name{"", ""},
           Name{"", "os"},
       }) {
    CAPTURE(module);
    CAPTURE(name);
    CHECK(rate_global(module, name) != Rating::ok);
  }
  for (const auto& [module, name] : {
           Name{"osmosis", "Layer"},
           Name{"torch.nn.modules.linear", "Linear"},
           Name{"torch.nn.functional", "relu"},
           Name{"torch._C._nn", "gelu"},
           Name{"torch.optim.adam", "Adam"},
           Name{"megatron.core.enums", "ModelType"},
           Name{"signal", "Signals"},
           Name{"_io", "BytesIO"},
           Name{"typing", "Any"},
           Name{"math", "sqrt"},
           Name{"builtins", "ValueError"},
           Name{"exceptions", "ValueError"},
           Name{"__main__", "Trainer"},
           Name{"numpy.random._pickle", "__randomstate_ctor"},
           Name{"numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"},
           Name{"joblib.numpy_pickle", "NumpyArrayWrapper"},
           Name{"pandas.core.indexes.base", "_new_Index"},
           Name{"models.loader", "Loader"},
           Name{"models.common", "runner"},
       }) {
    CAPTURE(module);
    CAPTURE(name);
    CHECK(rate_global(module, name) == Rating::unknown);
  }
}

}  // namespace msprobe::formats::pickle_rating_test
