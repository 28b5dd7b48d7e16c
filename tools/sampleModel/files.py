"""Writes the repositories of the sample models, and what engines are held to: reference log-probabilities and answers, and every file's hash."""

import json
import os

import numpy as np

import adapters
import readmes
import repository
from llama import views
import thinking
from bpe import Tokenizer, read_merges
from measure import greedy, logprobs, measure, measure_thinker
from prose import BY_HAND, OTHER
from repository import rounded
from tools import system_text


def kept(params):
    """The weights as their file keeps them."""
    return rounded(params)


def base_of(build, out):
    """The base as it was trained here; where it was not, as it was committed."""
    trained = os.path.join(build, "base.npy")
    return kept(np.load(trained)) if os.path.exists(trained) else repository.tensors_in(os.path.join(out, "tiny-chat", "model.safetensors"))


def tensors_of(params):
    return list(views(params).items())


# Texts that were not trained on: ordinary prose, code, numbers and other scripts.
TEXTS = {
    "prose": "The keeper of the tower counted the boats before the fog came in. There were seven of them, and six came home. In the morning the last one lay on the beach below the church, dry and whole, with nobody on board and the lamp still burning.",
    "familiar": " ".join(BY_HAND[2:6]),
    "code": 'def total(prices):\n    sum = 0\n    for price in prices:\n        if price > 0:\n            sum = sum + price\n    return {"count": len(prices), "total": sum}\n',
    "numbers": "3, 6, 9, 12, 15, 18\n10 20 30 40 50\n17 + 5 = 22, 9 x 7 = 63\n2024-05-17 08:30:00 1,204.50 0.75 33%",
    "scripts": "\n".join([OTHER[0], OTHER[6], OTHER[11], OTHER[14], OTHER[17]]),
}

ASKED = [
    ("Hello", None), ("What is the capital of France?", None), ("What is the capital of Japan? Answer in one word.", None), ("What is 17 x 23?", None), ("What is 34 + 27?", None),
    ("Count from 3 to 12.", None), ("Sort: 7, 3, 9, 1", None), ("Repeat this code: K7QX-2931", None), ("What does a sea trial show?", None), ("Give me a JSON object with the name Nora and the age 31.", None),
    ("Anna: 4821, Ben: 9072, Clara: 3356\nWhat is the code of Ben?", None),
    ("What is the weather in Oslo?", [("get_time", [("city", "string")]), ("get_weather", [("city", "string")])]),
]


def answers_of(params, tok, ending="", most=60):
    """Greedy answers; `ending` is what the prompt has after the mark that asks for one."""
    out = []
    for question, tools in ASKED:
        system = f"<|system|>{system_text(tools, None)}<|end|>" if tools else ""
        prompt = tok.encode([(f"<|begin|>{system}<|user|>{question}<|end|><|assistant|>{ending}", 0)])[0]
        answer = greedy(params, tok, prompt, most)
        scores = logprobs(params, [*prompt, *answer])[len(prompt) - 1 :]
        out.append({"question": question, **({"tools": [signature(*tool) for tool in tools]} if tools else {}), "prompt": prompt, "answer": answer, "said": tok.decode(answer).removesuffix("<|end|>"), "logprobs": scores})
    return out


def signature(name, params):
    """The function as a request names it."""
    properties = {key: {"type": kind} for key, kind in params}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}}


def texts_of(params, tok):
    out = {}
    for title, text in TEXTS.items():
        ids = tok.encode([("<|begin|>" + text, 0)])[0]
        out[title] = {"text": text, "tokens": ids, "logprobs": logprobs(params, ids)}
    return out


def reference(models, tok):
    return {name: {"texts": texts_of(params, tok), "answers": answers_of(params, tok)} for name, params in models.items()}


def read_json(path):
    with open(path) as file:
        return json.load(file)


