"""AutoHete from Python: its C interface (autohete.c), a trainer and a few functions over it.

    import autohete
    with autohete.Trainer("models/gpt-quickstart.json", "text.txt", device_memory="48MiB", out_dir="out") as trainer:
        for step in trainer:
            print(step["step"], step["loss"])
    result = autohete.train(model="models/gpt-quickstart.json", data="text.txt", device_memory="48MiB", steps=200,
                            out_dir="out", on_step=lambda step: print(step["step"], step["loss"]))
    print(autohete.generate("out", prompt="In the beginning", tokens=100))

Nothing is computed here. The library is found by AUTOHETE_LIBRARY (a path), in this package, or where the system keeps
libraries; its version must be that of this package. A failure raises Error with the library's one line; of what was
given InputError, which is a ValueError, or TypeError. The functions of autohete.c are C: they check no pointer."""
from ._library import Closed, Error, InputError, c, version
from ._models import Chat, Tokenizer, chat, eval, export, generate, merge, render, tokenize
from ._planning import evaluate, plan, simulate, simulate_policy
from ._training import Trainer, train

# Not eval, which is Python's own in whoever takes all.
__all__ = ["Chat", "Closed", "Error", "InputError", "Tokenizer", "Trainer", "c", "chat", "export", "generate", "merge",
           "plan", "render", "simulate", "simulate_policy", "tokenize", "train", "version"]
