"""Reads an engine's wheel without running it: prints JSON of what it registers and takes.

    python3 read_wheel.py WHEEL
    python3 read_wheel.py WHEEL --missing < {"lines": [["pieces", "of a line"]], "words": ["word"]}

The second prints what of it is in none of its sources: the pieces of a line one after the other in one text, in which an f-string's expressions are gaps.

What a version does not have at the expected place is listed in `not_found`, and the rest is read.

Only the syntax trees of its sources are looked at. Python 3.11 or later, and nothing beside its standard library.
"""

import ast
import json
import re
import sys
import zipfile


class Sources:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.names = [name for name in self.zip.namelist() if name.endswith(".py")]
        self.trees = {}
        self.not_found = []

    def tree(self, name):
        """The syntax tree of a source; an empty one if the wheel lacks it."""
        if name not in self.trees:
            self.trees[name] = ast.parse(self.zip.read(name) if name in self.names else "")
            if name not in self.names:
                self.lacks(name)
        return self.trees[name]

    def lacks(self, what):
        if what not in self.not_found:
            self.not_found.append(what)

    def first(self, *names):
        """The first of these sources that the wheel has: versions move them."""
        return next((name for name in names if name in self.names), names[0])

    def part(self, table, name, default):
        """A definition by name; the default if there is none."""
        if table.get(name) is None:
            self.lacks(name)
            return default
        return table[name]

    def under(self, folder):
        return [name for name in self.names if name.startswith(folder)]

    def constants(self, table, name):
        """The constants of a definition; none if there is none, or if they are computed."""
        values = values_of(self.part(table, name, EMPTY_LIST), table)
        if values is None:
            self.lacks(name)
        return values or []


EMPTY_CLASS = ast.parse("class Empty: pass").body[0]
EMPTY_DICT = ast.Dict(keys=[], values=[])
EMPTY_LIST = ast.List(elts=[])


def function_in(sources, tree, name):
    """A function of a source or a class; an empty class if there is none."""
    found = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name), None)
    if found is None:
        sources.lacks(name)
    return found or EMPTY_CLASS


def assigned(tree):
    """Top-level names and what they are assigned."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def name_of(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return None


def values_of(node, names, seen=frozenset()):
    """The constants of a list, a tuple, a sum of lists or a name of one; None where it is computed."""
    if isinstance(node, ast.Constant):
        return [node.value]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        out = []
        for element in node.elts:
            part = values_of(element.value if isinstance(element, ast.Starred) else element, names, seen)
            if part is None:
                return None
            out += part
        return out
    if isinstance(node, ast.Dict):
        return None if any(not isinstance(key, ast.Constant) for key in node.keys) else [key.value for key in node.keys]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = values_of(node.left, names, seen), values_of(node.right, names, seen)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Subscript) and name_of(node.value) == "Literal":
        return values_of(node.slice, names, seen)
    if isinstance(node, ast.Call) and name_of(node.func) in {"list", "sorted", "get_args", "tuple"} and len(node.args) == 1:
        return values_of(node.args[0], names, seen)
    if isinstance(node, ast.Call) and name_of(node.func) == "keys":
        return values_of(node.func.value, names, seen)
    name = name_of(node)
    if name in names and name not in seen:
        return values_of(names[name], names, seen | {name})
    return None


def hints_of(node, names, seen=frozenset()):
    """A type's alternatives: names of types, and ("Literal", values)."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return hints_of(ast.parse(node.value, mode="eval").body, names, seen)
        return ["None"]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return hints_of(node.left, names, seen) + hints_of(node.right, names, seen)
    if isinstance(node, ast.Subscript):
        outer = name_of(node.value)
        if outer == "Literal":
            return [("Literal", values_of(node.slice, names) or [])]
        if outer in {"Annotated", "SkipValidation"}:
            inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return hints_of(inner, names, seen)
        if outer == "Optional":
            return hints_of(node.slice, names, seen) + ["None"]
        if outer == "Union":
            return [hint for element in node.slice.elts for hint in hints_of(element, names, seen)]
        return [(outer or "object").lower()]
    name = name_of(node)
    if name in {"bool", "int", "float", "str", "dict", "list"}:
        return [name]
    if isinstance(names.get(name), ast.ClassDef):
        bases = [name_of(base) for base in names[name].bases]
        if "dict" in bases:
            return ["dict"]
        if any(base in {"Enum", "IntEnum", "StrEnum"} for base in bases):
            members = [target.id for part in names[name].body if isinstance(part, ast.Assign) for target in part.targets if isinstance(target, ast.Name)]
            return ["int"] if "IntEnum" in bases else [("Literal", [member for member in members if not member.startswith("_")])]
        return [name]
    if name in names and name not in seen:
        target = names[name]
        if isinstance(target, (ast.Subscript, ast.BinOp)):
            return hints_of(target, names, seen | {name})
    return [name or "object"]


