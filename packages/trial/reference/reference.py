# Usage: python reference.py FOLDER [--memory-bytes N] < REQUEST > RESULT
#        python -c PROGRAM FOLDER [--memory-bytes N] --request=REQUEST > RESULT
# Computes what a model answers, with Hugging Face Transformers on a CPU, independently of any engine: the log-probability of each token of some sequences
# from the second token on, and the greedy continuation of some prompts. The numbers are the file's; the arithmetic is in 32 bits.
#
# REQUEST: {"sequences": [[id]], "prompts": [[id]], "new_tokens": 16}
# RESULT: {"logprobs": [[number]], "continuations": [[id]], "transformers": "5.19.0", "torch": "2.13.0"}, or {"not_applicable": CODE} for a model that
# Transformers cannot compute here. A model whose weights exceed the memory is read from its files once for each pass, module by module; its prompts are
# not continued. Nothing is downloaded, and no code of the repository runs.
import argparse
import json
import os
import re
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Threads that wait for each other leave the processor to other programs.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors import safe_open  # noqa: E402
from torch import nn  # noqa: E402

try:
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, dot_natural_key, rename_source_key
except ImportError:
    # Before version 5 a model has the names of its files.
    get_model_conversion_mapping = dot_natural_key = None
try:
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors as unpacked
except ImportError:
    # Versions without it do not have the architectures with such files either.
    unpacked = None

# Tokens of one pass. It bounds the memory for logits and attention.
PASS_TOKENS = 2048
# Rows of logits that are normalized at once.
ROWS = 64
# The ends of the names of tensors that hold 4-bit values, and the scale of each 32.
BLOCKS, SCALES = "_blocks", "_scales"
# Groups of 32 values that are unpacked at once.
UNPACKED_ROWS = 2**20
# Files of early conversions have this constant of each layer, which the model computes itself.
COMPUTED = ("rotary_emb.inv_freq",)


class NotApplicable(Exception):
    """The model cannot be computed here. The message is a code."""


class TensorFiles:
    """The tensors of the safetensors files of a folder, by name. Blocks and scales of MXFP4 are one tensor, with the name of its parameter."""

    def __init__(self, folder: Path):
        self.files = [safe_open(path, framework="pt", device="cpu") for path in sorted(folder.glob("*.safetensors"))]
        self.places = {name: file for file in self.files for name in file.keys()}
        if not self.places:
            raise NotApplicable("no_safetensors")
        blocks = {name.removesuffix(BLOCKS) for name in self.places if name.endswith(BLOCKS)}
        self.packed = {name for name in blocks if name + SCALES in self.places}
        self.names = self.packed | {name for name in self.places if name.removesuffix(BLOCKS).removesuffix(SCALES) not in self.packed}

    def stored(self, name: str) -> torch.Tensor:
        """The tensor as it is in the file."""
        return self.places[name].get_tensor(name)

    def shape(self, name: str) -> torch.Tensor:
        """A tensor of the same shape without memory."""
        if name in self.packed:
            experts, outputs, groups, half = self.places[name + BLOCKS].get_slice(name + BLOCKS).get_shape()
            return torch.empty((experts, groups * 2 * half, outputs), device="meta")
        return torch.empty(self.places[name].get_slice(name).get_shape(), device="meta")

    def read(self, name: str) -> torch.Tensor:
        """The tensor in 32 bits."""
        if name in self.packed:
            return unpacked(self.stored(name + BLOCKS), self.stored(name + SCALES), dtype=torch.float32, rows_per_chunk=UNPACKED_ROWS)
        tensor = self.stored(name)
        if not tensor.is_floating_point() or tensor.element_size() < 2:
            raise NotApplicable("quantized")
        return tensor.to(torch.float32)


def configuration(folder: Path) -> transformers.PretrainedConfig:
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except ValueError as error:
        # Without permission for remote code Transformers refuses with this type for unknown architectures, too.
        print(error, file=sys.stderr)
        raise NotApplicable("unknown_architecture") from error
    quantization = getattr(config, "quantization_config", None)
    if quantization is not None:
        if not isinstance(quantization, dict) or quantization.get("quant_method") != "mxfp4":
            raise NotApplicable("quantized")
        # The model has the values that the packed ones stand for.
        del config.quantization_config
    return config


