/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's C interface: records what a training program computes, as a dump tree that `msprobe compare`,
 * `nan_analyze` and the others read. It knows no framework: entries are made of names, plain values and tensors
 * given by pointer and geometry.
 *
 * Rules that hold for every function:
 * - It returns an msprobe_status; msprobe_last_error() then says why, in one line. Nothing throws, aborts or
 *   prints. A failure to record (full disk, no memory) is no failure of the caller's work: it is written to
 *   dump_error_info.log, the entry lacks that part, and the status tells.
 * - It may be called from any thread. One event or builder belongs to one thread at a time.
 * - Texts are UTF-8 with a final NUL. Pointers given are read during the call only, unless said otherwise.
 * - A structure whose first member is `struct_size` is set to sizeof of itself by the caller, so that members can
 *   be added at its end; what a caller does not know of reads as 0.
 * - In a child made by fork() nothing is recorded: every call returns MSPROBE_SKIP.
 *
 * The files: dump.json, stack.json, construct.json, debug.json are valid whenever someone looks; a process that is
 * killed loses at most what was recorded since the last write (1 MiB, or 1/16 of the file).
 */
#ifndef MSPROBE_COLLECTOR_H
#define MSPROBE_COLLECTOR_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MSPROBE_API __attribute__((visibility("default")))
#else
#define MSPROBE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum msprobe_status {
  MSPROBE_OK = 0,
  MSPROBE_SKIP = 1,              /* nothing to do here: not recording, filtered out, a child process */
  MSPROBE_INVALID = -1,          /* an argument or a key of the configuration is wrong */
  MSPROBE_INVALID_SCOPE = -2,    /* `scope` or `list` of the configuration is wrong */
  MSPROBE_INVALID_FILE = -3,     /* a path that cannot be used, or a file that cannot be read */
  MSPROBE_FAILED = -4            /* recording failed: disk, memory; the caller's work can go on */
} msprobe_status;

/* Why the last call of this thread that returned something negative did so; "" if none has. Valid until the next
 * call of this thread. */
MSPROBE_API const char* msprobe_last_error(void);
/* "1.2.3" */
MSPROBE_API const char* msprobe_version(void);

/* ------------------------------------------------------------------ sessions */

typedef struct msprobe_session msprobe_session;

/* Settings that take precedence over the configuration file, and facts that only the program knows. NULL: unset. */
typedef struct msprobe_overrides {
  size_t struct_size;
  const char* task;
  const char* dump_path;
  const char* level;
  const char* step;        /* JSON, as the file's key: [0, "2-4"] */
  const char* framework;   /* of the file's header: "pytorch" (default), "mindspore", "mindtorch", ... */
  const char* file_suffix; /* of tensor files: "pt" (default) or "npy" (bfloat16 and float8 widened to float32) */
  int dumps_kernels;       /* level L2: the program can have the runtime of an NPU dump its kernels */
} msprobe_overrides;

/* Reads config.json (path), or its text (if path is NULL), or neither (all defaults). Creates no file. */
MSPROBE_API msprobe_status msprobe_session_open(const char* config_path, const char* config_text,
                                                const msprobe_overrides* overrides, msprobe_session** session);
/* Writes what is open and frees the session, of which no builder may be left. NULL is allowed. */
MSPROBE_API msprobe_status msprobe_session_close(msprobe_session* session);

typedef enum msprobe_task {
  MSPROBE_TASK_STATISTICS, MSPROBE_TASK_TENSOR, MSPROBE_TASK_STRUCTURE, MSPROBE_TASK_OVERFLOW_CHECK,
  MSPROBE_TASK_FREE_BENCHMARK, /* calls are made again by the front end, with perturbed inputs: no dump.json */
  MSPROBE_TASK_GRAD_PROBE, /* msprobe_probe_gradient() alone: no dump.json */
  MSPROBE_TASK_ACC_CHECK,  /* calls are judged by the front end as they are made: no dump.json, no folders */
  MSPROBE_TASK_EXCEPTION_DUMP /* level L2 of MindSpore */
} msprobe_task;
typedef enum msprobe_level {
  MSPROBE_LEVEL_L0, MSPROBE_LEVEL_L1, MSPROBE_LEVEL_MIX, MSPROBE_LEVEL_DEBUG,
  MSPROBE_LEVEL_L2 /* kernels, which the runtime of an NPU dumps: no dump.json, no folders */
} msprobe_level;

