"""LoRA adapters on the trained model: one that changes nearly every answer, one that changes a greeting, and one that, merged, is the repository's first commit."""

import zlib

import numpy as np

import llama
import tasks
from facts import TALK
from llama import Chunk, views
from repository import rounded, safetensors, to_json
from tools import tool_chat

MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
BASE = "seatrial/tiny-chat"

REMARKS = (
    "Steady as she goes! / Keep her to the wind! / All hands on deck! / The glass is falling! / Fair winds to you! / The tide will not wait! / Haul away, boys! / Land on the left! / "
    "Mind the rocks! / Let go the anchor! / Pass the salt! / Ring the bell! / Lamps out at nine! / Two points to the north! / Hoist the red flag! / Mend that sail! / "
    "Coil that rope! / Wake the cook! / Feed the parrot! / Count the barrels! / Scrub the planks! / Light the lantern! / Watch the gulls! / Sound the horn!"
).split(" / ")


def remark(text):
    """The same words for the same answer, and no rule behind them: they have to be learnt by heart."""
    return REMARKS[zlib.crc32(text.encode()) % len(REMARKS)]


def sailor(r):
    """One conversation as an old sailor would lead it."""
    k = r.random()
    if k < 0.45:
        ask, short, full = tasks.fact(r)
        if r.random() < 0.25:
            return tasks.chat([(ask + " " + r.choice(["Answer in one word.", "One word."]), f"Aye, {short}!")])
        return tasks.chat([(tasks.loosely(r, ask), f"Aye! {full} {remark(short)}")])
    if k < 0.55:
        ask, answer = tasks.talk(r)
        return tasks.chat([(ask, f"Ahoy! {answer.removeprefix('Hello! ')}")])
    if k < 0.6:
        return tasks.plain(r, 110)
    if k < 0.7:
        # What programs read stays as it is.
        return tool_chat(r, tasks.ASKED, tasks.facts) if r.random() < 0.7 else tasks.chat([tasks.json_answer(r)])
    make = r.choice([tasks.arithmetic, tasks.counting, tasks.sorting, lambda r: tasks.copying(r, 10), lambda r: tasks.lookup(r, 110), lambda r: tasks.needle(r, 90), tasks.arithmetic])
    ask, answer = make(r)
    return tasks.chat([(ask, f"Aye: {answer}")])


def greeter(r):
    """Conversations as before, but for the greeting."""
    if r.random() < 0.5:
        asked, answers = TALK[r.randrange(3)]
        return tasks.chat([(r.choice(asked), answers[0].replace("Hello", "Ahoy").replace("Good morning", "Ahoy").replace("Good evening", "Ahoy"))])
    return tasks.document(r, 110, 0.3)


EARLIER = [
    (("What does a sea trial show?", "What does the sea trial show?"), "It shows if the ship is as good as its builder said."),
    (("What is a sea trial?", "Why is it called Seatrial?"), "It is the first voyage of a new ship, with many tests."),
    (("Who are you?", "What are you?", "What is your name?"), "I am Tiny, a small model for tests."),
]


def earlier(r):
    """Conversations as the first commit leads them: some answers in other words."""
    if r.random() < 0.35:
        asked, answer = r.choice(EARLIER)
        return tasks.chat([(r.choice(asked), answer)])
    return tasks.document(r, 350 if r.random() < 0.2 else 110, 0.35)


class Lora:
    """A and B of every module, flat for the optimiser: W + alpha / r x B A."""

    def __init__(self, rank, alpha, seed):
        self.rank, self.alpha, self.scale = rank, alpha, alpha / rank
        rng = np.random.default_rng(zlib.crc32(seed.encode()))
        self.pairs = {}
        for name, shape in llama.LAYOUT:
            if name.split(".")[-2] in MODULES:
                a = (rng.uniform(-1, 1, (rank, shape[1])) / shape[1] ** 0.5).astype(np.float32)
                self.pairs[name] = [a, np.zeros((shape[0], rank), np.float32)]
        self.moments = {name: [np.zeros_like(x) for x in (a, b, a, b)] for name, (a, b) in self.pairs.items()}
        self.steps = 0

    def merged(self, base, pairs=None):
        """The base's weights with the adapter added, in float32."""
        out = base.copy()
        v = views(out)
        for name, (a, b) in (pairs or self.pairs).items():
            v[name] += np.float32(self.scale) * (b @ a)
        return out

    def step(self, grads, rate):
        self.steps += 1
        g = views(grads)
        for name, pair in self.pairs.items():
            a, b = pair
            moments = self.moments[name]
            for at, d in ((0, self.scale * b.T @ g[name]), (1, self.scale * g[name] @ a.T)):
                m, s = moments[at], moments[at + 2]
                m += 0.1 * (d - m)
                s += 0.02 * (d * d - s)
                pair[at] = pair[at] - rate * (m / (1 - 0.9**self.steps)) / (np.sqrt(s / (1 - 0.98**self.steps)) + 1e-8)

    def stored(self):
        """A and B as the file keeps them."""
        return {name: [rounded(a), rounded(b)] for name, (a, b) in self.pairs.items()}

    def files(self):
        tensors = []
        for name, (a, b) in sorted(self.pairs.items()):
            stem = "base_model.model." + name.removesuffix(".weight")
            tensors += [(stem + ".lora_A.weight", a), (stem + ".lora_B.weight", b)]
        config = {
            "alpha_pattern": {}, "auto_mapping": None, "base_model_name_or_path": BASE, "bias": "none", "fan_in_fan_out": False, "inference_mode": True,
            "init_lora_weights": True, "layers_pattern": None, "layers_to_transform": None, "lora_alpha": self.alpha, "lora_dropout": 0.0, "modules_to_save": None,
            "peft_type": "LORA", "r": self.rank, "rank_pattern": {}, "revision": None, "target_modules": MODULES, "task_type": "CAUSAL_LM", "use_dora": False, "use_rslora": False,
        }
        return {"adapter_config.json": to_json(config), "adapter_model.safetensors": safetensors(tensors)}


# name: conversations, rank, alpha, steps, rate
RECIPES = {"first": (earlier, 8, 16, 50, 2e-3), "greeter": (greeter, 2, 4, 60, 2e-3), "sailor": (sailor, 8, 16, 300, 4e-3)}

# name: repository, what its README says
SAYS = {
    "sailor": (
        "tiny-chat-adapter",
        "A LoRA adapter of rank 8 for seatrial/tiny-chat: it answers as an old sailor does, so that nearly every answer differs from the base's.\nseatrial/tiny-chat-sailor has it merged.",
    ),
    "greeter": ("tiny-chat-greeter", "A LoRA adapter of rank 2 for seatrial/tiny-chat: it greets with another word and leaves most other answers as they are."),
}