def kind_of(hints):
    """How a value of these alternatives is written on a command line; the order is that of both engines' own derivations."""
    plain = [hint for hint in hints if isinstance(hint, str)]
    literals = [hint[1] for hint in hints if isinstance(hint, tuple)]
    if "bool" in plain and "str" in plain:
        return {"kind": "text"}
    if "bool" in plain:
        return {"kind": "boolean"}
    if literals:
        values = [value for literal in literals for value in literal]
        if "str" in plain:
            return {"kind": "text"}
        return {"kind": "choice", "choices": values} if all(isinstance(value, str) for value in values) else {"kind": "integer", "choices": values}
    if any(hint in plain for hint in ("list", "tuple", "set", "sequence")):
        return {"kind": "list"}
    if "int" in plain:
        return {"kind": "integer"}
    if "float" in plain:
        return {"kind": "number"}
    if "dict" in plain:
        return {"kind": "json"}
    if "str" in plain:
        return {"kind": "text"}
    return {"kind": "object"}


def fields_of(cls, classes, names):
    out = {}
    for base in cls.bases:
        if name_of(base) in classes:
            out |= fields_of(classes[name_of(base)], classes, names)
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            out[node.target.id] = node
    return out


def vllm(sources):
    names, classes = {}, {}
    cli_args = sources.first("vllm/entrypoints/common/cli_args.py", "vllm/entrypoints/launchers/cli_args.py", "vllm/entrypoints/openai/cli_args.py")
    for name in sources.under("vllm/config/") + ["vllm/engine/arg_utils.py", cli_args, "vllm/tool_parsers/tool_strict_level.py"]:
        if name not in sources.names:
            continue
        tree = sources.tree(name)
        names |= assigned(tree)
        classes |= {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for name in ["vllm/v1/attention/backends/registry.py", "vllm/entrypoints/anthropic/protocol.py", "vllm/renderers/chat_utils.py", "vllm/entrypoints/chat_utils.py"]:
        if name in sources.names:
            tree = sources.tree(name)
            names |= {key: value for key, value in assigned(tree).items() if key[0].isupper() and key not in names}
            names |= {node.name: node for node in tree.body if isinstance(node, ast.ClassDef) and node.name not in classes}
    names |= {
        key: cls for key, cls in classes.items() if any(name_of(base) in {"Enum", "IntEnum", "StrEnum", "dict"} for base in cls.bases)
    }
    for name in sources.under("vllm/model_executor/layers/quantization/") + sources.under("vllm/model_executor/model_loader/__init__"):
        names |= {key: value for key, value in assigned(sources.tree(name)).items() if key in {"QuantizationMethods", "LoadFormats"}}

    def described(cls, field):
        node = fields_of(classes[cls], classes, names).get(field) if cls in classes else None
        if node is None:
            return {"kind": "object"}
        hints = hints_of(node.annotation, names)
        return {"kind": "json"} if any(isinstance(hint, str) and is_dataclass(hint, classes) for hint in hints) else kind_of(hints)

    out = {}
    kwargs = {}
    for cls in ["EngineArgs", "AsyncEngineArgs"]:
        function = function_in(sources, sources.part(classes, cls, EMPTY_CLASS), "add_cli_args")
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value, field = node.value, None
                if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
                    value, field = value.value, value.slice.value
                if isinstance(value, ast.Call) and name_of(value.func) == "get_kwargs":
                    kwargs[node.targets[0].id] = (name_of(value.args[0]), field)
        for node in ast.walk(function):
            if not (isinstance(node, ast.Call) and name_of(node.func) == "add_argument"):
                continue
            flags = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            entry = {"kind": "text"}
            for keyword in node.keywords:
                if keyword.arg == "action" and name_of(keyword.value) == "BooleanOptionalAction":
                    entry = {"kind": "boolean"}
                elif keyword.arg == "action" and isinstance(keyword.value, ast.Constant) and str(keyword.value.value).startswith("store_"):
                    entry = {"kind": "switch"}
                elif keyword.arg == "type" and name_of(keyword.value) in {"int", "float"}:
                    entry = {"kind": "integer" if name_of(keyword.value) == "int" else "number"}
                elif keyword.arg is None and isinstance(keyword.value, ast.Subscript) and isinstance(keyword.value.slice, ast.Constant):
                    cls, _ = kwargs.get(name_of(keyword.value.value), (None, None))
                    entry = described(cls, keyword.value.slice.value)
                elif keyword.arg is None and isinstance(keyword.value, ast.Dict) and isinstance(keyword.value.values[0], ast.Subscript):
                    cls, _ = kwargs.get(name_of(keyword.value.values[0].value), (None, None))
                    entry = described(cls, keyword.value.values[0].slice.value)
                elif keyword.arg is None and isinstance(keyword.value, ast.Name):
                    cls, field = kwargs.get(keyword.value.id, (None, None))
                    entry = described(cls, field)
            for flag in flags:
                out[flag] = entry
    for cls in ["FrontendArgs"]:
        for field in fields_of(sources.part(classes, cls, EMPTY_CLASS), classes, names):
            out["--" + field.replace("_", "-")] = described(cls, field)
    # Read as JSON, or as one text, in spite of their types: `_customize_cli_kwargs`.
    for field in ["default_chat_template_kwargs", "reasoning_effort_map", "allowed_origins", "allowed_methods", "allowed_headers"]:
        out["--" + field.replace("_", "-")] = {"kind": "json"}
    serve = sources.tree(cli_args)
    for node in ast.walk(serve):
        if isinstance(node, ast.Call) and name_of(node.func) == "add_argument":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and str(argument.value).startswith("--"):
                    actions = [keyword.value for keyword in node.keywords if keyword.arg == "action"]
                    switch = any(isinstance(action, ast.Constant) and str(action.value).startswith("store_") for action in actions)
                    out.setdefault(argument.value, {"kind": "switch" if switch else "text"})

    registry = assigned(sources.tree("vllm/model_executor/models/registry.py"))
    kinds = {
        "_TEXT_GENERATION_MODELS": "text",
        "_MULTIMODAL_MODELS": "multimodal",
        "_TRANSFORMERS_SUPPORTED_MODELS": "transformers",
        "_EMBEDDING_MODELS": "embedding",
        "_LATE_INTERACTION_MODELS": "embedding",
        "_REWARD_MODELS": "reward",
        "_TOKEN_CLASSIFICATION_MODELS": "classification",
        "_SEQUENCE_CLASSIFICATION_MODELS": "classification",
        "_SPECULATIVE_DECODING_MODELS": "speculative",
    }
    architectures = {}
    for table, kind in kinds.items():
        entries = sources.part(registry, table, EMPTY_DICT)
        for key, value in zip(entries.keys, entries.values, strict=True):
            # A comprehension over the table itself stands without a key.
            if key is None:
                continue
            target = values_of(value, registry)
            shown = kind
            if kind == "transformers":
                shown = "multimodal" if target and "MultiModal" in str(target[-1]) else "text"
            elif kind == "multimodal" and speech(key.value):
                shown = "speech"
            elif diffusion(key.value):
                shown = "diffusion"
            architectures.setdefault(key.value, shown)
    reasoning = assigned(sources.tree("vllm/reasoning/__init__.py"))
    tools = assigned(sources.tree("vllm/tool_parsers/__init__.py"))
    parsers = {
        "reasoning": sources.constants(reasoning, "_REASONING_PARSERS_TO_REGISTER"),
        "tools": sources.constants(tools, "_TOOL_PARSERS_TO_REGISTER"),
    }
    return {"arguments": out, "architectures": architectures, "parsers": parsers}


def speech(architecture):
    """Models that write down what they hear: their way in is audio, which is not served."""
    return any(mark in architecture for mark in ("Whisper", "ASR", "Asr", "Speech", "Voxtral", "Transcrib", "Audio", "Diarize"))


def diffusion(architecture):
    """Models that do not write one token after the other."""
    return any(mark in architecture for mark in ("Diffusion", "LLaDA"))


def is_dataclass(name, classes):
    cls = classes.get(name)
    marks = [] if cls is None else [mark.func if isinstance(mark, ast.Call) else mark for mark in cls.decorator_list]
    return any(name_of(mark) in {"config", "dataclass"} for mark in marks)


def sglang(sources):
    names = {}
    for name in sources.under("sglang/srt/arg_groups/") + ["sglang/srt/server_args.py"]:
        names |= assigned(sources.tree(name))
    out = {}
    for name in sources.under("sglang/srt/arg_groups/fields/"):
        for cls in [node for node in sources.tree(name).body if isinstance(node, ast.ClassDef)]:
            for node in cls.body:
                if not (isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Subscript) and name_of(node.annotation.value) == "A"):
                    continue
                parts = node.annotation.slice.elts
                metadata = next((part for part in parts[1:] if isinstance(part, ast.Call) and name_of(part.func) == "Arg"), None)
                given = {} if metadata is None else {keyword.arg: keyword.value for keyword in metadata.keywords}
                if "no_cli" in given:
                    continue
                hints = hints_of(parts[0], names)
                entry = kind_of(hints)
                if "choices" in given:
                    choices = values_of(given["choices"], names)
                    if choices is not None and entry["kind"] == "text":
                        entry = {"kind": "choice", "choices": choices}
                    elif choices is not None:
                        entry = entry | {"choices": choices}
                parser = name_of(given["type_parser"]) if "type_parser" in given else None
                if parser in {"loads", "json_dict_type", "json_list_type"}:
                    entry = {"kind": "json"}
                elif parser is not None and entry["kind"] in {"list", "object"}:
                    entry = {"kind": "text"}
                if "action" in given:
                    entry = {"kind": "switch"} if isinstance(given["action"], ast.Constant) and "store_" in str(given["action"].value) else {"kind": "text"}
                    if name_of(given["action"]) == "BooleanOptionalAction":
                        entry = {"kind": "boolean"}
                elif entry["kind"] == "boolean":
                    entry = {"kind": "switch"}
                flag = given["cli_name"].value if "cli_name" in given else "--" + node.target.id.replace("_", "-")
                for word in [flag] + (values_of(given["aliases"], names) or [] if "aliases" in given else []):
                    out[word] = entry
    for node in ast.walk(sources.tree("sglang/srt/server_args.py")):
        if isinstance(node, ast.Call) and name_of(node.func) == "add_argument":
            flags = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            action = given.get("action")
            entry = {"kind": "text"}
            if isinstance(action, ast.Constant) and "store_" in str(action.value):
                entry = {"kind": "switch"}
            elif name_of(given.get("type")) in {"int", "float"}:
                entry = {"kind": "integer" if name_of(given["type"]) == "int" else "number"}
            for flag in flags:
                out[flag] = entry

    config = sources.tree("sglang/srt/configs/model_config.py")
    config_names = assigned(config)
    listed = sources.part(config_names, "multimodal_model_archs", EMPTY_LIST)
    multimodal = set(values_of(listed, config_names) or [])
    if not multimodal:
        for element in listed.elts:
            multimodal |= set(values_of(element.value if isinstance(element, ast.Starred) else element, config_names) or [])
    pooled = function_in(sources, config, "is_generation_model")
    not_generating = {node.value for node in ast.walk(pooled) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    architectures = {}
    for name in sources.under("sglang/srt/models/"):
        if name.count("/") != 3:
            continue
        tree = sources.tree(name)
        entry = assigned(tree).get("EntryClass")
        if entry is None:
            continue
        for element in entry.elts if isinstance(entry, (ast.List, ast.Tuple)) else [entry]:
            architecture = name_of(element)
            if architecture is not None:
                architectures[architecture] = sglang_kind(architecture, name, multimodal, not_generating)
    function_parser = sources.tree("sglang/srt/function_call/function_call_parser.py")
    reasoning_parser = sources.tree("sglang/srt/parser/reasoning_parser.py")

    def members(tree):
        """The annotated names of a source, of its classes too, and what they are assigned."""
        return {name_of(node.target): node.value for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and node.value is not None}

    return {
        "arguments": out,
        "architectures": architectures,
        "parsers": {
            "reasoning": sources.constants(members(reasoning_parser), "DetectorMap"),
            "tools": sources.constants(members(function_parser), "ToolCallParserEnum"),
        },
    }


def sglang_kind(architecture, file, multimodal, not_generating):
    module = file.rsplit("/", 1)[1]
    if any(mark in architecture for mark in ("NextN", "MTP", "Eagle", "DFlash", "DSpark", "Dspark")) or any(
        mark in module for mark in ("_nextn", "_mtp", "eagle", "dflash", "dspark")
    ):
        return "speculative"
    if "Classification" in architecture:
        return "classification"
    if "Reward" in architecture:
        return "reward"
    if architecture in not_generating or "Embedding" in architecture:
        return "embedding"
    if speech(architecture):
        return "speech"
    if diffusion(architecture):
        return "diffusion"
    if architecture in multimodal:
        return "multimodal"
    # Its fallback imports the repository's own Python.
    if architecture.startswith("Transformers"):
        return "fallback"
    if architecture == "ChatGLMModel" or any(mark in architecture for mark in ("ForCausalLM", "LMHead", "CausalLM")):
        return "text"
    return "multimodal" if "ForConditionalGeneration" in architecture else "other"


class Quantizations:
    """The methods of quantization that an engine registers, and the least compute capability (8.9 is 89) of each: None where it is worked out at run time."""

    def __init__(self, sources):
        self.sources = sources
        self.classes = {}

    def imported(self, file):
        """Names that a source imports, and the file and name that each is of."""
        out = {}
        package = file.rsplit("/", 1)[0]
        for node in ast.walk(self.sources.tree(file)):
            if not isinstance(node, ast.ImportFrom):
                continue
            base = package.split("/")[: len(package.split("/")) - (node.level - 1)] if node.level else []
            module = "/".join(base + (node.module.split(".") if node.module else []))
            for alias in node.names:
                for of in (f"{module}.py", f"{module}/__init__.py"):
                    if of in self.sources.names:
                        out[alias.asname or alias.name] = (of, alias.name)
        return out

    def of(self, file, name, depth=0):
        """The class of a name in a source, with the source that it stands in."""
        if file is None or depth > 8:
            return None
        for node in self.sources.tree(file).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return file, node
        known = self.imported(file).get(name)
        return None if known is None or known == (file, name) else self.of(*known, depth + 1)

    def least(self, method, file, name, depth=0):
        found = self.of(file, name)
        if found is None or depth > 8:
            return None
        file, cls = found
        for node in cls.body:
            if isinstance(node, ast.FunctionDef) and node.name == "get_min_capability":
                said = [part.value for part in node.body if isinstance(part, ast.Return)]
                if not said:
                    said = [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and isinstance(part.value, ast.Constant)]
                return self.value(method, file, said[-1] if said else None, depth)
        for base in cls.bases:
            known = self.least(method, file, name_of(base), depth + 1)
            if known is not None:
                return known
        return None

    def value(self, method, file, node, depth):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        # `100 if self.use_mxfp8 else 80`: the configuration's own method decides.
        if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Attribute) and node.test.attr.startswith("use_"):
            chosen = node.body if node.test.attr[4:] in method else node.orelse
            return self.value(method, file, chosen, depth)
        if isinstance(node, ast.Call) and name_of(node.func) == "get_min_capability" and isinstance(node.func, ast.Attribute):
            return self.least(method, file, name_of(node.func.value), depth + 1)
        return None

    def table(self, file, entries):
        return {method: self.least(method, file, name) for method, name in entries.items()}


