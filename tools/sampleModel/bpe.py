"""The byte-level BPE: learnt here, written as tokenizer.json, and applied as the tokenizer that reads that file does."""

import os
import re
from collections import Counter

# GPT-2's expression with the letters and digits of Python's re: texts here hold no numerals other than decimal digits.
WORDS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
SPECIAL = ["<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|pad|>", "<|reserved|>"]
MARKS = ["<tool_call>", "</tool_call>"]
THOUGHTS = ["<think>", "</think>"]
"""Of a model that thinks: in place of the two marks that no text has."""


def _characters():
    out, extra = [], 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            out.append(chr(byte))
        else:
            out.append(chr(extra))
            extra += 1
    return out


CHARACTERS = _characters()
_BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}


def pieces_of(word):
    return tuple(CHARACTERS[byte] for byte in word.encode())


def _merge(pieces, left, right):
    out, i = [], 0
    while i < len(pieces):
        if i + 1 < len(pieces) and pieces[i] == left and pieces[i + 1] == right:
            out.append(left + right)
            i += 2
        else:
            out.append(pieces[i])
            i += 1
    return tuple(out)


def _any_of(marks):
    return re.compile("(" + "|".join(re.escape(mark) for mark in marks) + ")")


def learn(texts, count):
    """The most frequent pair each time, the first in order among equals. Numbers are left out: each digit stays a token."""
    counted, added = Counter(), _any_of(MARKS + SPECIAL)
    for text in texts:
        for part in added.split(text):
            if not added.fullmatch(part):
                counted.update(word for word in WORDS.findall(part) if not any(c.isdigit() for c in word))
    known = [(pieces_of(word), times) for word, times in counted.items()]
    merges = []
    while len(merges) < count:
        pairs = Counter()
        for pieces, times in known:
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        known = [(_merge(pieces, *best), times) for pieces, times in known]
    return merges


class Tokenizer:
    """Text to ids."""

    def __init__(self, merges, thinks=False):
        self.merges = [tuple(pair) for pair in merges]
        self.rank = {pair: at for at, pair in enumerate(self.merges)}
        pieces = CHARACTERS + [left + right for left, right in self.merges]
        self.vocabulary = {piece: at for at, piece in enumerate(pieces)}
        assert len(self.vocabulary) == len(pieces)
        self.special = SPECIAL[:-2] if thinks else SPECIAL
        marks = MARKS + SPECIAL[:-2] + THOUGHTS if thinks else MARKS + SPECIAL
        self.added = {mark: len(pieces) + at for at, mark in enumerate(marks)}
        self.mark = _any_of(marks)
        self.size = len(pieces) + len(self.added)
        self.known = {}

    def word(self, word):
        ids = self.known.get(word)
        if ids is None:
            pieces = pieces_of(word)
            while len(pieces) > 1:
                best = min(zip(pieces, pieces[1:]), key=lambda pair: self.rank.get(pair, 1 << 30))
                if best not in self.rank:
                    break
                pieces = _merge(pieces, *best)
            ids = [self.vocabulary[piece] for piece in pieces]
            if len(self.known) < 200_000:
                self.known[word] = ids
        return ids

    def decode(self, ids):
        """The text of ids, marks included."""
        pieces = {at: bytes(_BYTES[c] for c in piece) for piece, at in self.vocabulary.items()}
        pieces.update({at: mark.encode() for mark, at in self.added.items()})
        return b"".join(pieces[at] for at in ids).decode("utf-8", "replace")

    def encode(self, parts):
        """Ids and weights of a document; a token counts as its last character does."""
        text = "".join(part for part, _ in parts)
        ends, at = [], 0
        for part, weight in parts:
            at += len(part)
            ends.append((at, weight))
        ids, weights, here, at = [], [], 0, 0
        for piece in self.mark.split(text):
            if not piece:
                continue
            for word in [piece] if piece in self.added else WORDS.findall(piece):
                at += len(word)
                while ends[here][0] < at:
                    here += 1
                got = [self.added[word]] if word in self.added else self.word(word)
                ids += got
                weights += [ends[here][1]] * len(got)
        assert at == len(text), text
        return ids, weights


def read_merges():
    """The merges as they were learnt once from 12,000 documents."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "merges.txt")) as file:
        return [line.split() for line in file]
