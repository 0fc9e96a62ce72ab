// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_rating.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "tensor/dtype.hpp"

namespace msprobe::formats {
namespace {

using std::string_view_literals::operator""sv;

// Whole modules, with everything below them: there is nothing in them that data needs.
constexpr std::array kDangerousModules = {
    "_aix_support"sv,
    "_osx_support"sv,
    "_pickle"sv,
    "_posixsubprocess"sv,
    "_pyrepl"sv,
    "_socket"sv,
    "_thread"sv,
    "aiohttp"sv,
    "asyncio"sv,
    "bdb"sv,
    "cProfile"sv,
    "cPickle"sv,
    "cffi"sv,
    "cgitb"sv,
    "cloudpickle"sv,
    "code"sv,
    "codeop"sv,
    "commands"sv,
    "concurrent"sv,
    "ctypes"sv,
    "dill"sv,
    "distutils"sv,
    "doctest"sv,
    "ensurepip"sv,
    "faulthandler"sv,
    "fileinput"sv,
    "ftplib"sv,
    "gc"sv,
    "glob"sv,
    "http"sv,
    "httplib"sv,
    "httpx"sv,
    "idlelib"sv,
    "imaplib"sv,
    "imp"sv,
    "importlib"sv,
    "inspect"sv,
    "joblib"sv,
    "lib2to3"sv,
    "linecache"sv,
    "logging"sv,
    "mailcap"sv,
    "marshal"sv,
    "mmap"sv,
    "modulefinder"sv,
    "multiprocessing"sv,
    "nt"sv,
    "ntpath"sv,
    "numpy.f2py"sv,
    "numpy.testing"sv,
    "os"sv,
    "paramiko"sv,
    "pdb"sv,
    "pickle"sv,
    "pickletools"sv,
    "pip"sv,
    "pkgutil"sv,
    "platform"sv,
    "poplib"sv,
    "popen2"sv,
    "posix"sv,
    "posixpath"sv,
    "profile"sv,
    "pty"sv,
    "py_compile"sv,
    "pydoc"sv,
    "requests"sv,
    "resource"sv,
    "rlcompleter"sv,
    "runpy"sv,
    "sched"sv,
    "select"sv,
    "selectors"sv,
    "setuptools"sv,
    "shelve"sv,
    "shutil"sv,
    "signal"sv,
    "site"sv,
    "smtplib"sv,
    "socket"sv,
    "socketserver"sv,
    "sqlite3"sv,
    "ssl"sv,
    "subprocess"sv,
    "sys"sv,
    "sysconfig"sv,
    "syslog"sv,
    "tarfile"sv,
    "telnetlib"sv,
    "tempfile"sv,
    "test"sv,
    "threading"sv,
    "timeit"sv,
    "torch.hub"sv,
    "torch.jit"sv,
    "torch.package"sv,
    "torch.distributed.run"sv,
    "torch.multiprocessing"sv,
    "torch._dynamo"sv,
    "torch._inductor"sv,
    "torch.fx"sv,
    "torch.utils.bottleneck"sv,
    "torch.utils.collect_env"sv,
    "torch.utils.cpp_extension"sv,
    "torch.utils._config_module"sv,
    "torch.utils.data.datapipes"sv,
    "trace"sv,
    "turtle"sv,
    "unittest"sv,
    "urllib"sv,
    "urllib2"sv,
    "urllib3"sv,
    "venv"sv,
    "webbrowser"sv,
    "winreg"sv,
    "wsgiref"sv,
    "xmlrpc"sv,
    "zipfile"sv,
    "zipimport"sv,
    "zipapp"sv,
};

// Single names in modules that also hold harmless ones.
constexpr std::array kDangerousNames = {
    "_codecs.open"sv,
    "_io.FileIO"sv,
    "_io.open"sv,
    "_operator.attrgetter"sv,
    "_operator.itemgetter"sv,
    "_operator.methodcaller"sv,
    "builtins.__import__"sv,
    "builtins.apply"sv,
    "builtins.breakpoint"sv,
    "builtins.compile"sv,
    "builtins.delattr"sv,
    "builtins.eval"sv,
    "builtins.exec"sv,
    "builtins.execfile"sv,
    "builtins.exit"sv,
    "builtins.file"sv,
    "builtins.filter"sv,
    "builtins.getattr"sv,
    "builtins.globals"sv,
    "builtins.input"sv,
    "builtins.locals"sv,
    "builtins.map"sv,
    "builtins.open"sv,
    "builtins.quit"sv,
    "builtins.reload"sv,
    "builtins.setattr"sv,
    "builtins.vars"sv,
    "codecs.open"sv,
    "functools.partial"sv,
    "functools.reduce"sv,
    "io.FileIO"sv,
    "io.open"sv,
    "io.open_code"sv,
    "numpy.fromfile"sv,
    "numpy.load"sv,
    "numpy.loadtxt"sv,
    "numpy.memmap"sv,
    "numpy.save"sv,
    "operator.attrgetter"sv,
    "operator.itemgetter"sv,
    "operator.methodcaller"sv,
    "pandas.eval"sv,
    "pandas.read_pickle"sv,
    "torch.classes.load_library"sv,
    "torch.load"sv,
    "torch.ops.load_library"sv,
    "torch.save"sv,
    "torch.serialization.load"sv,
    "torch.serialization.save"sv,
    "torch.storage._load_from_bytes"sv,
    "types.CodeType"sv,
    "types.FunctionType"sv,
    "uuid._get_command_stdout"sv,
    "uuid._popen"sv,
};

// What saved tensors, arrays and plain containers are made of.
constexpr std::array kKnownNames = {
    "_codecs.encode"sv,
    "argparse.Namespace"sv,
    "builtins.bool"sv,
    "builtins.bytearray"sv,
    "builtins.bytes"sv,
    "builtins.complex"sv,
    "builtins.dict"sv,
    "builtins.float"sv,
    "builtins.frozenset"sv,
    "builtins.int"sv,
    "builtins.list"sv,
    "builtins.long"sv,
    "builtins.object"sv,
    "builtins.range"sv,
    "builtins.set"sv,
    "builtins.slice"sv,
    "builtins.str"sv,
    "builtins.tuple"sv,
    "builtins.unicode"sv,
    "collections.Counter"sv,
    "collections.OrderedDict"sv,
    "collections.defaultdict"sv,
    "collections.deque"sv,
    "copy_reg._reconstructor"sv,
    "copyreg._reconstructor"sv,
    "numpy._core.multiarray._reconstruct"sv,
    "numpy._core.multiarray.scalar"sv,
    "numpy._core.numeric._frombuffer"sv,
    "numpy.core.multiarray._reconstruct"sv,
    "numpy.core.multiarray.scalar"sv,
    "numpy.core.numeric._frombuffer"sv,
    "numpy.dtype"sv,
    "numpy.ndarray"sv,
    "pathlib.Path"sv,
    "pathlib.PosixPath"sv,
    "pathlib.PurePosixPath"sv,
    "pathlib.WindowsPath"sv,
    "torch.Size"sv,
    "torch.Tensor"sv,
    "torch._tensor._rebuild_from_type"sv,
    "torch._tensor._rebuild_from_type_v2"sv,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor"sv,
    "torch._utils._rebuild_device_tensor_from_numpy"sv,
    "torch._utils._rebuild_meta_tensor_no_storage"sv,
    "torch._utils._rebuild_nested_tensor"sv,
    "torch._utils._rebuild_parameter"sv,
    "torch._utils._rebuild_parameter_with_state"sv,
    "torch._utils._rebuild_qtensor"sv,
    "torch._utils._rebuild_sparse_tensor"sv,
    "torch._utils._rebuild_tensor"sv,
    "torch._utils._rebuild_tensor_v2"sv,
    "torch._utils._rebuild_tensor_v3"sv,
    "torch._utils._rebuild_wrapper_subclass"sv,
    "torch.device"sv,
    "torch.nn.parameter.Buffer"sv,
    "torch.nn.parameter.Parameter"sv,
    "torch.per_channel_affine"sv,
    "torch.per_channel_affine_float_qparams"sv,
    "torch.per_channel_symmetric"sv,
    "torch.per_tensor_affine"sv,
    "torch.per_tensor_symmetric"sv,
    "torch.serialization._get_layout"sv,
    "torch.sparse_coo"sv,
    "torch.strided"sv,
    "torch.storage.TypedStorage"sv,
    "torch.storage.UntypedStorage"sv,
    "torch_npu.npu._format.Format"sv,
    "torch_npu.utils.storage._rebuild_npu_tensor"sv,
};

template <std::size_t kSize>
bool contains(const std::array<std::string_view, kSize>& table, std::string_view text) {
  return std::find(table.begin(), table.end(), text) != table.end();
}

/// Is `module` one of the table's, or below one?
bool in_dangerous_module(std::string_view module) {
  return std::any_of(kDangerousModules.begin(), kDangerousModules.end(), [&](std::string_view known) {
    return module.starts_with(known) && (module.size() == known.size() || module[known.size()] == '.');
  });
}

// STACK_GLOBAL follows dots in a name: `os.system` of the module `torch` is os.system, however it was
// reached.
bool passes_through(std::string_view name) {
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string_view part = name.substr(0, dot);
    if (part.starts_with("__") || contains(kDangerousModules, part)) return true;
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return false;
}

bool is_torch_type(std::string_view module, std::string_view name) {
  if (module == "torch" && tensor::dtype_from_torch(name)) return true;
  const bool holds_storages = module == "torch" || module == "torch.cuda" || module == "torch_npu" ||
                              module == "torch.npu" || module == "torch_npu.npu" || module == "torch.storage";
  return holds_storages && tensor::dtype_from_storage_class(name);
}

}  // namespace

std::string_view rating_name(Rating rating) {
  switch (rating) {
    case Rating::ok:
      return "ok";
    case Rating::dangerous:
      return "dangerous";
    case Rating::unknown:
      break;
  }
  return "unknown";
}

Rating rate_global(std::string_view module, std::string_view name) {
  if (module == "__builtin__") module = "builtins";  // Python 2
  std::string full(module);
  full += '.';
  full += name;
  // A name may hold the rest of the module's: `numpy` and `f2py.x` are `numpy.f2py` and `x`.
  if (in_dangerous_module(full) || contains(kDangerousNames, full)) return Rating::dangerous;
  if (passes_through(name)) return Rating::dangerous;
  if (contains(kKnownNames, full) || is_torch_type(module, name)) return Rating::ok;
  return Rating::unknown;
}

}  // namespace msprobe::formats
