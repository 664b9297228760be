"""Made by bindings/python/generate from include/autohete/*.h; not to be edited."""
from ctypes import *

AH_VERSION_MAJOR = 0
AH_VERSION_MINOR = 2
AH_VERSION_PATCH = 0
AH_NO_LIMIT = (1 << 63) - 1
AH_UNSET = -(1 << 63)
AH_OK = 0
AH_EINPUT = -1
AH_EBUDGET = -2
AH_ESTALE = -3
AH_ECORRUPT = -4
AH_ENOMEM = -5
AH_EIO = -6
AH_EDEVICE = -7
AH_ENUMERIC = -8
AH_EINTERNAL = -9
AH_ESTOP = -10
AH_EEND = -11
AH_F32 = 0
AH_BF16 = 1
AH_F16 = 2
AH_I32 = 3
AH_U8 = 4
AH_DTYPE_COUNT = 5
AH_MAX_RANK = 4
AH_INIT_ZEROS = 0
AH_INIT_ONES = 1
AH_INIT_NORMAL = 2
AH_INIT_UNIFORM = 3
AH_LANE_COMPUTE = 0
AH_LANE_H2D = 1
AH_LANE_D2H = 2
AH_LANE_HOST = 3
AH_LANE_COMM = 4
AH_LANE_DISK = 5
AH_LANE_COUNT = 6
AH_SWITCHES_INTS = 32
AH_MICRO_BATCH_WHOLE = 0
AH_MICRO_BATCH_AUTO = -1
AH_SESSION_MODEL = 0
AH_SESSION_PARTITION = 1
AH_SESSION_DEVICE = 2
AH_SESSION_PROFILE = 3
AH_SESSION_PLAN = 4
AH_TARGET_IGNORED = -100


class ah_chat_options(Structure):
    _fields_ = [
        ("conversation", c_char_p),
        ("length", c_size_t),
        ("name", c_char_p),
        ("add_generation_prompt", c_bool),
        ("date", c_char_p),
    ]


class ah_data_options(Structure):
    _fields_ = [
        ("model_path", c_char_p),
        ("inputs", POINTER(c_char_p)),
        ("input_count", c_size_t),
        ("format", c_char_p),
        ("out", c_char_p),
        ("seed", c_uint64),
        ("val_share", c_double),
        ("stop", POINTER(c_int)),
        ("eos", c_char_p),
    ]


class ah_data_result(Structure):
    _fields_ = [
        ("documents", c_int64),
        ("val_documents", c_int64),
        ("tokens", c_int64),
        ("val_tokens", c_int64),
        ("bytes_read", c_int64),
        ("bytes_written", c_int64),
        ("params", c_int64),
        ("vocab_size", c_int64),
        ("token_bits", c_int),
        ("tokenizer", c_char_p),
    ]


class ah_generate_options(Structure):
    _fields_ = [
        ("model_dir", c_char_p),
        ("prompt", c_char_p),
        ("tokens", c_int64),
        ("temperature", c_double),
        ("top_k", c_int),
        ("top_p", c_double),
        ("min_p", c_double),
        ("repetition_penalty", c_double),
        ("seed", c_uint64),
        ("device", c_char_p),
        ("threads", c_int),
        ("on_token", CFUNCTYPE(c_int, c_int, POINTER(c_char), c_size_t, c_void_p)),
        ("context", c_void_p),
        ("chat", c_bool),
        ("chat_template", c_char_p),
        ("adapter_dir", c_char_p),
    ]


class ah_talk_options(Structure):
    _fields_ = [
        ("generate", ah_generate_options),
        ("system", c_char_p),
        ("context_tokens", c_int64),
    ]


class ah_eval_options(Structure):
    _fields_ = [
        ("model_dir", c_char_p),
        ("data_path", c_char_p),
        ("batch", c_int64),
        ("seq", c_int64),
        ("device", c_char_p),
        ("threads", c_int),
        ("on_progress", CFUNCTYPE(c_int, c_int64, c_int64, c_void_p)),
        ("context", c_void_p),
        ("eos", c_char_p),
        ("chat_template", c_char_p),
        ("train_on", c_char_p),
        ("adapter_dir", c_char_p),
    ]


