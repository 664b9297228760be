#!/usr/bin/env python3
"""own_batches.py MODEL MEMORY [FOLDER]: examples/own_batches.c in Python, with the next batch made while a step runs.

Needs the binding (docs/python.md): PYTHONPATH=bindings/python AUTOHETE_LIBRARY=build/release/libautohete.so."""
import random
import sys

import autohete

BATCH, SEQ, STEPS = 8, 32, 60


def batch_make(vocab):
    """Sequences that count up from anywhere in steps of one to four; each token learns to say the one behind it."""
    rows = [(random.randrange(vocab), random.randint(1, 4)) for _ in range(BATCH)]
    ids = [[(first + i * by) % vocab for i in range(SEQ)] for first, by in rows]
    targets = [[(first + (i + 1) * by) % vocab for i in range(SEQ)] for first, by in rows]
    return ids, targets


def main(model, memory, folder=None):
    random.seed(1)
    with autohete.Trainer(model, device_memory=memory, own_batches=True, batch=BATCH, seq=SEQ, steps=STEPS, lr=1e-2,
                          out_dir=folder) as trainer:
        vocab = trainer.summary()["vocab_size"]
        trainer.begin(*batch_make(vocab))
        while True:
            more = trainer.begin(*batch_make(vocab))  # in flight while the step before it is waited for
            step = trainer.wait()
            if step["step"] % 10 == 1:
                print("step %d loss %.4f" % (step["step"], step["loss"]))
            if not more:
                break
        result = trainer.result()
    print("last loss %.4f, a uniform guess has %.4f" % (result["final_loss"], result["uniform_loss"]))
    return 0 if result["final_loss"] < result["uniform_loss"] / 2 else 1


sys.exit(main(*sys.argv[1:]))
