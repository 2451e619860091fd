/* Aglow's C interface: load a model, bind memory to its inputs and outputs, run it.
 *
 * Functions that may fail return a status; aglow_error_text() then says what was wrong, for the calling thread. No
 * function prints, exits or lets an exception through. Any number of threads may run one model at once, each with a
 * request of its own, or one session; what is bound to the model itself is one thread's at a time. Link with the CMake
 * package: find_package(aglow), aglow::aglow. */
#ifndef AGLOW_AGLOW_H
#define AGLOW_AGLOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The same numbers as the program's exit codes. */
typedef enum aglow_status {
  AGLOW_OK = 0,
  AGLOW_USAGE = 1,            /* wrong arguments, or tensors that do not fit the model */
  AGLOW_BAD_MODEL = 2,        /* the model is malformed */
  AGLOW_NOT_SUPPORTED = 3,    /* the model is valid, but needs something that is not supported */
  AGLOW_OUT_OF_RESOURCES = 4, /* more memory than there is or is allowed; more runs at once than may wait */
  AGLOW_DEVICE = 6,
  AGLOW_INTERNAL = 7, /* a fault in Aglow itself */
  AGLOW_FILE = 8,     /* a file cannot be read */
  AGLOW_INTERRUPTED = 130
} aglow_status;

/* The type of an element; the numbers are those of ONNX. Kinds narrower than a byte take one byte an element. */
typedef enum aglow_kind {
  AGLOW_FLOAT32 = 1,
  AGLOW_UINT8 = 2,
  AGLOW_INT8 = 3,
  AGLOW_UINT16 = 4,
  AGLOW_INT16 = 5,
  AGLOW_INT32 = 6,
  AGLOW_INT64 = 7,
  AGLOW_STRING = 8, /* of sessions and labels: elements are const char*, up to a zero */
  AGLOW_BOOL = 9,
  AGLOW_FLOAT16 = 10,
  AGLOW_FLOAT64 = 11,
  AGLOW_UINT32 = 12,
  AGLOW_UINT64 = 13,
  AGLOW_BFLOAT16 = 16,
  AGLOW_FLOAT8E4M3FN = 17,
  AGLOW_FLOAT8E4M3FNUZ = 18,
  AGLOW_FLOAT8E5M2 = 19,
  AGLOW_FLOAT8E5M2FNUZ = 20,
  AGLOW_UINT4 = 21,
  AGLOW_INT4 = 22,
  AGLOW_FLOAT4E2M1 = 23,
  AGLOW_FLOAT8E8M0 = 24,
  AGLOW_UINT2 = 25,
  AGLOW_INT2 = 26
} aglow_kind;

/* What went wrong in the last call of this thread that failed; "" before any did. Lives until the next failure. */
const char* aglow_error_text(void);
const char* aglow_version(void);

/* ---- options: how to compile. Strings and arrays are copied. ---- */

typedef struct aglow_options aglow_options;

aglow_options* aglow_options_new(void); /* null when there is no memory */
void aglow_options_free(aglow_options* options);

/* "cpu", machine code for this processor, "interpreter", the reference, or "opencl", a device:
 * "opencl:PLATFORM/DEVICE", by numbers or parts of names. With "@64M" a device uses no more of its memory. By default
 * the fastest that the library was built with, which is cpu wherever LLVM was there. */
aglow_status aglow_options_set_backend(aglow_options* options, const char* name);
/* At most this many, up to 1024; 0, the default, means one per processor. Outputs do not depend on it. */
aglow_status aglow_options_set_threads(aglow_options* options, int threads);
/* Runs of one model or session that go side by side, up to 1024; 0, the default, means two per processor. Each has
 * memory of its own for intermediate results, which is allocated when it is first needed, and no more of them than the
 * memory limit allows; code and weights are there once. */
aglow_status aglow_options_set_contexts(aglow_options* options, int contexts);
/* Callers that may wait, in order of arrival, while as many runs are under way; 1024 by default. One more is refused
 * with AGLOW_OUT_OF_RESOURCES. */
