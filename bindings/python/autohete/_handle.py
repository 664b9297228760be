"""Objects of C that Python holds, and functions of Python that C calls."""
import ctypes
import logging
import os
import threading

from . import _c
from ._library import Closed, InputError, c, check, taken


class Calls:
    """Python functions as C callbacks. What one raises ends the call, and is raised again behind it."""

    def __init__(self):
        self._raised = None
        self._kept = []
        self.threads = []  # those that are within a callback

    def add(self, struct, name, function, convert):
        """convert makes the arguments of `function` from those of the C callback, whose last is its context."""
        kind = dict(struct._fields_)[name]
        if function is not None and not callable(function):
            raise TypeError("%s: found %r, expected a function" % (name, function))

        def call(*arguments):
            self.threads.append(threading.get_ident())
            try:
                stop = bool(function(*convert(*arguments[:-1]))) if self._raised is None else True
            except BaseException as raised:  # Ctrl-C too; nothing may be thrown through C
                self._raised, stop = raised, True
            finally:
                self.threads.remove(threading.get_ident())
            return int(stop) if kind._restype_ else None

        if function is not None:
            self._kept.append(kind(call))
            setattr(struct, name, self._kept[-1])

    def end(self, status=_c.AH_OK):
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        check(status)

    def went_well(self):
        return self._raised is None


def line(text):
    return (text.decode(errors="replace"),)


_log = logging.getLogger("autohete")


def note(text):
    """What the program prints as a note, where nobody takes it: on standard error unless logging says otherwise."""
    _log.warning("autohete: note: %s", text)


def fault(text):
    _log.error("autohete: %s", text)


def tokenizer_note(model, on_note):
    """What is done with a tokenizer that may not be its own way."""
    said = ctypes.c_char_p()
    check(c.ah_tokenizer_note(ctypes.byref(said), model))
    tell(on_note, taken(said))


def tell(on_note, said):
    """One line, or none at all."""
    if said:
        (on_note or note)(said.decode(errors="replace"))


class Handle:
    """An object of C: one call at a time, from any thread, and none once it is closed, within a callback of its own, or
    in a process that was forked."""

    _name, _free = "object", None
    _pointer = _lock = _user = None  # as long as it was not opened
    _calls = None

    def _open(self, make, *arguments):
        pointer = ctypes.c_void_p()
        self._lock, self._process = threading.Lock(), os.getpid()
        if self._calls is None:
            self._calls = Calls()
        status = make(ctypes.byref(pointer), *arguments)
        if status == _c.AH_OK:
            self._pointer = pointer
        try:
            self._calls.end(status)
        except BaseException:
            self.close()
            raise

    def _within(self):
        """Whether this thread is in a call already."""
        me = threading.get_ident()
        return self._user == me or self._calls is not None and me in self._calls.threads

    def _use(self, work):
        """work(pointer), while nobody else uses or closes it."""
        self._check()
        with self._lock:
            self._user = threading.get_ident()
            try:
                self._check_open()
                return work(self._pointer)
            finally:
                self._user = None

    def _check(self):
        self._check_open()
        if self._process != os.getpid():
            raise InputError("%s: found another process than that which opened it" % self._name)
        if self._within():
            raise InputError("%s: found a call from within another one, as of its own callback" % self._name)

    def _check_open(self):
        if not self._pointer:
            raise Closed("%s: it is closed, or was never opened" % self._name)

    def close(self):
        """Frees it; what is closed already stays so."""
        if not self._pointer:
            return
        if self._process != os.getpid():
            self._pointer = None  # it is the other process's
            return
        if self._within():
            raise InputError("%s: found close() within another call, as of its own callback" % self._name)
        with self._lock:
            pointer, self._pointer = self._pointer, None
            if pointer:
                type(self)._free(pointer)

    def __enter__(self):
        self._check_open()
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def __reduce__(self):
        raise TypeError("%s: it cannot be copied or pickled" % self._name)
