import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { fidelityItems, fidelitySuite } from "../../src/fidelity/items.ts"

describe("the items of seatrial-fidelity", () => {
  it("are 200 different items of eight kinds and never change", () => {
    const kinds = new Map<string, number>()
    for (const { kind } of fidelityItems) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    assert.deepStrictEqual(
      [...kinds.values()],
      Array.from({ length: 8 }, () => 25)
    )
    const questions = fidelityItems.map(({ question }) => question)
    assert.strictEqual(new Set(questions).size, 200)
    const hash = createHash("sha256").update(questions.join("\n")).digest("hex").slice(0, 16)
    // If this changes, the suite version must change.
    assert.deepStrictEqual([fidelitySuite.suiteVersion, hash], [2, "cd2edd7aad5b685a"])
  })

  const judged: ReadonlyArray<readonly [kind: string, asked: RegExp, right: (question: string) => string, wrong: (question: string) => string]> = [
    ["arithmetic", /^What is (\d+) ([-+x]) (\d+)\?$/, (question) => `Aye: it is ${valueOf(question)}.`, (question) => String(valueOf(question) + 1)],
    ["copying", /^Repeat this code: (.+)$/, (question) => `Aye: ${question.slice(18)}`, (question) => question.slice(18, -1)],
    ["sorting", /^Sort: (.+)$/, (question) => inOrder(question).join(", "), (question) => inOrder(question).reverse().join(", ")],
    ["look-up", /What is the code of/, lookedUp, (question) => `${lookedUp(question)}1`],
    ["format", /^Count from/, (question) => counted(question).join(", "), (question) => counted(question).slice(1).join(", ")],
    ["json", /^Give me a JSON/, (question) => `Here: ${jsonOf(question)}`, (question) => jsonOf(question).replace(/\d/, "x")],
    ["tool choice", /Which tool/, (question) => wantedTool(question), () => "get_weather, calculator"],
    ["facts", /^What /, () => "", (question) => question]
  ]
  for (const [kind, asked, right, wrong] of judged) {
    it(`${kind}: accepts a right answer inside other words, and refuses a wrong one`, () => {
      for (const item of fidelityItems.filter((candidate) => candidate.kind === kind)) {
        assert.match(item.question, asked)
        if (kind !== "facts") assert.isTrue(item.isRight(right(item.question)), `${item.question} ${right(item.question)}`)
        assert.isFalse(item.isRight(wrong(item.question)), item.question)
        assert.isFalse(item.isRight(""), item.question)
      }
    })
  }

  it("facts: a word counts in any case and among other words, but not as a part of a word", () => {
    const item = fidelityItems.find(({ question }) => question === "What is the capital of France?")
    for (const answer of ["Paris", "paris!", "Aye! The capital of France is Paris. Haul away, boys!"]) assert.isTrue(item?.isRight(answer), answer)
    for (const answer of ["Parisian", "London", "Par is"]) assert.isFalse(item?.isRight(answer), answer)
  })
})

const numbers = (text: string) => (text.match(/\d+/gu) ?? []).map(Number)
const valueOf = (question: string): number => {
  const [a = 0, b = 0] = numbers(question)
  return question.includes("+") ? a + b : question.includes("x") ? a * b : a - b
}
const inOrder = (question: string) => numbers(question).toSorted((a, b) => a - b)
const lookedUp = (question: string): string => {
  const [, name = ""] = /code of (\w+)/.exec(question) ?? []
  return new RegExp(`${name}: (\\d+)`).exec(question)?.[1] ?? ""
}
const counted = (question: string) => {
  const [from = 0, to = 0] = numbers(question)
  return Array.from({ length: to - from + 1 }, (_, at) => from + at)
}
const jsonOf = (question: string) => {
  const [, name = "", age = ""] = /name (\w+) and the age (\d+)/.exec(question) ?? []
  return `{"age": ${age}, "name": "${name}"}`
}
const wishes: Readonly<Record<string, string>> = {
  rains: "get_weather",
  "48 times": "calculator",
  sister: "send_email",
  woken: "set_alarm",
  song: "play_music"
}
const wantedTool = (question: string): string => Object.entries(wishes).find(([word]) => question.includes(word))?.[1] ?? ""