class ah_eval_result(Structure):
    _fields_ = [
        ("loss", c_double),
        ("perplexity", c_double),
        ("bits_per_byte", c_double),
        ("tokens", c_int64),
        ("bos", c_bool),
    ]


class ah_shape(Structure):
    _fields_ = [
        ("rank", c_int),
        ("dim", c_int64 * AH_MAX_RANK),
    ]


class ah_tensor(Structure):
    _fields_ = [
        ("id", c_int32),
    ]


class ah_attention_options(Structure):
    _fields_ = [
        ("window", c_int),
        ("by_head", c_bool),
        ("scale", c_float),
        ("cap", c_float),
        ("sinks", POINTER(ah_tensor)),
    ]


class ah_rotary_options(Structure):
    _fields_ = [
        ("by_head", c_bool),
        ("factor", c_float),
        ("low", c_float),
        ("high", c_float),
        ("original", c_int),
        ("ramp", c_bool),
        ("magnitude", c_float),
        ("stretches", POINTER(c_float)),
    ]


class ah_routes(Structure):
    _fields_ = [
        ("weights", ah_tensor),
        ("slots", ah_tensor),
        ("source", ah_tensor),
        ("ends", ah_tensor),
    ]


class ah_model_def(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("config", c_char_p),
        ("vocab_size", c_int64),
        ("max_seq", c_int64),
        ("layers", c_int),
        ("switch_seq", c_int64),
        ("dropout", c_double),
        ("dropout_key", c_char_p),
        ("record", CFUNCTYPE(c_int, c_void_p, c_int64, c_int64, c_void_p)),
        ("context", c_void_p),
    ]


class ah_tuning(Structure):
    _fields_ = [
        ("freeze", c_char_p),
        ("lora_rank", c_int),
        ("lora_alpha", c_double),
        ("lora_rslora", c_bool),
        ("lora_targets", c_char_p),
        ("frozen", c_char_p),
    ]


class ah_record_options(Structure):
    _fields_ = [
        ("batch", c_int64),
        ("seq", c_int64),
        ("compute", c_int),
        ("packed", c_bool),
        ("cache", c_int64),
        ("decodes", c_bool),
        ("tuning", ah_tuning),
    ]


class ah_step_options(Structure):
    _fields_ = [
        ("clips", c_bool),
        ("infers", c_bool),
        ("logits", c_bool),
        ("micro_batches", c_int),
        ("world_size", c_int),
        ("master", c_int),
        ("moments", c_int),
    ]


class ah_dev_options(Structure):
    _fields_ = [
        ("ordinal", c_int),
        ("threads", c_int),
        ("host_threads", c_int),
        ("link_bytes_per_s", c_int64),
        ("jitter_seed", c_uint64),
        ("disk", c_char_p),
    ]


class ah_device(Structure):
    _fields_ = [
        ("name", c_char * 32),
        ("model", c_char * 96),
        ("units", c_int),
        ("host_threads", c_int),
        ("memory_bytes", c_int64),
        ("free_bytes", c_int64),
        ("link", c_char * 32),
        ("h2d_bytes_per_s", c_int64),
        ("d2h_bytes_per_s", c_int64),
        ("why", c_char * 256),
    ]


class ah_profile_options(Structure):
    _fields_ = [
        ("cache", c_char_p),
        ("renew", c_bool),
        ("stop", POINTER(c_int)),
    ]


class ah_switches(Structure):
    _fields_ = [
        ("layers", c_int),
        ("world_size", c_int),
        ("frozen_blocks", c_int),
        ("checkpoint", c_int),
        ("offload_optimizer", c_int),
        ("offload_params", c_int),
        ("selective", c_int),
        ("staged", c_int),
        ("unsharded", c_int),
        ("offload_activations", c_int),
        ("embedding_on_host", c_int),
        ("head_on_host", c_int),
        ("share_embedding_head", c_int),
        ("chunks", c_int),
        ("buffers", c_int),
        ("out_of_order", c_int),
        ("prefetch_distance", c_int),
        ("shadows", c_int),
        ("passes", c_int),
        ("disk_blocks", c_int),
        ("disk_ahead", c_int),
        ("device_sums", c_int),
        ("reserved", c_int * 10),
    ]


