"""Has vLLM's own parser read a command line: prints what each argument became.

    python3 parse_words.py WHEEL < {"arguments": {"name": "kind"}, "words": ["serve", "--name=value"]}

The parser is the wheel's file, run as it is; the arguments that it knows are those that were read from the wheel.
"""

import json
import logging
import re
import sys
import types
import zipfile

file = "vllm/utils/argparse_utils.py"
# What the file imports and does not need for this.
for name, members in {"regex": vars(re), "yaml": {}, "vllm": {}, "vllm.logger": {"init_logger": logging.getLogger}}.items():
    module = types.ModuleType(name)
    vars(module).update({key: value for key, value in members.items() if not key.startswith("__")})
    sys.modules[name] = module
parsing = types.ModuleType("parsing")
exec(compile(zipfile.ZipFile(sys.argv[1]).read(file), file, "exec"), vars(parsing))

asked = json.load(sys.stdin)
parser = parsing.FlexibleArgumentParser(prog="vllm")
serve = parser.add_subparsers(dest="subparser").add_parser("serve")
serve.add_argument("model_tag", nargs="?")
for name, kind in asked["arguments"].items():
    if kind == "switch":
        serve.add_argument(f"--{name}", action="store_true")
    elif kind == "pair":
        serve.add_argument(f"--{name}", action=parsing.BooleanOptionalAction)
    elif kind == "list":
        serve.add_argument(f"--{name}", nargs="+")
    else:
        serve.add_argument(f"--{name}")
print(json.dumps({name: value for name, value in vars(parser.parse_args(asked["words"])).items() if value is not None}))
