"""What the fault loops share: a tiny model, runs of the program with something preloaded, samples, results."""
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

MODEL = """{"model_type": "gpt2", "vocab_size": 256, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2}"""
LIMIT_S = 60


class Rig:
    """A scratch folder with model.json and text; the program; whether to run a sample, more of it or all."""

    def __init__(self, source, build):
        self.source, self.build = pathlib.Path(source).resolve(), pathlib.Path(build).resolve()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="autohete-faults-"))
        self.unsharded = "AUTOHETE_SOAK" in os.environ
        self.full = "AUTOHETE_FULL" in os.environ
        self.bad = 0
        (self.folder / "model.json").write_text(MODEL)
        words = "".join(f"{i * 7919 % 1000} little words in a row. " for i in range(400))
        (self.folder / "text").write_text(words)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, words, preload=None, **settings):
        """The program with these words in the scratch folder; status 124 when it hangs, negative for a signal."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AH_FAULT")}
        environment.update({name: str(value) for name, value in settings.items()})
        if preload:
            environment["LD_PRELOAD"] = str(self.build / "tests" / f"libfault-{preload}.so")
        try:
            done = subprocess.run([self.build / "autohete", *words], cwd=self.folder, env=environment, timeout=LIMIT_S,
                                  capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, "", "it hangs")
        return done

    def sample(self, candidates, few, many):
        """The candidates that this kind of run takes: `few`, `many` or all of them, the same ones in every run."""
        count = len(candidates) if self.unsharded else many if self.full else few
        chosen = candidates if count >= len(candidates) else random.Random(1).sample(candidates, count)
        return sorted(chosen)

    def case(self, name, faults, words):
        """One line for a loop: what it counted, or the first of what went wrong."""
        self.bad += bool(faults)
        for fault in faults[:20]:
            print(f"    {fault}")
        print(f"{'not ok' if faults else 'ok'} {name}: {words}", flush=True)


def one_line(text):
    """Whether a failed run said why in one line, and nothing else but notes."""
    lines = [line for line in text.splitlines() if not line.startswith("autohete: note: ")]
    return len(lines) == 1 and text.endswith("\n") and lines[0].startswith("autohete: ")
