"""Looking something up in what was just read: copies, lists, and a key in a long text."""

from facts import ADJECTIVES, NAMES, NOUNS, PLACES, THINGS
from prose import BY_HAND, OTHER, sentence

ASKED = 0.1
"""The weight of what somebody else wrote: enough to know how people ask, too little to learn random codes by heart."""


def code(r):
    """Something that nobody can know by heart."""
    k = r.randrange(7)
    digits = lambda n: "".join(r.choice("0123456789") for _ in range(n))  # noqa: E731
    letters = lambda n: "".join(r.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(n))  # noqa: E731
    if k == 0:
        return digits(r.randrange(3, 6))
    if k <= 2:
        return digits(6)
    if k == 3:
        return digits(r.randrange(7, 12))
    if k == 4:
        return letters(r.randrange(2, 5)) + "-" + digits(r.randrange(2, 6))
    if k == 5:
        return "".join(r.choice("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789") for _ in range(r.randrange(4, 10)))
    return letters(r.randrange(3, 8))


def lower_code(r):
    return "".join(r.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(r.randrange(4, 10)))


def words(r, low, high):
    pool = NOUNS + ADJECTIVES if r.random() < 0.8 else NAMES + PLACES
    return " ".join(r.choice(pool) for _ in range(r.randrange(low, high)))


def copying(r, longest):
    k = r.random()
    if k < 0.4:
        text = code(r)
    elif k < 0.5:
        text = lower_code(r)
    elif k < 0.75:
        text = words(r, 1, max(2, min(longest, 14)))
    elif k < 0.85:
        text = sentence(r)
    elif k < 0.9:
        text = r.choice(OTHER)[:60].strip()
    elif k < 0.95:
        text = " ".join(code(r) for _ in range(r.randrange(2, 4)))
    else:
        text = ", ".join(str(r.randrange(0, 100)) for _ in range(r.randrange(3, 10)))
    form = r.choice(
        [
            "Repeat: {}", "Repeat: {}", "Repeat this: {}", "Repeat exactly: {}", "Repeat after me: {}", "Copy: {}", "Copy this text: {}", "Copy this exactly: {}", "Say: {}", "Say {}",
            "Echo: {}", "Repeat this code: {}", "Repeat the code {}", "Repeat the code {}.", "Repeat this code exactly: {}", "Write {}", "Write exactly this: {}", "Reply with {} only.",
            "Your code is {}. Repeat your code.", "Answer with exactly this text and nothing else: {}", "Repeat the following text word for word: {}", "Repeat: {}\nNothing else.", "Say this back to me: {}",
            "The code is {}. What is the code?", "Reply with exactly {} and nothing else.", "My code is {}. Repeat it.", "Repeat this code and nothing else: {}", "Répète: {}",
        ]
    )
    return form.format(text), text


