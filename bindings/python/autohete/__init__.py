"""AutoHete from Python: its C interface (autohete.c), a trainer and a few functions over it.

    import autohete
    with autohete.Trainer("models/gpt-quickstart.json", "text.txt", device_memory="48MiB", out_dir="out") as trainer:
        for step in trainer:
            print(step["step"], step["loss"])
    result = autohete.train(model="models/gpt-quickstart.json", data="text.txt", device_memory="48MiB", steps=200,
                            out_dir="out", on_step=lambda step: print(step["step"], step["loss"]))
    print(autohete.generate("out", prompt="In the beginning", tokens=100))

Nothing is computed here. The library is found by AUTOHETE_LIBRARY (a path), beside this package, or where the system
keeps libraries; its version must be that of this package. A failure raises Error with the library's one line."""
import ctypes
import os
import pathlib

from . import _c

__all__ = ["Error", "Trainer", "c", "evaluate", "generate", "plan", "simulate", "train", "version"]


class Error(Exception):
    """A failure of the library: `status` is its name, as "AH_EINPUT"."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def _open():
    name = "libautohete.so.%d" % _c.AH_VERSION_MAJOR
    beside = pathlib.Path(__file__).parent / name
    given = os.environ.get("AUTOHETE_LIBRARY")
    library = ctypes.CDLL(given or (str(beside) if beside.exists() else name))
    for function, (result, arguments) in _c.FUNCTIONS.items():
        found = getattr(library, function)
        found.restype, found.argtypes = result, arguments
    expected = "%d.%d.%d" % (_c.AH_VERSION_MAJOR, _c.AH_VERSION_MINOR, _c.AH_VERSION_PATCH)
    if library.ah_version().decode() != expected:
        raise ImportError("autohete: found library %s, expected %s" % (library.ah_version().decode(), expected))
    return library


c = _open()


def version():
    """The library's, as "0.1.0"."""
    return c.ah_version().decode()


# ---- values --------------------------------------------------------------------------------------------------------


def _check(status):
    if status != _c.AH_OK:
        raise Error(c.ah_status_name(status).decode(), c.ah_error().decode(errors="replace"))


def _bytes(size):
    """A number of bytes from one, or from text like "48MiB"; 0 for None."""
    if size is None or isinstance(size, int):
        return size or 0
    out = ctypes.c_int64()
    _check(c.ah_size_parse(ctypes.byref(out), size.encode()))
    return out.value


def _rate(rate):
    if rate is None or isinstance(rate, int):
        return rate or 0
    out = ctypes.c_int64()
    _check(c.ah_rate_parse(ctypes.byref(out), rate.encode()))
    return out.value


def _dtype(word):
    out = ctypes.c_int()
    _check(c.ah_dtype_parse(ctypes.byref(out), word.encode()))
    return out.value


def _text(value):
    return os.fspath(value).encode() if isinstance(value, os.PathLike) else value.encode()


