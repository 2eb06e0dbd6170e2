/* A libnvidia-ml.so.1 of our own: the functions that nvidia-ml-py calls, with NVML's ABI, steered by environment variables.
 *
 * FAKE_NVML_GPUS         how many GPUs there are (default 1)
 * FAKE_NVML_INIT         what nvmlInitWithFlags returns (default 0); 9 is NVML_ERROR_DRIVER_NOT_LOADED
 * FAKE_NVML_UNSUPPORTED  sensors that answer NVML_ERROR_NOT_SUPPORTED, e.g. "power,energy"
 * FAKE_NVML_FLAKY        a sensor whose every second call answers NVML_ERROR_UNKNOWN
 * FAKE_NVML_LOSE         "1:5" loses GPU 1 at its 5th power reading; were it asked three times more, it would be back
 * FAKE_NVML_RESET_ENERGY the energy counter starts again at this reading of it
 * FAKE_NVML_HANG         power readings from this one on never return
 * FAKE_NVML_GPM          what the GPUs answer when asked for GPM (default 1); 0 is a GPU before Hopper
 * FAKE_NVML_GPM_MISSING  number of a GPM metric that this GPU does not have
 * FAKE_NVML_GPM_NAN      number of a GPM metric that comes out as no number
 * FAKE_NVML_GPM_IDLE     1: from here on the GPUs have nothing to do
 * FAKE_NVML_STATE        a file that has GPU 0's power limit (mW) and locked clocks (MHz; 0 is free): what is set outlives a process
 * FAKE_NVML_REFUSES      what cannot be set: "limit", "sm", "mem", or a value of one of these, e.g. "sm=1200"
 * FAKE_NVML_REASONS      the reasons of clocks that an old driver tells (default 4, the power cap); 2 is set by somebody
 *
 * Compiled with -DOLD_DRIVER it lacks what drivers before 535 lack, with -DNO_GPM what those before 520 do. Layouts as nvidia-ml-py 13
 * declares them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15,
       VERSION_MISMATCH = 25, UNKNOWN = 999 };

typedef int nvmlReturn_t;
typedef struct gpu { unsigned index, power_calls, energy_calls, flaky_calls; } *nvmlDevice_t;
typedef struct { unsigned gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { unsigned version; int sensorType; int temperature; } nvmlTemperature_v1_t;

static struct gpu gpus[8];
static int initialised;

static int setting(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static int names(const char *variable, const char *sensor) {
    const char *text = getenv(variable);
    return text && strstr(text, sensor) != NULL;
}

static nvmlReturn_t state(nvmlDevice_t gpu, const char *sensor) {
    int which, at;
    const char *lose = getenv("FAKE_NVML_LOSE");
    if (!initialised) return UNINITIALIZED;
    if (gpu < gpus || gpu >= gpus + 8) return INVALID_ARGUMENT;
    if (lose && sscanf(lose, "%d:%d", &which, &at) == 2 && (int)gpu->index == which
        && (int)gpu->power_calls >= at && (int)gpu->power_calls < at + 3) return GPU_IS_LOST;
    if (names("FAKE_NVML_UNSUPPORTED", sensor)) return NOT_SUPPORTED;
    if (names("FAKE_NVML_FLAKY", sensor) && gpu->flaky_calls++ % 2) return UNKNOWN;
    return SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    int answer = setting("FAKE_NVML_INIT", SUCCESS);
    (void)flags;
    initialised = answer == SUCCESS;
    return answer;
}

nvmlReturn_t nvmlShutdown(void) {
    if (!initialised) return UNINITIALIZED;
    initialised = 0;
    return SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t error) {
    (void)error;
    return "said by the fake library";
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    if (!initialised) return UNINITIALIZED;
    *count = (unsigned)setting("FAKE_NVML_GPUS", 1);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *gpu) {
    if (!initialised) return UNINITIALIZED;
    if ((int)index >= setting("FAKE_NVML_GPUS", 1)) return INVALID_ARGUMENT;
    *gpu = &gpus[index];
    (*gpu)->index = index;
    return state(*gpu, "handle");
}

static nvmlReturn_t text(char *to, unsigned room, const char *from) {
    if (strlen(from) + 1 > room) return INSUFFICIENT_SIZE;
    strcpy(to, from);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t gpu, char *to, unsigned room) {
    char uuid[48];
    snprintf(uuid, sizeof uuid, "GPU-00000000-0000-0000-0000-%012u", gpu->index);
    return text(to, room, uuid);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *gpu) {
    unsigned index;
    if (!initialised) return UNINITIALIZED;
    if (sscanf(uuid, "GPU-00000000-0000-0000-0000-%u", &index) != 1) return INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(index, gpu);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t gpu, char *to, unsigned room) {
    (void)gpu;
    return text(to, room, "Fake GPU");
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned room) { return text(to, room, "999.10.1"); }

/* Each GPU and each sensor has a number of its own, so that a column of the wrong one shows. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t gpu, nvmlUtilization_t *rates) {
    rates->gpu = 50 + gpu->index;
    rates->memory = 20 + gpu->index;
    return state(gpu, "utilisation");
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t gpu, nvmlMemory_t *memory) {
    *memory = (nvmlMemory_t){16ULL << 30, 12ULL << 30, 4ULL << 30};
    return state(gpu, "memory");
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t gpu, unsigned *milliwatts) {
    int hang = setting("FAKE_NVML_HANG", 0);
    gpu->power_calls++;
    while (hang && (int)gpu->power_calls >= hang) pause();
    *milliwatts = 61250 + gpu->index;
    return state(gpu, "power");
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t gpu, unsigned *milliwatts) {
    *milliwatts = 250000;
    return state(gpu, "limit");
}

/* 6 J more at each reading, since a driver that has been up for long: beyond 32 bits. */
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t gpu, unsigned long long *millijoules) {
    unsigned reset = (unsigned)setting("FAKE_NVML_RESET_ENERGY", 0);
    unsigned call = ++gpu->energy_calls;
    *millijoules = reset && call >= reset ? 6000ULL * (call - reset) : 5000000000000ULL + 6000ULL * call;
    return state(gpu, "energy");
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t gpu, int sensor, unsigned *celsius) {
    *celsius = 54;
    return sensor == 0 ? state(gpu, "temperature") : INVALID_ARGUMENT;
}

