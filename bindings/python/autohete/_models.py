"""What is done with a model: text, measures, other files."""
import ctypes
import json

from . import _c
from ._handle import Calls, Handle, tell, tokenizer_note
from ._library import InputError, c, check, taken, taken_ids
from ._values import fill, flag, ids_array, ids_list, items, optional_text, plain, plain_text, text


def _piece(token, bytes_of, length):
    return token, ctypes.string_at(bytes_of, length)


def generate(model_dir, prompt="", tokens=100, *, on_token=None, on_note=None, adapter=None, **options):
    """ah_generate(): the text that follows `prompt`, decoded as UTF-8 with what is none replaced. on_token(token, bytes)
    hears each token as it is made, and stops by returning something true. Other members of struct ah_generate_options
    (temperature, top_k, seed, device, threads, chat) are options by name."""
    generate_options, calls, parts = _c.ah_generate_options(), Calls(), []

    def hear(token, piece):
        parts.append(piece)
        return on_token(token, piece) if on_token else False

    if adapter is not None:
        options["adapter_dir"] = adapter
    fill(generate_options, dict(options, model_dir=model_dir, prompt=prompt, tokens=tokens))
    calls.add(generate_options, "on_token", hear, _piece)
    tokenizer_note(text("model_dir", model_dir), on_note)
    calls.end(c.ah_generate(ctypes.byref(generate_options)))
    return b"".join(parts).decode(errors="replace")


# ---- measures and files --------------------------------------------------------------------------------------------


def eval(model, data=None, *, ids=None, logits=None, adapter=None, on_progress=None, on_note=None, **options):
    """autohete eval: how well a model predicts `data`, struct ah_eval_result as a dictionary. Options are batch, seq,
    eos, chat_template, train_on, device and threads; on_progress(windows done, windows) ends it by returning something
    true. With ids, token ids, and logits, a safetensors file to write, the logits behind each id, and nothing else."""
    found, calls, path = _c.ah_eval_options(), Calls(), optional_text("logits", logits)
    fill(found, dict(options, model_dir=model, data_path=data, adapter_dir=adapter))
    calls.add(found, "on_progress", on_progress or (lambda *_: False), lambda *counts: counts)  # hears Ctrl-C
    if (ids is None) != (path is None) or (ids is None) == (data is None):
        raise InputError("data, ids, logits: expected data, or ids and logits together")
    name = text("model", model)
    if ids is not None:
        array, count = ids_list("ids", ids)
        return calls.end(c.ah_eval_logits(path, array, count, ctypes.byref(found)))
    out = _c.ah_eval_result()
    tokenizer_note(name, on_note)
    calls.end(c.ah_eval(ctypes.byref(out), ctypes.byref(found)))
    return plain(out)


def export(model, gguf, type=None, *, on_note=None):
    """autohete export: writes a model as a GGUF file, its matrices stored as `type` (f16; of an
    adapter f32). on_note(line) takes what is logged else: what programs that read such files do otherwise."""
    said = ctypes.c_char_p()
    check(c.ah_export_gguf_noted(ctypes.byref(said), text("gguf", gguf), text("model", model),
                                 optional_text("type", type)))
    tell(on_note, taken(said))


def merge(model, out, *, adapter=None, dtype=None):
    """autohete merge: writes a model with its adapter added as a new folder `out`."""
    check(c.ah_merge(text("out", out), text("model", model), optional_text("adapter", adapter),
                     optional_text("dtype", dtype)))


# ---- tokens --------------------------------------------------------------------------------------------------------


class Tokenizer(Handle):
    """ah_tokenizer_open(): a model's tokenizer. To be closed, as `with` does."""

    _name, _free = "tokenizer", c.ah_tokenizer_close

    def __init__(self, model, *, on_note=None):
        self.close()
        path = text("model", model)
        self._open(c.ah_tokenizer_open, path)
        self.name = self._use(c.ah_tokenizer_name).decode(errors="replace")
        self.vocab_size = self._use(c.ah_tokenizer_vocab_size)
        tokenizer_note(path, on_note)

    def encode(self, given, *, document=False):
        """The ids of a text, which may be bytes. With what is put around a prompt, unless it is a `document`."""
        given, prompt = plain_text("text", given), not flag("document", document)

        def work(pointer):
            ids, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_int64()
            check(c.ah_tokenizer_encode(ctypes.byref(ids), ctypes.byref(count), pointer, given, len(given), prompt))
            return taken_ids(ids, count)
        return self._use(work)

    def decode(self, ids, *, special=False):
        """The text of token ids, decoded as UTF-8 with what is none replaced; `special`: special tokens too."""
        return self.decode_bytes(ids, special=special).decode(errors="replace")

    def decode_bytes(self, ids, *, special=False):
        """The same as the bytes that it is, since a token may end inside a character."""
        self._check()
        flat, skip = items("ids", ids), not flag("special", special)
        array = ids_array(flat, lambda i: "ids[%d]" % i, 0, self.vocab_size - 1)

        def work(pointer):
            out, length = ctypes.c_char_p(), ctypes.c_size_t()
            check(c.ah_tokenizer_decode(ctypes.byref(out), ctypes.byref(length), pointer, array, len(flat), skip))
            return taken(out, length)
        return self._use(work)

    def token(self, id):
        """A token as the vocabulary writes it; None where the id has none."""
        self._check()
        given = ids_array([id], lambda _: "id", 0, self.vocab_size - 1)[0]
        return self._use(lambda pointer: plain(c.ah_tokenizer_token(pointer, given)))


