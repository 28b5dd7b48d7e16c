import { assert, describe, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Schema } from "effect"
import { failedStarts } from "../../src/gpu/failedStarts.ts"

const decodePod = Schema.decodeUnknownSync(Pod.schema)
const at = (seconds: number) => new Date(Date.parse("2026-03-01T00:00:00Z") + seconds * 1_000).toISOString()
const millis = (seconds: number) => Date.parse(at(seconds))

/** A pod whose container is in that state, and that is not ready since `unready`. */
const podOf = (container: object, unready = 0, ready = false) =>
  decodePod({
    metadata: { name: "p", uid: "u", namespace: "n", creationTimestamp: at(0) },
    status: {
      conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: at(unready) }],
      containerStatuses: [{ name: "engine", ready, restartCount: 0, ...container }]
    }
  })
const ended = (from: number, to: number) => ({ terminated: { exitCode: 1, startedAt: at(from), finishedAt: at(to) } })
const backOff = (message: string) => ({ waiting: { reason: "CrashLoopBackOff", message } })

describe("an engine's failed starts", () => {
  const cases: ReadonlyArray<readonly [string, Parameters<typeof podOf>, ReturnType<typeof failedStarts>]> = [
    ["none for a container that starts for the first time", [{ state: { running: { startedAt: at(5) } } }], null],
    [
      "by the kubelet's own back-off",
      [{ restartCount: 3, state: backOff("back-off 1m20s restarting failed container=engine pod=p_n(u)"), lastState: ended(100, 130) }],
      { ends: 4, nextStartAt: millis(210) }
    ],
    ["one for a container that has just ended", [{ restartCount: 1, state: ended(20, 30) }], { ends: 2, nextStartAt: null }],
    [
      "one for a container that is restarting",
      [{ restartCount: 4, state: { running: { startedAt: at(220) } }, lastState: ended(100, 130) }],
      { ends: 4, nextStartAt: null }
    ],
    ["a back-off that says no time", [{ restartCount: 1, state: backOff("no words of it"), lastState: ended(10, 20) }], { ends: 2, nextStartAt: null }],
    [
      "none for a container that ended after it was ready",
      [{ restartCount: 1, state: backOff("back-off 10s restarting"), lastState: ended(10, 5_000) }, 5_000],
      null
    ],
    [
      "one for a container that ended after it was ready and then at its start",
      [{ restartCount: 2, state: backOff("back-off 20s restarting"), lastState: ended(5_010, 5_030) }, 5_000],
      { ends: 3, nextStartAt: millis(5_050) }
    ],
    ["none for a container that is ready now", [{ restartCount: 3, state: { running: { startedAt: at(220) } }, lastState: ended(100, 130) }, 230, true], null]
  ]
  for (const [what, pod, expected] of cases) it(`are ${what}`, () => assert.deepStrictEqual(failedStarts(podOf(...pod)), expected))
})
