import { assert, describe, it } from "@effect/vitest"
import { KubeClient, Pod } from "@seatrial/kube"
import { Effect, Logger, Schema } from "effect"
import { keepLog } from "../../src/apply/keepLog.ts"
import { rootCause } from "../../src/apply/rootCause.ts"
import { run } from "../observations.ts"
import { makeMemoryKube } from "../reconcile/memoryKube.ts"

const decodePod = Schema.decodeUnknownSync(Pod.schema)
const exit = (exitCode: number, message?: string) => ({ terminated: { exitCode, reason: "Error", ...(message === undefined ? {} : { message }) } })
const podOf = (status: object, deletionTimestamp?: string) =>
  decodePod({
    metadata: { name: "engine-1", labels: { "seatrial.dev/role": "engine" }, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    spec: { containers: [{ name: "engine" }] },
    status: { containerStatuses: [{ name: "engine", ready: false, ...status }] }
  })
const looping = { restartCount: 3, state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 2s" } } }

const loggedFor = Effect.fnUntraced(function* (pod: Pod, logs: { readonly now: string; readonly before: string }) {
  const lines: Array<string> = []
  const kube = {
    ...makeMemoryKube().service,
    podLog: (_: string, __: string, options?: { readonly previous?: boolean }) => Effect.succeed(options?.previous === true ? logs.before : logs.now)
  }
  yield* keepLog({ pods: [pod], run }, "engine_start_failed", "seatrial").pipe(
    Effect.provideService(KubeClient, kube),
    Effect.provide(Logger.layer([Logger.make(({ message }) => lines.push(String(message)))]))
  )
  return lines.join("\n")
})

describe("of an engine that did not start", () => {
  it.effect("the log of the container that ended is kept, even if the next one has no output yet", () =>
    Effect.gen(function* () {
      const cause = "Unsupported config.json: hidden_act 'relu2'; only silu"
      assert.include(yield* loggedFor(podOf({ ...looping, lastState: exit(1) }), { now: "", before: cause }), cause)
      // The node no longer has a log.
      assert.include(yield* loggedFor(podOf({ ...looping, lastState: exit(1, cause) }), { now: "", before: "" }), cause)
      const both = yield* loggedFor(podOf({ ...looping, lastState: exit(1) }), { now: "b".repeat(20_000), before: "token hf_abcdefghijkl" })
      assert.include(both, "token hf_…")
      assert.include(both, "back-off 2s")
      assert.isBelow(both.length, 17_000)
    })
  )

  it("the cause is how it ended by itself, not the later deletion of its pod", () => {
    const killed = podOf({ restartCount: 3, state: exit(137), lastState: exit(2) }, "2026-01-01T00:00:00Z")
    assert.strictEqual(rootCause([killed], false)?.message, "The container ended with exit code 2.")
    assert.isUndefined(rootCause([podOf({ restartCount: 0, state: exit(137) }, "2026-01-01T00:00:00Z")], false))
    assert.strictEqual(rootCause([podOf({ restartCount: 0, state: exit(137) })], false)?.message, "The container ended with exit code 137.")
  })
})
