import { assert, describe, it } from "@effect/vitest"
import { comparable } from "../../src/suite/comparable.ts"
import { suite } from "../../src/suite/suiteVersion.ts"

describe("what of an earlier trial a later one is held to", () => {
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
    ["all of the same engine and suite", {}, [{ otherEngine: null, loadedChecksum, fingerprints: recorded.fingerprints, likelihood }]],
    ["no hash of another version of the engine", { otherEngine: "0.33.0" }, [{ otherEngine: "0.33.0", loadedChecksum: null, fingerprints: [], likelihood }]],
    [
      "of another version of the suite the likelihood of the same texts",
      { suiteVersion: 9 },
      [{ otherEngine: null, loadedChecksum: null, fingerprints: [], likelihood }]
    ],
    ["nothing of one with other texts", { suiteVersion: suite.textsSince - 1 }, []],
    ["nothing of one that is newer than this", { suiteVersion: suite.version + 1 }, []],
    ["nothing of another suite", { suite: "other" }, []]
  ] as const) {
    it(promise, () => assert.deepStrictEqual(comparable({ ...recorded, ...other }), expected))
  }
})
