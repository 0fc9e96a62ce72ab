// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_names.hpp"

namespace msprobe::formats {

const std::string_view kStandardModules =
    "BaseHTTPServer Bastion CGIHTTPServer Canvas ConfigParser Cookie Dialog DocXMLRPCServer EasyDialogs "
    "FileDialog FixTk HTMLParser MimeWriter Nav PixMapWrapper Queue ScrolledText SimpleDialog "
    "SimpleHTTPServer SimpleXMLRPCServer SocketServer StringIO Tix Tkconstants Tkdnd Tkinter UserDict "
    "UserList UserString abc aepack aetools aetypes aifc aix_support android_support annotationlib "
    "antigravity anydbm apple_support applesingle argparse array ast ast_unparse asynchat asyncio asyncore "
    "atexit audioop autoGIL base64 bdb binascii binhex bisect blake2 bootlocale bootsubprocess bsddb "
    "buildtools builtin builtins bz2 cPickle cProfile cStringIO calendar cfmfile cgi cgitb chunk cmath cmd "
    "code codecs codecs_cn codecs_hk codecs_iso2022 codecs_jp codecs_kr codecs_tw codeop collections "
    "collections_abc colorize colorsys commands compat_pickle compileall compiler compression concurrent "
    "configparser contextlib contextvars cookielib copy copy_reg copyreg crypt csv ctypes ctypes_test curses "
    "curses_panel dataclasses datetime dbhash dbm decimal difflib dircache dis distutils dl doctest dumbdbm "
    "dummy_thread dummy_threading elementtree email encodings ensurepip enum errno exceptions faulthandler "
    "fcntl filecmp fileinput findertools fnmatch fractions frozen_importlib frozen_importlib_external ftplib "
    "functools future future_builtins gc gdbm genericpath gensuitemodule gestalt getopt getpass gettext glob "
    "graphlib grp gzip hashlib heapq hmac hotshot html htmlentitydefs htmllib http httplib icopen idlelib "
    "ihooks imageop imaplib imgfile imghdr imp importlib imputil inspect interpchannels interpqueues "
    "interpreters io ios_support ipaddress itertools json keyword lib2to3 linecache linuxaudiodev locale "
    "logging lsprof lzma macerrors macostools macpath macresource macurl2path mailbox mailcap markupbase "
    "marshal math md5 mhlib mimetools mimetypes mimify mmap modulefinder msi msilib msvcrt multibytecodec "
    "multifile multiprocessing mutex netrc new nis nntplib nt ntpath nturl2path numbers opcode "
    "opcode_metadata operator optparse os os2emxpath ossaudiodev osx_support overlapped pathlib pdb pickle "
    "pickletools pipes pkgutil platform plistlib popen2 poplib posix posixfile posixpath posixshmem "
    "posixsubprocess pprint profile pstats pty pwd py_abc py_compile py_warnings pyclbr pydatetime pydecimal "
    "pydoc pydoc_data pyexpat pyio pylong pyrepl queue quopri random re readline remote_debugging reprlib "
    "resource rexec rfc822 rlcompleter robotparser runpy sched scproxy secrets select selectors sgmllib sha "
    "sha1 sha2 sha256 sha3 sha512 shelve shlex shutil signal site sitebuiltins sitecustomize smtpd smtplib "
    "sndhdr socket socketserver spwd sqlite3 sre sre_compile sre_constants sre_parse ssl stat statistics "
    "statvfs string stringprep strop strptime struct subprocess suggestions sunau sunaudiodev symtable sys "
    "sysconfig sysconfigdata syslog tabnanny tarfile telnetlib tempfile termios test testbuffer testcapi "
    "testclinic testinternalcapi testlimitedcapi testsinglephase textwrap this thread threading "
    "threading_local time timeit tkColorChooser tkCommonDialog tkFileDialog tkFont tkMessageBox "
    "tkSimpleDialog tkinter toaiff token tokenize tomllib trace traceback tracemalloc ttk tty turtle "
    "turtledemo types typing unicodedata unittest urllib urllib2 urlparse user usercustomize uu uuid venv "
    "videoreader warnings wave weakref weakrefset webbrowser whichdb whrandom winapi winreg winsound wsgiref "
    "xdrlib xml xmllib xmlrpc xmlrpclib xreadlines xxinterpchannels xxsubinterpreters xxtestfuzz zipapp "
    "zipfile zipimport zlib zoneinfo zstd";

const std::string_view kComputingModules =
    "array cmath colorsys datetime decimal errno fractions ipaddress math numbers stat struct time "
    "unicodedata";

const std::string_view kRunningModules =
    "__builtin__ builtins cPickle cffi cloudpickle cpp_extension ctypes dill distutils f2py importlib "
    "marshal multiprocessing nt os pickle pickletools pip popen2 posix posixsubprocess pty pydoc requests "
    "runpy shelve shutil socket subprocess sys tarfile tempfile urllib urllib2 urllib3 webbrowser zipfile "
    "zipimport";

const std::string_view kActingModules =
    // Code, processes and packages.
    "IPython _pytest cffi cloudpickle dill fabric functorch hydra mesonbuild omegaconf._utils fickling "
    "hypothesis invoke ipykernel jinja2 joblib llvmlite mako modelscan nose numexpr numba pexpect picklescan "
    "pip pkg_resources plumbum psutil ptyprocess py pytest sh setuptools sympy "
    // Other names of the standard library.
    "future past six "
    // Files and the network.
    "aiohttp boto boto3 botocore fsspec gevent h5py httpcore httpx httpx2 paramiko pycurl requests ruamel "
    "smart_open sqlalchemy tornado twisted urllib3 websocket websockets yaml zmq numpy.compat "
    "numpy.core._internal numpy._core._internal numpy.ctypeslib numpy.distutils numpy.f2py "
    "numpy.lib._datasource numpy.lib._format_impl numpy.lib._npyio_impl numpy.lib._utils_impl "
    "numpy.lib.format numpy.lib.npyio numpy.lib.utils numpy.testing PIL.ImageMath babel.core "
    "huggingface_hub.cli huggingface_hub.utils matplotlib.cbook nltk.decorators pkginfo pandas.compat "
    "pandas.core.computation pandas.io pandas.testing pandas.util scipy._lib scipy.datasets scipy.io "
    "scipy.weave sklearn.externals sklearn.utils._testing sklearn.datasets torch._custom_op "
    "torch._custom_ops torch._dynamo torch._export torch._functorch torch._guards torch._higher_order_ops "
    "torch._inductor torch._jit_internal torch._lazy torch._library torch._logging torch._meta_registrations "
    "torch._numpy torch._ops torch._package torch._sources torch._vendor torch._weights_only_unpickler "
    "torch.autograd.profiler torch.classes torch.compiler torch.contrib torch.cuda._memory_viz "
    "torch.cuda._sanitizer torch.distributed.argparse_util torch.distributed.elastic "
    "torch.distributed.launch torch.distributed.launcher torch.distributed.nn.jit torch.distributed.rpc "
    "torch.distributed.run torch.export torch.fx torch.hub torch.jit torch.library torch.multiprocessing "
    "torch.onnx torch.ops torch.package torch.profiler torch.serialization torch.testing "
    "torch.utils._config_module torch.utils._cpp_extension_versioner torch.utils._freeze "
    "torch.utils._import_utils torch.utils._sympy torch.utils._triton torch.utils.backend_registration "
    "torch.utils.benchmark torch.utils.bottleneck torch.utils.bundled_inputs torch.utils.checkpoint "
    "torch.utils.collect_env torch.utils.cpp_backtrace torch.utils.cpp_extension torch.utils.data.datapipes "
    "torch.utils.deterministic torch.utils.file_baton torch.utils.hipify torch.utils.mkldnn "
    "torch.utils.mobile_optimizer torch.utils.model_dump torch.utils.model_zoo torch.utils.serialization "
    "torch.utils.show_pickle torch.utils.tensorboard torch.utils.throughput_benchmark torch.utils.viz "
    "torchgen torchvision.datasets.utils transformers.dynamic_module_utils transformers.utils.hub "
    "transformers.utils.import_utils triton";

const std::string_view kActingNames =
    // Processes and code.
    "CDLL CUDAPluggableAllocator CodeType ForwardRef FunctionType InteractiveConsole InteractiveInterpreter "
    "LambdaType MethodType ModuleType OleDLL Popen PyDLL Unpickler WinDLL XPUPluggableAllocator apply "
    "attrgetter breakpoint cdll check_call check_output delattr execl execle execlp execlpe execv execve "
    "execvp execvpe exit fork forkpty getattr getoutput getstatusoutput methodcaller popen2 popen3 popen4 "
    "pyrun quit reload resolve_name runcode runcommand runctx runscript runsource runstring func_load "
    "get_rerun_conf namedtuple partial pickle_load reduce retrieve_class_or_fn safeimport setattr spawnl "
    "spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe startfile subimport sympify tensor_to_object "
    "try_import "
    // Files and the network.
    "FileIO PyTorchFileReader PyTorchFileWriter chmod chown connect copyfile copytree create_connection "
    "extractall fromfile fromregex genfromtxt hardlink_to link_to loadmat loadtxt makedirs memmap mkdir "
    "mkfifo putenv rename rm_file rmdir rmtree rotate_checkpoints savemat savetxt savez savez_compressed "
    "symlink symlink_to to_csv to_excel to_hdf to_json to_parquet to_pickle to_sql tofile touch unlink "
    "unsetenv urlcleanup urlopen urlretrieve "
    // Functions that load something from a place, as many packages offer them.
    "from_buffer from_file from_hub from_pretrained from_url";

const std::string_view kActingVerbs =
    "call compile delete download dump dumps eval evaluate exec execfile execute export import load loads "
    "open popen query read run save remove spawn system unlink write";

const std::string_view kDangerousNames =
    "lightning.pytorch.cli.instantiate_class numpy._core.fromnumeric._wrapfunc "
    "numpy.core.fromnumeric._wrapfunc pytorch_lightning.cli.instantiate_class torch.storage._load_from_bytes "
    "numpy._core._ufunc_reconstruct numpy.core._ufunc_reconstruct numpy.core.records.fromfile "
    "numpy.deprecate numpy.lib.add_newdoc numpy.source numpy.vectorize numpy.apply_along_axis "
    "numpy.frompyfunc numpy.fromfunction numpy.piecewise torch._C.import_ir_module "
    "torch._C.import_ir_module_from_buffer torch._utils._augment_memory_snapshot_stack_traces "
    "torch.nn.attention._fa4._fa4_import_module torch._utils_internal.get_source_lines_and_file "
    "torch.nn._reduction.warnings torch.nn.functional.boolean_dispatch torch.overrides.handle_torch_function "
    "torch.utils.data.dataloader._utils torch.utils.data._utils.worker._worker_loop";

const std::string_view kKnownNames =
    "_codecs.encode accelerate.utils.dataclasses.DistributedType argparse.Namespace "
    "array._array_reconstructor array.array builtins.bool builtins.bytearray builtins.bytes builtins.complex "
    "builtins.dict builtins.float builtins.frozenset builtins.int builtins.list builtins.long "
    "builtins.object builtins.range builtins.set builtins.slice builtins.str builtins.tuple builtins.unicode "
    "builtins.xrange collections.Counter collections.OrderedDict collections.defaultdict collections.deque "
    "copyreg._reconstructor datetime.date datetime.datetime datetime.time datetime.timedelta "
    "datetime.timezone decimal.Decimal fractions.Fraction numpy._core.multiarray._reconstruct "
    "numpy._core.multiarray.scalar numpy._core.numeric._frombuffer numpy.core.multiarray._reconstruct "
    "numpy.core.multiarray.scalar numpy.core.numeric._frombuffer numpy.dtype numpy.ndarray pathlib.Path "
    "pathlib.PosixPath pathlib.PurePath pathlib.PurePosixPath pathlib.PureWindowsPath pathlib.WindowsPath "
    "pathlib._local.PosixPath pathlib._local.PurePosixPath pathlib._local.WindowsPath time.struct_time "
    "torch.Size torch.Tensor torch._tensor._rebuild_from_type torch._tensor._rebuild_from_type_v2 "
    "torch._utils._rebuild_device_tensor_from_cpu_tensor torch._utils._rebuild_device_tensor_from_numpy "
    "torch._utils._rebuild_meta_tensor_no_storage torch._utils._rebuild_nested_tensor "
    "torch._utils._rebuild_parameter torch._utils._rebuild_parameter_with_state "
    "torch._utils._rebuild_qtensor torch._utils._rebuild_sparse_csr_tensor "
    "torch._utils._rebuild_sparse_tensor torch._utils._rebuild_tensor torch._utils._rebuild_tensor_v2 "
    "torch._utils._rebuild_tensor_v3 torch._utils._rebuild_wrapper_subclass torch.device "
    "torch.distributed.checkpoint.filesystem._StorageInfo "
    "torch.distributed.checkpoint.metadata.BytesStorageMetadata "
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata "
    "torch.distributed.checkpoint.metadata.Metadata torch.distributed.checkpoint.metadata.MetadataIndex "
    "torch.distributed.checkpoint.metadata.StorageMeta "
    "torch.distributed.checkpoint.metadata.TensorProperties "
    "torch.distributed.checkpoint.metadata.TensorStorageMetadata "
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING torch.nn.parameter.Buffer "
    "torch.nn.parameter.Parameter torch.per_channel_affine torch.per_channel_affine_float_qparams "
    "torch.per_channel_symmetric torch.per_tensor_affine torch.per_tensor_symmetric "
    "torch.serialization._get_layout torch.sparse_coo torch.strided torch.storage.TypedStorage "
    "torch.storage.UntypedStorage torch.storage._TypedStorage torch.storage._UntypedStorage "
    "torch_npu.npu._format.Format torch_npu.utils.storage._rebuild_npu_tensor "
    // Enumerations: calling one only looks up a value.
    "transformers.trainer_utils.EvaluationStrategy transformers.trainer_utils.FSDPOption "
    "transformers.trainer_utils.HubStrategy transformers.trainer_utils.IntervalStrategy "
    "transformers.trainer_utils.SaveStrategy transformers.trainer_utils.SchedulerType "
    "transformers.training_args.OptimizerNames transformers.training_args.ParallelMode "
    "types.SimpleNamespace uuid.SafeUUID uuid.UUID";

const std::string_view kDataClasses =
    "accelerate.state.PartialState lightning.fabric.utilities.data.AttributeDict "
    "lightning_fabric.utilities.data.AttributeDict pytorch_lightning.utilities.parsing.AttributeDict "
    "transformers.trainer_pt_utils.AcceleratorConfig transformers.training_args.TrainingArguments "
    "transformers.training_args_seq2seq.Seq2SeqTrainingArguments trl.trainer.dpo_config.DPOConfig "
    "trl.trainer.grpo_config.GRPOConfig trl.trainer.sft_config.SFTConfig";

const std::string_view kPlainNames =
    "__future__.division _io.BytesIO _io.StringIO _random.Random _regex.compile builtins.Ellipsis "
    "builtins.NotImplemented builtins.abs builtins.all builtins.any builtins.buffer builtins.chr "
    "builtins.divmod builtins.enumerate builtins.hash builtins.hex builtins.id builtins.len builtins.max "
    "builtins.memoryview builtins.min builtins.ord builtins.pow builtins.print builtins.repr "
    "builtins.reversed builtins.round builtins.sorted builtins.sum builtins.type builtins.unichr "
    "builtins.xrange builtins.zip collections.ChainMap collections.UserDict collections.UserList "
    "collections.UserString copyreg.__newobj__ copyreg.__newobj_ex__ io.BytesIO io.StringIO itertools.chain "
    "itertools.count itertools.cycle itertools.islice itertools.repeat joblib.numpy_pickle.NDArrayWrapper "
    "joblib.numpy_pickle.NumpyArrayWrapper joblib.numpy_pickle_compat.NDArrayWrapper "
    "numpy.random._pickle.__bit_generator_ctor numpy.random._pickle.__generator_ctor "
    "numpy.random._pickle.__randomstate_ctor numpy.random.__RandomState_ctor operator.add operator.mul "
    "random.Random re._compile regex._regex.compile signal.Signals typing.Any typing.Dict typing.List "
    "typing.Optional typing.Tuple typing.Union weakref.WeakKeyDictionary weakref.WeakSet "
    "weakref.WeakValueDictionary zoneinfo.ZoneInfo._unpickle";

}  // namespace msprobe::formats