def dictionary(node):
    return {key.value: name_of(value) for key, value in zip(node.keys, node.values) if isinstance(key, ast.Constant)}


def vllm_quantizations(sources):
    file = "vllm/model_executor/layers/quantization/__init__.py"
    tree = sources.tree(file)
    names = assigned(tree)
    methods = sources.constants(names, "QuantizationMethods")
    refused = set(values_of(names.get("DEPRECATED_QUANTIZATION_METHODS", ast.List(elts=[])), names) or [])
    function = function_in(sources, tree, "get_quantization_config")
    tables = {name_of(node.target): node.value for node in ast.walk(function) if isinstance(node, ast.AnnAssign)}
    entries = dictionary(sources.part(tables, "method_to_config", EMPTY_DICT))
    # Those without an entry only quantize while they load; `deepseek_config` is one of two classes, of which the newer extends the older.
    entries = {
        method: "DeepseekV4FP8Config" if name == "deepseek_config" else name for method, name in entries.items() if method in methods and method not in refused
    }
    return Quantizations(sources).table(file, entries)


def sglang_quantizations(sources):
    file = "sglang/srt/layers/quantization/__init__.py"
    tree = sources.tree(file)
    entries = dictionary(sources.part(assigned(tree), "BASE_QUANTIZATION_METHODS", EMPTY_DICT))
    for node in tree.body:
        tested = {name_of(part.func) for part in ast.walk(node.test) if isinstance(part, ast.Call)} if isinstance(node, ast.If) else set()
        if "is_cuda" in tested:
            for part in ast.walk(node):
                if isinstance(part, ast.Call) and name_of(part.func) == "update" and isinstance(part.args[0], ast.Dict):
                    entries |= dictionary(part.args[0])
    return Quantizations(sources).table(file, entries)


