"""Asks a gateway through the clients that Python has, unmodified: each line in is one use of a client, each line out is what its user saw of it."""

import asyncio
import json
import sys
import threading

import anthropic
import openai
import pydantic

clients = {"openai": (openai.OpenAI, openai.AsyncOpenAI), "anthropic": (anthropic.Anthropic, anthropic.AsyncAnthropic)}
finals = {"chat.completions": "get_final_completion", "responses": "get_final_response", "messages": "get_final_message"}
cancels = {}
lock = threading.Lock()


def tell(line):
    with lock:
        print(json.dumps(line, default=str), flush=True)


def plain(value):
    if hasattr(value, "model_dump"):
        # A field that the client does not know is kept as it came.
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    return value


def fault(error):
    return {
        "kind": type(error).__name__,
        "family": [each.__name__ for each in type(error).__mro__],
        "message": str(error),
        "status": getattr(error, "status_code", None),
        "code": getattr(error, "code", None) or getattr(error, "error_code", None),
        "type": getattr(error, "type", None),
        "param": getattr(error, "param", None),
        "requestId": getattr(error, "request_id", None),
        "body": getattr(error, "body", None),
    }


def options(use):
    by_token = use["client"] == "anthropic" and use["auth"] == "bearer"
    auth = {"auth_token": use["key"]} if by_token else {"api_key": use["key"]}
    return {"base_url": use["base"], "max_retries": use["retries"], "timeout": use["timeout"], **auth}


made = {}


def shared(make, given):
    """One client for all uses with the same options, as programs have it."""
    key = (make.__name__, make.__module__, *sorted(given.items()))
    with lock:
        if key not in made:
            made[key] = make(**given)
        return made[key]


class Answer(pydantic.BaseModel):
    word: str


def arguments(use):
    """What no signature allows goes beside it, and a schema by its class."""
    args = dict(use["args"])
    if use["extra"]:
        args["extra_body"] = use["extra"]
    if args.get("response_format") == "Answer":
        args["response_format"] = Answer
    return args


def method_of(client, path):
    for name in path.split("."):
        client = getattr(client, name)
    return client


def whole(client, use, seen):
    value = method_of(client, use["call"])(*use["words"], **arguments(use))
    seen["requestId"] = getattr(value, "_request_id", None)
    seen["value"] = [plain(item) for item in value] if use["how"] == "list" else plain(value)


def streamed(client, use, seen):
    with method_of(client, use["call"])(**arguments(use), stream=True) as stream:
        seen["requestId"] = stream.response.headers.get("x-request-id")
        for item in stream:
            seen["items"].append(plain(item))
            tell({"id": use["id"], "count": len(seen["items"])})
            if len(seen["items"]) == use["leave"]:
                stream.close()
                return


def helped(client, use, seen):
    with method_of(client, use["call"] + ".stream")(**arguments(use)) as stream:
        for item in stream:
            seen["items"].append({"type": item.type})
        seen["value"] = plain(getattr(stream, finals[use["call"]])())


async def cancelled(client, use, seen):
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(method_of(client, use["call"])(**arguments(use)))
    cancels[use["id"]] = lambda: loop.call_soon_threadsafe(task.cancel)
    try:
        seen["value"] = plain(await task)
    finally:
        await client.close()


def run(use):
    seen = {"items": [], "value": None, "error": None, "requestId": None}
    make, make_async = clients[use["client"]]
    try:
        if use["how"] == "cancel":
            asyncio.run(cancelled(make_async(**options(use)), use, seen))
        else:
            client = shared(make, options(use))
            {"stream": streamed, "helper": helped}.get(use["how"], whole)(client, use, seen)
    except (Exception, asyncio.CancelledError) as error:
        seen["error"] = fault(error)
    tell({"id": use["id"], "seen": seen})


for line in sys.stdin:
    use = json.loads(line)
    if "cancel" in use:
        cancels.get(use["cancel"], lambda: None)()
    else:
        threading.Thread(target=run, args=(use,), daemon=True).start()
