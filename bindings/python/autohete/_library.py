"""The shared library: where it is found, what a failure of it becomes."""
import ctypes
import os
import pathlib

from . import _c

LIBRARY = "libautohete.so.%d" % _c.AH_VERSION_MAJOR
VERSION = "%d.%d.%d" % (_c.AH_VERSION_MAJOR, _c.AH_VERSION_MINOR, _c.AH_VERSION_PATCH)
HERE = pathlib.Path(__file__).parent


class Error(Exception):
    """A failure: the library's one line, and `status`, its name such as "AH_EBUDGET"."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status

    def __reduce__(self):  # or it could not be handed from one process to another
        return type(self), self._given()

    def _given(self):
        return self.status, str(self)


class InputError(Error, ValueError):
    """What was given is wrong (AH_EINPUT)."""

    def __init__(self, message):
        super().__init__("AH_EINPUT", message)

    def _given(self):
        return (str(self),)


class Closed(InputError):
    """A trainer, tokenizer or chat that is closed, or was never opened."""


def _places():
    """(what to load, how it was found) in order; what AUTOHETE_LIBRARY says is the only one."""
    given = os.environ.get("AUTOHETE_LIBRARY")
    if given:
        return [(given, "AUTOHETE_LIBRARY")]
    return [(str(HERE / "lib" / LIBRARY), "of this package"), (str(HERE / LIBRARY), "beside this package"),
            (LIBRARY, "where the system keeps libraries")]


def _load():
    tried = []
    for path, found in _places():
        if os.sep in path and found != "AUTOHETE_LIBRARY" and not os.path.exists(path):
            tried.append("%s (%s): no such file" % (path, found))
            continue
        try:
            return path, ctypes.CDLL(path)
        except OSError as fault:
            tried.append("%s (%s): %s" % (path, found, fault))
    raise ImportError("autohete: found no library, expected %s; set AUTOHETE_LIBRARY to its path; tried %s"
                      % (LIBRARY, "; ".join(tried)))


def _open():
    path, library = _load()
    try:
        library.ah_version.restype = ctypes.c_char_p
        version = library.ah_version().decode()
    except AttributeError:
        raise ImportError("autohete: %s (AUTOHETE_LIBRARY chooses another): found no ah_version in it, expected a "
                          "library of AutoHete" % path) from None
    if version != VERSION:
        raise ImportError("autohete: %s (AUTOHETE_LIBRARY chooses another): found version %s, expected %s, that of this "
                          "package" % (path, version, VERSION))
    for function, (result, arguments) in _c.FUNCTIONS.items():
        try:
            found = getattr(library, function)
        except AttributeError:
            raise ImportError("autohete: %s (AUTOHETE_LIBRARY chooses another): found no %s in it, expected the library "
                              "that this package was made for" % (path, function)) from None
        found.restype, found.argtypes = result, arguments
    return library


c = _open()
_process = ctypes.CDLL(None)
_process.free.argtypes, _process.free.restype = [ctypes.c_void_p], None


def version():
    """The library's, as "0.2.0"."""
    return c.ah_version().decode()


def check(status):
    """Raises what a status means unless it is AH_OK."""
    if status == _c.AH_OK:
        return
    message = c.ah_error().decode(errors="replace")
    raise InputError(message) if status == _c.AH_EINPUT else Error(c.ah_status_name(status).decode(), message)


def taken(pointer, length=None):
    """The bytes at a char pointer of the library's, which are freed; up to their end unless a length is given."""
    try:
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        return ctypes.string_at(address, -1 if length is None else length.value) if address else b""
    finally:
        _process.free(ctypes.cast(pointer, ctypes.c_void_p))


def taken_ids(pointer, count):
    try:
        return pointer[:count.value] if count.value else []
    finally:
        _process.free(ctypes.cast(pointer, ctypes.c_void_p))
