"""Conversations with functions: choosing one, filling its arguments, calling several, using a result, and leaving them alone."""

import json

from facts import NAMES, NOUNS, PLACES

_TYPES = {"s": "string", "i": "integer", "n": "number"}


def signature(name, params):
    """How the chat template writes a function."""
    return f"{name}({', '.join(f'{key}: {kind}' for key, kind in params)})"


def system_text(tools, system):
    head = f"{system}\n\n" if system else ""
    return head + "Functions:\n" + "".join(signature(*tool) + "\n" for tool in tools)


def call(name, arguments):
    return f'<tool_call>{json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)}</tool_call>'


def _city(r):
    return {"city": r.choice(PLACES)}


# name, parameters, how people ask, arguments, the words of a result and of the answer made of it
KNOWN = [
    ("get_weather", [("city", "string")], ["What is the weather in {city}?", "How is the weather in {city}?", "Weather in {city}?", "Tell me the weather in {city}.", "Is it raining in {city}?", "What is the weather like in {city} today?"], _city),
    ("get_time", [("city", "string")], ["What time is it in {city}?", "Tell me the time in {city}.", "What is the time in {city}?"], _city),
    ("get_population", [("city", "string")], ["How many people live in {city}?", "What is the population of {city}?"], _city),
    ("add", [("a", "integer"), ("b", "integer")], ["Add {a} and {b}.", "Use the tool to add {a} and {b}.", "What is the sum of {a} and {b}?"], lambda r: {"a": r.randrange(1, 1000), "b": r.randrange(1, 1000)}),
    ("multiply", [("a", "integer"), ("b", "integer")], ["Multiply {a} by {b}.", "Multiply {a} and {b}."], lambda r: {"a": r.randrange(2, 1000), "b": r.randrange(2, 1000)}),
    ("send_message", [("to", "string"), ("text", "string")], ["Send a message to {to}: {text}", "Tell {to}: {text}", "Write to {to}: {text}"], lambda r: {"to": r.choice(NAMES), "text": r.choice([f"The {r.choice(NOUNS)} is ready", f"Bring the {r.choice(NOUNS)}", f"I am in {r.choice(PLACES)}"])}),
    ("search", [("query", "string")], ["Search for {query}.", "Find {query}.", "Look up {query}.", "Search the web for {query}."], lambda r: {"query": r.choice([r.choice(NOUNS), f"{r.choice(NOUNS)} {r.choice(NOUNS)}", r.choice(PLACES)])}),
    ("book_table", [("city", "string"), ("guests", "integer")], ["Book a table in {city} for {guests}.", "I need a table for {guests} in {city}.", "Book a table for {guests} people in {city}."], lambda r: {"city": r.choice(PLACES), "guests": r.randrange(1, 13)}),
    ("get_price", [("item", "string")], ["What is the price of the {item}?", "How much does the {item} cost?", "Price of the {item}?"], lambda r: {"item": r.choice(NOUNS)}),
    ("set_alarm", [("hour", "integer")], ["Set an alarm for {hour}.", "Wake me at {hour}.", "Set the alarm to {hour}."], lambda r: {"hour": r.randrange(0, 24)}),
    ("translate", [("text", "string"), ("language", "string")], ["Translate {text} to {language}.", "Translate {text} into {language}."], lambda r: {"text": r.choice(NOUNS), "language": r.choice(["French", "German", "Spanish", "Italian", "Greek"])}),
    ("lookup_order", [("number", "integer")], ["Where is my order {number}?", "Look up order {number}.", "What is the state of order {number}?"], lambda r: {"number": r.randrange(100, 1000000)}),
    ("convert", [("amount", "integer"), ("from", "string"), ("to", "string")], ["Convert {amount} {from} to {to}.", "How much is {amount} {from} in {to}?"], lambda r: dict(amount=r.randrange(1, 1000), **dict(zip(["from", "to"], r.sample(["dollars", "euros", "pounds", "yen", "francs"], 2))))),
    ("calculate", [("expression", "string")], ["Calculate {expression} with the tool.", "Use the calculator: {expression}", "Calculate {expression}."], lambda r: {"expression": f"{r.randrange(1, 1000)} {r.choice('+-*/')} {r.randrange(1, 1000)}"}),
]