def without_weights(config: transformers.PretrainedConfig) -> transformers.PreTrainedModel:
    """The model without memory for its parameters. Constants that are no parameters are computed."""
    model_class = getattr(transformers, (config.architectures or [""])[0], None)
    if model_class is None or not hasattr(model_class, "_from_config"):
        raise NotApplicable("unknown_architecture")
    register = nn.Module.register_parameter

    def register_without_memory(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = nn.Parameter(parameter.to("meta"), requires_grad=False)
        register(module, name, parameter)

    nn.Module.register_parameter = register_without_memory
    try:
        return model_class._from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    finally:
        nn.Module.register_parameter = register


@dataclass
class Conversion:
    """Makes entries of the model's state from tensors of the files, by a rule of Transformers, such as one entry from the tensors of all experts."""

    target: str
    rule: "WeightConverter | None"
    # Patterns of the rule, with the names of the tensors that they match.
    parts: list[tuple[str | None, str]] = field(default_factory=list)

    def make(self, model: nn.Module, read: Callable[[str], torch.Tensor]) -> dict[str, torch.Tensor]:
        """The entries by name. Without a rule it is one tensor, perhaps of another name."""
        if self.rule is None:
            return {self.target: read(self.parts[0][1])}
        rule = deepcopy(self.rule)
        for pattern, name in self.parts:
            rule.add_tensor(self.target, name, pattern, partial(read, name))
        made = rule.convert(self.target, model=model, config=model.config)
        return {name: value[0] if isinstance(value, list) else value for name, value in made.items()}


def renamer(model: transformers.PreTrainedModel, state: dict) -> Callable[[str], tuple[str, "WeightConverter | None", str | None]]:
    """A function from a tensor's name to the entry it is for, with the rule and its pattern, as Transformers loads files itself."""
    if get_model_conversion_mapping is None:
        return lambda name: (name, None, None)
    rules = get_model_conversion_mapping(model)
    renamings = [rule for rule in rules if isinstance(rule, WeightRenaming)]
    converters = [rule for rule in rules if isinstance(rule, WeightConverter)]
    by_pattern = {pattern: rule for rule in converters for pattern in rule.source_patterns}

    def renamed(name: str) -> tuple[str, "WeightConverter | None", str | None]:
        target, pattern = rename_source_key(name, renamings, converters, model.base_model_prefix, state)
        if target not in state and name in state:
            target, pattern = rename_source_key(name, [], [], model.base_model_prefix, state)
        return target, by_pattern.get(pattern), pattern

    return renamed


def conversions(model: transformers.PreTrainedModel, files: TensorFiles) -> list[Conversion]:
    """What becomes of each tensor of the files. Transformers lists the tensors that a model does not use, such as layers that only draft tokens."""
    state = model.state_dict()
    renamed = renamer(model, state)
    ignored = re.compile("|".join(getattr(model, "_keys_to_ignore_on_load_unexpected", None) or ["(?!)"]))
    found: dict[str, Conversion] = {}
    for name in sorted(files.names, key=dot_natural_key):
        target, rule, pattern = renamed(name)
        if target in state:
            conversion = found.setdefault(target, Conversion(target, rule))
            conversion.parts.append((pattern, name))
            if rule is not conversion.rule or (rule is None and len(conversion.parts) > 1):
                raise NotApplicable("other_tensors")
        elif not name.endswith(COMPUTED) and not ignored.search(target):
            raise NotApplicable("other_tensors")
    return list(found.values())


def sources(model: transformers.PreTrainedModel, files: TensorFiles) -> dict[int, tuple[str, Conversion]]:
    """Name and conversion of each entry of the model's state, by its identity. Tied parameters are one. Conversions are tried with shapes alone."""
    plan: dict[str, Conversion] = {}
    state = model.state_dict(keep_vars=True)
    for conversion in conversions(model, files):
        try:
            made = conversion.make(model, files.shape)
        except Exception as error:
            print(error, file=sys.stderr)
            raise NotApplicable("other_tensors") from error
        if any(name not in state or tensor.shape != state[name].shape for name, tensor in made.items()):
            raise NotApplicable("other_tensors")
        plan.update(dict.fromkeys(made, conversion))
    found: dict[int, tuple[str, Conversion]] = {}
    for name, entry in state.items():
        if name in plan:
            found.setdefault(id(entry), (name, plan[name]))
    if any(id(entry) not in found for entry in state.values()):
        raise NotApplicable("other_tensors")
    return found


class ReadOnUse(dict):
    """Parameters of a module, each read when this module or another uses it. Who looks at all of them, for shapes or the device, gets values without memory
    that are no numbers, so that a result made of them is refused."""

    def __init__(self, parameters: dict[str, nn.Parameter | None], read: Callable[[str], nn.Parameter]):
        blank = torch.tensor(torch.nan)
        super().__init__({key: each if each is None else nn.Parameter(blank.expand(each.shape), requires_grad=False) for key, each in parameters.items()})
        self.source = read
        self.used: dict[str, nn.Parameter | None] = {}

    def __getitem__(self, key: str) -> nn.Parameter | None:
        if key not in self.used:
            # The rule that makes it may look at its shape.
            self.used[key] = super().__getitem__(key)
            if self.used[key] is not None:
                self.used[key] = self.source(key)
        return self.used[key]


def forget(module: nn.Module, *_: object) -> None:
    """Frees what was used of a module and those in it."""
    for each in module.modules():
        each._parameters.used.clear()


def load(model: transformers.PreTrainedModel, files: TensorFiles, is_kept: bool) -> None:
    """Gives the model its weights: all now if they are kept, or else each when it is used, until the module that uses it has computed."""
    found = sources(model, files)
    kept: dict[str, nn.Parameter] = {}

    def read(name: str, conversion: Conversion) -> nn.Parameter:
        return nn.Parameter(conversion.make(model, files.read)[name], requires_grad=False)

    def fill(module: nn.Module) -> None:
        own = {key: found[id(each)] for key, each in module._parameters.items() if each is not None}
        if is_kept:
            for key, (name, conversion) in own.items():
                kept[name] = module._parameters[key] = kept[name] if name in kept else read(name, conversion)
        else:
            module._parameters = ReadOnUse(module._parameters, lambda key: read(*own[key]))
            module.register_forward_hook(forget)
        for key, buffer in module._buffers.items():
            if id(buffer) in found:
                name, conversion = found[id(buffer)]
                module._buffers[key] = conversion.make(model, files.stored)[name].to(buffer.dtype)

    for module in model.modules():
        fill(module)


def opened(config: transformers.PretrainedConfig, folder: Path, memory_bytes: int) -> tuple[transformers.PreTrainedModel, bool]:
    """The model, and whether its weights stay in memory."""
    files = TensorFiles(folder)
    model = without_weights(config)
    is_kept = 4 * sum(parameter.numel() for parameter in model.parameters()) <= memory_bytes
    load(model, files, is_kept)
    return model, is_kept


def passes(sequences: list[list[int]]) -> list[list[int]]:
    """Indexes of the sequences in groups for one pass. Shorter ones are padded at their end, which no earlier token sees."""
    groups: list[list[int]] = []
    for index in sorted(range(len(sequences)), key=lambda each: len(sequences[each])):
        size = len(sequences[index])
        if groups and (len(groups[-1]) + 1) * size <= PASS_TOKENS:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def padded(sequences: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, sequences))
    return torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in sequences])


