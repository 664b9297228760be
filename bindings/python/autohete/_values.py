"""Values of Python as C takes them. Nothing is cut: what does not fit is refused with its name."""
import ctypes
import itertools
import math
import operator
import os

from . import _c
from ._library import InputError, c, check


def shown(value):
    """A value in a message."""
    try:
        text = repr(value)
    except Exception:  # numbers of thousands of digits, objects that cannot be shown
        return "a value of type " + type(value).__name__
    return text if len(text) <= 60 else "%s... (%s)" % (text[:40], type(value).__name__)


def _is_bool(value):
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", None) == "b"


def _index(name, value):
    """An int, of whatever says that it is one, as integers of NumPy do."""
    try:
        if _is_bool(value):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError("%s: found %s, expected a whole number" % (name, shown(value))) from None


def whole(name, value, low=0, high=(1 << 63) - 1):
    found = _index(name, value)
    if not low <= found <= high:
        raise InputError("%s: found %s, expected %d to %d" % (name, shown(found), low, high))
    return found


def real(name, value):
    """NaN is what C takes for an option that was not given: it cannot be given."""
    try:
        if _is_bool(value) or isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        found = float(value)
    except TypeError:
        raise TypeError("%s: found %s, expected a number" % (name, shown(value))) from None
    except OverflowError:
        found = math.inf
    if math.isnan(found):
        raise InputError("%s: found nan, expected a number" % name)
    return found


def flag(name, value):
    if not _is_bool(value) and not (isinstance(value, int) and value in (0, 1)):
        raise TypeError("%s: found %s, expected True or False" % (name, shown(value)))
    return bool(value)