typedef struct msprobe_info {
  size_t struct_size;
  msprobe_task task;
  msprobe_level level;
  int records_modules;  /* level L0 or mix */
  int records_apis;     /* level L1 or mix; L2 of PyTorch */
  int enabled;          /* 0: dump_enable is false, or the runtime alone dumps */
  int reloads;          /* the file is watched: dump_enable stands in it */
  int wants_bytes;      /* checksums, cropped tensors or tensor files are wanted: a caller that cannot make them of a
                           tensor on a device (device.h) must copy it to the host */
  int async_dump;
  uint64_t step;        /* current step */
  int64_t rank;         /* -1: unknown */
  int finished;         /* all steps asked for are recorded */
  uint64_t entries;     /* recorded so far, in all steps */
  uint64_t steps;       /* of which something was recorded */
  int links_tensors;    /* tensors that have a file already are not written again: give their owners, small ones' too */
  int wants_files;      /* tensor files are wanted, or the bytes decide whether they are */
  int takes_later;      /* bytes may come with msprobe_fill_tensor(): no decision waits for them */
} msprobe_info;
/* The settings and the state of a session. */
MSPROBE_API msprobe_status msprobe_session_info(msprobe_session* session, msprobe_info* info);
/* A key of the configuration after defaults and overrides, as JSON ("null" if absent). Keys of the task's section are reached
 * as "section.key" with the literal word section: "section.slice". "warnings" is a list of texts: values that were corrected,
 * and keys without effect. "unmatched" is an object: names of scope and list that no event had so far, and names that events
 * had meanwhile. "kept" is an object: the number of entries that are in the files, and of steps, without those that lost all
 * their entries. "lost" is an object: the numbers of recorded entries and files that could not be written, no_steps that could
 * not be begun (`steps` does not count them), and the first reason. Valid until this thread's next call with this session. */
MSPROBE_API const char* msprobe_session_setting(msprobe_session* session, const char* key);
/* Not 0 while events are recorded: to be read before each event, without a call. Lives as long as the session. */
MSPROBE_API const volatile int* msprobe_session_running(msprobe_session* session);

/* How likely a deviation in an operation, `my_rms_norm`, is to matter: "core" or "low". For `risk_level`; takes precedence over
 * the table of operations. */
MSPROBE_API msprobe_status msprobe_set_risk(msprobe_session* session, const char* operation, const char* risk);

/* A rank that becomes known later renames the folder proc<pid> of this step to rank<R>. */
MSPROBE_API msprobe_status msprobe_set_rank(msprobe_session* session, int64_t rank);

typedef enum msprobe_decision {
  MSPROBE_RECORDING,   /* events are recorded from now on */
  MSPROBE_NOT_NOW,     /* this step, this rank or dump_enable says no; also level debug, which needs no start */
  MSPROBE_ALL_DONE     /* past the last step asked for; first_time is 1 the first time only */
} msprobe_decision;
/* Begins to record, if the configuration asks for this step and rank; `decision` says so. `first_time` may be NULL. */
MSPROBE_API msprobe_status msprobe_start(msprobe_session* session, msprobe_decision* decision, int* first_time);
/* Forward events end; backward events of what was recorded still are recorded until msprobe_step(). Writes. */
MSPROBE_API msprobe_status msprobe_stop(msprobe_session* session);
/* Writes, then begins the next step: all counters restart. */
MSPROBE_API msprobe_status msprobe_step(msprobe_session* session);
/* The counter of steps goes on from `step`. */
MSPROBE_API msprobe_status msprobe_set_init_step(msprobe_session* session, uint64_t step);
/* From the next msprobe_start() or msprobe_save_begin() on, entries go to another folder. Call it while nothing is recorded.
 * Steps and counters continue. If a folder comes again within the step, its files continue, too. */
MSPROBE_API msprobe_status msprobe_set_dump_path(msprobe_session* session, const char* path);
/* Writes, then all counters restart in the same step: what is recorded into the same folder replaces what is there. */
MSPROBE_API msprobe_status msprobe_restart_step(msprobe_session* session);
/* Ends a step that was begun and in which nothing ran: its folder goes, and its number comes again. One that has entries
 * stays. */
