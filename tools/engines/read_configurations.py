"""Reads what Transformers' configuration classes assume where a configuration leaves a value out, without running them, and writes it as TypeScript.

    python3 read_configurations.py TRANSFORMERS_WHEEL > packages/hub/src/generated/configurationDefaults.ts
    python3 read_configurations.py TRANSFORMERS_WHEEL --types > packages/engines/src/generated/transformersTypes.ts

Only the syntax trees of its sources are looked at. Python 3.11 or later, and nothing beside its standard library.
"""

import ast
import json
import re
import sys
import zipfile

# What packages/hub reads of a text configuration and memory depends on. Windows are left out: which layers have them is decided in code.
KEYS = set(
    """
    vocab_size padded_vocab_size hidden_size n_embd n_embed d_model intermediate_size ffn_dim n_inner ffn_hidden_size inner_hidden_size
    num_hidden_layers n_layer num_layers n_layers layers_block_type block_types
    num_attention_heads n_head num_heads n_heads num_key_value_heads num_kv_heads n_head_kv multi_query_group_num num_attention_groups
    num_key_value_heads_per_layer multi_query new_decoder_architecture
    head_dim hidden_size_per_head attention_head_dim kv_channels v_head_dim global_head_dim num_global_key_value_heads
    swa_head_dim swa_v_head_dim swa_num_key_value_heads num_kv_shared_layers
    kv_lora_rank qk_rope_head_dim qk_nope_head_dim index_head_dim swa_kv_lora_rank indexer_n_heads ple_layer_ids sparse_config sparse_attention_config
    max_position_embeddings n_positions max_seq_len seq_length model_max_length max_sequence_length max_seq_length seq_len max_target_positions
    use_sliding_window max_window_layers attention_chunk_size no_rope_layers no_rope_layer_interval
    sliding_window_pattern global_attn_every_n_layers final_logit_softcapping
    num_experts moe_num_experts n_routed_experts num_local_experts num_experts_per_tok num_experts_per_token top_k_experts moe_topk moe_top_k moe_k
    moe_intermediate_size expert_ffn_hidden_size
    hybrid_override_pattern attn_type_list hybrid_layer_pattern attn_layer_indices full_attn_idxs attn_layer_period attn_layer_offset
    full_attention_interval layer_group_size linear_attn_config
    linear_num_value_heads linear_value_head_dim linear_num_key_heads linear_key_head_dim linear_conv_kernel_dim linear_num_heads linear_head_dim
    mamba_num_heads mamba_n_heads n_mamba_heads ssm_state_size mamba_d_state state_size conv_kernel mamba_d_conv conv_kernel_size d_conv
    mamba_expand expand mamba_d_ssm mamba_head_dim mamba_d_head mamba_headdim n_groups mamba_n_groups mamba_ngroups mamba_intermediate_size
    mamba_ssm_cache_dtype mamba_ssm_dtype conv_L_cache
    cross_attention_layers compress_ratios compress_rates loop_num n_recurrent_loops H_cycles
    """.split()
)
# Of these the families' rules for layers are known (packages/hub/src/layerKinds.ts), so that a window alone says which layers have it.
WINDOWED = {"afmoe", "cohere2", "cwm", "exaone4", "gemma2", "gemma3_text", "gemma3n_text", "gpt_oss", "granite_swa", "granitemoe_swa", "olmo3", "vaultgemma"}
# Types that vLLM or SGLang reads with a class of its own, which does not ask for what Transformers' class asks for.
OVERRIDDEN = {"muse_glimmer_text", "muse_spark_text", "unlimited_ocr_text"}
WRAPPED = ["text_config", "llm_config", "language_config", "thinker_config"]


def constant(node):
    """A value that is written down, as JSON has it, or a product of two; None where it is computed."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = constant(node.left), constant(node.right)
        return left * right if isinstance(left, int) and isinstance(right, int) else None
    try:
        return json.loads(json.dumps(ast.literal_eval(node)))
    except (ValueError, TypeError):
        return None


def fields_of(node):
    """A class's fields and what they are without a value given."""
    found = {}
    for part in node.body:
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            found[part.targets[0].id] = part.value
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.value is not None:
            found[part.target.id] = part.value
        elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
            defaults = part.args.defaults
            for argument, value in zip(part.args.args[len(part.args.args) - len(defaults) :], defaults):
                found[argument.arg] = value
    return found