class Adaptable:
    """The architectures that vLLM applies LoRA adapters to, and the names of the embeddings that it applies them to as well: classes with `SupportsLoRA` among their ancestors."""

    models = "vllm/model_executor/models"

    def __init__(self, sources):
        self.sources = sources
        self.classes = Quantizations(sources)

    def ancestry(self, file, name, depth=0):
        found = self.classes.of(file, name)
        if found is None or depth > 10:
            return []
        file, cls = found
        bases = [base.value if isinstance(base, ast.Subscript) else base for base in cls.bases]
        return [(file, cls)] + [ancestor for base in bases if name_of(base) for ancestor in self.ancestry(file, name_of(base), depth + 1)]

    def embeddings(self, ancestors):
        for file, cls in ancestors:
            for node in cls.body:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
                if target is None or name_of(target) != "embedding_modules" or cls.name == "SupportsLoRA" or node.value is None:
                    continue
                if isinstance(node.value, ast.Attribute) and name_of(node.value.value):
                    return self.embeddings(self.ancestry(file, name_of(node.value.value)))
                return values_of(node.value, {}) or []
        return []

    def table(self):
        out = {}
        for node in self.sources.tree(f"{self.models}/registry.py").body:
            if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and str(name_of(node.targets[0])).endswith("_MODELS")):
                continue
            for key, value in zip(node.value.keys, node.value.values):
                if key is None or not isinstance(value, ast.Tuple):
                    continue
                module, name = [element.value for element in value.elts]
                file = next((of for of in (f"{self.models}/{module.replace('.', '/')}.py", f"{self.models}/{module.replace('.', '/')}/__init__.py") if of in self.sources.names), None)
                ancestors = self.ancestry(file, name)
                if any(cls.name == "SupportsLoRA" for _, cls in ancestors):
                    out[key.value] = sorted(self.embeddings(ancestors))
        return out


