import { assert, describe, it } from "@effect/vitest"
import { decide } from "../../src/decide/decide.ts"
import type { ObservedPod } from "../../src/observation/ObservedPod.ts"
import { observationOf, pod, revision } from "../observations.ts"

const marker = "node-7.internal"
const serving = { revision: { ...revision, status: "active" as const } }
const unready = (change: Partial<ObservedPod>) =>
  observationOf("activated", { pod: { ...pod, ready: false, started: false, startedAt: null, ...change }, admission: `quota of ${marker}` }, serving)

describe("the message for API callers", () => {
  const cases: ReadonlyArray<readonly [promise: string, observation: ReturnType<typeof observationOf>]> = [
    ["why no node can take its engine", observationOf("queued", { freeSlots: 0, shortage: `no node has the labels of ${marker}` })],
    ["why a serving engine finds no node", unready({ unschedulable: { message: `0/3 nodes: ${marker} is tainted`, since: 0 } })],
    ["why Kueue holds a serving engine back", unready({ gated: true })],
    ["why a serving engine lost its place", unready({ lost: `evicted by ${marker}` })],
    ["why a node does not start a serving engine", unready({ blocked: `${marker} cannot mount` })]
  ]
  for (const [promise, observation] of cases) {
    it(`contains no text of the cluster: ${promise}`, () => {
      const { message, publicMessage = message } = decide(observation, 0)
      assert.include(message, marker)
      assert.notInclude(publicMessage, marker)
      assert.isNotEmpty(publicMessage)
    })
  }
})
