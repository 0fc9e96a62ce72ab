/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics and checksums of tensors on a CUDA or HIP device, by one kernel that is compiled at run time.
 * Functions return a status of collector.h; the reason of a failure is msprobe_last_error(). */
#ifndef MSPROBE_DEVICE_H
#define MSPROBE_DEVICE_H

#include "msprobe/collector.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msprobe_gpu msprobe_gpu;

/* Compiles the kernel for the device with that number, and hands the code to take(to, code, size) during the call.
 * MSPROBE_FAILED if a library is missing, or does not do it. It needs no memory of the device, but for its context.
 * CUDA: `architecture` is NULL, `driver` libcuda.so.1 if it is NULL, `compiler` NVRTC.
 * HIP: `architecture` as hipDeviceProp_t.gcnArchName has it ("gfx90a:sramecc+:xnack-"), `driver` the HIP
 * runtime (NULL: libamdhip64.so), `compiler` hipRTC. */
MSPROBE_API msprobe_status msprobe_gpu_compile(const char* driver, const char* compiler,
                                               const char* architecture, int ordinal,
                                               void (*take)(void* to, const void* code, size_t size), void* to);
/* Loads the code of msprobe_gpu_compile(), by which the other arguments were given, too; and compares its results for
 * 40 tensors with the host's. MSPROBE_FAILED if anything of that fails. Must not be called while a graph is captured. */
MSPROBE_API msprobe_status msprobe_gpu_open(const char* driver, const char* architecture, const void* code,
                                            size_t size, int ordinal, msprobe_gpu** gpu);
/* Waits for what was measured; results that were not fetched are lost. */
MSPROBE_API msprobe_status msprobe_gpu_close(msprobe_gpu* gpu);
/* Whether the kernel can make what the session records of this tensor, whose `data` is on the device:
 * MSPROBE_OK, and it may be added with MSPROBE_TENSOR_DEFERRED and MSPROBE_TENSOR_ON_DEVICE; or MSPROBE_SKIP.
 * Files are not its business. */
MSPROBE_API msprobe_status msprobe_gpu_takes(msprobe_session* session, const msprobe_tensor* tensor);
/* Measures `count` tensors on a stream, in order with what is there, without waiting for it. slots[i] is what
 * msprobe_add_tensor() gave for one on this device, whose memory must be there until this returns, and for
 * what was put on the stream. MSPROBE_FAILED: the device is not used any more, and what was not fetched stays
 * without numbers. */
MSPROBE_API msprobe_status msprobe_gpu_measure(msprobe_gpu* gpu, msprobe_session* session, void* stream,
                                               const uint64_t* slots, size_t count);
/* Waits for what was measured, and gives the session all results. */
MSPROBE_API msprobe_status msprobe_gpu_drain(msprobe_gpu* gpu, msprobe_session* session);

#ifdef __cplusplus
}
#endif
#endif
