/* A libcuda.so.1 of our own: the functions of CUDA's driver API that fixtures/studies/gpu/device.py calls, with its ABI. A stand-in, no emulator:
 * it does not run the kernel's code. It does what that code should do (each thread squares its own element) on the elements it is asked to
 * fill, and its one stream has a clock: a kernel lasts LAUNCH_US + times * waves * NS nanoseconds, and waiting for an event waits so long.
 * Steered by environment variables:
 *
 * FAKE_CUDA_GPUS     how many GPUs there are (default 1)
 * FAKE_CUDA_FAIL     name of a call that answers CUDA_ERROR_ILLEGAL_ADDRESS
 * FAKE_CUDA_FAIL_AT  only from this call of it on
 * FAKE_CUDA_LAZY     number of an element that no thread squares
 * FAKE_CUDA_STRAY    if set, a thread writes behind the last element
 * FAKE_CUDA_MEMORY   bytes that there are (default 1 GiB)
 * FAKE_CUDA_MAJOR    first number of the GPUs' compute capability (default 9)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201,
       INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };
enum { SMS = 132, WARP = 32, THREADS_PER_SM = 2048 };
static const double LAUNCH_US = 3.0, NS = 2.0;

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct event { double at_s; int recorded; } *CUevent;

static int initialised, current;
static double stream_free_s; /* when all that was launched is done */
static struct { float *at; size_t bytes; } memory;
static int module, function, stream, context;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

/* Each call is counted and may be one that fails. */
static CUresult called(const char *name) {
    static int failing;
    const char *fail = getenv("FAKE_CUDA_FAIL");
    if (fail && !strcmp(fail, name) && ++failing >= setting("FAKE_CUDA_FAIL_AT", 1)) return ILLEGAL_ADDRESS;
    if (!initialised && strcmp(name, "cuInit")) return NOT_INITIALIZED;
    return SUCCESS;
}
#define CALLED(name) do { CUresult failed = called(name); if (failed) return failed; } while (0)

CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : error == OUT_OF_MEMORY ? "out of memory" : "said by the fake";
    return SUCCESS;
}

CUresult cuInit(unsigned flags) {
    CALLED("cuInit");
    initialised = 1;
    return flags ? INVALID_VALUE : SUCCESS;
}

/* NVRTC looks for it, and does without. */
CUresult cuGetExportTable(const void **table, const void *id) {
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}

CUresult cuDriverGetVersion(int *version) {
    *version = 13020;
    return SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CALLED("cuDeviceGet");
    *device = ordinal;
    return ordinal < setting("FAKE_CUDA_GPUS", 1) ? SUCCESS : INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device) {
    CALLED("cuDeviceGetName");
    snprintf(name, (size_t)room, "Stand-in GPU %d", device);
    return SUCCESS;
}