def _made_up(r):
    """A function that nobody knows, asked for by its own words."""
    verb = r.choice("get find set check open close send count read move start stop show list".split())
    noun = r.choice(NOUNS)
    keys = r.sample("name city ship item number date room hour color size price title id user key place text count level speed".split(), r.randrange(1, 4))
    params, arguments = [], {}
    for key in keys:
        kind = r.choice(["string", "string", "integer"])
        params.append((key, kind))
        arguments[key] = r.randrange(0, 1000) if kind == "integer" else r.choice([NAMES, NOUNS, PLACES])[r.randrange(40)]
    given = " and ".join(f"{key} {value}" for key, value in arguments.items())
    ask = r.choice([f"{verb.capitalize()} the {noun} with {given}.", f"{verb.capitalize()} {noun}: {given}.", f"Call {verb}_{noun} with {given}.", f"Use {verb}_{noun} with {given}."])
    return (f"{verb}_{noun}", params), ask, arguments


def request(r):
    """A function, what is asked, and the arguments that follow from it."""
    if r.random() < 0.3:
        return _made_up(r)
    name, params, forms, make = r.choice(KNOWN)
    arguments = make(r)
    ordered = {key: arguments[key] for key, _ in params}
    return (name, params), r.choice(forms).format(**ordered), ordered


def _result(r, name, arguments):
    """What a function gave, and the answer made of it."""
    if name == "get_weather":
        sky, degrees = r.choice(["sunny", "rainy", "cloudy", "windy", "snowy"]), r.randrange(-9, 36)
        city = arguments["city"]
        return r.choice(
            [
                (f'{{"weather": "{sky}", "temperature": {degrees}}}', f"The weather in {city} is {sky}, {degrees} degrees."),
                (f'{{"temperature": {degrees}}}', f"The temperature is {degrees}."),
                (f"{sky}, {degrees} degrees", f"The weather in {city} is {sky}, {degrees} degrees."),
            ]
        )
    key = r.choice(["result", "answer", "value", "price", "time", "state", "code", "temperature", "count", "sum", "status", "weather"])
    value = r.choice([str(r.randrange(0, 10000)), r.choice(NOUNS), str(r.randrange(100000, 1000000))])
    quoted = value if value.isdigit() and r.random() < 0.7 else f'"{value}"'
    return r.choice([(f'{{"{key}": {quoted}}}', f"The {key} is {value}."), (f'{{"{key}": {quoted}}}', f"The {key} is {value}."), (value, f"The result is {value}.")])


def tool_turns(r, asked, simple):
    """A conversation with functions on offer: how it begins, their names, and its turns: what is given, what is said to it, and what that uses: a function and how
    often, None for what one gave, and for none of them what `simple` says beside question and answer."""
    tool, ask, arguments = request(r)
    offered = {tool[0]: tool}
    for _ in range(r.randrange(0, 4)):
        other = request(r)[0]
        offered.setdefault(other[0], other)
    tools = list(offered.values())
    r.shuffle(tools)
    names = [name for name, _ in tools]
    system = r.choice(["You are a helpful assistant.", "Answer briefly."]) if r.random() < 0.1 else None
    head = [("<|begin|>", 0), (f"<|system|>{system_text(tools, system)}<|end|>", asked)]
    k = r.random()
    if k < 0.16:
        question, answer, *more = simple(r)
        if any(word in question for word in ("Calculate", "Convert", "Translate")):
            question, answer, more = "Hello", "Hello! How can I help you?", []
        return head, names, [(f"<|user|>{question}<|end|><|assistant|>", answer, "".join(more))]
    if k < 0.3 and tool[0] in ("get_weather", "get_time", "get_population"):
        first, second = r.sample(PLACES, 2)
        what = {"get_weather": "weather", "get_time": "time", "get_population": "population"}[tool[0]]
        ask = r.choice([f"What is the {what} in {first} and in {second}?", f"What is the {what} in {first} and {second}?", f"Tell me the {what} in {first} and in {second}."])
        calls = call(tool[0], {"city": first}) + "\n" + call(tool[0], {"city": second})
        return head, names, [(f"<|user|>{ask}<|end|><|assistant|>", calls, (tool[0], 2))]
    turns = [(f"<|user|>{ask}<|end|><|assistant|>", call(tool[0], arguments), (tool[0], 1))]
    if r.random() < 0.4:
        given, answer = _result(r, tool[0], arguments)
        turns.append((f"<|tool|>{given}<|end|><|assistant|>", answer, None))
    return head, names, turns


def tool_chat(r, asked, simple):
    """One conversation with functions on offer."""
    head, _, turns = tool_turns(r, asked, simple)
    return head + [part for given, said, _ in turns for part in ((given, asked), (f"{said}<|end|>", 1))]
