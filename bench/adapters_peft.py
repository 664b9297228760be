"""Fine-tuning on PyTorch's CPU, the peer of bench/adapters: adapters_peft.py '{"model": ...}' trains on one batch, step
after step, and prints one JSON object with the seconds and the loss of each.

Keys: model (a folder, or a GGUF file), ids (one sequence and the token after it), batch, micro_batch, steps, threads,
dtype ("fp32" or "bf16": of the model's weights, as AutoHete has them; PEFT keeps adapters in fp32 then, what else is
trained and its moments have the dtype), rank (of PEFT's adapters beside all linear layers of the blocks; 0: the model
itself is trained), below (of that, so many of the lowest blocks and the embedding are frozen).
Nothing recomputed, AdamW, gradients clipped to a global norm of 1."""
import json
import pathlib
import sys
import time

import peft
import torch
import torch.nn.functional as F
import transformers


def freeze(model, below):
    if below:
        model.get_input_embeddings().requires_grad_(False)
    for block in model.base_model.layers[:below]:
        block.requires_grad_(False)
    return model


def load(job):
    path, dtype = pathlib.Path(job["model"]), {"fp32": torch.float32, "bf16": torch.bfloat16}[job["dtype"]]
    where = (path.parent, {"gguf_file": path.name}) if path.is_file() else (path, {})
    model = transformers.AutoModelForCausalLM.from_pretrained(where[0], dtype=dtype, **where[1])
    if job["rank"] == 0:
        return freeze(model, job["below"]).train()
    config = peft.LoraConfig(r=job["rank"], lora_alpha=job["rank"], target_modules="all-linear", task_type="CAUSAL_LM")
    return peft.get_peft_model(model, config).train()


def step(model, job, optimizer, parameters):
    """The batch's loss: its micro-batches one after the other, as gradient accumulation has it."""
    ids = torch.tensor([job["ids"]] * job["micro_batch"])
    parts, total = job["batch"] // job["micro_batch"], 0.0
    for _ in range(parts):
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten()) / parts
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return total


def main():
    job = json.loads(sys.argv[1])
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(job["threads"])
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    model = load(job)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    seconds, losses = [], []
    for _ in range(job["steps"]):
        start = time.perf_counter()
        losses.append(step(model, job, optimizer, parameters))
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "losses": losses, "trained": sum(p.numel() for p in parameters),
                      "peft": peft.__version__ if job["rank"] else None, "torch": torch.__version__}))


main()