class ah_plan(Structure):
    _fields_ = [
        ("switches", ah_switches),
        ("workspace_bytes", c_int64),
        ("device_peak_bytes", c_int64),
        ("host_peak_bytes", c_int64),
        ("step_ns", c_int64),
        ("bound_ns", c_int64),
        ("bound_lane_ns", c_int64),
        ("bound_cycle_ns", c_int64),
        ("bound_lane", c_int),
        ("resident_ns", c_int64),
        ("policy", c_char * 24),
        ("signature", c_uint64),
        ("embedding_frozen", c_bool),
        ("blocks_frozen", c_bool),
        ("head_frozen", c_bool),
        ("blocks_adapted", c_bool),
        ("disk_peak_bytes", c_int64),
        ("disk_read_bytes", c_int64),
        ("disk_written_bytes", c_int64),
        ("disk_endurance_bytes", c_int64),
    ]


class ah_budget(Structure):
    _fields_ = [
        ("device_bytes", c_int64),
        ("host_bytes", c_int64),
        ("disk_bytes", c_int64),
    ]


class ah_search_options(Structure):
    _fields_ = [
        ("warm_start", POINTER(ah_plan)),
        ("effort", c_int),
        ("fixed", c_char_p),
    ]


class ah_micro_batch_options(Structure):
    _fields_ = [
        ("model", c_void_p),
        ("batch", c_int64),
        ("seq", c_int64),
        ("compute", c_int),
        ("packed", c_bool),
        ("step", ah_step_options),
        ("tuning", ah_tuning),
        ("dev", c_void_p),
        ("hardware", c_void_p),
        ("budget", ah_budget),
        ("plan", c_char_p),
        ("policy", c_char_p),
        ("effort", c_int),
        ("profile", ah_profile_options),
        ("disk", c_bool),
    ]


class ah_micro_batch(Structure):
    _fields_ = [
        ("size", c_int64),
        ("graph", c_void_p),
        ("partition", c_void_p),
        ("profile", c_void_p),
        ("profile_kept_s", c_int64),
        ("plan", ah_plan),
    ]


class ah_hardware_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("description", c_char_p),
        ("devices", c_int),
        ("device_bytes", c_int64),
        ("host_bytes", c_int64),
        ("peak_flops_per_s", c_double),
    ]


class ah_estimate_options(Structure):
    _fields_ = [
        ("world_size", c_int),
        ("optimizer", c_char_p),
        ("disk", c_char_p),
    ]


class ah_hardware_facts(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("date", c_char_p),
        ("device_bytes", c_int64),
        ("host_bytes", c_int64),
        ("cores", c_int),
    ]


class ah_evaluation(Structure):
    _fields_ = [
        ("policy", c_char * 24),
        ("fits", c_bool),
        ("reason", c_char * 160),
        ("over_bytes", c_int64),
        ("plan", ah_plan),
        ("tflops_model", c_double),
        ("tflops_hardware", c_double),
        ("tokens_per_s", c_double),
        ("lane_busy", c_double * AH_LANE_COUNT),
    ]


class ah_ranks(Structure):
    _fields_ = [
        ("rank", c_int),
        ("world_size", c_int),
        ("neighbours", c_int),
    ]


class ah_session_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("model", c_void_p),
        ("model_path", c_char_p),
        ("batch", c_int64),
        ("seq", c_int64),
        ("micro_batch", c_int64),
        ("fixed_micro_batch", c_bool),
        ("clip", c_double),
        ("pack", c_bool),
        ("dtype", c_char_p),
        ("device", c_char_p),
        ("dev", ah_dev_options),
        ("hardware", c_char_p),
        ("hardware_ranks", c_int),
        ("optimizer", c_char_p),
        ("budget", ah_budget),
        ("plan", c_char_p),
        ("policy", c_char_p),
        ("profile_path", c_char_p),
        ("profile", ah_profile_options),
        ("warm_start", POINTER(ah_plan)),
        ("effort", c_int),
        ("master", c_char_p),
        ("moments", c_char_p),
        ("strict", c_bool),
        ("tuning", ah_tuning),
    ]


