import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { expand, localWord } from "../../src/node/localWords.ts"

const mounts = [
  { mountPath: "/models", local: "/state/volumes/a" },
  { mountPath: "/models/cache", local: "/state/pods/b" },
  { mountPath: "/state/", local: "/elsewhere" }
]

describe("localWord", () => {
  const cases: ReadonlyArray<readonly [promise: string, word: string, expected: string]> = [
    ["a mount path itself is rewritten", "/models", "/state/volumes/a"],
    ["a path below it is rewritten, once", "/models/x.json", "/state/volumes/a/x.json"],
    ["the longest mount path wins", "/models/cache/y", "/state/pods/b/y"],
    ["a folder that only begins alike is left alone", "/models-old/x", "/models-old/x"],
    ["the value of a flag is rewritten", "--model=/models/x", "--model=/state/volumes/a/x"],
    ["what a flag's value names is rewritten", "--lora-modules=adapter=/models/x", "--lora-modules=adapter=/state/volumes/a/x"],
    ["a path behind anything but a name stays", "--chat-template={{ a }}=/models/x", "--chat-template={{ a }}=/models/x"],
    ["a closing slash of the mount path changes nothing", "/state/x", "/elsewhere/x"],
    ["a path in the middle of a word stays", "sh -c 'cat /models/x'", "sh -c 'cat /models/x'"]
  ]
  for (const [promise, word, expected] of cases) it(promise, () => assert.strictEqual(localWord(word, mounts), expected))
})

describe("expand", () => {
  const variables = new Map([
    ["HOST", "127.0.0.1"],
    ["EMPTY", ""]
  ])
  const cases: ReadonlyArray<readonly [promise: string, word: string, expected: string]> = [
    ["a known name gives its value", "--host=$(HOST)", "--host=127.0.0.1"],
    ["an empty value is a value", "[$(EMPTY)]", "[]"],
    ["an unknown name stays as written", "$(NOBODY)", "$(NOBODY)"],
    ["two dollar signs are one, and guard what follows", "$$(HOST)", "$(HOST)"],
    ["a shell's own variable is not ours", "$HOST", "$HOST"]
  ]
  for (const [promise, word, expected] of cases) it(promise, () => assert.strictEqual(expand(word, variables), expected))
  it.prop("a word without a dollar sign never changes", [Schema.String], ([word]) => word.includes("$") || expand(word, variables) === word)
})