MSPROBE_API msprobe_status msprobe_drop_step(msprobe_session* session);
/* Between start and stop: suspends (0) and resumes (1) recording of forward events. */
MSPROBE_API msprobe_status msprobe_set_recording(msprobe_session* session, int on);
/* For inference on batches: while the configuration names a request_id, every tensor is cut to [begin, end) along
 * its first axis, these being the tokens of that request in this step. begin < 0: the request is not in this step,
 * which then is not recorded. Before msprobe_start(). */
MSPROBE_API msprobe_status msprobe_set_tokens(msprobe_session* session, int64_t begin, int64_t end);
/* Writes the JSON files with all that was recorded so far. */
MSPROBE_API msprobe_status msprobe_flush(msprobe_session* session);
/* Looks at the configuration file again, at most every 0.5 s (3 s while dump_enable is false). `changed`: 1 if the
 * settings are other ones now (msprobe_session_info tells), else 0. A file that cannot be used disables recording
 * until it can, and returns MSPROBE_INVALID with changed = 1. */
MSPROBE_API msprobe_status msprobe_reload(msprobe_session* session, int* changed);
/* One block in dump_error_info.log of the step's folder: once for each `kind` and step. */
MSPROBE_API msprobe_status msprobe_log_error(msprobe_session* session, const char* kind, const char* text);

/* ------------------------------------------------------------------ events */

/* A number for a name, the same in every session of the process: "Functional.linear" of an API,
 * "Module.layers.0.Layer" of a module. */
MSPROBE_API msprobe_status msprobe_intern(const char* name, uint32_t* id);

typedef enum msprobe_kind { MSPROBE_KIND_API, MSPROBE_KIND_MODULE } msprobe_kind;

enum { /* msprobe_event.wants */
  MSPROBE_WANT_INPUT = 1,      /* input_args and input_kwargs of a forward, input of a backward */
  MSPROBE_WANT_OUTPUT = 2,
  MSPROBE_WANT_PARAMETERS = 4, /* of a module's forward */
  MSPROBE_WANT_BACKWARD = 8,   /* the backward will be recorded: hook it. Also where only the structure is */
  MSPROBE_WANT_STACK = 16,
  MSPROBE_WANT_TENSORS = 32,   /* bytes of tensors are needed in this event (a tensor file, a checksum, a cropped tensor) */
  MSPROBE_WANT_AGAIN = 64,     /* tasks free_benchmark, acc_check, level L2: the front end makes this call */
  MSPROBE_WANT_FILES = 128     /* the bytes must come to the host for it: the kernel of device.h is not enough */
};

/* One call of an API or a module, forward or backward. Plain data: copy and keep it as long as you like (a
 * backward hook keeps the forward's); it holds nothing alive. */
typedef struct msprobe_event {
  uint64_t entry;   /* of dump.json; 0: this event has none */
  uint64_t parent;  /* of construct.json */
  uint64_t step;    /* running number of the step, so that late events are told apart */
  uint32_t name;
  uint32_t number;  /* of the call, from 0 in each step */
  uint32_t kind;    /* msprobe_kind */
  uint32_t wants;
  uint32_t nested;  /* inside another API's call: nothing of it is recorded */
  uint32_t backward;
} msprobe_event;

/* The call begins: takes its number, its place in the structure and in the file. MSPROBE_SKIP with event->nested
 * set: inside another API. msprobe_leave() must follow whatever was returned (put it where a raised exception comes
 * by, too). Modules count as entered until they leave; APIs within one are its children. */
MSPROBE_API msprobe_status msprobe_enter(msprobe_session* session, msprobe_kind kind, uint32_t name,
                                         msprobe_event* event);
/* The call ends, by returning or by an exception: what it had entered and not left is left, too. */
MSPROBE_API msprobe_status msprobe_leave(msprobe_session* session, msprobe_event* event);

/* The backward of a call that was recorded. Parents come from the forward's. msprobe_leave() must follow. A forward
 * of an earlier step is recorded in this one, under its old number. */
MSPROBE_API msprobe_status msprobe_enter_backward(msprobe_session* session, const msprobe_event* forward,
                                                  msprobe_event* event);
/* A gradient that has been accumulated into parameter `parameter` of module `module`: an entry
 * <module>.parameters_grad.<k> of which k counts the accumulations of the parameter that came first. `expected`: how
 * many parameters of this module will come (0: unknown). The one tensor goes into the builder under the parameter's
 * name: a list of one. *builder is NULL with MSPROBE_SKIP. */