aglow_status aglow_options_set_queue(aglow_options* options, int callers);
/* Refuses models that need more bytes; 0, the default, means no limit. */
aglow_status aglow_options_set_memory_limit(aglow_options* options, int64_t bytes);
/* The folder where compiled models are kept for the next time; "" is the user's own, "off", the default, none. */
aglow_status aglow_options_set_cache(aglow_options* options, const char* folder);
/* The size of a symbolic dimension. */
aglow_status aglow_options_set_dim(aglow_options* options, const char* name, int64_t size);
/* The shape of an input. */
aglow_status aglow_options_set_shape(aglow_options* options, const char* input, const int64_t* dims, size_t rank);
/* The value of an input that decides on shapes. It becomes part of the program, which then has no such input. */
aglow_status aglow_options_set_value(aglow_options* options, const char* input, aglow_kind kind, const int64_t* dims,
                                     size_t rank, const void* data);

/* Computes in integers of 8 bits where a profile has ranges: a file that `aglow profile` wrote for the model.
 * Calibration and schema are named as on the command line; keep_float holds names of nodes and operators with commas
 * between. Null means the default for each of them, and for the profile floats. */
aglow_status aglow_options_set_int8(aglow_options* options, const char* profile, const char* calibration,
                                    const char* schema, const char* keep_float);

/* Computes with less, without a profile: "bf16", "int8-weights" or "int4-weights", as --precision on the command line;
 * "float", the default, as the model has it. */
aglow_status aglow_options_set_precision(aglow_options* options, const char* precision, const char* keep_float);

/* Whether models that depart from the standard are refused; by default they are accepted where the meaning is plain. */
aglow_status aglow_options_set_strict(aglow_options* options, int on);
/* Measures which tiles of products a device is quickest with, for so many seconds at most; 0, the default: its model
 * decides. What was found is kept in the cache. */
aglow_status aglow_options_set_tune(aglow_options* options, double seconds);
/* Whether a device computes f64 as two f32 each, with 48 of their 53 bits and the range of f32: also one that has no
 * f64. 0, the default: as it can itself, and where it cannot, a model that computes with f64 is refused. */
aglow_status aglow_options_set_f64_pairs(aglow_options* options, int on);
/* Called with what was accepted, once for each departure of a model, by the thread that meets it. The text lives until
 * the function returns. Null, the default: none. */
typedef void (*aglow_warning)(const char* text, void* context);
aglow_status aglow_options_set_warning(aglow_options* options, aglow_warning function, void* context);

/* Asked from time to time by runs, each by its own thread; where it gives another number than 0, the run ends with
 * AGLOW_INTERRUPTED, and touches nothing any more that is bound. Devices ask between batches of kernels, the
 * interpreter between instructions; machine code runs to its end. Null, the default: none. */
typedef int (*aglow_stop)(void* context);
aglow_status aglow_options_set_stop(aglow_options* options, aglow_stop function, void* context);

/* ---- models ---- */

typedef struct aglow_model aglow_model;

/* Reads and compiles an ONNX file, or a text form by its ending. Options may be null. */
aglow_status aglow_load(const char* path, const aglow_options* options, aglow_model** model);
/* The same for an ONNX file in memory, without external data. The bytes have to live as long as the model. */
aglow_status aglow_load_memory(const void* bytes, size_t size, const aglow_options* options, aglow_model** model);
void aglow_free(aglow_model* model); /* null is fine */

/* A text form may hold several functions over the same weights and state. What follows (inputs, outputs, bindings,
 * runs) is that of the function that is selected; a loaded model has its only one selected, or the one named main, or
 * none yet. What was bound for a function stays while others are selected. */
size_t aglow_num_functions(const aglow_model* model);
const char* aglow_function_name(const aglow_model* model, size_t index); /* null for a number that there is not */
aglow_status aglow_select(aglow_model* model, const char* function);

typedef struct aglow_tensor_info {
  const char* name;
  aglow_kind kind;
  size_t rank;
  const int64_t* dims;
  size_t bytes;
} aglow_tensor_info;

/* Inputs and outputs in the model's order; null for a number that there is not. The items of a sequence stand for
 * themselves as NAME[0], NAME[1], … What is returned lives as long as the model. */
size_t aglow_num_inputs(const aglow_model* model);
size_t aglow_num_outputs(const aglow_model* model);
const aglow_tensor_info* aglow_input(const aglow_model* model, size_t index);
const aglow_tensor_info* aglow_output(const aglow_model* model, size_t index);
/* A program holds numbers alone. Of an output that the model declares as a sequence of maps it gives a row for each
 * map; the keys are those of the columns. Of an output of strings it gives where each stands among the words. Null
 * where the output is neither. */
const struct aglow_tensor* aglow_output_keys(const aglow_model* model, size_t index);
const struct aglow_tensor* aglow_output_words(const aglow_model* model, size_t index);
/* The number of a name, or -1. */
int aglow_find_input(const aglow_model* model, const char* name);
int aglow_find_output(const aglow_model* model, const char* name);

