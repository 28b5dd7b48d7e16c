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
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Threads that wait for each other leave the processor to other programs.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors import safe_open  # noqa: E402
from torch import nn  # noqa: E402

# Tokens of one pass. It bounds the memory for logits and attention.
PASS_TOKENS = 2048
# Rows of logits that are normalized at once.
ROWS = 64
# Files of early conversions have this constant of each layer, which the model computes itself.
COMPUTED = ("rotary_emb.inv_freq",)


class NotApplicable(Exception):
    """The model cannot be computed here. The message is a code."""


class TensorFiles:
    """The tensors of the safetensors files of a folder, by name."""

    def __init__(self, folder: Path):
        self.files = [safe_open(path, framework="pt", device="cpu") for path in sorted(folder.glob("*.safetensors"))]
        self.places = {name: file for file in self.files for name in file.keys()}
        if not self.places:
            raise NotApplicable("no_safetensors")

    def read(self, name: str) -> torch.Tensor:
        """The tensor in 32 bits."""
        tensor = self.places[name].get_tensor(name)
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
    if getattr(config, "quantization_config", None) is not None:
        raise NotApplicable("quantized")
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


def names_in_files(model: nn.Module, files: TensorFiles) -> dict[int, str]:
    """The tensor of each parameter, by the identity of the parameter. Tied parameters are one."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    names: dict[int, str] = {}
    for name, parameter in parameters.items():
        if name in files.places and id(parameter) not in names:
            names[id(parameter)] = name
    if any(id(parameter) not in names for parameter in parameters.values()):
        raise NotApplicable("other_tensors")
    if any(name not in parameters and not name.endswith(COMPUTED) for name in files.places):
        raise NotApplicable("other_tensors")
    return names


def load_on_use(model: nn.Module, files: TensorFiles, is_kept: bool) -> None:
    """Each module gets its own parameters before it computes, and loses them after that unless they are kept."""
    names = names_in_files(model, files)
    kept: dict[str, nn.Parameter] = {}

    def read(name: str) -> nn.Parameter:
        return kept[name] if name in kept else nn.Parameter(files.read(name), requires_grad=False)

    def attach(module: nn.Module) -> None:
        empty = {key: parameter for key, parameter in module._parameters.items() if parameter is not None}
        own = {key: names[id(parameter)] for key, parameter in empty.items()}

        def load(*_: object) -> None:
            for key, name in own.items():
                if module._parameters[key].device.type == "meta":
                    module._parameters[key] = read(name)
                    if module._parameters[key].shape != empty[key].shape:
                        raise NotApplicable("other_tensors")
                    if is_kept:
                        kept[name] = module._parameters[key]

        def release(*_: object) -> None:
            module._parameters.update(empty)

        if own:
            module.register_forward_pre_hook(load)
            if not is_kept:
                module.register_forward_hook(release)

    for module in model.modules():
        attach(module)


def loaded_whole(config: transformers.PretrainedConfig, folder: Path) -> transformers.PreTrainedModel:
    """The model as Transformers loads it itself, which also knows tensors of other names and shapes."""
    model, report = getattr(transformers, config.architectures[0]).from_pretrained(
        folder, config=config, dtype=torch.float32, attn_implementation="eager", use_safetensors=True, local_files_only=True, output_loading_info=True
    )
    if any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        raise NotApplicable("other_tensors")
    return model.eval()


def opened(config: transformers.PretrainedConfig, folder: Path, memory_bytes: int) -> tuple[transformers.PreTrainedModel, bool]:
    """The model, and whether its weights stay in memory."""
    files = TensorFiles(folder)
    model = without_weights(config)
    is_kept = 4 * sum(parameter.numel() for parameter in model.parameters()) <= memory_bytes
    try:
        load_on_use(model, files, is_kept)
    except NotApplicable:
        if not is_kept:
            raise
        model = loaded_whole(config, folder)
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
