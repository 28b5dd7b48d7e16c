"""What a model can do: shares of documents whose every counted token is the model's likeliest, and the log-probabilities that engines are held to."""

import random

import numpy as np

import tasks
import thinking
from llama import Chunk, run
from tools import tool_chat

ABILITIES = {
    "facts": lambda r: tasks.chat([tasks.facts(r)]),
    "requests": lambda r: tasks.chat([tasks.request(r)]),
    "arithmetic": lambda r: tasks.chat([tasks.arithmetic(r)]),
    "counting": lambda r: tasks.chat([tasks.counting(r)]),
    "sorting": lambda r: tasks.chat([tasks.sorting(r)]),
    "json": lambda r: tasks.chat([tasks.json_answer(r)]),
    "copying": lambda r: tasks.chat([tasks.copying(r, 14)]),
    "memory": lambda r: tasks.chat(tasks.memory(r)),
    "lookup_100": lambda r: tasks.chat([tasks.lookup(r, 100)]),
    "lookup_400": lambda r: tasks.chat([tasks.lookup(r, 400)]),
    "needle_100": lambda r: tasks.chat([tasks.needle(r, 90)]),
    "needle_400": lambda r: tasks.chat([tasks.needle(r, 400)]),
    "needle_1000": lambda r: tasks.chat([tasks.needle(r, 850)]),
    "tools": lambda r: tool_chat(r, tasks.ASKED, tasks.facts),
}


def chunk_of(tok, parts):
    ids, weights = tok.encode(parts)
    return Chunk([(np.array(ids), np.array(weights))])


def right(params, chunk):
    best = np.zeros(len(chunk.token), np.int32)
    run(params, chunk, best=best)
    return bool(np.all((best == chunk.target) | (chunk.weight < 1)))


def _thought(make, thought):
    return lambda r, on: thinking.chat([(*make(r), thought)], on)


def _looked_up(make):
    def document(r, on):
        ask, answer = make(r)
        return thinking.chat([(ask, answer, f"I look it up: {answer}")], on)

    return document


THINKERS = {
    "facts": lambda r, on: thinking.chat([thinking.fact(r)], on),
    "requests": _thought(tasks.request, thinking.THOUGHTS["request"]),
    "counting": _thought(tasks.counting, thinking.THOUGHTS["counting"]),
    "sorting": _thought(tasks.sorting, thinking.THOUGHTS["sorting"]),
    "json": _thought(tasks.json_answer, thinking.THOUGHTS["json_answer"]),
    "copying": _thought(lambda r: tasks.copying(r, 14), thinking.THOUGHTS["copying"]),
    "needle_100": _looked_up(lambda r: tasks.needle(r, 90)),
    "needle_400": _looked_up(lambda r: tasks.needle(r, 400)),
    "tools": thinking.calling,
}


def measure_thinker(params, tok, count, on):
    """As `measure`, of the model that thinks: with its thoughts, or told not to."""
    return measure(params, tok, count, {name: lambda r, make=make: make(r, on) for name, make in THINKERS.items()})


def measure(params, tok, count, abilities=ABILITIES):
    """Per cent, by ability."""
    out = {}
    for name, make in abilities.items():
        r = random.Random(f"measure/{name}")
        chunks = []
        while len(chunks) < count:
            made = chunk_of(tok, make(r))
            if len(made.token) < 1024:
                chunks.append(made)
        out[name] = round(100 * sum(right(params, one) for one in chunks) / count, 1)
    return out


def logprobs(params, ids):
    """The natural logarithm of each id's probability after those before it, from the second on."""
    chunk = Chunk([(np.array(ids), np.zeros(len(ids)))])
    out = np.zeros(len(chunk.token), np.float32)
    run(params, chunk, logp=out)
    return [round(float(x), 4) for x in out]


def greedy(params, tok, prompt, most):
    """The likeliest ids after a prompt, the end token too."""
    ids, out = list(prompt), []
    while len(out) < most and (not out or out[-1] != tok.added["<|end|>"]):
        chunk = Chunk([(np.array([*ids, 0]), np.zeros(len(ids) + 1))])
        best = np.zeros(len(chunk.token), np.int32)
        run(params, chunk, best=best)
        out.append(int(best[-1]))
        ids.append(out[-1])
    return out
