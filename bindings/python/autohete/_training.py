"""Training: a trainer, and all its steps in one call."""
import ctypes
import os
import signal
import threading

from . import _c
from ._handle import Calls, Handle, fault, line, note
from ._library import Error, c
from ._values import batch_array, data_text, fill, optional_text, plain, rate, size, whole

INT_MOST = (1 << 31) - 1


class _Interrupts:
    """Ctrl-C while steps are taken: the first one ends the training with a checkpoint, the second one the program, as
    on the command line. Where the program has a handler of its own, or in another thread, it stays as it is."""

    _WORDS = b"\nautohete: stopping after this step, then saving; a second Ctrl-C quits at once\n"

    def __init__(self, trainer):
        self._trainer = trainer
        self.came = self._mine = False

    def begin(self, handler=None):
        self._mine = (threading.current_thread() is threading.main_thread()
                      and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        if self._mine:
            signal.signal(signal.SIGINT, handler or self._heard)
            if not handler:
                self._once()

    @staticmethod
    def _once():
        """Python hears of a signal behind the call of C; so that a second one acts within it, the system resets the
        handler with the first."""
        process = ctypes.CDLL(None)
        if not hasattr(process, "sysv_signal"):
            return
        process.signal.argtypes = process.sysv_signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        process.signal.restype = process.sysv_signal.restype = ctypes.c_void_p
        process.sysv_signal(signal.SIGINT, process.signal(signal.SIGINT, None))

    def _heard(self, *_):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.came = True
        self._trainer._stop.value = 1
        os.write(2, self._WORDS)
        if not self._trainer._within():
            raise KeyboardInterrupt

    def end(self):
        if self._mine and signal.getsignal(signal.SIGINT) in (self._heard, signal.SIG_DFL):
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Trainer(Handle):
    """ah_trainer_open(): every member of struct ah_train_options is an option by its name (steps=200, lr=3e-4,
    out_dir="out", resume_dir="out", ...), and so is every member of struct ah_tuning (lora_rank=16). `data` may be a
    list of files, or a dictionary of files and their weights. on_note(line) takes what is
    logged else (logging.getLogger("autohete")); on_fault(line) what failed although the training goes on.

    To be iterated over: steps, each struct ah_step as a dictionary. With own_batches=True there are no data, and
    step_on() or begin() and wait() take batches: ids and targets [batch, seq] as nested lists, arrays or tensors of
    integers, with positions where sequences are packed. To be closed, as `with` does; what is closed raises Closed."""

    _name, _free = "trainer", c.ah_trainer_close

    def __init__(self, model=None, data=None, *, device_memory=None, host_memory=None, disk=None, disk_space=None,
                 threads=0, host_threads=0, link=None, on_note=None, on_fault=None, **options):
        self.close()
        self._calls, self._stop = Calls(), ctypes.c_int(0)
        self._options = taken = _c.ah_train_options()  # what it points to lives as long as the trainer
        c.ah_train_options_init(ctypes.byref(taken), ctypes.sizeof(taken))
        if isinstance(options.get("micro_batch"), str) and options["micro_batch"] == "auto":
            options["micro_batch"] = _c.AH_MICRO_BATCH_AUTO
        fill(taken, dict(options, model_path=model, data_path=data_text(data)))
        taken.budget = _c.ah_budget(size("device_memory", device_memory), size("host_memory", host_memory),
                                    size("disk_space", disk_space))
        taken.dev.disk = optional_text("disk", disk)
        taken.dev.threads = whole("threads", threads, 0, INT_MOST)
        taken.dev.host_threads = whole("host_threads", host_threads, 0, INT_MOST)
        taken.dev.link_bytes_per_s = rate("link", link)
        taken.stop = ctypes.pointer(self._stop)
        self._calls.add(taken, "on_note", on_note or note, line)
        self._calls.add(taken, "on_fault", on_fault or on_note or fault, line)
        self._open(c.ah_trainer_open, ctypes.byref(taken))
        self._told = self.summary()

    def __exit__(self, kind, *_):
        """What ends the program, as Ctrl-C, leaves a checkpoint behind."""
        interrupts = _Interrupts(self)
        try:
            if kind is not None and not issubclass(kind, Exception):
                interrupts.begin(signal.SIG_DFL)
                self._finish()
        finally:
            interrupts.end()
            self.close()

    def __iter__(self):
        interrupts = _Interrupts(self)
        if self._saves():
            interrupts.begin()
        try:
            while (step := self.step()) is not None and not interrupts.came:
                yield step
        finally:
            if interrupts.came:
                self._finish()
            interrupts.end()
        if interrupts.came:
            raise KeyboardInterrupt

    def __next__(self):
        step = self.step()
        if step is None:
            raise StopIteration
        return step

    def _saves(self):
        return bool(self._options.out_dir or self._options.resume_dir)

    def _finish(self):
        """Ends the training; what it has trained is on disk where it has a folder."""
        self._stop.value = 1
        if not self._pointer or not self._saves():
            return
        if self._options.own_batches:
            self.save()
        else:
            while self.step() is not None:
                pass

    def _goes_on(self, status):
        """False at the end of all steps."""
        if status != _c.AH_EEND or not self._calls.went_well():
            self._calls.end(status)
        return status != _c.AH_EEND

    def _given(self, call, *arguments):
        step = _c.ah_step()
        work = self._use(lambda pointer: self._goes_on(call(pointer, *arguments, ctypes.byref(step))))
        return plain(step) if work else None

    def _batch(self, ids, targets, positions):
        self._check()
        batch, seq, most = self._told["batch"], self._told["seq"], self._told["vocab_size"] - 1
        return _c.ah_batch(batch_array("ids", ids, batch, seq, most),
                           batch_array("targets", targets, batch, seq, most, _c.AH_TARGET_IGNORED),
                           None if positions is None else batch_array("positions", positions, batch, seq, seq - 1))

    def step(self):
        """ah_trainer_step(): the next step, on the training's own data; None at the end."""
        return self._given(c.ah_trainer_step)

    def step_on(self, ids, targets, positions=None):
        """ah_trainer_step_on(): a step on this batch; None at the end."""
        return self._given(c.ah_trainer_step_on, ctypes.byref(self._batch(ids, targets, positions)))

    def begin(self, ids, targets, positions=None):
        """ah_trainer_begin(): begins a step on this batch, up to two at a time; False at the end."""
        batch = self._batch(ids, targets, positions)
        return self._use(lambda pointer: self._goes_on(c.ah_trainer_begin(pointer, ctypes.byref(batch))))

    def wait(self):
        """ah_trainer_wait(): the oldest step that was begun."""
        return self._given(c.ah_trainer_wait)

    def save(self, folder=None):
        """ah_trainer_save(): what was trained so far is on disk, in `folder` or in out_dir."""
        path = optional_text("folder", folder)
        self._use(lambda pointer: self._calls.end(c.ah_trainer_save(pointer, path)))

    def stop(self):
        """The next step is the last but for those in flight; then a checkpoint is written."""
        self._check_open()
        self._stop.value = 1

    def _filled(self, struct, get):
        out = struct()

        def work(pointer):
            get(pointer, ctypes.byref(out))
            return plain(out)
        return self._use(work)

    def device(self):
        """struct ah_device as a dictionary."""
        return self._filled(_c.ah_device, c.ah_trainer_device)

    def summary(self):
        """What is trained on what: struct ah_train_summary as a dictionary."""
        return self._filled(_c.ah_train_summary, c.ah_trainer_summary)

    def sources(self):
        """What each file of the data gave: a list of struct ah_train_source as dictionaries."""
        def work(pointer):
            found, out = [], _c.ah_train_source()
            while c.ah_trainer_source(pointer, len(found), ctypes.byref(out)) == _c.AH_OK:
                found.append(plain(out))
            return found
        return self._use(work)

    def plan(self):
        """struct ah_plan as a dictionary."""
        return self._filled(_c.ah_plan, lambda pointer, out: c.ah_trainer_plan(pointer, out, None))

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
            trainer._finish()
            raise
        return trainer.result()