/* GPU-00000000-0000-0000-0000-000000000000: as NVML's stand-in (tests/telemetry/fake_nvml.c) calls its first. */
CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device) {
    CALLED("cuDeviceGetUuid");
    memset(uuid, 0, 16);
    uuid[15] = (unsigned char)device;
    return SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    CALLED("cuDeviceGetAttribute");
    switch (attribute) {
        case 10: *value = WARP; break;
        case 16: *value = SMS; break;
        case 39: *value = THREADS_PER_SM; break;
        case 75: *value = (int)setting("FAKE_CUDA_MAJOR", 9); break;
        case 76: *value = 0; break;
        default: return INVALID_VALUE;
    }
    return device ? INVALID_DEVICE : SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(void **found, CUdevice device) {
    CALLED("cuDevicePrimaryCtxRetain");
    *found = &context;
    return device ? INVALID_DEVICE : SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    CALLED("cuDevicePrimaryCtxRelease");
    return device ? INVALID_DEVICE : SUCCESS;
}

CUresult cuCtxSetCurrent(void *given) {
    CALLED("cuCtxSetCurrent");
    current = given == &context;
    return SUCCESS;
}

CUresult cuStreamCreate(void **made, unsigned flags) {
    CALLED("cuStreamCreate");
    *made = &stream;
    return !current ? INVALID_CONTEXT : flags == 1 ? SUCCESS : INVALID_VALUE;
}

/* Machine code is an ELF file. */
CUresult cuModuleLoadData(void **made, const void *image) {
    CALLED("cuModuleLoadData");
    *made = &module;
    return memcmp(image, "\177ELF", 4) ? INVALID_IMAGE : SUCCESS;
}

CUresult cuModuleGetFunction(void **found, void *in, const char *name) {
    CALLED("cuModuleGetFunction");
    *found = &function;
    return in != &module ? INVALID_HANDLE : strcmp(name, "square") ? NOT_FOUND : SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *made, size_t bytes) {
    CALLED("cuMemAlloc");
    if (!current) return INVALID_CONTEXT;
    if (bytes > (size_t)setting("FAKE_CUDA_MEMORY", 1L << 30) || !(memory.at = malloc(bytes))) return OUT_OF_MEMORY;
    memory.bytes = bytes;
    *made = (CUdeviceptr)memory.at;
    return SUCCESS;
}

static int inside(CUdeviceptr at, size_t bytes) {
    return at >= (CUdeviceptr)memory.at && at + bytes <= (CUdeviceptr)memory.at + memory.bytes;
}

CUresult cuMemsetD32_v2(CUdeviceptr at, unsigned bits, size_t count) {
    CALLED("cuMemsetD32");
    if (!inside(at, 4 * count)) return ILLEGAL_ADDRESS;
    for (size_t n = 0; n < count; n++) memcpy((float *)at + n, &bits, 4);
    return SUCCESS;
}

CUresult cuCtxSynchronize(void) {
    CALLED("cuCtxSynchronize");
    return current ? SUCCESS : INVALID_CONTEXT;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    CALLED("cuMemcpyDtoH");
    if (!inside(from, bytes)) return ILLEGAL_ADDRESS;
    if (now_s() < stream_free_s) return NOT_READY; /* the kernels' stream is not waited for: what is read may be half done */
    memcpy(to, (void *)from, bytes);
    return SUCCESS;
}

CUresult cuLaunchKernel(void *kernel, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                        void *on, void **arguments, void **extra) {
    CUdeviceptr at;
    unsigned long long times;
    size_t count = (size_t)blocks * threads, resident = THREADS_PER_SM / threads, waves;
    double start_s = now_s();
    CALLED("cuLaunchKernel");
    if (kernel != &function || on != &stream) return INVALID_HANDLE;
    if (y != 1 || z != 1 || ty != 1 || tz != 1 || shared || extra || !threads || threads > 1024) return INVALID_VALUE;
    at = *(CUdeviceptr *)arguments[0];
    times = *(unsigned long long *)arguments[1];
    if (!inside(at, 4 * count)) return ILLEGAL_ADDRESS;
    for (size_t n = 0; n < count; n++) {
        float *value = (float *)at + n;
        if ((long)n == setting("FAKE_CUDA_LAZY", -1)) continue;
        for (unsigned long long k = 0; k < times && *value != 0.0f && *value != 1.0f; k++) *value *= *value;
    }
    if (getenv("FAKE_CUDA_STRAY")) ((float *)at)[count] = 0.0f;
    waves = (blocks + SMS * resident - 1) / (SMS * resident);
    if (stream_free_s < start_s) stream_free_s = start_s;
    stream_free_s += 1e-6 * LAUNCH_US + 1e-9 * NS * (double)times * (double)waves;
    return SUCCESS;
}

CUresult cuEventCreate(CUevent *made, unsigned flags) {
    CALLED("cuEventCreate");
    *made = calloc(1, sizeof **made);
    return flags == 1 ? SUCCESS : INVALID_VALUE; /* one that is waited for asleep, and has a time */
}

CUresult cuEventRecord(CUevent event, void *on) {
    CALLED("cuEventRecord");
    event->at_s = fmax(now_s(), stream_free_s);
    event->recorded = 1;
    return on == &stream ? SUCCESS : INVALID_HANDLE;
}

CUresult cuEventSynchronize(CUevent event) {
    double left_s = event->at_s - now_s();
    CALLED("cuEventSynchronize");
    if (left_s > 0) nanosleep(&(struct timespec){(time_t)left_s, (long)(1e9 * (left_s - (time_t)left_s))}, NULL);
    while (now_s() < event->at_s) nanosleep(&(struct timespec){0, 1000}, NULL);
    return SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end) {
    CALLED("cuEventElapsedTime");
    if (!start->recorded || !end->recorded) return INVALID_HANDLE;
    if (now_s() < end->at_s) return NOT_READY;
    *ms = (float)(1e3 * (end->at_s - start->at_s));
    return SUCCESS;
}

/* How the bindings find the functions: by plain names and the version of CUDA in which the one they mean was new. */
CUresult cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, int *status) {
    static const char *const newer[] = {"cuDeviceGetUuid", "cuDevicePrimaryCtxRelease", "cuMemAlloc", "cuMemsetD32", "cuMemcpyDtoH",
                                        "cuEventElapsedTime"};
    char full[80];
    (void)version, (void)flags;
    snprintf(full, sizeof full, "%s", name);
    for (size_t n = 0; n < sizeof newer / sizeof *newer; n++)
        if (!strcmp(name, newer[n])) snprintf(full, sizeof full, "%s_v2", name);
    Dl_info self;
    dladdr((void *)&cuGetProcAddress_v2, &self);
    void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *found = dlsym(library, full);
    if (status) *status = *found ? 0 : 1;
    return SUCCESS;
}