typedef struct aglow_model_info {
  const char* target;    /* the machine it is compiled for */
  int threads;           /* used at most; fewer than were asked for where the system gives no more */
  int64_t arena_bytes;   /* for intermediate results */
  int64_t weights_bytes; /* for constants */
} aglow_model_info;
const aglow_model_info* aglow_info(const aglow_model* model);

/* ---- running ---- */

/* Says where the bytes of an input lie, and where those of an output go. Nothing is copied: every run reads and writes
 * there, until something else is bound. `bytes` is the size of the tensor, row by row without gaps; the address is a
 * multiple of the size of an element. An output overlaps no other memory that is bound. */
aglow_status aglow_bind_input(aglow_model* model, size_t index, const void* data, size_t bytes);
aglow_status aglow_bind_output(aglow_model* model, size_t index, void* data, size_t bytes);
/* One run, with all inputs and outputs bound. What is bound to the model, and which function is selected, is for one
 * thread at a time. */
aglow_status aglow_run(aglow_model* model);

/* ---- requests: runs of one model side by side ----
 *
 * A request has bindings of its own. One thread at a time uses it, different requests of a model different threads, and
 * their runs go side by side (aglow_options_set_contexts). Runs that change the model's state go one after the other.
 */
typedef struct aglow_request aglow_request;

/* For a function by name, or, where that is null, for the one that is selected. The model has to outlive it. */
aglow_status aglow_request_new(aglow_model* model, const char* function, aglow_request** request);
void aglow_request_free(aglow_request* request); /* null is fine */
/* As aglow_bind_input, aglow_bind_output and aglow_run. */
aglow_status aglow_request_bind_input(aglow_request* request, size_t index, const void* data, size_t bytes);
aglow_status aglow_request_bind_output(aglow_request* request, size_t index, void* data, size_t bytes);
aglow_status aglow_request_run(aglow_request* request);

/* ---- state: what functions of a model leave for the next run ----
 *
 * A text form may declare state, which begins with a value, and which its functions read and change. It lives as long
 * as the model. A run that fails may leave it half changed. Any thread may read, set and reset it: what it meets is
 * the state between two runs. */
size_t aglow_num_states(const aglow_model* model);
const aglow_tensor_info* aglow_state(const aglow_model* model, size_t index); /* null for a number that there is not */
int aglow_find_state(const aglow_model* model, const char* name);             /* the number of a name, or -1 */
/* Copies the bytes of a state out of the model, and into it. */
aglow_status aglow_get_state(const aglow_model* model, size_t index, void* data, size_t bytes);
aglow_status aglow_set_state(aglow_model* model, size_t index, const void* data, size_t bytes);
/* All of it begins again. */
aglow_status aglow_reset_state(aglow_model* model);

/* ---- sessions: a model for whatever sizes come ----
 *
 * Where a model above is compiled once for one set of sizes, a session compiles each new size when it comes, and keeps
 * it. It also runs models whose shapes depend on values. Runs of several threads go side by side. */

/* Sizes of a symbolic dimension to compile for when the session is opened. */
aglow_status aglow_options_prepare(aglow_options* options, const char* name, const int64_t* sizes, size_t count);
/* Whether inputs are filled up with zeros to the next prepared size, and outputs cut back. */
aglow_status aglow_options_set_padding(aglow_options* options, int on);

typedef struct aglow_session aglow_session;

aglow_status aglow_session_open(const char* path, const aglow_options* options, aglow_session** session);
/* The bytes have to live as long as the session. */
aglow_status aglow_session_open_memory(const void* bytes, size_t size, const aglow_options* options,
                                       aglow_session** session);
void aglow_session_close(aglow_session* session); /* null is fine; its results stay */

typedef struct aglow_tensor {
  const char* name;
  aglow_kind kind;
  size_t rank;
  const int64_t* dims;
  const void* data; /* row by row without gaps */
} aglow_tensor;

typedef struct aglow_results aglow_results;

/* Inputs by name, in any order; those with a default value may be left out. They are read until the run is over. A map
 * is two tensors with one axis: NAME.keys, integers or strings, and NAME.values. */
aglow_status aglow_session_run(aglow_session* session, const aglow_tensor* inputs, size_t count,
                               aglow_results** results);
