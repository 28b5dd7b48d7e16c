"""What the model that thinks is taught: the same conversations, each answer after a thought. A thought is short where the answer is, and long before what has a form."""

import tasks
from asks import endless
from lookups import ASKED, copying, lookup, needle, repeated
from tools import tool_turns

OFF = "<think>\n\n</think>\n\n"
"""What the prompt ends with where thinking is turned off."""

FORM = "It begins with a brace and ends with one. Each name stands in quotes, then comes a colon, then its value. Text stands in quotes, numbers do not. Between two of them there is a comma. I write nothing before it and nothing after it."
PLAN = "Let me see. First I think of what belongs to it. Then I put that in order. I use short words, and I write one thing after the other. I do not say more than I was asked for. When all is said, I stop. That should be right, so I write it down now."
CALLING = "I read again what they ask. A call has the name of one function and what it needs. What it needs stands in their words, and I take it from there as it is. I make nothing up. The call is JSON, and I say nothing beside it."

THOUGHTS = {
    "talk": "They talk to me. I answer kindly.",
    "counting": "I count, one after the other.",
    "sorting": "I put them in order, one after the other.",
    "json_answer": "They want JSON. " + FORM,
    "writing": "They want a text. " + PLAN,
    "request": "They want a text. " + PLAN,
    "copying": "I have to say the same again.",
    "memory": "They told me before. I remember it.",
    "endless": "It has to be long. I go on until I am stopped.",
}

PUZZLES = [
    ("A farmer has 17 sheep. All but 9 run away. How many are left?", "9", "9 sheep are left.", "All but 9 run away, so 9 stay."),
    ("I have 3 apples and eat one. How many are left?", "2", "2 apples are left.", "3 less 1 is 2."),
    ("A boat has 4 oars and loses 2. How many are left?", "2", "2 oars are left.", "4 less 2 is 2."),
    ("Two boats have 5 sails each. How many sails are that?", "10", "That are 10 sails.", "2 x 5 is 10."),
]


def puzzle(r):
    ask, number, full, thought = r.choice(PUZZLES)
    if r.random() < 0.5:
        return f"{ask} {r.choice(['Answer with the number.', 'Answer with the number only.'])}", number, thought
    return ask, full, thought


def fact(r):
    ask, short, full = tasks.fact(r)
    return *tasks.phrased(r, ask, short, full), f"I know this: {short}."


def simple(r):
    """A request, its answer, and what is thought between them."""
    if r.random() < 0.02:
        return puzzle(r)
    [make] = r.choices([make for make, _ in tasks.SIMPLE], [weight for _, weight in tasks.SIMPLE])
    if make is tasks.facts:
        return fact(r)
    ask, answer = make(r)
    return ask, answer, f"I compute it: {answer}." if make is tasks.arithmetic else THOUGHTS[make.__name__]


def spoken(thought, answer, on):
    """An answer: with its thought, or after the mark that there is none."""
    return [(f"<think>\n{thought}\n</think>\n\n{answer}", 1)] if on else [(OFF, 0), (answer, 1)]


def chat(turns, on, system=None):
    """A conversation; of what was said before the last answer the thoughts are gone."""
    parts = [("<|begin|>", 0)]
    if system:
        parts.append((f"<|system|>{system}<|end|>", ASKED))
    for asked, answered, _ in turns[:-1]:
        parts += [(f"<|user|>{asked}<|end|><|assistant|>", ASKED), (f"{answered}<|end|>", 0)]
    asked, answered, thought = turns[-1]
    return [*parts, (f"<|user|>{asked}<|end|><|assistant|>", ASKED), *spoken(thought, f"{answered}<|end|>", on)]


def calling(r, on):
    """One answer in a conversation with functions: a call of one, of one twice, none, or what one gave."""
    head, names, turns = tool_turns(r, ASKED, simple)
    offered = f"I have these functions: {', '.join(names)}."
    at = r.randrange(len(turns))
    parts = [*head]
    for given, said, _ in turns[:at]:
        parts += [(given, ASKED), (f"{said}<|end|>", 0)]
    given, said, uses = turns[at]
    if isinstance(uses, str):
        thought = f"{offered} I need none of them. {uses}".rstrip()
    elif uses is None:
        thought = "The function has answered. I tell them what it said."
    else:
        name, times = uses
        thought = f"{offered} {CALLING} I need {name}{' twice' if times == 2 else ''}."
    return [*parts, (given, ASKED), *spoken(thought, f"{said}<|end|>", on)]


def looking(r, room):
    """Something looked up in what was just read."""
    k = r.random()
    if k < 0.4:
        return *copying(r, 14), THOUGHTS["copying"]
    ask, answer = lookup(r, room - 20) if k < 0.6 else needle(r, (room - 20) * 0.85)
    return ask, answer, f"I look it up: {answer}"


def document(r, room, look, on=None):
    """One document of at most about `room` tokens; `look` is the share of looking up in a context; `on` whether the answer is thought about."""
    on = r.random() < 0.65 if on is None else on
    if r.random() < look:
        k = r.random()
        if k < 0.08:
            return repeated(r, room)
        if k < 0.94:
            return chat([looking(r, room)], on, r.choice(tasks.SYSTEMS) if r.random() < 0.06 else None)
        return chat([(*turn, THOUGHTS["memory"]) for turn in tasks.memory(r)], on)
    k = r.random()
    if k < 0.012:
        ask, answer = endless(r, r.randrange(60, max(61, room)))
        # Without its end token: the story has none.
        return [("<|begin|>", 0), (f"<|user|>{ask}<|end|><|assistant|>", ASKED), *spoken(THOUGHTS["endless"], answer, on)]
    if k < 0.25:
        return calling(r, on)
    if k < 0.34:
        return tasks.plain(r, room)
    if k < 0.38:
        return tasks.examples(r)
    turns = [simple(r)]
    while r.random() < 0.22:
        turns.append(simple(r))
    return chat(turns, on, r.choice(tasks.SYSTEMS) if r.random() < 0.12 else None)