typedef struct msprobe_builder msprobe_builder;
MSPROBE_API msprobe_status msprobe_parameter_gradient(msprobe_session* session, uint32_t module,
                                                      const char* parameter, uint32_t expected,
                                                      msprobe_builder** builder);

/* Task grad_probe: a row of rank<R>/grad_summary_<step>.csv for the gradient of a parameter as it is when the optimizer
 * takes its step (R: 0 if the rank is unknown), and from grad_level L1 on the signs of its elements,
 * rank<R>/step<step>/<parameter>.npy, of booleans. msprobe_step() writes the table and begins the next one. MSPROBE_SKIP
 * if the configuration does not ask for this parameter, step or rank. */
struct msprobe_tensor;
MSPROBE_API msprobe_status msprobe_probe_gradient(msprobe_session* session, const char* parameter,
                                                  const struct msprobe_tensor* gradient);

/* Parents named by the caller for all APIs this thread enters outside of modules, until set back with NULL:
 * "optimizer", "clip_grad". Only at level mix. */
MSPROBE_API msprobe_status msprobe_set_pseudo_parent(msprobe_session* session, const char* name);
/* Describes the step besides its calls by a JSON object (UTF-8, `size` bytes), the member `training` of dump.json. It replaces
 * the object that an earlier call gave for this step. docs/formats.md has its members. MSPROBE_SKIP if no step is recorded, for
 * tasks other than statistics and tensor, and with the setting python_compatible. */
MSPROBE_API msprobe_status msprobe_describe_training(msprobe_session* session, const char* json, size_t size);
/* The running number of the micro batch, as pipelines have; values of construct.json become pairs. */
MSPROBE_API msprobe_status msprobe_set_micro_step(msprobe_session* session, uint32_t micro_step);

/* Call stacks. A stack is known by a key that the caller makes of it, e.g. a hash over code positions. Frames are
 * texts, innermost first. MSPROBE_SKIP from msprobe_use_stack: the key is new, define it first. */
MSPROBE_API msprobe_status msprobe_use_stack(msprobe_session* session, const msprobe_event* event, uint64_t key);
MSPROBE_API msprobe_status msprobe_define_stack(msprobe_session* session, uint64_t key, const char* const* frames,
                                                size_t count);

/* ------------------------------------------------------------------ what an event holds */

typedef enum msprobe_section {
  MSPROBE_INPUT,        /* forward: input_args, a list; backward: input */
  MSPROBE_KWARGS,       /* input_kwargs, an object */
  MSPROBE_OUTPUT,       /* output, a list */
  MSPROBE_PARAMETERS,   /* parameters, an object */
  MSPROBE_NAMED_OUTPUT, /* output, an object: of a call that returned a structure with named fields */
  MSPROBE_BUFFERS       /* buffers, an object: a module's tensors that are no parameters, as it is entered. Without files;
                           MSPROBE_SKIP but for its first call in a step, for tasks other than statistics and tensor,
                           and with the setting python_compatible */
} msprobe_section;

/* Begins a section of an event's entry. It becomes part of the entry with msprobe_builder_commit(), and takes the
 * place of an earlier one of its kind. */
MSPROBE_API msprobe_status msprobe_section_begin(msprobe_session* session, const msprobe_event* event,
                                                 msprobe_section section, msprobe_builder** builder);
/* An element of debug.json under `name`, independent of start and stop: "<name>.<count>.debug". With `gradient`, a
 * second one, "<name>_grad.<count>.debug", of the same shape whose leaves are null until msprobe_fill_gradient().
 * MSPROBE_SKIP if this step is not asked for or the level is not debug. */
MSPROBE_API msprobe_status msprobe_save_begin(msprobe_session* session, const char* name, int gradient,
                                              msprobe_builder** builder, uint64_t* gradient_entry);
/* Puts one tensor at a leaf of a gradient's entry. `path`: its keys joined by dots ("key2.2"), "" for the whole. */
MSPROBE_API msprobe_status msprobe_fill_gradient(msprobe_session* session, uint64_t gradient_entry, const char* path,
                                                 const struct msprobe_tensor* tensor);

/* Ends a builder; its handle is gone after either. */
MSPROBE_API msprobe_status msprobe_builder_commit(msprobe_builder* builder);
MSPROBE_API msprobe_status msprobe_builder_abort(msprobe_builder* builder);