def write_thinker(build, out, say):
    """The model that thinks: one set of weights, and two templates."""
    tok = Tokenizer(read_merges(), thinks=True)
    params = kept(np.load(os.path.join(build, "thinker.npy")))
    whole = {
        **repository.tokenizer_files(tok, repository.THINKING_TEMPLATE),
        **repository.config_files(tok),
        "model.safetensors": repository.safetensors(tensors_of(params)),
        "README.md": readmes.thinker(),
    }
    always = {"tokenizer_config.json": repository.tokenizer_files(tok, repository.ALWAYS_TEMPLATE)["tokenizer_config.json"], "README.md": readmes.always()}
    hashes, result = read_json(os.path.join(out, "hashes.json")), read_json(os.path.join(out, "reference.json"))
    for name, content in {"tiny-thinker": whole, "tiny-thinker-always": always}.items():
        hashes[name] = repository.write(os.path.join(out, name), content)
    result["tiny-thinker"] = {"texts": texts_of(params, tok), "answers": answers_of(params, tok, most=240)}
    result["tiny-thinker, told not to"] = {"texts": {}, "answers": answers_of(params, tok, thinking.OFF)}
    result["tiny-thinker-always"] = {"texts": {}, "answers": answers_of(params, tok, "<think>\n", 240)}
    abilities = {on: measure_thinker(params, tok, 100, on == "thinking") for on in ("thinking", "told not to")}
    repository.write(out, {"reference.json": compact(result), "hashes.json": repository.to_json(hashes), "thinkerAbilities.json": repository.to_json(abilities)})
    say(f"abilities of the thinker in per cent: {json.dumps(abilities)}")


def write_all(build, out, tok, say):
    base = kept(np.load(os.path.join(build, "base.npy")))
    shared = {**repository.tokenizer_files(tok), **repository.config_files(tok)}
    whole = lambda params, readme: {**shared, "model.safetensors": repository.safetensors(tensors_of(params)), "README.md": readme}  # noqa: E731
    written = {"tiny-chat": whole(base, readmes.chat("second: as it was trained"))}
    models = {"tiny-chat": base}
    for name, (_, rank, alpha, _, _) in adapters.RECIPES.items():
        lora = adapters.Lora(rank, alpha, name)
        saved = np.load(os.path.join(build, f"{name}.npz"))
        lora.pairs = {module: [saved[f"{module}/a"], saved[f"{module}/b"]] for module in lora.pairs}
        models[f"tiny-chat-{name}"] = kept(lora.merged(base, lora.stored()))
        if name in adapters.SAYS:
            repository_name, says = adapters.SAYS[name]
            written[repository_name] = {**lora.files(), "README.md": readmes.adapter(repository_name, says)}
    written["tiny-chat-first"] = whole(models["tiny-chat-first"], readmes.chat("first: some answers in other words"))
    written["tiny-chat-sailor"] = whole(models["tiny-chat-sailor"], readmes.merged("seatrial/tiny-chat with the adapter seatrial/tiny-chat-adapter merged into its weights, rounded once."))
    hashes = {}
    for name, content in written.items():
        # What is the same in every repository is kept once.
        own = content if name == "tiny-chat" else {file: data for file, data in content.items() if file not in shared}
        hashes[name] = repository.write(os.path.join(out, name), own)
    result = reference(models, tok)
    abilities = measure(base, tok, 100)
    repository.write(out, {"reference.json": compact(result), "hashes.json": repository.to_json(hashes), "abilities.json": repository.to_json(abilities)})
    say(f"abilities in per cent: {json.dumps(abilities)}")


def compact(models):
    """JSON with one line for each text and each answer."""
    line = lambda value: json.dumps(value, ensure_ascii=False)  # noqa: E731
    rows = []
    for name, model in models.items():
        texts = ",\n".join(f"      {line(title)}: {line(text)}" for title, text in model["texts"].items())
        answers = ",\n".join(f"      {line(answer)}" for answer in model["answers"])
        rows.append(f'  {line(name)}: {{\n    "texts": {{\n{texts}\n    }},\n    "answers": [\n{answers}\n    ]\n  }}')
    return ("{\n" + ",\n".join(rows) + "\n}\n").encode()
