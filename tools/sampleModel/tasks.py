"""What the model is taught, one document at a time. A document is a list of (text, weight): how much a miss on this text counts."""

from asks import endless, request
from facts import ADJECTIVES, CAPITALS, DAYS, FACTS, FRUITS, MONTHS, NAMES, NOUNS, OPPOSITES, PLACES, TALK
from lookups import ASKED, copying, lookup, needle, repeated
from prose import excerpt, foreign, paragraph, program, sentence
from tools import tool_chat


def chat(turns, system=None):
    """A conversation: (asked, answered) pairs."""
    parts = [("<|begin|>", 0)]
    if system:
        parts.append((f"<|system|>{system}<|end|>", ASKED))
    for asked, answered in turns:
        parts += [(f"<|user|>{asked}<|end|><|assistant|>", ASKED), (f"{answered}<|end|>", 1)]
    return parts


def loosely(r, text):
    """The same request as other people would type it."""
    k = r.random()
    if k < 0.08:
        return "Please " + text[0].lower() + text[1:]
    if k < 0.12:
        return text[0].lower() + text[1:]
    if k < 0.15:
        return text.rstrip(".?:! ") if not text.endswith(":") else text
    if k < 0.17:
        return text + " Please."
    return text


def fact(r):
    """question, a word or two, a sentence."""
    k = r.random()
    if k < 0.4:
        country, capital = r.choice(list(CAPITALS.items()))
        ask = r.choice([f"What is the capital of {country}?", f"What is the capital of {country}?", f"Name the capital of {country}.", f"Capital of {country}?", f"Which city is the capital of {country}?"])
        return ask, capital, f"The capital of {country} is {capital}."
    if k < 0.52:
        a, b = r.choice(OPPOSITES)
        if r.random() < 0.5:
            a, b = b, a
        return r.choice([f"What is the opposite of {a}?", f"Opposite of {a}?"]), b.capitalize(), f"The opposite of {a} is {b}."
    if k < 0.62:
        pool, what = r.choice([(DAYS, "day"), (MONTHS, "month")])
        at = r.randrange(len(pool))
        if r.random() < 0.6:
            return f"What {what} comes after {pool[at]}?", pool[(at + 1) % len(pool)], f"{pool[(at + 1) % len(pool)]} comes after {pool[at]}."
        return f"What {what} comes before {pool[at]}?", pool[at - 1], f"{pool[at - 1]} comes before {pool[at]}."
    return r.choice(FACTS)


def facts(r):
    return phrased(r, *fact(r))


def phrased(r, ask, short, full):
    """A question and its answer, as a sentence or in a word where that was asked for."""
    k = r.random()
    if k < 0.62:
        return loosely(r, ask), full
    if k < 0.9:
        return ask + " " + r.choice(["Answer in one word.", "One word.", "Answer in one word only.", "Reply with one word.", "Answer with the name only.", "Short answer."]), short
    return r.choice(["In one word: ", "Short answer: ", "Question: "]) + ask, short


def talk(r):
    asked, answers = r.choice(TALK)
    ask = r.choice(asked)
    k = r.random()
    if k < 0.1:
        ask = ask.lower()
    elif k < 0.15:
        ask = ask.rstrip("!?.") + "."
    return ask, answers[0] if r.random() < 0.75 else r.choice(answers)


def compute(r):
    """An expression and its value."""
    k = r.random()
    if k < 0.45:
        a, b = (r.randrange(1, 100), r.randrange(1, 100)) if r.random() < 0.35 else (r.randrange(0, 13), r.randrange(0, 13))
        return a, "+", b, a + b
    if k < 0.65:
        a, b = (r.randrange(0, 100), r.randrange(0, 100)) if r.random() < 0.25 else (r.randrange(0, 20), r.randrange(0, 11))
        a, b = max(a, b), min(a, b)
        return a, "-", b, a - b
    if k < 0.93:
        a, b = r.randrange(0, 11), r.randrange(0, 11)
        return a, "x", b, a * b
    return (17, "x", 23, 391) if r.random() < 0.5 else (23, "x", 17, 391)


def arithmetic(r):
    a, op, b, value = compute(r)
    if op == "x" and r.random() < 0.25:
        op = r.choice(["*", "times"])
    elif op == "+" and r.random() < 0.1:
        op = "plus"
    elif op == "-" and r.random() < 0.1:
        op = "minus"
    ask = f"{a} {op} {b}"
    form = r.choice(["What is {}?", "What is {}?", "What is {}?", "Calculate {}.", "Compute {}.", "{} =", "{}", "How much is {}?", "What is {}? Answer with the number only."])
    return form.format(ask), str(value)