class ah_session_info(Structure):
    _fields_ = [
        ("dtype", c_char_p),
        ("seq", c_int64),
        ("rank_batch", c_int64),
        ("micro_batch", c_int64),
        ("micro_batches", c_int),
        ("micro_batch_chosen", c_bool),
        ("rank", c_int),
        ("world_size", c_int),
        ("budget", ah_budget),
        ("has_device", c_bool),
        ("device", ah_device),
        ("hardware", ah_hardware_info),
        ("profile_kept_s", c_int64),
    ]


class ah_advice(Structure):
    _fields_ = [
        ("change", c_char * 96),
        ("tokens_per_s", c_double),
    ]


class ah_step(Structure):
    _fields_ = [
        ("step", c_int64),
        ("steps", c_int64),
        ("loss", c_double),
        ("grad_norm", c_double),
        ("clip_factor", c_double),
        ("lr", c_double),
        ("tokens_per_s", c_double),
        ("eta_s", c_double),
        ("lane_busy", c_double * AH_LANE_COUNT),
        ("val_loss", c_double),
        ("learned_per_s", c_double),
        ("reserved", c_double * 7),
    ]


class ah_train_summary(Structure):
    _fields_ = [
        ("model", c_char_p),
        ("layers", c_int),
        ("text", c_bool),
        ("held_out", c_bool),
        ("params", c_int64),
        ("vocab_size", c_int64),
        ("tokens", c_int64),
        ("train_tokens", c_int64),
        ("val_tokens", c_int64),
        ("batch", c_int64),
        ("seq", c_int64),
        ("first_step", c_int64),
        ("steps", c_int64),
        ("epochs", c_double),
        ("micro_batch", c_int64),
        ("micro_batches", c_int64),
        ("profile_kept_s", c_int64),
        ("profile_given", c_bool),
        ("trained", c_int64),
        ("padding", c_double),
        ("reserved", c_int64 * 6),
    ]


class ah_batch(Structure):
    _fields_ = [
        ("ids", POINTER(c_int32)),
        ("targets", POINTER(c_int32)),
        ("positions", POINTER(c_int32)),
    ]


class ah_train_source(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("format", c_char_p),
        ("weight", c_double),
        ("share", c_double),
        ("tokens", c_int64),
        ("epoch_samples", c_int64),
        ("samples", c_int64),
        ("epochs", c_double),
        ("reserved", c_int64 * 8),
    ]


class ah_train_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("model_path", c_char_p),
        ("model", c_void_p),
        ("no_dropout", c_bool),
        ("init", c_char_p),
        ("data_path", c_char_p),
        ("pack", c_bool),
        ("data_format", c_char_p),
        ("device", c_char_p),
        ("dev", ah_dev_options),
        ("budget", ah_budget),
        ("batch", c_int64),
        ("seq", c_int64),
        ("dtype", c_char_p),
        ("save_dtype", c_char_p),
        ("micro_batch", c_int64),
        ("steps", c_int64),
        ("lr_steps", c_int64),
        ("seed", c_uint64),
        ("lr", c_double),
        ("min_lr_ratio", c_double),
        ("warmup_steps", c_int64),
        ("schedule", c_char_p),
        ("clip", c_double),
        ("log", c_char_p),
        ("nonfinite", c_char_p),
        ("beta1", c_double),
        ("beta2", c_double),
        ("eps", c_double),
        ("weight_decay", c_double),
        ("plan", c_char_p),
        ("policy", c_char_p),
        ("effort", c_int),
        ("profile_path", c_char_p),
        ("profile", ah_profile_options),
        ("out_dir", c_char_p),
        ("resume_dir", c_char_p),
        ("like_dir", c_char_p),
        ("save_every", c_int64),
        ("save_seconds", c_double),
        ("keep", c_int64),
        ("shard_bytes", c_int64),
        ("val_every", c_int64),
        ("val_batches", c_int64),
        ("on_note", CFUNCTYPE(None, c_char_p, c_void_p)),
        ("context", c_void_p),
        ("stop", POINTER(c_int)),
        ("own_batches", c_bool),
        ("on_fault", CFUNCTYPE(None, c_char_p, c_void_p)),
        ("epochs", c_double),
        ("eos", c_char_p),
        ("chat_template", c_char_p),
        ("train_on", c_char_p),
        ("master", c_char_p),
        ("moments", c_char_p),
        ("strict", c_bool),
        ("tuning", ah_tuning),
        ("adapter_dir", c_char_p),
        ("convert_states", c_bool),
        ("base_name", c_char_p),
    ]