def scores(logits: torch.Tensor, ids: list[int]) -> list[float]:
    """Log-probabilities of the tokens from the second on."""
    following = torch.tensor(ids[1:])
    values: list[float] = []
    for at in range(0, len(following), ROWS):
        chosen = following[at : at + ROWS]
        rows = logits[at : at + len(chosen)].to(torch.float64)
        values += (rows.gather(1, chosen[:, None])[:, 0] - rows.logsumexp(1)).tolist()
    # A sum with zero turns a negative zero into zero.
    return [round(value, 4) + 0.0 for value in values]


def score(model: nn.Module, sequences: list[list[int]]) -> list[list[float]]:
    results: list[list[float]] = [[] for _ in sequences]
    for group in passes(sequences):
        logits = model(input_ids=padded([sequences[index] for index in group]), use_cache=False).logits
        for row, index in enumerate(group):
            results[index] = scores(logits[row], sequences[index])
    return results


def continue_greedily(model: nn.Module, prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
    """The likeliest tokens after each prompt, also past the end of a turn. Prompts of one length share a pass."""
    settings = transformers.GenerationConfig(do_sample=False, max_new_tokens=new_tokens, eos_token_id=None, pad_token_id=0)
    results: list[list[int]] = [[] for _ in prompts]
    for length in sorted({len(prompt) for prompt in prompts}):
        group = [index for index, prompt in enumerate(prompts) if len(prompt) == length]
        rows = torch.tensor([prompts[index] for index in group])
        answers = model.generate(rows, attention_mask=torch.ones_like(rows), generation_config=settings)
        for row, index in enumerate(group):
            results[index] = answers[row, length:].tolist()
    return results


def compute(folder: Path, request: dict, memory_bytes: int) -> dict:
    model, is_kept = opened(configuration(folder), folder, memory_bytes)
    with torch.inference_mode():
        logprobs = score(model, request["sequences"])
        continuations = continue_greedily(model, request["prompts"], request["new_tokens"]) if is_kept else []
    if not all(abs(value) < float("inf") for values in logprobs for value in values):
        raise NotApplicable("not_finite")
    return {"logprobs": logprobs, "continuations": continuations, "transformers": transformers.__version__, "torch": torch.__version__}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory-bytes", type=int, default=8 * 2**30)
    parser.add_argument("--request", help="the request; absent: from the standard input")
    arguments = parser.parse_args()
    request = json.load(sys.stdin) if arguments.request is None else json.loads(arguments.request)
    transformers.logging.set_verbosity_error()
    try:
        result = compute(arguments.folder, request, arguments.memory_bytes)
    except NotApplicable as error:
        result = {"not_applicable": str(error)}
    print(json.dumps(result, separators=(",", ":"), allow_nan=False))


main()