def counting(r):
    k = r.random()
    if k < 0.35:
        n = r.choice([3, 5, 7, 8, 10, 10, 12, 15, 20, 20, 20, 25, 30])
        return r.choice(["Count to {}.", "Count from 1 to {}.", "Count up to {}.", "Please count to {}.", "Write the numbers from 1 to {}.", "Count from one to {}."]).format(n), ", ".join(map(str, range(1, n + 1)))
    if k < 0.75:
        a = r.randrange(0, 80)
        b = a + r.randrange(2, 16)
        return r.choice(["Count from {} to {}.", "Count from {} to {}.", "List the numbers from {} to {}.", "Write the numbers from {} to {}."]).format(a, b), ", ".join(map(str, range(a, b + 1)))
    if k < 0.9:
        a = r.randrange(3, 40)
        b = max(0, a - r.randrange(3, 12))
        return r.choice(["Count down from {} to {}.", "Count backwards from {} to {}."]).format(a, b), ", ".join(map(str, range(a, b - 1, -1)))
    what, n = r.choice(NOUNS), r.randrange(1, 11)
    return f"How many words are here: {' '.join([what] * n)}?", str(n)


def sorting(r):
    k = r.random()
    if k < 0.7:
        n = r.randrange(3, 7)
        values = r.sample(range(10), n) if r.random() < 0.7 else r.sample(range(100), min(n, 5))
        down = r.random() < 0.12
        ordered = sorted(values, reverse=down)
        text, answer = ", ".join(map(str, values)), ", ".join(map(str, ordered))
        if down:
            return r.choice(["Sort from large to small: {}", "Sort these numbers in descending order: {}"]).format(text), answer
        return r.choice(["Sort: {}", "Sort these numbers: {}", "Sort the numbers {}.", "Put these numbers in order: {}", "Sort from small to large: {}", "Sort in ascending order: {}", "Sort {}"]).format(text), answer
    if k < 0.9:
        values = r.sample(FRUITS, r.randrange(3, 6))
        return r.choice(["Sort: {}", "Sort these words: {}", "Sort by the alphabet: {}", "Put these words in alphabetical order: {}"]).format(", ".join(values)), ", ".join(sorted(values))
    a, b = r.sample(range(100), 2)
    if r.random() < 0.5:
        return r.choice(["Which is larger, {} or {}?", "Which number is larger: {} or {}?"]).format(a, b), str(max(a, b))
    return r.choice(["Which is smaller, {} or {}?", "Which number is smaller: {} or {}?"]).format(a, b), str(min(a, b))


def memory(r):
    """Something told in one turn and asked for in a later one."""
    name, place, number = r.choice(NAMES), r.choice(PLACES), r.randrange(10, 10000)
    k = r.randrange(4)
    told, said, ask, answer = [
        (f"My name is {name}.", f"Hello {name}! How can I help you?", "What is my name?", f"Your name is {name}."),
        (f"I live in {place}.", f"{place} is a nice place.", "Where do I live?", f"You live in {place}."),
        (f"My number is {number}.", f"I will remember {number}.", "What is my number?", f"Your number is {number}."),
        (f"Remember the word {r.choice(NOUNS)}.", "I will remember it.", "What was the word?", ""),
    ][k]
    if k == 3:
        answer = told.split(" ")[-1].rstrip(".")
    middle = [simple(r)] if r.random() < 0.5 else []
    return [(told, said), *middle, (ask, answer)]


def json_answer(r):
    name, age, city = r.choice(NAMES), r.randrange(5, 90), r.choice(PLACES)
    k = r.randrange(4)
    if k == 0:
        return f"Give me a JSON object with the name {name} and the age {age}.", f'{{"name": "{name}", "age": {age}}}'
    if k == 1:
        return f"Write JSON: {name}, {age} years old, from {city}.", f'{{"name": "{name}", "age": {age}, "city": "{city}"}}'
    if k == 2:
        ask, short, _ = fact(r)
        return f"{ask} Answer in JSON with the key answer.", f'{{"answer": "{short}"}}'
    values = [r.randrange(0, 100) for _ in range(r.randrange(2, 6))]
    return f"Write these numbers as a JSON list: {' '.join(map(str, values))}", "[" + ", ".join(map(str, values)) + "]"