def plain_text(name, value):
    """Bytes of text, of a path, or bytes as they are; zero bytes among them are kept."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")  # names of files that are no UTF-8 arrive as they are
        except UnicodeEncodeError:
            raise InputError("%s: found %s, which is no Unicode text" % (name, shown(value))) from None
    if isinstance(value, bytes):
        return value
    raise TypeError("%s: found %s, expected text" % (name, shown(value)))


def text(name, value):
    """The same for C, which takes a zero byte for the end."""
    found = plain_text(name, value)
    if b"\0" in found:
        raise InputError("%s: found a zero byte in %s, expected text without one" % (name, shown(value)))
    return found


def optional_text(name, value):
    return None if value is None else text(name, value)


def _parsed(name, value, parse, kind=ctypes.c_int64):
    """A number, or text that the library reads; 0 for None."""
    if value is None:
        return 0
    if not isinstance(value, (str, bytes)):
        return whole(name, value)
    out = kind()
    try:
        check(parse(ctypes.byref(out), text(name, value)))
    except InputError as fault:
        raise InputError(fault if str(fault).startswith(name) else "%s: %s" % (name, fault)) from None
    return out.value


def size(name, value):
    """Bytes, of a number or of text like "48MiB"."""
    return _parsed(name, value, c.ah_size_parse)


def rate(name, value):
    return _parsed(name, value, c.ah_rate_parse)


def dtype(name, value):
    out = ctypes.c_int()
    check(c.ah_dtype_parse(ctypes.byref(out), text(name, value)))
    return out.value


def plain(value):
    """A C value as Python has it: structs are dictionaries, arrays lists, text str."""
    if isinstance(value, ctypes.Structure):
        return {name: plain(getattr(value, name)) for name, kind in value._fields_
                if name != "reserved" and not issubclass(kind, (ctypes.c_void_p, ctypes._CFuncPtr))}
    if isinstance(value, ctypes.Array):
        return [plain(each) for each in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


# ---- options -------------------------------------------------------------------------------------------------------


def _member(kind):
    """What makes a value of this type of member; None for those that are no options."""
    if kind is ctypes.c_char_p:
        return text
    if kind is ctypes.c_bool:
        return flag
    if kind in (ctypes.c_double, ctypes.c_float):
        return real
    if issubclass(kind, ctypes._SimpleCData) and kind not in (ctypes.c_void_p, ctypes.c_char):
        bits = 8 * ctypes.sizeof(kind)
        signed = kind(-1).value < 0
        low, high = (-1 << bits - 1, (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return lambda name, value: whole(name, value, low, high)
    return None


def options_of(struct):
    """{name: what makes its value} of the members that are options."""
    found = {name: _member(kind) for name, kind in struct._fields_ if name not in ("size", "reserved")}
    return {name: make for name, make in found.items() if make}


def fill(struct, options):
    """Sets members by name, those of what is trained among them. None leaves one as it is; TypeError for one that is
    not there."""
    own = options_of(type(struct))
    tuning = options_of(_c.ah_tuning) if any(name == "tuning" for name, _ in struct._fields_) else {}
    for name, value in options.items():
        if name not in own and name not in tuning:
            raise TypeError("found option %r, expected one of %s" % (name, ", ".join(sorted({**own, **tuning}))))
        if value is not None:
            target, make = (struct, own[name]) if name in own else (struct.tuning, tuning[name])
            made = make(name, value)
            if isinstance(struct, _c.ah_train_options) and isinstance(made, int) and made % (1 << 64) == 1 << 63:
                raise InputError("%s: found %d, which stands for an option that was not given" % (name, made))
            setattr(target, name, made)


def data_text(data):
    """A list of files, or a dictionary of files and their weights, as the text that means it."""
    if data is None or isinstance(data, (str, bytes, os.PathLike)):
        return data
    if not isinstance(data, (dict, list, tuple)):
        raise TypeError("data: found %s, expected a file, a list of files, or a dictionary of files and weights"
                        % shown(data))
    parts = []
    for i, path in enumerate(data):
        name = text("data[%d]" % i, path)
        if len(data) > 1 and b"," in name:
            raise InputError("data[%d]: found %s, expected a name without commas" % (i, shown(path)))
        if isinstance(data, dict):
            weight = real("data[%s]" % shown(path), data[path])
            if not 0 < weight < math.inf:
                raise InputError("data[%s]: found weight %s, expected a number above 0" % (shown(path), weight))
            name += b":%.17g" % weight
        parts.append(name)
    if not parts:
        raise InputError("data: found no file, expected one or more")
    return b",".join(parts)


# ---- token ids -----------------------------------------------------------------------------------------------------


def items(name, values, most=None):
    """The elements of a sequence, an array or whatever can be iterated over; of an endless one `most` + 1."""
    if hasattr(values, "tolist"):  # arrays of NumPy, tensors of PyTorch
        values = values.tolist()
    if isinstance(values, (str, bytes, bytearray, dict, set, frozenset)) or not hasattr(values, "__iter__"):
        raise TypeError("%s: found %s, expected whole numbers" % (name, shown(values)))
    return list(itertools.islice(values, None if most is None else most + 1))


def _counted(name, found, expected, what):
    if len(found) != expected:
        count = "more" if len(found) > expected else len(found)
        raise InputError("%s: found %s, expected %d %s" % (name, count, expected, what))
    return found


def ids_array(flat, place, low, high, also=None):
    """An array of int32 of numbers from low to high, or `also`; place(i) names the one at i."""
    for i, value in enumerate(flat):
        if type(value) is not int:
            value = flat[i] = _index(place(i), value)
        if not low <= value <= high and value != also:
            raise InputError("%s: found %s, expected %d to %d" % (place(i), shown(value), low, high))
    return (ctypes.c_int32 * len(flat))(*flat)


def ids_list(name, values):
    """(array, count) of token ids."""
    flat = items(name, values)
    return ids_array(flat, lambda i: "%s[%d]" % (name, i), 0, (1 << 31) - 1), len(flat)


def _is_row(value):
    return hasattr(value, "__iter__") and getattr(value, "ndim", 1) > 0  # a tensor of PyTorch may be a number


def batch_array(name, values, rows, columns, high, also=None):
    """The same of [rows, columns], nested or one row behind the other."""
    top = items(name, values, rows * columns)
    if not top or not _is_row(top[0]):
        _counted(name, top, rows * columns, "numbers (%d rows of %d)" % (rows, columns))
        return ids_array(top, lambda i: "%s[%d]" % (name, i), 0, high, also)
    flat = []
    for row, values in enumerate(_counted(name, top, rows, "rows")):
        place = "%s[%d]" % (name, row)
        flat += _counted(place, items(place, values, columns), columns, "numbers")
    return ids_array(flat, lambda i: "%s[%d][%d]" % (name, *divmod(i, columns)), 0, high, also)
