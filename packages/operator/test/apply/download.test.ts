import { assert, describe, it } from "@effect/vitest"
import type { DownloadState } from "@seatrial/hub"
import { downloadEvents } from "../../src/apply/transitionEvents.ts"
import { materializing } from "../../src/decide/materializing.ts"
import { FetchSeen } from "../../src/decide/Observation.ts"
import type { ModelDeployment, ModelDeploymentStatus } from "../../src/resources/ModelDeployment.ts"
import { seen } from "../observations.ts"

const state: DownloadState = {
  bytes: 3_221_225_472,
  totalBytes: 13_958_643_712,
  bytesPerSecond: 112_000_000,
  secondsLeft: 96,
  stalledSeconds: null,
  waiting: false
}

describe("a download", () => {
  it.each([
    ["tells bytes, speed and time left", state, "Downloads and verifies: 3.0 GiB of 13.0 GiB (23%), 112 MB/s, about 2 min left."],
    [
      "tells that it stalls",
      { ...state, bytesPerSecond: 0, secondsLeft: null, stalledSeconds: 64 },
      "The download stalls: 3.0 GiB of 13.0 GiB (23%), nothing came for 64 s. It asks again over new connections."
    ],
    ["tells that another one does its work", { ...state, waiting: true }, "Another download brings the same files; waits for it."]
  ])("%s", (_, progress, message) => {
    assert.strictEqual(materializing(seen("materializing", { fetch: FetchSeen.Active({ problem: null, progress }) }), 0).message, message)
  })

  it("is told of once for each quarter, and once where it stalls", () => {
    const { run } = seen("materializing")
    const events = (before: ModelDeploymentStatus["download"], bytes: number, stalled: boolean) => {
      const resource: ModelDeployment = {
        metadata: { name: "dep-1", namespace: "seatrial" },
        spec: { source: { repo: run.source.repo } },
        status: { deploymentId: run.id, ...(before === undefined ? {} : { download: before }) }
      }
      const download = { bytes, totalBytes: 100, bytesPerSecond: 1, ...(stalled ? { stalled } : {}) }
      return downloadEvents(run, resource, download, 0).map(({ message, reason }) => `${reason}: ${message}`)
    }
    const at = (bytes: number, stalled = false) => ({ bytes, totalBytes: 100, bytesPerSecond: 1, ...(stalled ? { stalled } : {}) })
    assert.deepStrictEqual(events(undefined, 10, false), [])
    assert.deepStrictEqual(events(at(10), 26, false), ["Downloading: 26 of 100 bytes, 1 bytes/s."])
    assert.deepStrictEqual(events(at(26), 30, false), [])
    assert.deepStrictEqual(events(at(30), 30, true), ["DownloadStalled: 30 of 100 bytes; nothing came for a minute."])
    assert.deepStrictEqual(events(at(30, true), 30, true), [])
  })
})