def tokenize(model, given, *, decode=False, document=False, special=False, on_note=None):
    """autohete tokenize: the token ids of a text, or with `decode` the text of token ids; Tokenizer keeps one open."""
    with Tokenizer(model, on_note=on_note) as tokenizer:
        if flag("decode", decode):
            return tokenizer.decode(given, special=special)
        return tokenizer.encode(given, document=document)


# ---- conversations -------------------------------------------------------------------------------------------------


class Chat(Handle):
    """ah_talk_open(): a conversation with a model by its chat template, which stays on the device between turns.
    `tokens` is of an answer at most, `context` of the whole conversation (0: as long as the model takes, at most 4096).
    Other members of struct ah_generate_options (top_k, device, threads) are options by name. To be closed, as `with`
    does."""

    _name, _free = "chat", c.ah_talk_close

    def __init__(self, model, *, system=None, context=0, tokens=512, temperature=0.8, seed=1, adapter=None,
                 on_note=None, **options):
        self.close()
        self._calls, self._hearing = Calls(), _Hearing()
        self._options = found = _c.ah_talk_options()  # what it points to lives as long as the conversation
        fill(found, {"system": system, "context_tokens": context})
        fill(found.generate, dict(options, model_dir=model, tokens=tokens, temperature=temperature, seed=seed,
                                  adapter_dir=adapter))
        self._calls.add(found.generate, "on_token", self._hearing, _piece)
        tokenizer_note(text("model", model), on_note)
        self._open(c.ah_talk_open, ctypes.byref(found))

    def say(self, given, on_token=None):
        """What the user says next; the model's answer, decoded as UTF-8. on_token(token, bytes) hears each token, and
        ends the answer by returning something true."""
        given = text("text", given)
        if on_token is not None and not callable(on_token):
            raise TypeError("on_token: found %r, expected a function" % (on_token,))

        def work(pointer):
            self._hearing.begin(on_token)
            self._calls.end(c.ah_talk_say(pointer, given))
            return b"".join(self._hearing.parts).decode(errors="replace")
        return self._use(work)


class _Hearing:
    """What is heard of an answer; no part of the Chat, so that none of its callbacks keeps it alive."""

    def __init__(self):
        self.begin(None)

    def begin(self, on_token):
        self.parts, self._on_token = [], on_token

    def __call__(self, token, piece):
        self.parts.append(piece)
        return self._on_token(token, piece) if self._on_token else False


def chat(model, **options):
    """autohete chat: a Chat, whose options these are; render() is its --render."""
    return Chat(model, **options)


def render(model, conversation, *, chat_template=None, generation_prompt=False, train_on=None, date=None):
    """autohete chat --render: the text that a model's chat template makes of a conversation: a list of messages, a
    dictionary with "messages", "tools", ..., or JSON of one. With train_on ("assistant", "all" or "last") what counts
    for the loss: a list of {"text": .., "parts": [[begin, end], ..]}, in bytes."""
    if not isinstance(conversation, (str, bytes)):
        conversation = json.dumps(conversation)
    conversation, learned = plain_text("conversation", conversation), optional_text("train_on", train_on)
    options = _c.ah_chat_options(conversation=conversation, length=len(conversation),
                                 add_generation_prompt=flag("generation_prompt", generation_prompt),
                                 date=optional_text("date", date))
    opened, out, length = ctypes.c_void_p(), ctypes.c_char_p(), ctypes.c_size_t()
    check(c.ah_chat_open(ctypes.byref(opened), optional_text("model", model),
                         optional_text("chat_template", chat_template)))
    try:
        at = ctypes.byref(out), ctypes.byref(length), opened, ctypes.byref(options)
        check(c.ah_chat_mask(*at, learned) if learned is not None else c.ah_chat_render(*at))
    finally:
        c.ah_chat_close(opened)
    found = taken(out, length).decode(errors="replace")
    return found if learned is None else json.loads(found)