/* What can be set: power limit (mW), locked clocks of multiprocessors and memory (MHz). */
typedef struct { unsigned limit, sm, mem; } settings_t;

static settings_t set_to(void) {
    settings_t now = {250000, 0, 0};
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file) {
        if (fscanf(file, "%u %u %u", &now.limit, &now.sm, &now.mem) != 3) now = (settings_t){250000, 0, 0};
        fclose(file);
    }
    return now;
}

static nvmlReturn_t keep(nvmlDevice_t gpu, const char *what, unsigned value, settings_t now) {
    char one[32];
    const char *path = getenv("FAKE_NVML_STATE"), *refuses = getenv("FAKE_NVML_REFUSES");
    FILE *file;
    snprintf(one, sizeof one, "%s=%u", what, value);
    if (refuses && (strcmp(refuses, what) == 0 || strcmp(refuses, one) == 0)) return NO_PERMISSION;
    if (!path || !(file = fopen(path, "w"))) return NOT_SUPPORTED;
    fprintf(file, "%u %u %u\n", now.limit, now.sm, now.mem);
    fclose(file);
    return state(gpu, "settings");
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t gpu, unsigned *milliwatts) {
    *milliwatts = set_to().limit;
    return state(gpu, "limit");
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t gpu, unsigned *least, unsigned *most) {
    *least = 100000;
    *most = 300000;
    return state(gpu, "limit");
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t gpu, unsigned milliwatts) {
    settings_t now = set_to();
    if (milliwatts < 100000 || milliwatts > 300000) return INVALID_ARGUMENT;
    now.limit = milliwatts;
    return keep(gpu, "limit", milliwatts, now);
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t gpu, unsigned least, unsigned most) {
    settings_t now = set_to();
    if (least != most) return INVALID_ARGUMENT;
    now.sm = most;
    return keep(gpu, "sm", most, now);
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t gpu) {
    settings_t now = set_to();
    now.sm = 0;
    return keep(gpu, "sm", 0, now);
}

nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t gpu, unsigned least, unsigned most) {
    settings_t now = set_to();
    if (least != most) return INVALID_ARGUMENT;
    now.mem = most;
    return keep(gpu, "mem", most, now);
}

nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t gpu) {
    settings_t now = set_to();
    now.mem = 0;
    return keep(gpu, "mem", 0, now);
}

static nvmlReturn_t listed(unsigned *count, unsigned *to, const unsigned *from, unsigned there) {
    unsigned room = *count;
    *count = there;
    if (!to || room < there) return INSUFFICIENT_SIZE;
    memcpy(to, from, there * sizeof *from);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t gpu, unsigned *count, unsigned *to) {
    static const unsigned mhz[] = {9501, 5001};
    return names("FAKE_NVML_UNSUPPORTED", "clocks") ? state(gpu, "clocks") : listed(count, to, mhz, 2);
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t gpu, unsigned memory, unsigned *count, unsigned *to) {
    static const unsigned mhz[] = {1500, 1350, 1200, 1050};
    (void)gpu;
    return memory == 9501 || memory == 5001 ? listed(count, to, mhz, 4) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t gpu, int type, unsigned *mhz) {
    settings_t now = set_to();
    *mhz = type == 1 ? (now.sm ? now.sm : 1380) : type == 2 ? (now.mem ? now.mem : 877) : 0;
    return state(gpu, "clock");
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t gpu, unsigned long long *reasons) {
    *reasons = (unsigned long long)setting("FAKE_NVML_REASONS", 0x4); /* software power cap */
    return state(gpu, "throttle");
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t gpu, nvmlMemory_v2_t *memory) {
    if (memory->version != (sizeof *memory | 2u << 24)) return VERSION_MISMATCH;
    *memory = (nvmlMemory_v2_t){memory->version, 16ULL << 30, 1ULL << 30, 12ULL << 30, 3ULL << 30};
    return state(gpu, "memory");
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t gpu, nvmlTemperature_v1_t *reading) {
    if (reading->version != (sizeof *reading | 1u << 24) || reading->sensorType != 0) return INVALID_ARGUMENT;
    reading->temperature = 55;
    return state(gpu, "temperature");
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t gpu, unsigned long long *reasons) {
    *reasons = 0x1; /* idle */
    return state(gpu, "throttle");
}

