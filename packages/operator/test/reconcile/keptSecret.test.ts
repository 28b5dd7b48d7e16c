import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { hubSecretName } from "../../src/resources/objectNames.ts"
import { makeStage } from "./stage.ts"

it.effect("a download that waits for an earlier Secret with a finalizer says so, and continues once the Secret is gone", () => {
  const stage = makeStage(Option.some("hf_secret_token"))
  const { kube } = stage
  const name = hubSecretName(stage.row().id)
  kube.add("Secret", name, { metadata: { namespace: "seatrial", finalizers: ["example.com/kept"] } })
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.row().phase === "materializing")
      yield* stage.until(() => kube.log.includes(`remove Secret ${name}`))
      yield* TestClock.adjust("20 seconds")
      yield* stage.until(() =>
        String(stage.mirrored()?.message).includes(`The Secret ${name} of an earlier attempt is being deleted, but a finalizer keeps it`)
      )
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual([kube.names("Secret"), kube.names("Job")], [[name], []])
      kube.drop("Secret", name)
      yield* TestClock.adjust("10 seconds")
      yield* stage.until(() => stage.mirrored()?.message === "Serves.")
    })
  )
})
