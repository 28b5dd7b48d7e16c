#!/usr/bin/env python3.11
"""Trains the sample models and writes their repositories: python3.11 tools/sampleModel/train.py [--build DIRECTORY] [--out DIRECTORY] [--threads 2] [--only base,adapters,files]

Half an hour on two cores, seeded; what was done is kept in the build directory and gone on with after a break. Needs a C compiler (cc); numpy is installed into an environment of
its own there. The weights are the same only where processor, compiler and numpy are: that is why they are committed, and not made anew by whoever needs them.
"""

import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser()
parser.add_argument("--build", default=os.path.join(HERE, ".build"))
parser.add_argument("--out", default=os.path.join(HERE, "..", "..", "packages", "reference-engine", "sample"))
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--only", default="base,adapters,thinker,files")
parser.add_argument("--share", type=float, default=1, help="of all steps: 0.01 to see whether it works here")
options = parser.parse_args()
os.makedirs(options.build, exist_ok=True)
os.environ["SAMPLE_MODEL_BUILD"] = os.path.abspath(options.build)

environment = os.path.join(os.environ["SAMPLE_MODEL_BUILD"], "venv")
if sys.prefix != environment:
    if not os.path.exists(os.path.join(environment, "ready")):
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        install = [os.path.join(environment, "bin", "pip"), "install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", os.path.join(HERE, "requirements.txt")]
        subprocess.run(install, check=True)
        open(os.path.join(environment, "ready"), "w").close()
    python = os.path.join(environment, "bin", "python")
    os.execv(python, [python, *sys.argv])

import json  # noqa: E402
import random  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

import adapters  # noqa: E402
import files  # noqa: E402
import tasks  # noqa: E402
import thinking  # noqa: E402
from bpe import read_merges, Tokenizer  # noqa: E402
from llama import SIZE, Chunk, run, views  # noqa: E402
from measure import measure  # noqa: E402
from optimiser import Optimiser  # noqa: E402

STEPS, DECAY_FROM, RATE, TOKENS = round(5600 * options.share), round(3700 * options.share), 4e-3, 4096
"""Steps of the base; from where the rate falls; its height; tokens of a step."""

THINKER_STEPS, THINKER_RATE = round(1200 * options.share), 1.5e-3
"""Of the model that thinks, which begins as the base: its rate falls all the way."""

tok = Tokenizer(read_merges())


def say(text):
    print(time.strftime("%H:%M:%S"), text, flush=True)


def initial(seed):
    rng = np.random.default_rng(seed)
    flat = np.zeros(SIZE, np.float32)
    for name, v in views(flat).items():
        if v.ndim == 1:
            v[:] = 1
        elif name == "model.embed_tokens.weight":
            v[:] = rng.standard_normal(v.shape) * 0.5
        elif name == "lm_head.weight":
            v[:] = rng.standard_normal(v.shape) * 0.02
        else:
            v[:] = rng.standard_normal(v.shape) / v.shape[1] ** 0.5 * (0.3 if "o_proj" in name or "down_proj" in name else 1)
    return flat


def phase(step, r):
    """Tokens of the longest document, and the share of looking up: short copies first, then whole contexts too."""
    if step < 500:
        return 110, 0.65
    k = r.random()
    if step < 1000:
        return (110 if k < 0.78 else 380 if k < 0.96 else 1000), 0.5
    return (110 if k < 0.7 else 380 if k < 0.88 else 1000), 0.42


def batch(seed, tokens, make, tok=tok):
    """Documents of about so many tokens, in chunks of about 512."""
    r = random.Random(seed)
    chunks, now, size, total = [], [], 0, 0
    while total < tokens:
        ids, weights = (part[:1024] for part in tok.encode(make(r)))
        if len(ids) < 3:
            continue
        if size and size + len(ids) > 512:
            chunks.append(Chunk(now))
            now, size = [], 0
        now.append((np.array(ids), np.array(weights)))
        size += len(ids)
        total += len(ids)
    return [*chunks, Chunk(now)]


def gradients(params, chunks, sums):
    """The mean loss of the chunks and its gradients: each thread its own chunks, so that the sums' order never changes."""
    loss = [0.0] * len(sums)

    def work(at):
        sums[at][:] = 0
        for chunk in chunks[at :: len(sums)]:
            loss[at] += run(params, chunk, sums[at])

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(sums))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = sum(float(chunk.weight.sum()) for chunk in chunks)
    return sum(loss) / total, sum(sums) / total


