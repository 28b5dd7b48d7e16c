# Usage: python mixtures.py FOLDER > RESULT
# Writes small models with random weights, in the names of published files, to folders of FOLDER, and prints what Transformers computes after loading
# them itself. RESULT: {KIND: {"names": [name], "sequences": [[id]], "logprobs": [[number]]}}
import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

SIZES = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 24}
LATENT = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "num_key_value_heads": 4}
GROUPS = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1}
LINEAR = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
SINKS = {"num_local_experts": 4, "num_experts_per_tok": 2, "layer_types": ["sliding_attention", "full_attention"]}
# Values are packed in groups of 32.
PACKED = SINKS | {"intermediate_size": 64}
KINDS = {
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": EXPERTS | {"tie_word_embeddings": True},
    "deepseek_v3": LATENT | GROUPS,
    "llama4_text": {"num_local_experts": 4, "intermediate_size_mlp": 48},
    "gpt_oss": SINKS,
    "gpt_oss_packed": PACKED,
    "qwen3_next": EXPERTS | LINEAR | {"layer_types": ["linear_attention", "full_attention"]},
}


def pack(folder: Path) -> None:
    """Replaces the matrices of all experts by random MXFP4 values, with the names and shapes of published files."""
    tensors = load_file(folder / "model.safetensors")
    for name in [each for each in tensors if each.endswith("experts.gate_up_proj") or each.endswith("experts.down_proj")]:
        experts, inputs, outputs = tensors.pop(name).shape
        tensors[f"{name}_blocks"] = torch.randint(0, 256, (experts, outputs, inputs // 32, 16), dtype=torch.uint8)
        tensors[f"{name}_scales"] = torch.randint(121, 125, (experts, outputs, inputs // 32), dtype=torch.uint8)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "mxfp4"}}))


def write(folder: Path, kind: str) -> None:
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind.removesuffix("_packed"), **SIZES | KINDS[kind]))
    with torch.no_grad():
        # Biases and norms start as zeros and ones.
        for entry in model.state_dict().values():
            entry.add_(torch.randn_like(entry), alpha=0.1)
    model.save_pretrained(folder)
    if kind == "deepseek_v3":
        # Published files have a layer that only drafts tokens.
        save_file({"model.layers.61.eh_proj.weight": torch.ones(2, 2)}, folder / "model-2.safetensors")
    if kind == "gpt_oss_packed":
        pack(folder)


def computed(folder: Path) -> dict:
    settings = {"quantization_config": transformers.Mxfp4Config(dequantize=True)} if folder.name == "gpt_oss_packed" else {}
    # It unpacks to 16 bits, which hold each packed value exactly.
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **settings).float().eval()
    sequences = torch.randint(0, SIZES["vocab_size"], (3, 40))
    with torch.inference_mode():
        rows = model(input_ids=sequences, use_cache=False).logits.double().log_softmax(-1)
    logprobs = rows[:, :-1].gather(2, sequences[:, 1:, None])[..., 0]
    names = [name for path in folder.glob("*.safetensors") for name in safe_open(path, "pt").keys()]
    return {"names": names, "sequences": sequences.tolist(), "logprobs": logprobs.tolist()}


def main() -> None:
    torch.manual_seed(1)
    results = {}
    for kind in KINDS:
        folder = Path(sys.argv[1]) / kind
        write(folder, kind)
        results[kind] = computed(folder)
    json.dump(results, sys.stdout)


main()