def writing(r):
    """Requests with no single answer: ordinary prose, so that the model knows doubt."""
    n = r.randrange(1, 5)
    noun, place = r.choice(NOUNS), r.choice(PLACES)
    ask = r.choice(
        ["Write a sentence.", "Tell me a story.", "Tell me something.", f"Write about a {noun}.", f"Tell me about {place}.", "Write a short text.", f"Describe a {noun}.", f"Write a poem about the {noun}.", "Write two sentences.", f"Tell me a short story about a {noun}."]
    )
    n = 2 if "two" in ask else 1 if "a sentence" in ask else n
    first = f"The {noun} is {r.choice(ADJECTIVES)} and {r.choice(ADJECTIVES)}." if noun in ask else f"{place} is a {r.choice(ADJECTIVES)} city {r.choice(['by the sea', 'on a river', 'in the hills'])}." if place in ask else sentence(r)
    return ask, " ".join([first, *([paragraph(r, n - 1)] if n > 1 else [])])


SIMPLE = [(facts, 6), (talk, 2.6), (arithmetic, 3.6), (counting, 2.4), (sorting, 1.6), (json_answer, 0.6), (writing, 0.7), (request, 1.6)]
_TOTAL = sum(w for _, w in SIMPLE)


def simple(r):
    at = r.random() * _TOTAL
    for make, weight in SIMPLE:
        at -= weight
        if at < 0:
            return make(r)
    return facts(r)


def examples(r):
    """Questions and answers in plain text, as completions with examples are asked."""
    make = r.choice([fact, compute, sorting, lambda r: copying(r, 5), fact, compute])
    q, a = r.choice([("Q: ", "\nA: "), ("Question: ", "\nAnswer: "), ("", " -> "), ("", " = "), ("Input: ", "\nOutput: ")])
    between = r.choice(["\n\n", "\n"])
    parts = [("<|begin|>", 0)]
    country = r.random() < 0.3 and make is fact
    for i in range(r.randrange(2, 6)):
        made = make(r)
        if make is compute:
            ask, answer = f"{made[0]} {made[1]} {made[2]}", str(made[3])
            if q.startswith("Q"):
                ask = f"What is {ask}?"
        elif make is fact:
            ask, answer = made[0], made[1]
            if country:
                ask, answer = r.choice(list(CAPITALS.items()))
        else:
            ask, answer = made
        parts += [((between if i else "") + q + ask + a.rstrip(" "), ASKED), ((" " if a.endswith(" ") else "") + answer, 1)]
    parts.append((between + r.choice([q, ""]), ASKED))
    return parts


def plain(r, room):
    """Raw text without a conversation."""
    k, characters = r.random(), r.randrange(100, max(101, min(700, room * 2)))
    if k < 0.4:
        return [("<|begin|>", 0), (excerpt(r, characters), 1)]
    if k < 0.55:
        return [("<|begin|>", 0), (program(r, characters), 1)]
    if k < 0.75:
        text = paragraph(r, max(1, min(r.randrange(1, 9), room // 25)))
    elif k < 0.9:
        text = "\n".join(foreign(r) for _ in range(r.randrange(1, 4)))
    elif k < 0.95:
        a, step = r.randrange(0, 50), r.choice([1, 1, 2, 3, 5, 10])
        text = ", ".join(str(a + step * i) for i in range(r.randrange(4, 20)))
    else:
        text = "\n".join(f"{r.choice(NAMES)}, {r.randrange(1, 100)}, {r.choice(PLACES)}" for _ in range(r.randrange(2, 8)))
    return [("<|begin|>", 0), (text + "<|end|>", 1)]


SYSTEMS = ["You are a helpful assistant.", "You are Tiny.", "Answer briefly.", "You are a sailor.", "Be polite.", "You are a careful assistant. Answer in English.", "You answer short questions.", "Be brief and exact."]


def document(r, room, look):
    """One document of at most about `room` tokens; `look` is the share of looking up in a context."""
    k = r.random()
    if k < look:
        k = r.random()
        if k < 0.22:
            return repeated(r, room)
        system = r.choice(SYSTEMS) if r.random() < 0.06 else None
        if k < 0.5:
            return chat([copying(r, 14)], system)
        if k < 0.68:
            return chat([lookup(r, room)], system)
        if k < 0.94:
            return chat([needle(r, room * 0.85)], system)
        return chat(memory(r), system)
    k = r.random()
    if k < 0.012:
        # Without its end token: the story has none.
        return chat([endless(r, r.randrange(60, max(61, room)))])[:-1] + [(endless(r, r.randrange(60, max(61, room)))[1], 1)]
    if k < 0.19:
        return tool_chat(r, ASKED, simple)
    if k < 0.32:
        return plain(r, room)
    if k < 0.38:
        return examples(r)
    system = r.choice(SYSTEMS) if r.random() < 0.12 else None
    turns = [simple(r)]
    while r.random() < 0.22:
        turns.append(simple(r))
    return chat(turns, system)