def train_base():
    state = os.path.join(options.build, "state.npz")
    params, optimiser, step = initial(7), Optimiser(), 0
    if os.path.exists(state):
        kept = np.load(state)
        params, optimiser.first, optimiser.second = kept["params"], kept["first"], kept["second"]
        optimiser.steps = step = int(kept["step"])
    sums = [np.zeros(SIZE, np.float32) for _ in range(options.threads)]
    while step < STEPS:
        chunks = batch(f"seatrial/{step}", TOKENS, lambda r: tasks.document(r, *phase(step, r)))
        loss, grads = gradients(params, chunks, sums)
        falling = max(0.02, (STEPS - step) / (STEPS - DECAY_FROM)) if step >= DECAY_FROM else 1
        optimiser.step(params, grads, RATE * min(1, (step + 1) / 100) * falling)
        step += 1
        if step % 25 == 0:
            say(f"step {step} of {STEPS}, loss {loss:.3f}")
        if step % 50 == 0 or step == STEPS:
            np.savez(state + ".new.npz", params=params, first=optimiser.first, second=optimiser.second, step=step)
            os.replace(state + ".new.npz", state)
        if step % 400 == 0:
            say(json.dumps(measure(params, tok, 20)))
    np.save(os.path.join(options.build, "base.npy"), params)


def train_thinker():
    """The base goes on learning, with two marks that it never met in place of those that no text has."""
    state, reads = os.path.join(options.build, "thinker-state.npz"), Tokenizer(read_merges(), thinks=True)
    optimiser, step = Optimiser(), 0
    if os.path.exists(state):
        kept = np.load(state)
        params, optimiser.first, optimiser.second = kept["params"], kept["first"], kept["second"]
        optimiser.steps = step = int(kept["step"])
    else:
        params = files.base_of(options.build, options.out)
    sums = [np.zeros(SIZE, np.float32) for _ in range(options.threads)]
    while step < THINKER_STEPS:
        chunks = batch(f"thinker/{step}", TOKENS, lambda r: thinking.document(r, *phase(1000, r)), reads)
        loss, grads = gradients(params, chunks, sums)
        optimiser.step(params, grads, THINKER_RATE * min(1, (step + 1) / 20) * max(0.02, 1 - step / THINKER_STEPS))
        step += 1
        if step % 25 == 0:
            say(f"thinker: step {step} of {THINKER_STEPS}, loss {loss:.3f}")
        if step % 50 == 0 or step == THINKER_STEPS:
            np.savez(state + ".new.npz", params=params, first=optimiser.first, second=optimiser.second, step=step)
            os.replace(state + ".new.npz", state)
    np.save(os.path.join(options.build, "thinker.npy"), params)


def train_adapter(name, make, rank, alpha, steps, rate):
    """An adapter on the base as its file keeps it."""
    base = files.kept(np.load(os.path.join(options.build, "base.npy")))
    steps = max(1, round(steps * options.share))
    lora = adapters.Lora(rank, alpha, f"{name}")
    sums = [np.zeros(SIZE, np.float32) for _ in range(options.threads)]
    for step in range(steps):
        loss, grads = gradients(lora.merged(base), batch(f"{name}/{step}", TOKENS, make), sums)
        lora.step(grads, rate * min(1, (steps - step) / (0.4 * steps)))
        if (step + 1) % 25 == 0:
            say(f"{name}: step {step + 1} of {steps}, loss {loss:.3f}")
    np.savez(os.path.join(options.build, f"{name}.npz"), **{f"{module}/{at}": part for module, pair in lora.pairs.items() for at, part in zip("ab", pair)})


if "base" in options.only:
    train_base()
if "adapters" in options.only:
    for name, (make, rank, alpha, steps, rate) in adapters.RECIPES.items():
        train_adapter(name, make, rank, alpha, steps, rate)
if "thinker" in options.only:
    train_thinker()
if "files" in options.only:
    if os.path.exists(os.path.join(options.build, "base.npy")):
        files.write_all(options.build, options.out, tok, say)
    files.write_thinker(options.build, options.out, say)