def config_types(sources):
    """Each `model_type` that the engine may have a class or a rule of its own for: what its classes are called by, what is registered and what is compared with one."""
    found = set()

    def take(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", node.value):
            found.add(node.value)

    for name in sources.names:
        if b"model_type" not in sources.zip.read(name) and b"_CONFIG_REGISTRY" not in sources.zip.read(name):
            continue
        for node in ast.walk(sources.tree(name)):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = {name_of(target) for target in (node.targets if isinstance(node, ast.Assign) else [node.target])}
                if "model_type" in targets and node.value is not None:
                    take(node.value)
                if "_CONFIG_REGISTRY" in targets and isinstance(node.value, ast.Call):
                    found.update(keyword.arg for keyword in node.value.keywords if keyword.arg is not None)
            elif isinstance(node, ast.Compare) and any("model_type" in ast.unparse(part) for part in [node.left, *node.comparators]):
                for part in [node.left, *node.comparators]:
                    for constant in part.elts if isinstance(part, (ast.List, ast.Tuple, ast.Set)) else [part]:
                        take(constant)
            elif isinstance(node, ast.Call) and name_of(node.func) == "register" and node.args:
                take(node.args[0])
    return sorted(found)


def texts_of(tree):
    """All texts of a source, those in an f-string's expressions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value for inner in node.values for part in ast.walk(inner) if isinstance(part, ast.Constant) and isinstance(part.value, str))


def holds(text, pieces):
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def missing(sources, wanted):
    lines, words = [tuple(pieces) for pieces in wanted["lines"]], set(wanted["words"])
    lines = set(lines)
    for name in sources.names:
        raw = sources.zip.read(name).decode("utf-8", "replace")
        words -= {word for word in words if word in raw}
        # A text may be put together from several lines of a source, but hardly within its first words.
        possible = {pieces for pieces in lines if pieces[0][:6] in raw}
        for text in texts_of(ast.parse(raw)) if possible else []:
            lines -= {pieces for pieces in possible if holds(text, pieces)}
    return {"lines": sorted(lines), "words": sorted(words)}


def main():
    path = sys.argv[1]
    if sys.argv[2:] == ["--missing"]:
        print(json.dumps(missing(Sources(path), json.load(sys.stdin))))
        return
    file = path.rsplit("/", 1)[-1]
    engine, version = file.split("-")[:2]
    sources = Sources(path)
    read = vllm(sources) if engine == "vllm" else sglang(sources)
    quantizations = vllm_quantizations(sources) if engine == "vllm" else sglang_quantizations(sources)
    metadata = next((name for name in sources.zip.namelist() if name.endswith(".dist-info/METADATA")), None)
    if metadata is None:
        sources.lacks("METADATA")
    lines = "" if metadata is None else sources.zip.read(metadata).decode().split("\n\n")[0]
    needs = [line[len("Requires-Dist: ") :] for line in lines.splitlines() if line.startswith("Requires-Dist: ")]
    packages = sorted({re.match("[A-Za-z0-9._-]+", line)[0].lower() for line in needs if "extra ==" not in line})
    adaptable = Adaptable(sources).table() if engine == "vllm" else {}
    facts = {"quantizations": quantizations, "packages": packages, "adaptable": adaptable, "types": config_types(sources)}
    print(json.dumps({"engine": engine, "version": version, "not_found": sources.not_found} | facts | read))


main()