def _plain(value):
    """A C value as Python has it: structs are dictionaries, arrays lists, text str."""
    if isinstance(value, ctypes.Structure):
        return {name: _plain(getattr(value, name)) for name, kind in value._fields_
                if name != "reserved" and not issubclass(kind, (ctypes.c_void_p, ctypes._CFuncPtr))}
    if isinstance(value, ctypes.Array):
        return [_plain(each) for each in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _fill(struct, options):
    """Sets members by name, those of what is trained among them; TypeError for one that is not there."""
    kinds = dict(struct._fields_)
    tuning = dict(_c.ah_tuning._fields_) if "tuning" in kinds else {}
    _set(struct.tuning if tuning else None, tuning, {name: options[name] for name in options if name in tuning})
    _set(struct, kinds, {name: options[name] for name in options if name not in tuning})


def _set(struct, kinds, options):
    for name, value in options.items():
        if name not in kinds or issubclass(kinds[name], (ctypes.Structure, ctypes._CFuncPtr)):
            raise TypeError("found option %r, expected one of %s" % (name, ", ".join(sorted(kinds))))
        if value is not None:
            setattr(struct, name, _text(value) if kinds[name] is ctypes.c_char_p else value)


class _Calls:
    """Python functions as C callbacks. What one raises ends the call, and is raised again behind it."""

    def __init__(self):
        self.raised = None
        self.kept = []

    def add(self, struct, name, function, convert):
        """convert makes the arguments of `function` from those of the C callback, whose last is its context."""
        kind = dict(struct._fields_)[name]

        def call(*arguments):
            try:
                stop = function(*convert(*arguments[:-1])) if self.raised is None else True
            except BaseException as raised:  # Ctrl-C too; nothing may be thrown through C
                self.raised, stop = raised, True
            return (1 if stop else 0) if kind._restype_ else None

        if function is not None:
            self.kept.append(kind(call))
            setattr(struct, name, self.kept[-1])

    def end(self, status):
        if self.raised is not None:
            raise self.raised
        _check(status)


# ---- training ------------------------------------------------------------------------------------------------------


def _flat(values):
    """The numbers of nested sequences, or of anything with tolist() (arrays of NumPy, tensors of PyTorch)."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    for value in values:
        if isinstance(value, int):
            yield value
        else:
            yield from _flat(value)


def _data(data):
    """A list of files, or a dictionary of files and their weights, as the text that means it."""
    if isinstance(data, dict):
        return ",".join("%s:%.17g" % (os.fspath(path), weight) for path, weight in data.items())
    return ",".join(map(os.fspath, data)) if isinstance(data, (list, tuple)) else data


class Trainer:
    """ah_trainer_open(): every member of struct ah_train_options is an option by its name (steps=200, lr=3e-4,
    out_dir="out", resume_dir="out", ...), and so is every member of struct ah_tuning (lora_rank=16); on_note(line).
    `data` may be a list of files, or a dictionary of files and their weights. An iterator over steps, each struct ah_step as a dictionary.
    With own_batches=True there are no data, and step_on() or begin() and wait() take batches: ids and targets [batch,
    seq] as nested lists, arrays or tensors of integers, with positions where sequences are packed. To be closed, as
    `with` does."""

    def __init__(self, model=None, data=None, *, device_memory=None, host_memory=None, threads=0, host_threads=0,
                 link=None, on_note=None, **options):
        self._calls, self._stop, self._trainer = _Calls(), ctypes.c_int(0), ctypes.c_void_p()
        self._options = taken = _c.ah_train_options()  # what it points to lives as long as the trainer
        c.ah_train_options_init(ctypes.byref(taken), ctypes.sizeof(taken))
        _fill(taken, dict(options, model_path=model, data_path=_data(data)))
        taken.budget = _c.ah_budget(_bytes(device_memory), _bytes(host_memory))
        taken.dev.threads, taken.dev.host_threads = threads, host_threads
        taken.dev.link_bytes_per_s = _rate(link)
        taken.stop = ctypes.pointer(self._stop)
        self._calls.add(taken, "on_note", on_note, lambda line: (line.decode(errors="replace"),))
        self._calls.end(c.ah_trainer_open(ctypes.byref(self._trainer), ctypes.byref(taken)))
        summary = self.summary()
        self._shape = summary["batch"] * summary["seq"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        step = self.step()
        if step is None:
            raise StopIteration
        return step

    def close(self):
        """Ends what is in flight; saves nothing."""
        if getattr(self, "_trainer", None):
            c.ah_trainer_close(self._trainer)
            self._trainer = ctypes.c_void_p()

    def _goes_on(self, status):
        """False at the end of all steps."""
        if status != _c.AH_EEND or self._calls.raised is not None:
            self._calls.end(status)
        return status != _c.AH_EEND

    def _given(self, call, *arguments):
        step = _c.ah_step()
        return _plain(step) if self._goes_on(call(self._trainer, *arguments, ctypes.byref(step))) else None

    def _batch(self, ids, targets, positions):
        def array(values, name):
            flat = list(_flat(values))
            if len(flat) != self._shape:
                raise Error("AH_EINPUT", "batch: found %d %s, expected %d" % (len(flat), name, self._shape))
            return (ctypes.c_int32 * self._shape)(*flat)

        return _c.ah_batch(array(ids, "ids"), array(targets, "targets"),
                           None if positions is None else array(positions, "positions"))

    def step(self):
        """ah_trainer_step(): the next step, on the training's own data; None at the end."""
        return self._given(c.ah_trainer_step)

    def step_on(self, ids, targets, positions=None):
        """ah_trainer_step_on(): a step on this batch; None at the end."""
        return self._given(c.ah_trainer_step_on, ctypes.byref(self._batch(ids, targets, positions)))

    def begin(self, ids, targets, positions=None):
        """ah_trainer_begin(): begins a step on this batch, up to two at a time; False at the end."""
        batch = self._batch(ids, targets, positions)
        return self._goes_on(c.ah_trainer_begin(self._trainer, ctypes.byref(batch)))

    def wait(self):
        """ah_trainer_wait(): the oldest step that was begun."""
        return self._given(c.ah_trainer_wait)

    def save(self, folder=None):
        """ah_trainer_save(): what was trained so far is on disk, in `folder` or in out_dir."""
        self._calls.end(c.ah_trainer_save(self._trainer, None if folder is None else _text(folder)))

    def stop(self):
        """The next step is the last but for those in flight; then a checkpoint is written."""
        self._stop.value = 1

    def _filled(self, struct, get):
        out = struct()
        get(self._trainer, ctypes.byref(out))
        return _plain(out)

    def device(self):
        """struct ah_device as a dictionary."""
        return self._filled(_c.ah_device, c.ah_trainer_device)

    def summary(self):
        """What is trained on what: struct ah_train_summary as a dictionary."""
        return self._filled(_c.ah_train_summary, c.ah_trainer_summary)

    def sources(self):
        """What each file of the data gave: a list of struct ah_train_source as dictionaries."""
        found = []
        while True:
            out = _c.ah_train_source()
            if c.ah_trainer_source(self._trainer, len(found), ctypes.byref(out)) != _c.AH_OK:
                return found
            found.append(_plain(out))

    def plan(self):
        """struct ah_plan as a dictionary."""
        return self._filled(_c.ah_plan, lambda trainer, out: c.ah_trainer_plan(trainer, out, None))

    def result(self):
        """What came of it so far: struct ah_train_result as a dictionary."""
        return self._filled(_c.ah_train_result, c.ah_trainer_result)


def train(model=None, data=None, *, on_step=None, on_val=None, **options):
    """All steps of a Trainer, whose options these are. on_step(step) ends the training with a checkpoint by returning
    something true or by raising, as Ctrl-C does; on_val(step, loss). Returns struct ah_train_result as a dictionary."""
    with Trainer(model, data, **options) as trainer:
        try:
            for step in trainer:
                if on_val and step["val_loss"] == step["val_loss"]:
                    on_val(step["step"], step["val_loss"])
                if on_step and on_step(step):
                    trainer.stop()
        except Error:
            raise
        except BaseException:
            trainer.stop()
            for _ in trainer:
                pass
            raise
        return trainer.result()


# ---- planning ------------------------------------------------------------------------------------------------------


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
        _check(make(ctypes.byref(pointer), *arguments))
        self.made.append((free, pointer))
        return pointer

    def partition(self, model, batch, seq, dtype, clip, micro_batch):
        """Of one micro-batch, `batch` sequences when there is no other size."""
        size = micro_batch or batch
        if batch % size:
            raise Error("AH_EINPUT", "micro_batch: found %d, expected a divisor of the batch of %d" % (size, batch))
        pointer = self.new(c.ah_model_load, c.ah_model_free, _text(model))
        seq = seq or min(256, c.ah_model_get(pointer).contents.max_seq)
        record = _c.ah_record_options(batch=size, seq=seq, compute=_dtype(dtype))
        graph = self.new(c.ah_model_record, c.ah_graph_free, pointer, ctypes.byref(record))
        step = _c.ah_step_options(clips=clip > 0, micro_batches=batch // size)
        return self.new(c.ah_partition_new, c.ah_partition_free, graph, ctypes.byref(step))


def plan(model, *, batch=8, seq=None, dtype="fp32", device="auto", device_memory=None, host_memory=None, threads=0,
         host_threads=0, link=None, policy="autohete", plan="auto", clip=1.0, micro_batch=None, profile=None):
    """Profiles one block on the device (or loads the saved `profile`) and plans: struct ah_plan as a dictionary."""
    out, budget = _c.ah_plan(), _c.ah_budget(_bytes(device_memory), _bytes(host_memory))
    with _Artefacts() as made:
        partition = made.partition(model, batch, seq, dtype, clip, micro_batch)
        options = _c.ah_dev_options(threads=threads, host_threads=host_threads, link_bytes_per_s=_rate(link))
        if profile is not None:
            measured = made.new(c.ah_profile_load, c.ah_profile_free, _text(profile))
        else:
            opened = made.new(c.ah_dev_open, c.ah_dev_close, device.encode(), ctypes.byref(options))
            measured = made.new(c.ah_profile_measure, c.ah_profile_free, None, partition, opened, None)
        if plan == "auto":
            _check(c.ah_plan_search(ctypes.byref(out), partition, measured, ctypes.byref(budget), policy.encode(), None))
        else:
            _check(c.ah_plan_parse(ctypes.byref(out), _text(plan), partition, measured, ctypes.byref(budget),
                                   policy.encode()))
    return _plain(out)


def evaluate(model, hardware, *, policy="autohete", batch=8, seq=None, dtype="bf16", device_memory=None,
             host_memory=None, ranks=1, optimizer=None, clip=1.0, micro_batch=None):
    """What a policy makes of a model on a machine one need not own: struct ah_evaluation as a dictionary. `batch` is
    that of all ranks; memory not given is the machine's."""
    out, info = _c.ah_evaluation(), _c.ah_hardware_info()
    estimate = _c.ah_estimate_options(world_size=ranks, optimizer=optimizer.encode() if optimizer else None)
    if batch % ranks:
        raise Error("AH_EINPUT", "batch: found %d, expected a multiple of %d ranks" % (batch, ranks))
    with _Artefacts() as made:
        machine = made.new(c.ah_hardware_load, c.ah_hardware_free, _text(hardware))
        c.ah_hardware_get(ctypes.byref(info), machine)
        budget = _c.ah_budget(_bytes(device_memory) or info.device_bytes,
                              _bytes(host_memory) or info.host_bytes // ranks)
        partition = made.partition(model, batch // ranks, seq, dtype, clip, micro_batch)
        estimated = made.new(c.ah_profile_estimate, c.ah_profile_free, partition, machine, ctypes.byref(estimate))
        _check(c.ah_plan_evaluate(ctypes.byref(out), partition, estimated, ctypes.byref(budget), policy.encode(), None))
    return _plain(out)


def simulate(model, hardware, *, policies=None, **options):
    """evaluate() of each policy, all that there are unless given: a list in their order."""
    names = policies or _policies()
    return [evaluate(model, hardware, policy=name, **options) for name in names]


def _policies():
    names, found = c.ah_policy_names(), []
    while names[len(found)]:
        found.append(names[len(found)].decode())
    return found


# ---- generation ----------------------------------------------------------------------------------------------------


def generate(model_dir, prompt="", tokens=100, *, on_token=None, **options):
    """ah_generate(): the text that follows `prompt`, decoded as UTF-8 with what is none replaced. on_token(token, bytes)
    hears each token as it is made, and stops by returning something true. Other members of struct ah_generate_options
    (temperature, top_k, seed, device, threads) are options by name."""
    generate_options, calls, parts = _c.ah_generate_options(), _Calls(), []

    def hear(token, text):
        parts.append(text)
        return on_token(token, text) if on_token else False

    _fill(generate_options, dict(options, model_dir=model_dir, prompt=prompt, tokens=tokens))
    calls.add(generate_options, "on_token", hear,
              lambda token, text, length: (token, ctypes.string_at(text, length)))
    calls.end(c.ah_generate(ctypes.byref(generate_options)))
    return b"".join(parts).decode(errors="replace")
