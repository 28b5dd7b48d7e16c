import { assert, describe, it } from "@effect/vitest"
import { comparable } from "../../src/suite/comparable.ts"
import { suite } from "../../src/suite/suiteVersion.ts"

describe("what of an earlier trial a later one is held to", () => {
  const checks = [
    { name: "loaded_tensors", passed: true, detail: "checksum 0123456789abcdef" },
    { name: "needle", passed: true, detail: "3 of 3 in 192 tokens" }
  ]
  const recorded = {
    suite: suite.name,
    suiteVersion: suite.version,
    otherEngine: null,
    checks,
    fingerprints: [{ prompt: "Say it.", sha256: "a" }],
    likelihood: [[-0.5]]
  }
  const likelihood = recorded.likelihood
  for (const [promise, other, expected] of [
    ["all of the same engine and suite", {}, [{ otherEngine: null, checks, fingerprints: recorded.fingerprints, likelihood }]],
    ["no hash of another version of the engine", { otherEngine: "0.33.0" }, [{ otherEngine: "0.33.0", checks: checks.slice(1), fingerprints: [], likelihood }]],
    [
      "of another version of the suite the likelihood of the same texts",
      { suiteVersion: 9 },
      [{ otherEngine: null, checks: [], fingerprints: [], likelihood }]
    ],
    ["nothing of one with other texts", { suiteVersion: suite.textsSince - 1 }, []],
    ["nothing of one that is newer than this", { suiteVersion: suite.version + 1 }, []],
    ["nothing of another suite", { suite: "other" }, []]
  ] as const) {
    it(promise, () => assert.deepStrictEqual(comparable({ ...recorded, ...other }), expected))
  }
})