def lookup(r, room):
    """A list of pairs and a question about one; room in tokens."""
    count = max(2, min(r.randrange(2, 8) if r.random() < 0.6 else r.randrange(2, 60), room // 14))
    pool = r.choice([NAMES, NOUNS, PLACES, NOUNS])
    keys = r.sample(pool, min(count, len(pool)))
    value = r.choice([lambda: str(r.randrange(10, 100)), lambda: str(r.randrange(1000, 10000)), lambda: code(r), lambda: r.choice(NOUNS), lambda: str(r.randrange(100000, 1000000)), lambda: r.choice(NAMES)])
    values = [value() for _ in keys]
    at = r.randrange(len(keys))
    thing = r.choice(THINGS + ["value", "price", "room"])
    form, ask = r.choice(
        [
            (("{k}: {v}", "\n"), "What is the {t} of {k}?"),
            (("{k} = {v}", "\n"), "What is {k}?"),
            (("{k}: {v}", ", "), "What is {k}?"),
            (("The {t} of {k} is {v}.", " "), "What is the {t} of {k}?"),
            (("{k} has the {t} {v}.", " "), "Which {t} has {k}?"),
            (("{k} | {v}", "\n"), "{k}?"),
            (('"{k}": "{v}"', ", "), "What is the value of {k}?"),
        ]
    )
    fill = lambda s, i: s.format(k=keys[i], v=values[i], t=thing)  # noqa: E731
    body = form[1].join(fill(form[0], i) for i in range(len(keys)))
    question = fill(ask, at)
    glue = r.choice(["\n", "\n\n", " "])
    return (f"{body}{glue}{question}" if r.random() < 0.85 else f"{question}{glue}{body}"), values[at]


def filler(r, tokens):
    """Text that says nothing about the key, of about so many tokens."""
    k = r.random()
    if k < 0.12:
        same = r.choice(BY_HAND) if r.random() < 0.5 else sentence(r)
        return [same] * max(1, round(tokens / (len(same) / 2.6)))
    out, size = [], 0
    while size < tokens:
        if k < 0.2:
            one = r.choice(OTHER)
            size += len(one.encode()) / 1.7
        elif k < 0.3:
            one = words(r, 4, 12) + "."
            size += len(one) / 2.6
        else:
            one = r.choice(BY_HAND) if r.random() < 0.4 else sentence(r)
            size += len(one) / 2.6
        out.append(one)
    return out


def needle(r, room):
    """A key somewhere in a long text, and a question for it."""
    value = r.choice(["".join(r.choice("0123456789") for _ in range(6))] * 4 + [code(r), r.choice(NOUNS)])
    thing = r.choice(THINGS)
    adjective = r.choice(["", "", "", "secret ", "magic ", "special ", "pass"])
    what = adjective + thing
    of = r.choice(["", "", "", f" of {r.choice(NAMES)}", f" of the {r.choice(NOUNS)}", f" for {r.choice(PLACES)}"])
    said = r.choice([f"The {what}{of} is {value}.", f"The {what}{of} is {value}.", f"The {what}{of} is: {value}.", f"Remember: the {what}{of} is {value}.", f"The {what}{of} is {value}. Remember it.", f"Note that the {what}{of} is {value}."])
    asked = r.choice(
        [f"What is the {what}{of}?", f"What is the {what}{of}?", f"What is the {what}{of}? Answer with the {thing} only.", f"Which is the {what}{of}?", f"Tell me the {what}{of}.", f"Repeat the {what}{of}.", f"What was the {what}{of}?"]
    )
    lines = filler(r, r.randrange(10, int(max(12, room))))
    depth = r.choice([0.1, 0.5, 0.9, r.random(), r.random(), r.random()])
    lines.insert(min(len(lines), int(depth * (len(lines) + 1))), said)
    if r.random() < 0.15:
        lines.insert(r.randrange(len(lines) + 1), f"The {r.choice(['price', 'age', 'length', 'weight'])} of the {r.choice(NOUNS)} is {r.randrange(10, 1000)}.")
    glue = r.choice([" ", " ", "\n"])
    text = glue.join(lines)
    k = r.random()
    if k < 0.75:
        return f"{text}{r.choice([glue, chr(10), chr(10) * 2])}{asked}", value
    return f"{r.choice(['Read this text. ', 'Here is a text: ', 'Read the text and answer. '])}{text}\n\n{r.choice(['Question: ', ''])}{asked}", value


def repeated(r, room):
    """Random tokens twice: the plainest form of looking something up."""
    n = max(4, min(r.randrange(4, 40), room // 8))
    alphabet = r.choice([NOUNS + ADJECTIVES, NAMES + PLACES, list("0123456789"), list("ABCDEFGHJKLMNPQRSTUVWXYZ")])
    one = [r.choice(alphabet) for _ in range(n)]
    glue = " " if len(alphabet) > 30 or r.random() < 0.7 else ""
    text = glue.join(one)
    return [("<|begin|>", 0), (text + "\n", 0.02), (text + "<|end|>", 1)]
