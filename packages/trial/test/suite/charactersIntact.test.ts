import { assert, describe, it } from "@effect/vitest"
import { alikeCalls, bytesAreText, isIntact } from "../../src/suite/charactersIntact.ts"
import { characterWords, drawnWords } from "../../src/suite/texts/characters.ts"

const expected = "cafe\u0301 crew👩\u200d🚀 naïve"

describe("characters_intact", () => {
  it("judges a text that differs only in its characters, and no other text", () => {
    for (const [text, is] of [
      [expected, true],
      [expected.normalize("NFC"), false],
      [expected.normalize("NFD"), false],
      ["cafe crew👩\u200d🚀 naïve", false],
      ["cafe\u0301 crew👩🚀 naïve", false],
      ["cafe\u0301 crew\ud83d naïve", false],
      ["cafe\u0301 crew👩\u200d🚀 na\\u00efve", false],
      ["cafe\u0301 crew\ufffd naïve", false],
      ["A poem about the sea", null],
      ["", null],
      [null, null]
    ] as const) {
      assert.strictEqual(isIntact(text, expected), is, text ?? "no text")
    }
  })

  it("compares the bytes of all reported tokens with the text", () => {
    const answerOf = (content: string, tokens: ReadonlyArray<{ readonly token: string; readonly bytes?: ReadonlyArray<number> | null }>) =>
      JSON.stringify({ choices: [{ message: { content }, logprobs: { content: tokens } }] })
    const [first, second] = [[0xc3], [0xa9]]
    assert.isTrue(
      bytesAreText(
        answerOf("é", [
          { token: "\ufffd", bytes: first },
          { token: "\ufffd", bytes: second },
          { token: "<end>", bytes: [60] }
        ])
      )
    )
    assert.isFalse(
      bytesAreText(
        answerOf("é", [
          { token: "\ufffd", bytes: first },
          { token: "\ufffd", bytes: [0x29] }
        ])
      )
    )
    assert.isFalse(bytesAreText(answerOf("e\u0301", [{ token: "é", bytes: [...first, ...second] }])))
    // vLLM writes the replacement for an incomplete character.
    assert.isNull(bytesAreText(answerOf("é", [{ token: "\ufffd", bytes: [0xef, 0xbf, 0xbd] }])))
    assert.isNull(bytesAreText(answerOf("é", [{ token: "é", bytes: null }])))
    assert.isNull(bytesAreText("{}"))
  })

  it("has words of each kind that begin with two plain letters, and the seed determines them", () => {
    for (const word of characterWords.flat()) assert.match(word, /^[a-z]{2}[^ ]+$/u)
    const orders = Array.from({ length: 50 }, (_, seed) => drawnWords(seed, characterWords))
    assert.isAbove(new Set(orders.map(String)).size, 45)
    for (const words of orders) for (const kind of characterWords) assert.strictEqual(words.filter((word) => kind.includes(word)).length, 2)
    assert.deepStrictEqual(drawnWords(3, characterWords), orders[3])
  })

  it("finds broken arguments of a call if the same call can be read the other way", () => {
    const text = "crew👩 yes"
    const answer = (args: string, finishReason = "stop") => ({
      content: "",
      reasoning: "",
      finishReason,
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      toolCalls: [{ function: { name: "write", arguments: args } }]
    })
    const [intact, cut] = [JSON.stringify({ voice: text }), '{"voice":"crew👩 yes"']
    const judged = (...answers: Parameters<typeof alikeCalls>) => alikeCalls(...answers).map(([, isRight]) => isRight)
    assert.deepStrictEqual(judged(answer(intact), answer(intact), text), [true, true])
    assert.deepStrictEqual(judged(answer(intact), answer(cut), text), [true, false])
    assert.deepStrictEqual(judged(answer(intact), answer(cut, "length"), text), [true, null])
    assert.deepStrictEqual(judged(answer(cut), answer(cut), text), [null, null])
  })
})