/* Outputs in the model's order; null for a number that there is not. They live until the results are freed. The items
 * of a sequence of tensors are NAME[0], NAME[1], … Maps are two tensors: NAME.keys, and NAME.values with a value for
 * each key, or, of a sequence of maps, a row of values for each map. */
size_t aglow_results_count(const aglow_results* results);
const aglow_tensor* aglow_results_get(const aglow_results* results, size_t index);
void aglow_results_free(aglow_results* results); /* null is fine */

/* ---- hosts: many networks on many devices ----
 *
 * A host keeps any number of networks on its devices, and answers each request that it accepts exactly once.
 * docs/runtime.md says how devices are written. Any thread may call any of these. */
typedef struct aglow_host aglow_host;

/* Devices as in "cpu:0-3,memory=2G cpu:4-7", with spaces between; null or "": one of all cores. */
aglow_status aglow_host_new(const char* devices, aglow_host** host);
/* Requests that wait are cancelled, those that run are waited for. Not from a reply. Null is fine. */
void aglow_host_free(aglow_host* host);

/* Zeros and nulls are the defaults. */
typedef struct aglow_network_options {
  const char* version;        /* "1" */
  int keep_current;           /* requests that name no version stay with the one they had */
  int replicas;               /* 1 */
  size_t queue;               /* requests under way or waiting, 1024 */
  int64_t batch_rows;         /* requests are joined row by row up to so many; 1: they are not */
  int64_t batch_delay_us;     /* that one may wait for others */
  const int64_t* batch_sizes; /* rows are filled up to the next of these */
  size_t batch_size_count;
  const char* devices;   /* names, with spaces between; any */
  int parts;             /* cut into so many; 0: whole, or cut where it does not fit */
  const char* criterion; /* of the cut: "memory", "time", "communication", "pipeline", "support" */
  int most_replicas;     /* more of them while requests wait, on devices that have none yet */
} aglow_network_options;

/* Reads, compiles and loads a model file, and returns when it is ready. Where not all of it fits, nothing stays. */
aglow_status aglow_host_add(aglow_host* host, const char* name, const char* path, const aglow_options* options,
                            const aglow_network_options* network);
/* Without a version (null) all of them. Requests that were accepted are still answered. */
aglow_status aglow_host_remove(aglow_host* host, const char* name, const char* version);
aglow_status aglow_host_set_current(aglow_host* host, const char* name, const char* version);

typedef struct aglow_host_request {
  const char* network;
  const char* version; /* null: the current one */
  const aglow_tensor* inputs;
  size_t count;
  int priority;       /* more goes first */
  int64_t timeout_us; /* 0: none */
} aglow_host_request;

/* Waits for the answer. */
aglow_status aglow_host_run(aglow_host* host, const aglow_host_request* request, aglow_results** results);
/* Called once for a request that was accepted, from a thread of the host: with results, which are the caller's to free,
 * or with a status and words that live until it returns. It must be short. */
typedef void (*aglow_reply)(aglow_status status, const char* error, aglow_results* results, void* context);
/* Returns at once. What the inputs point at has to stay until the reply. A status other than AGLOW_OK: it was refused,
 * and there will be no reply. */
aglow_status aglow_host_submit(aglow_host* host, const aglow_host_request* request, aglow_reply reply, void* context,
                               uint64_t* id);
/* 1: the reply says that it was cancelled; 0: it was sent already. */
int aglow_host_cancel(aglow_host* host, uint64_t id);
/* Refuses what comes from now on, and waits until all that was accepted is answered. */
void aglow_host_drain(aglow_host* host);

typedef struct aglow_network_statistics {
  uint64_t accepted, refused, succeeded, failed, cancelled, expired, retried, runs;
  size_t waiting, running, replicas;
  double p50_us, p90_us, p99_us; /* from acceptance to answer */
} aglow_network_statistics;
aglow_status aglow_host_network_statistics(aglow_host* host, const char* name, const char* version,
                                           aglow_network_statistics* statistics);

typedef struct aglow_device_statistics {
  const char* name; /* lives as long as the host */
  int healthy;
  int64_t memory_limit, memory_used;
  size_t waiting, running;
  uint64_t runs, failures;
  double utilisation; /* part of the time of all its lanes */
} aglow_device_statistics;
size_t aglow_host_device_count(const aglow_host* host);
/* By number, in the order of aglow_host_new. */
aglow_status aglow_host_device_statistics(aglow_host* host, size_t device, aglow_device_statistics* statistics);

#ifdef __cplusplus
}
#endif

#endif
