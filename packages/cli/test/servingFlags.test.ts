import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { everyServingField } from "../../../test/models/everyServingField.ts"
import { type ServingFlags, servingOf } from "../src/servingFlags.ts"

it.effect("the flags of `deploy` set each field of a request", () =>
  Effect.gen(function* () {
    const flags: ServingFlags = {
      hostClass: Option.some("h100, h200"),
      runtime: Option.some("vllm"),
      maxContext: Option.some(8_192),
      kvCacheDtype: Option.some("fp8"),
      holdSeconds: Option.some(60),
      yarnFactor: Option.some(2),
      yarnOriginalContext: Option.some(4_096),
      engineFlags: ["seed=1"]
    }
    assert.deepStrictEqual(yield* servingOf(flags), everyServingField)
  })
)