typedef struct { unsigned fieldId, scopeId; long long timestamp, latency_us; int valueType; nvmlReturn_t nvmlReturn; unsigned long long value; } nvmlFieldValue_t;

/* The power of this moment, field 186, mW; an H200 has it, and it is not the mean that nvmlDeviceGetPowerUsage tells. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t gpu, int count, nvmlFieldValue_t *fields) {
    for (int i = 0; i < count; i++) {
        nvmlReturn_t answer = fields[i].fieldId == 186 ? state(gpu, "power") : NOT_SUPPORTED;
        fields[i].nvmlReturn = answer;
        fields[i].valueType = 1;
        fields[i].value = answer == SUCCESS ? 61500 + gpu->index : 0;
    }
    return SUCCESS;
}
#endif

#ifndef NO_GPM
/* Counters that go up with time: GPU i's graphics engine is busy 90 + i percent of it, and so on; a value is their rise over the time
 * between two samples, so samples in the wrong order, of two GPUs or too close to each other are seen. */
typedef struct { struct gpu *gpu; double at_ms, busy_ms; } *nvmlGpmSample_t;
typedef struct { unsigned metricId; nvmlReturn_t nvmlReturn; double value; const char *names[3]; } nvmlGpmMetric_t;
typedef struct { unsigned version, numMetrics; nvmlGpmSample_t sample1, sample2; nvmlGpmMetric_t metrics[]; } nvmlGpmMetricsGet_t;
typedef struct { unsigned version, isSupportedDevice; } nvmlGpmSupport_t;

static int allocated;

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t gpu, nvmlGpmSupport_t *support) {
    if (support->version != 1) return VERSION_MISMATCH;
    support->isSupportedDevice = (unsigned)setting("FAKE_NVML_GPM", 1);
    return state(gpu, "gpm");
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    *sample = calloc(1, sizeof **sample);
    allocated += *sample != NULL;
    return *sample ? SUCCESS : UNKNOWN;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    if (!sample) return INVALID_ARGUMENT;
    free(sample);
    allocated--;
    return SUCCESS;
}

/* No function of NVML: for tests. */
int fake_nvml_gpm_samples(void) { return allocated; }

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t gpu, nvmlGpmSample_t sample) {
    static double first_ms, busy_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sample->gpu = gpu;
    sample->at_ms = 1e3 * now.tv_sec + 1e-6 * now.tv_nsec;
    if (!first_ms) first_ms = sample->at_ms;
    if (!setting("FAKE_NVML_GPM_IDLE", 0)) busy_ms = sample->at_ms - first_ms;
    sample->busy_ms = busy_ms;
    return state(gpu, "counters");
}

static double busy_percent(unsigned metric, unsigned index) {
    switch (metric) {
        case 1: return 90.0 + index;
        case 2: return 45.5 + index;
        case 3: return 20.25 + index;
        case 5: return 0.0 + index;
        case 10: return 1.125 + index;
        default: return -1.0;
    }
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *asked) {
    double passed_ms, busy_ms;
    if (asked->version != 1) return VERSION_MISMATCH;
    if (!asked->sample1 || !asked->sample2 || !asked->sample1->gpu || asked->sample1->gpu != asked->sample2->gpu) return INVALID_ARGUMENT;
    passed_ms = asked->sample2->at_ms - asked->sample1->at_ms;
    busy_ms = asked->sample2->busy_ms - asked->sample1->busy_ms;
    for (unsigned i = 0; i < asked->numMetrics; i++) {
        nvmlGpmMetric_t *metric = &asked->metrics[i];
        double rate = busy_percent(metric->metricId, asked->sample1->gpu->index);
        int missing = rate < 0 || (int)metric->metricId == setting("FAKE_NVML_GPM_MISSING", 0);
        metric->nvmlReturn = missing ? NOT_SUPPORTED : SUCCESS;
        metric->value = (int)metric->metricId == setting("FAKE_NVML_GPM_NAN", 0) ? 0.0 / 0.0 : rate * (busy_ms / passed_ms);
        /* As on an H200 (580.159.04): within one refresh nothing is refused, SMs come out as 0 and the memory's bandwidth as no number. */
        if (passed_ms < 100.0) metric->value = metric->metricId == 10 ? 0.0 / 0.0 : 0.0;
    }
    return SUCCESS;
}
#endif
