import { assert, describe, it } from "@effect/vitest"
import { promptTokens } from "../../src/promptTokens.ts"
import { saltOf } from "../../src/suite/saltOf.ts"
import { drawnBeginnings, drawnTexts, drawnWords } from "../../src/suite/texts/drawnTexts.ts"
import { likelihoodTexts } from "../../src/suite/texts/likelihoodTexts.ts"

const seeds = Array.from({ length: 200 }, (_, seed) => seed)

describe("prompts of one trial", () => {
  it("are the same for the same seed, and no two seeds share a text", () => {
    assert.deepStrictEqual(drawnTexts(7, 2), drawnTexts(7, 2))
    assert.deepStrictEqual(drawnBeginnings(7, 8), drawnBeginnings(7, 8))
    const texts = seeds.flatMap((seed) => drawnTexts(seed, 2))
    assert.strictEqual(new Set(texts).size, texts.length)
  })

  it("are pieces of prose of at least 50 characters, most of them different", () => {
    const pieces = seeds.flatMap((seed) => drawnBeginnings(seed, 8))
    for (const piece of pieces) assert.match(piece, /^\S.{40,}\S$/u)
    assert.isAbove(new Set(pieces).size, pieces.length / 8)
  })

  it("hardly share runs of words with the constant texts or with each other, if their words are drawn", () => {
    const runsOf = (text: string) => {
      const words = text.split(" ")
      return words.slice(2).map((word, at) => `${words[at]} ${words[at + 1]} ${word}`)
    }
    assert.deepStrictEqual(drawnWords(7, 2, 64), drawnWords(7, 2, 64))
    const constant = new Set(likelihoodTexts.flatMap(({ text }) => runsOf(text)))
    const runs = seeds.flatMap((seed) => drawnWords(seed, 32, 64).flatMap(runsOf))
    assert.strictEqual(runs.length, 200 * 32 * 62)
    assert.isBelow(runs.filter((each) => constant.has(each)).length, runs.length / 1_000)
    assert.isAbove(new Set(runs).size, runs.length * 0.95)
  })

  it("have salts of the form that the gateway sends", () => {
    assert.match(saltOf("seatrial-core", 1, "needle"), /^[\w-]{43}$/u)
    assert.notStrictEqual(saltOf("a", 1), saltOf("a", 2))
  })

  it("leave the tokens of benchmarks as they were", () => {
    assert.deepStrictEqual(promptTokens(512, 6, 7), [169, 266, 179, 206, 227, 327])
  })
})