class ah_train_result(Structure):
    _fields_ = [
        ("steps_done", c_int64),
        ("stopped", c_bool),
        ("saved", c_bool),
        ("final_loss", c_double),
        ("val_loss", c_double),
        ("first_loss", c_double),
        ("last_loss", c_double),
        ("uniform_loss", c_double),
        ("profile_kept_s", c_int64),
        ("tokens_per_s", c_double),
        ("device_peak_bytes_predicted", c_int64),
        ("device_peak_bytes_used", c_int64),
        ("host_peak_bytes_predicted", c_int64),
        ("host_peak_bytes_used", c_int64),
        ("device", c_char * 32),
        ("dtype", c_char_p),
        ("micro_batch", c_int64),
        ("clip", c_double),
        ("clipped_steps", c_int64),
        ("skipped_steps", c_int64),
        ("updates_redone", c_int64),
        ("step_ns_predicted", c_int64),
        ("step_ns_median", c_int64),
        ("steps_timed", c_int64),
        ("plan", ah_plan),
        ("val_step", c_int64),
        ("learned", c_double),
        ("reserved", c_int64 * 6),
    ]


# name: (result, arguments)
FUNCTIONS = {
    "ah_version": (c_char_p, []),
    "ah_error": (c_char_p, []),
    "ah_status_name": (c_char_p, [c_int]),
    "ah_status_is_input": (c_bool, [c_int]),
    "ah_text_character": (c_size_t, [POINTER(c_bool), POINTER(c_char), c_size_t]),
    "ah_text_plain": (c_char_p, [c_char_p]),
    "ah_output_check": (c_int, [c_char_p, POINTER(c_char_p), c_size_t]),
    "ah_size_parse": (c_int, [POINTER(c_int64), c_char_p]),
    "ah_rate_parse": (c_int, [POINTER(c_int64), c_char_p]),
    "ah_size_format": (c_char_p, [c_char_p, c_size_t, c_int64]),
    "ah_count_format": (c_char_p, [c_char_p, c_size_t, c_int64]),
    "ah_chat_open": (c_int, [POINTER(c_void_p), c_char_p, c_char_p]),
    "ah_chat_open_adapted": (c_int, [POINTER(c_void_p), c_char_p, c_char_p, c_char_p]),
    "ah_chat_close": (None, [c_void_p]),
    "ah_chat_render": (c_int, [POINTER(c_char_p), POINTER(c_size_t), c_void_p, POINTER(ah_chat_options)]),
    "ah_chat_mask": (c_int, [POINTER(c_char_p), POINTER(c_size_t), c_void_p, POINTER(ah_chat_options), c_char_p]),
    "ah_data_options_init": (None, [POINTER(ah_data_options)]),
    "ah_data_prepare": (c_int, [POINTER(ah_data_result), POINTER(ah_data_options)]),
    "ah_export_gguf": (c_int, [c_char_p, c_char_p, c_char_p]),
    "ah_export_gguf_noted": (c_int, [POINTER(c_char_p), c_char_p, c_char_p, c_char_p]),
    "ah_export_adapter": (c_int, [POINTER(c_char_p), c_char_p, c_char_p, c_char_p, c_char_p]),
    "ah_merge": (c_int, [c_char_p, c_char_p, c_char_p, c_char_p]),
    "ah_merge_noted": (c_int, [POINTER(c_char_p), c_char_p, c_char_p, c_char_p, c_char_p]),
    "ah_tokenizer_open": (c_int, [POINTER(c_void_p), c_char_p]),
    "ah_tokenizer_note": (c_int, [POINTER(c_char_p), c_char_p]),
    "ah_adapter_note": (c_int, [POINTER(c_char_p), c_char_p, c_char_p]),
    "ah_tokenizer_close": (None, [c_void_p]),
    "ah_tokenizer_name": (c_char_p, [c_void_p]),
    "ah_tokenizer_vocab_size": (c_int32, [c_void_p]),
    "ah_tokenizer_encode": (c_int, [POINTER(POINTER(c_int32)), POINTER(c_int64), c_void_p, POINTER(c_char), c_size_t, c_bool]),
    "ah_tokenizer_decode": (c_int, [POINTER(c_char_p), POINTER(c_size_t), c_void_p, POINTER(c_int32), c_int64, c_bool]),
    "ah_tokenizer_token": (c_char_p, [c_void_p, c_int32]),
    "ah_generate": (c_int, [POINTER(ah_generate_options)]),
    "ah_talk_open": (c_int, [POINTER(c_void_p), POINTER(ah_talk_options)]),
    "ah_talk_say": (c_int, [c_void_p, c_char_p]),
    "ah_talk_close": (None, [c_void_p]),
    "ah_eval": (c_int, [POINTER(ah_eval_result), POINTER(ah_eval_options)]),
    "ah_eval_logits": (c_int, [c_char_p, POINTER(c_int32), c_int64, POINTER(ah_eval_options)]),
    "ah_dtype_parse": (c_int, [POINTER(c_int), c_char_p]),
    "ah_moments_parse": (c_int, [POINTER(c_int), c_char_p]),
    "ah_graph_new": (c_int, [POINTER(c_void_p), c_int]),
    "ah_graph_free": (None, [c_void_p]),
    "ah_graph_scope_push": (None, [c_void_p, c_char_p]),
    "ah_graph_scope_pop": (None, [c_void_p]),
    "ah_graph_tokens": (ah_tensor, [c_void_p, c_int64, c_int64]),
    "ah_graph_targets": (ah_tensor, [c_void_p, c_int64, c_int64]),
    "ah_graph_param": (ah_tensor, [c_void_p, c_char_p, ah_shape, c_int, c_float]),
    "ah_graph_param_rows": (ah_tensor, [c_void_p, ah_tensor, c_int64]),
    "ah_graph_embedding": (ah_tensor, [c_void_p, ah_tensor, ah_tensor]),
    "ah_graph_add_position": (ah_tensor, [c_void_p, ah_tensor, ah_tensor]),
    "ah_graph_add_position_from": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, c_int]),
    "ah_graph_layernorm": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, ah_tensor, c_float]),
    "ah_graph_rmsnorm": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, c_float]),
    "ah_graph_rmsnorm_offset": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, c_float, c_float]),
    "ah_graph_linear": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, ah_tensor, c_bool]),
    "ah_graph_attention": (ah_tensor, [c_void_p, ah_tensor, c_int, POINTER(ah_attention_options)]),
    "ah_graph_attention_qkv": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, ah_tensor, c_int, c_int, POINTER(ah_attention_options)]),
    "ah_graph_rotary": (ah_tensor, [c_void_p, ah_tensor, c_int, c_float, c_int, POINTER(ah_rotary_options)]),
    "ah_graph_gelu": (ah_tensor, [c_void_p, ah_tensor]),
    "ah_graph_gelu_erf": (ah_tensor, [c_void_p, ah_tensor]),
    "ah_graph_relu": (ah_tensor, [c_void_p, ah_tensor]),
    "ah_graph_silu_mul": (ah_tensor, [c_void_p, ah_tensor, ah_tensor]),
    "ah_graph_silu_mul_halves": (ah_tensor, [c_void_p, ah_tensor]),
    "ah_graph_swiglu_clamped": (ah_tensor, [c_void_p, ah_tensor, c_float, c_float]),
    "ah_graph_gelu_mul": (ah_tensor, [c_void_p, ah_tensor, ah_tensor]),
    "ah_graph_route": (ah_routes, [c_void_p, ah_tensor, c_int, c_bool]),
    "ah_graph_dispatch": (ah_tensor, [c_void_p, ah_tensor, POINTER(ah_routes)]),
    "ah_graph_grouped_linear": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, ah_tensor, POINTER(ah_routes)]),
    "ah_graph_shares": (ah_tensor, [c_void_p, ah_tensor, POINTER(ah_routes)]),
    "ah_graph_scale_rows": (ah_tensor, [c_void_p, ah_tensor, POINTER(ah_routes)]),
    "ah_graph_combine": (ah_tensor, [c_void_p, ah_tensor, POINTER(ah_routes)]),
    "ah_graph_gate_rows": (ah_tensor, [c_void_p, ah_tensor, ah_tensor]),
    "ah_graph_scale": (ah_tensor, [c_void_p, ah_tensor, c_float]),
    "ah_graph_add_inplace": (ah_tensor, [c_void_p, ah_tensor, ah_tensor]),
    "ah_graph_cross_entropy": (ah_tensor, [c_void_p, ah_tensor, ah_tensor]),
    "ah_graph_linear_cross_entropy": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, ah_tensor]),
    "ah_graph_linear_cross_entropy_capped": (ah_tensor, [c_void_p, ah_tensor, ah_tensor, ah_tensor, c_float]),
    "ah_graph_finish": (c_int, [c_void_p, ah_tensor]),
    "ah_graph_print": (c_int, [c_void_p, c_void_p]),
    "ah_model_load": (c_int, [POINTER(c_void_p), c_char_p]),
    "ah_bundled_models": (c_int, [POINTER(c_char_p), POINTER(c_int)]),
    "ah_bundled_models_free": (None, [POINTER(c_char_p), c_int]),
    "ah_model_new": (c_int, [POINTER(c_void_p), POINTER(ah_model_def)]),
    "ah_model_free": (None, [c_void_p]),
    "ah_model_record": (c_int, [POINTER(c_void_p), c_void_p, POINTER(ah_record_options)]),
    "ah_model_get": (POINTER(ah_model_def), [c_void_p]),
    "ah_model_note": (c_char_p, [c_void_p]),
    "ah_partition_new": (c_int, [POINTER(c_void_p), c_void_p, POINTER(ah_step_options)]),
    "ah_partition_free": (None, [c_void_p]),
    "ah_partition_params": (c_int64, [c_void_p]),
    "ah_partition_note": (c_char_p, [c_void_p]),
    "ah_partition_print": (c_int, [c_void_p, c_void_p]),
    "ah_partition_save": (c_int, [c_void_p, c_char_p]),
    "ah_lane_name": (c_char_p, [c_int]),
    "ah_dev_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(ah_dev_options)]),
    "ah_dev_close": (None, [c_void_p]),
    "ah_dev_get": (None, [POINTER(ah_device), c_void_p]),
    "ah_devices": (c_int, [POINTER(POINTER(ah_device)), POINTER(c_int)]),
    "ah_profile_measure": (c_int, [POINTER(c_void_p), POINTER(c_int64), c_void_p, c_void_p, POINTER(ah_profile_options)]),
    "ah_profile_load": (c_int, [POINTER(c_void_p), c_char_p]),
    "ah_profile_save": (c_int, [c_void_p, c_char_p]),
    "ah_profile_print": (c_int, [c_void_p, c_void_p]),
    "ah_profile_free": (None, [c_void_p]),
    "ah_plan_search": (c_int, [POINTER(ah_plan), c_void_p, c_void_p, POINTER(ah_budget), c_char_p, POINTER(ah_search_options)]),
    "ah_plan_parse": (c_int, [POINTER(ah_plan), c_char_p, c_void_p, c_void_p, POINTER(ah_budget), c_char_p]),
    "ah_plan_is_open": (c_bool, [c_char_p]),
    "ah_plan_check": (c_int, [c_char_p, c_int]),
    "ah_plan_save": (c_int, [POINTER(ah_plan), c_char_p]),
    "ah_plan_print": (c_int, [POINTER(ah_plan), POINTER(ah_budget), c_void_p]),
    "ah_plan_day_bytes": (c_int64, [POINTER(ah_plan), c_int64]),
    "ah_plan_wear": (c_char_p, [c_char_p, c_size_t, POINTER(ah_plan), c_int64]),
    "ah_plan_explain": (c_int, [POINTER(ah_plan), c_void_p, c_void_p, POINTER(ah_budget), c_void_p]),
    "ah_micro_batch_choose": (c_int, [POINTER(ah_micro_batch), POINTER(ah_micro_batch_options)]),
    "ah_step_fits": (c_int, [POINTER(c_bool), POINTER(ah_micro_batch_options), c_int64]),
    "ah_plan_json": (c_int, [POINTER(c_char_p), POINTER(ah_plan)]),
    "ah_plan_simulate": (c_int, [POINTER(c_void_p), POINTER(ah_plan), c_void_p, c_void_p, c_int]),
    "ah_timeline_free": (None, [c_void_p]),
    "ah_timeline_print": (c_int, [c_void_p, c_void_p]),
    "ah_timeline_save": (c_int, [c_void_p, c_char_p]),
    "ah_timeline_save_svg": (c_int, [c_void_p, c_void_p, c_int64, c_char_p]),
    "ah_hardware_load": (c_int, [POINTER(c_void_p), c_char_p]),
    "ah_hardware_free": (None, [c_void_p]),
    "ah_hardware_get": (None, [POINTER(ah_hardware_info), c_void_p]),
    "ah_hardware_print": (c_int, [c_void_p, c_void_p]),
    "ah_profile_estimate": (c_int, [POINTER(c_void_p), c_void_p, c_void_p, POINTER(ah_estimate_options)]),
    "ah_profile_save_hardware": (c_int, [c_void_p, c_void_p, POINTER(ah_hardware_facts), c_char_p]),
    "ah_profile_save_drive": (c_int, [c_void_p, POINTER(ah_hardware_facts), c_char_p]),
    "ah_plan_evaluate": (c_int, [POINTER(ah_evaluation), c_void_p, c_void_p, POINTER(ah_budget), c_char_p, POINTER(ah_search_options)]),
    "ah_policy_names": (POINTER(c_char_p), []),
    "ah_policy_description": (c_char_p, [c_char_p]),
    "ah_policy_uses": (c_bool, [c_char_p, c_char_p]),
    "ah_ranks_open": (c_int, [POINTER(ah_ranks)]),
    "ah_ranks_end": (c_int, [c_int]),
    "ah_ranks_together": (c_bool, []),
    "ah_ranks_close": (None, [c_int]),
    "ah_session_open": (c_int, [POINTER(c_void_p), POINTER(ah_session_options)]),
    "ah_session_close": (None, [c_void_p]),
    "ah_session_reach": (c_int, [c_void_p, c_int]),
    "ah_session_advise": (c_int, [POINTER(ah_advice), c_void_p, POINTER(ah_budget), c_char_p, c_bool]),
    "ah_session_get": (POINTER(ah_session_info), [c_void_p]),
    "ah_session_model": (c_void_p, [c_void_p]),
    "ah_session_graph": (c_void_p, [c_void_p]),
    "ah_session_partition": (c_void_p, [c_void_p]),
    "ah_session_profile": (c_void_p, [c_void_p]),
    "ah_session_plan": (POINTER(ah_plan), [c_void_p]),
    "ah_session_measured": (c_int, [POINTER(c_bool), c_void_p, c_int64, c_int64]),
    "ah_train_options_init": (None, [POINTER(ah_train_options), c_size_t]),
    "ah_trainer_open": (c_int, [POINTER(c_void_p), POINTER(ah_train_options)]),
    "ah_trainer_close": (None, [c_void_p]),
    "ah_trainer_step": (c_int, [c_void_p, POINTER(ah_step)]),
    "ah_trainer_begin": (c_int, [c_void_p, POINTER(ah_batch)]),
    "ah_trainer_wait": (c_int, [c_void_p, POINTER(ah_step)]),
    "ah_trainer_step_on": (c_int, [c_void_p, POINTER(ah_batch), POINTER(ah_step)]),
    "ah_trainer_save": (c_int, [c_void_p, c_char_p]),
    "ah_trainer_device": (None, [c_void_p, POINTER(ah_device)]),
    "ah_trainer_summary": (None, [c_void_p, POINTER(ah_train_summary)]),
    "ah_trainer_source": (c_int, [c_void_p, c_int, POINTER(ah_train_source)]),
    "ah_trainer_plan": (None, [c_void_p, POINTER(ah_plan), POINTER(ah_budget)]),
    "ah_trainer_timeline": (c_void_p, [c_void_p, c_bool]),
    "ah_trainer_result": (None, [c_void_p, POINTER(ah_train_result)]),
    "ah_train": (c_int, [POINTER(ah_train_result), POINTER(ah_train_options)]),
    "ah_checkpoint_model": (c_int, [POINTER(c_void_p), c_char_p]),
    "ah_report_save": (c_int, [c_char_p, c_char_p]),
}