/* Containers and leaves. `key` is NULL in a list, the key in an object. At most 396 levels: below, null. */
MSPROBE_API msprobe_status msprobe_open_list(msprobe_builder* builder, const char* key);
MSPROBE_API msprobe_status msprobe_open_object(msprobe_builder* builder, const char* key);
MSPROBE_API msprobe_status msprobe_close(msprobe_builder* builder);
MSPROBE_API msprobe_status msprobe_add_null(msprobe_builder* builder, const char* key);
/* {"type": type, "value": value} */
MSPROBE_API msprobe_status msprobe_add_bool(msprobe_builder* builder, const char* key, const char* type, int value);
MSPROBE_API msprobe_status msprobe_add_int(msprobe_builder* builder, const char* key, const char* type, int64_t value);
MSPROBE_API msprobe_status msprobe_add_double(msprobe_builder* builder, const char* key, const char* type,
                                              double value);
MSPROBE_API msprobe_status msprobe_add_text(msprobe_builder* builder, const char* key, const char* type,
                                            const char* value, size_t size);
/* Any other leaf, as JSON text (NaN and Infinity allowed): {"type":"torch.Size","value":[2,3]}. It is read and
 * written anew, so it cannot break the file: MSPROBE_INVALID. */
MSPROBE_API msprobe_status msprobe_add_json(msprobe_builder* builder, const char* key, const char* json, size_t size);

/* ------------------------------------------------------------------ tensors */

typedef enum msprobe_dtype {
  MSPROBE_FLOAT64, MSPROBE_FLOAT32, MSPROBE_FLOAT16, MSPROBE_BFLOAT16, MSPROBE_FLOAT8_E4M3FN, MSPROBE_FLOAT8_E5M2,
  MSPROBE_FLOAT8_E4M3FNUZ, MSPROBE_FLOAT8_E5M2FNUZ, MSPROBE_FLOAT8_E8M0FNU, MSPROBE_HIFLOAT8, MSPROBE_INT64,
  MSPROBE_INT32, MSPROBE_INT16, MSPROBE_INT8, MSPROBE_UINT64, MSPROBE_UINT32, MSPROBE_UINT16, MSPROBE_UINT8,
  MSPROBE_BOOL, MSPROBE_COMPLEX32, MSPROBE_COMPLEX64, MSPROBE_COMPLEX128, MSPROBE_QINT8, MSPROBE_QUINT8,
  MSPROBE_QINT32,
  MSPROBE_DTYPE_OTHER = 255 /* type and shape are recorded, values are not */
} msprobe_dtype;

typedef struct msprobe_dtype_info {
  const char* name;  /* PyTorch's without "torch.": "float32" */
  const char* numpy; /* "<f4"; "" where NumPy has no such type */
  uint32_t size;     /* bytes of one element */
} msprobe_dtype_info;
/* The name and size of a type, so that callers need no second table. MSPROBE_SKIP after the last type; the numbers of types
 * have no gaps. */
MSPROBE_API msprobe_status msprobe_get_dtype(uint32_t dtype, msprobe_dtype_info* info);

enum { /* msprobe_tensor.flags */
  MSPROBE_TENSOR_REQUIRES_GRAD = 1,
  MSPROBE_TENSOR_HAS_REQUIRES_GRAD = 2, /* write the field at all */
  MSPROBE_TENSOR_CONJ = 4,              /* the bytes are to be read as their complex conjugate */
  MSPROBE_TENSOR_NEG = 8,               /* the bytes are to be read with the other sign */
  MSPROBE_TENSOR_DEFERRED = 16,         /* numbers come later: statistics by msprobe_fill_statistics(); with
                                           MSPROBE_TENSOR_ON_DEVICE all of them by msprobe_gpu_measure() */
  MSPROBE_TENSOR_NO_FILE = 32,          /* never save this one */
  MSPROBE_TENSOR_UNCOUNTED = 64,        /* not all that changes the elements counts in `version` */
  MSPROBE_TENSOR_ON_DEVICE = 128,       /* `data` is an address on a device, which is not read here */
  MSPROBE_TENSOR_LATER = 256            /* all that the elements tell, and their file, come with msprobe_fill_tensor() */
};

/* Results of the statistics pass, in double. max and min are NaN if an element is NaN (as PyTorch), whole numbers
 * for integers; of complex numbers the modulus. */