def divides(node):
    """Whether a class refuses a hidden size that the number of attention heads does not divide."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "validate_architecture":
            for inner in ast.walk(part):
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mod):
                    if ast.unparse(inner) == "self.hidden_size % self.num_attention_heads":
                        return True
    return False


def rotates_whole_heads(node, fields):
    """Whether a class turns all of each head by positions: one that knows parts of heads, or keeps latents, may turn less."""
    named = {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)} | {
        inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }
    return "rope_parameters" in fields and not (named | set(fields)) & {"partial_rotary_factor", "qk_rope_head_dim"}


def wrapped_type(fields, classes):
    """The type of the text configuration that a class wraps where that names none; None where it wraps none."""
    specs = fields.get("sub_configs_defaults")
    if not isinstance(specs, ast.Dict):
        return None
    by_key = {key.value: value for key, value in zip(specs.keys, specs.values) if isinstance(key, ast.Constant)}
    for key in WRAPPED:
        spec = by_key.get(key)
        if isinstance(spec, ast.Call):
            named = {keyword.arg: keyword.value for keyword in spec.keywords}
            if "model_type" in named:
                return constant(named["model_type"])
            spec = named.get("config_class")
        if isinstance(spec, ast.Name) and spec.id in classes:
            return constant(classes[spec.id].get("model_type"))
    return None


def read(path):
    archive = zipfile.ZipFile(path)
    names = sorted(name for name in archive.namelist() if re.search(r"models/[^/]+/configuration_[^/]+\.py$", name))
    auto = archive.read("transformers/models/auto/modeling_auto.py").decode()
    written = re.search(r"\nMODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict\((.*?\n\s*\])\s*\)", auto, re.S)
    generating = {model_type for model_type, _ in ast.literal_eval(written.group(1).strip())}
    defaults, wrappers, wrapped, divided, rotated = {}, {}, set(), set(), set()
    for name in names:
        nodes = [node for node in ast.parse(archive.read(name)).body if isinstance(node, ast.ClassDef)]
        classes = {node.name: fields_of(node) for node in nodes}
        dividing = {node.name for node in nodes if divides(node)}
        rotating = {node.name for node in nodes if rotates_whole_heads(node, classes[node.name])}
        for class_name, fields in classes.items():
            model_type = constant(fields["model_type"]) if "model_type" in fields else None
            if not isinstance(model_type, str) or model_type == "":
                continue
            if class_name in dividing and model_type not in OVERRIDDEN:
                divided.add(model_type)
            if class_name in rotating and model_type not in OVERRIDDEN:
                rotated.add(model_type)
            inner = wrapped_type(fields, classes)
            if inner is not None:
                wrappers[model_type] = inner
                wrapped.add(inner)
            kept = KEYS | ({"sliding_window"} if model_type in WINDOWED else set())
            values = {key: constant(value) for key, value in fields.items() if key in kept}
            stated = {key: value for key, value in values.items() if value is not None and value != []}
            text = constant(fields["base_config_key"]) == "text_config" if "base_config_key" in fields else False
            defaults[model_type] = (stated, text)
    tables = {
        model_type: stated
        for model_type, (stated, text) in sorted(defaults.items())
        if (text or model_type in wrapped or model_type in generating) and len(stated) > 2
    }
    version = re.search(r"transformers-([0-9.]+)", path).group(1)
    named = {outer: inner for outer, inner in sorted(wrappers.items()) if inner in tables}
    return version, tables, named, sorted(divided & tables.keys()), sorted(rotated & tables.keys())


def types(path):
    """Each `model_type` that it finds a configuration class by, and those that classes within others are called by."""
    archive = zipfile.ZipFile(path)
    found = set()
    for name in archive.namelist():
        if re.search(r"models/[^/]+/configuration_[^/]+\.py$", name):
            for node in ast.parse(archive.read(name)).body:
                if isinstance(node, ast.ClassDef):
                    found.add(constant(fields_of(node).get("model_type")))
    for name in ["auto_mappings", "configuration_auto"]:
        for node in ast.walk(ast.parse(archive.read(f"transformers/models/auto/{name}.py"))):
            if isinstance(node, ast.Dict):
                found.update(key.value for key, value in zip(node.keys, node.values) if isinstance(key, ast.Constant) and str(constant(value)).endswith("Config"))
            elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and str(constant(node.elts[1])).endswith("Config"):
                found.add(constant(node.elts[0]))
    return sorted(each for each in found if isinstance(each, str) and each != "")


def main():
    if len(sys.argv) != 2 and sys.argv[2:] != ["--types"]:
        sys.exit("usage: python3 read_configurations.py TRANSFORMERS_WHEEL [--types]")
    version, tables, wrappers, divided, rotated = read(sys.argv[1])
    source = f"Generated from the wheel of Transformers {version} by tools/engines/read_configurations.py: not to be edited."
    if sys.argv[2:] == ["--types"]:
        print(f"/** Each type of a configuration that Transformers {version} has a class for. {source} */")
        print(f"export const transformersTypes: ReadonlySet<string> = new Set({json.dumps(types(sys.argv[1]))})")
        return
    print(f"/** What a configuration class of Transformers assumes where a value is left out, by its type. {source} */")
    print("export const configurationDefaults: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {")
    print(",\n".join(f"  {json.dumps(model_type)}: {json.dumps(values)}" for model_type, values in tables.items()))
    print("}\n")
    print(f"/** The type of the text configuration within another one, by that one's type, where it names none. {source} */")
    print("export const textTypes: Readonly<Record<string, string>> = {")
    print(",\n".join(f"  {json.dumps(outer)}: {json.dumps(inner)}" for outer, inner in wrappers.items()))
    print("}\n")
    print(f"/** Types whose class refuses a hidden size that the number of attention heads does not divide. {source} */")
    print(f"export const dividedTypes: ReadonlySet<string> = new Set({json.dumps(divided)})\n")
    print(f"/** Types of which all of each head is turned by positions, by two values at a time. {source} */")
    print(f"export const rotatedTypes: ReadonlySet<string> = new Set({json.dumps(rotated)})")


main()
