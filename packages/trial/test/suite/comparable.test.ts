import { assert, describe, it } from "@effect/vitest"
import { comparable } from "../../src/suite/comparable.ts"
import { suite } from "../../src/suite/suiteVersion.ts"

describe("the parts of an earlier trial that a later one is compared with", () => {
  const loadedChecksum = "0123456789abcdef"
  const recorded = {
    suite: suite.name,
    suiteVersion: suite.version,
    otherEngine: null,
    loadedChecksum,
    fingerprints: [{ prompt: "Say it.", sha256: "a" }],
    likelihood: [[-0.5]]
  }
  const likelihood = recorded.likelihood
  for (const [promise, other, expected] of [
    ["are all results of the same engine and suite", {}, [{ otherEngine: null, loadedChecksum, fingerprints: recorded.fingerprints, likelihood }]],
    [
      "are without the hash and fingerprints of another engine version",
      { otherEngine: "0.33.0" },
      [{ otherEngine: "0.33.0", loadedChecksum: null, fingerprints: [], likelihood }]
    ],
    [
      "are the likelihood of the same texts, from another suite version",
      { suiteVersion: 9 },
      [{ otherEngine: null, loadedChecksum: null, fingerprints: [], likelihood }]
    ],
    ["are none of a trial with other texts", { suiteVersion: suite.textsSince - 1 }, []],
    ["are none of a newer suite version", { suiteVersion: suite.version + 1 }, []],
    ["are none of another suite", { suite: "other" }, []]
  ] as const) {
    it(promise, () => assert.deepStrictEqual(comparable({ ...recorded, ...other }), expected))
  }
})