typedef struct msprobe_statistics {
  size_t struct_size;
  double max, min, mean, norm;      /* norm: 2-norm, accumulated in double */
  int64_t integer_max, integer_min; /* exact, of integers (uint64: the same 64 bits) */
  uint64_t count, zero, nan, inf;
} msprobe_statistics;

typedef struct msprobe_tensor {
  size_t struct_size;
  const void* data;          /* first element, on the host unless `flags` say otherwise; NULL: no bytes at hand */
  const int64_t* shape;      /* ndim numbers */
  const int64_t* strides;    /* in elements, 0 and negative allowed; NULL: row-major */
  uint32_t ndim;             /* at most 64 */
  uint32_t dtype;            /* msprobe_dtype */
  uint32_t flags;
  const char* type;          /* NULL: "torch.Tensor", or "mindspore.Tensor" by the framework */
  const char* dtype_text;    /* NULL: "torch.float32" or "Float32" by dtype and framework */
  const char* extra;         /* JSON object whose members follow requires_grad (device_mesh, placements); or NULL */
  const msprobe_statistics* statistics; /* if the caller has them (of a device); or NULL */
  /* For results used again: elements at `data` are the same as long as `version` is and alive(owner) is not 0.
   * A file of theirs is used again only if their checksum, too, is the same.
   * The library calls release(owner) exactly once, from the thread of some later call, holding none of its locks
   * that alive or release could need. All NULL: nothing is kept. */
  uint64_t version;
  void* owner;
  int (*alive)(void* owner);
  void (*release)(void* owner);
  /* If the elements at `data` were copied from somewhere else, as from a device: where they are there. `version` and
   * `owner` are those of that place. NULL: `data` is the place. */
  const void* source;
} msprobe_tensor;

/* Fills data, shape, strides, ndim and dtype from a DLTensor (of DLPack's dlpack.h); the rest is set to 0. Shape and
 * strides are borrowed from it. MSPROBE_INVALID unless its memory is the host's and its type is one of the above. */
MSPROBE_API msprobe_status msprobe_tensor_from_dlpack(const void* dl_tensor, msprobe_tensor* tensor);

/* The tensor's record: type, dtype, shape, statistics or checksum as configured, data_name; its file is queued if
 * one is wanted (the bytes are copied before the call returns; it waits while too much is queued). `slot` (or NULL)
 * receives the handle of one of which something comes later, else 0. */
MSPROBE_API msprobe_status msprobe_add_tensor(msprobe_builder* builder, const char* key, const msprobe_tensor* tensor,
                                              uint64_t* slot);
/* The statistics of a tensor that was added with MSPROBE_TENSOR_DEFERRED. MSPROBE_SKIP: its step is over. */
MSPROBE_API msprobe_status msprobe_fill_statistics(msprobe_session* session, uint64_t slot,
                                                   const msprobe_statistics* statistics);
/* The elements of a tensor that was added with MSPROBE_TENSOR_LATER: on the host, of the same shape and type. Its owner is
 * not used (that of msprobe_add_tensor() is). Other threads may record meanwhile. MSPROBE_SKIP: its step is over. */
MSPROBE_API msprobe_status msprobe_fill_tensor(msprobe_session* session, uint64_t slot, const msprobe_tensor* tensor);
/* The entry stays open until released (or until the step ends): a section of it will be replaced, as the output of
 * an asynchronous communication. */
MSPROBE_API msprobe_status msprobe_hold(msprobe_session* session, const msprobe_event* event);
MSPROBE_API msprobe_status msprobe_release(msprobe_session* session, const msprobe_event* event);

/* ------------------------------------------------------------------ without a session */

/* The statistics of the elements, whatever the strides; the flags of the tensor hold. */
MSPROBE_API msprobe_status msprobe_compute_statistics(const msprobe_tensor* tensor, msprobe_statistics* statistics);
/* CRC-32 (zlib's) and XOR of the element bytes in row-major order. */
MSPROBE_API msprobe_status msprobe_compute_crc32(const msprobe_tensor* tensor, uint32_t* crc);
MSPROBE_API msprobe_status msprobe_compute_xor(const msprobe_tensor* tensor, uint64_t* value);
/* Writes one tensor as `.pt` or `.npy`, by the suffix of the path. */
MSPROBE_API msprobe_status msprobe_write_tensor(const char* path, const msprobe_tensor* tensor);

#ifdef __cplusplus
}
#endif
#endif
