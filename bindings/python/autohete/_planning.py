"""Plans for this machine, and predictions for others."""
import ctypes
import warnings

from . import _c
from ._library import InputError, c, check
from ._values import dtype as dtype_of
from ._values import optional_text, plain, rate, real, size, text, whole

INT_MOST = (1 << 31) - 1


class _Artefacts:
    """Model, graph, partition, device and profile of one question; freed together."""

    def __init__(self):
        self.made = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for free, pointer in reversed(self.made):
            free(pointer)

    def new(self, make, free, *arguments):
        pointer = ctypes.c_void_p()
        check(make(ctypes.byref(pointer), *arguments))
        self.made.append((free, pointer))
        return pointer

    def partition(self, model, batch, seq, dtype, clip, micro_batch):
        """Of one micro-batch, `batch` sequences when there is no other size."""
        part = batch if micro_batch is None else whole("micro_batch", micro_batch, 1)
        if batch % part:
            raise InputError("micro_batch: found %d, expected a divisor of the batch of %d" % (part, batch))
        pointer = self.new(c.ah_model_load, c.ah_model_free, text("model", model))
        longest = c.ah_model_get(pointer).contents.max_seq
        record = _c.ah_record_options(batch=part, seq=min(256, longest) if seq is None else whole("seq", seq, 1),
                                      compute=dtype_of("dtype", dtype))
        graph = self.new(c.ah_model_record, c.ah_graph_free, pointer, ctypes.byref(record))
        step = _c.ah_step_options(clips=real("clip", clip) > 0, micro_batches=batch // part)
        return self.new(c.ah_partition_new, c.ah_partition_free, graph, ctypes.byref(step))


def plan(model, *, batch=8, seq=None, dtype="fp32", device="auto", device_memory=None, host_memory=None, disk=None,
         disk_space=None, threads=0, host_threads=0, link=None, policy="autohete", plan="auto", clip=1.0,
         micro_batch=None, profile=None):
    """Profiles one block on the device (or loads the saved `profile`) and plans: struct ah_plan as a dictionary."""
    out = _c.ah_plan()
    budget = _c.ah_budget(size("device_memory", device_memory), size("host_memory", host_memory),
                          size("disk_space", disk_space))
    policy, plan = text("policy", policy), text("plan", plan)
    options = _c.ah_dev_options(threads=whole("threads", threads, 0, INT_MOST),
                                host_threads=whole("host_threads", host_threads, 0, INT_MOST),
                                link_bytes_per_s=rate("link", link), disk=optional_text("disk", disk))
    with _Artefacts() as made:
        partition = made.partition(model, whole("batch", batch, 1), seq, dtype, clip, micro_batch)
        if profile is not None:
            measured = made.new(c.ah_profile_load, c.ah_profile_free, text("profile", profile))
        else:
            opened = made.new(c.ah_dev_open, c.ah_dev_close, text("device", device), ctypes.byref(options))
            measured = made.new(c.ah_profile_measure, c.ah_profile_free, None, partition, opened, None)
        if plan == b"auto":
            check(c.ah_plan_search(ctypes.byref(out), partition, measured, ctypes.byref(budget), policy, None))
        else:
            check(c.ah_plan_parse(ctypes.byref(out), plan, partition, measured, ctypes.byref(budget), policy))
    return plain(out)


def simulate_policy(model, hardware, *, policy="autohete", batch=8, seq=None, dtype="bf16", device_memory=None,
                    host_memory=None, ranks=1, optimizer=None, clip=1.0, micro_batch=None):
    """What a policy makes of a model on a machine one need not own: struct ah_evaluation as a dictionary. `batch` is
    that of all ranks; memory not given is the machine's."""
    out, info = _c.ah_evaluation(), _c.ah_hardware_info()
    batch, ranks = whole("batch", batch, 1), whole("ranks", ranks, 1, INT_MOST)
    policy = text("policy", policy)
    estimate = _c.ah_estimate_options(world_size=ranks, optimizer=optional_text("optimizer", optimizer))
    if batch % ranks:
        raise InputError("batch: found %d, expected a multiple of %d ranks" % (batch, ranks))
    device_bytes, host_bytes = size("device_memory", device_memory), size("host_memory", host_memory)
    with _Artefacts() as made:
        machine = made.new(c.ah_hardware_load, c.ah_hardware_free, text("hardware", hardware))
        c.ah_hardware_get(ctypes.byref(info), machine)
        budget = _c.ah_budget(device_bytes or info.device_bytes, host_bytes or info.host_bytes // ranks)
        partition = made.partition(model, batch // ranks, seq, dtype, clip, micro_batch)
        estimated = made.new(c.ah_profile_estimate, c.ah_profile_free, partition, machine, ctypes.byref(estimate))
        check(c.ah_plan_evaluate(ctypes.byref(out), partition, estimated, ctypes.byref(budget), policy, None))
    return plain(out)


def evaluate(*arguments, **options):
    """The former name of simulate_policy(): what measures a model on data is eval()."""
    warnings.warn("autohete.evaluate() is now autohete.simulate_policy(); autohete.eval() measures a model on data",
                  FutureWarning, stacklevel=2)
    return simulate_policy(*arguments, **options)


def simulate(model, hardware, *, policies=None, **options):
    """simulate_policy() of each policy, all that there are unless given (a list, or text like "autohete,resident"): a
    list in their order."""
    if isinstance(policies, str):
        policies = policies.split(",")
    return [simulate_policy(model, hardware, policy=name, **options) for name in policies or _policies()]


def _policies():
    names, found = c.ah_policy_names(), []
    while names[len(found)]:
        found.append(names[len(found)].decode())
    return found
