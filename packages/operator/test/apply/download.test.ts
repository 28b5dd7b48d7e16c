import { assert, describe, it } from "@effect/vitest"
import type { DownloadState } from "@seatrial/hub"
import type { Job, Pod } from "@seatrial/kube"
import { obstacleEvents } from "../../src/apply/obstacleEvents.ts"
import { downloadEvents } from "../../src/apply/transitionEvents.ts"
import { materializing } from "../../src/decide/materializing.ts"
import { observeFetch } from "../../src/gather/observeFetch.ts"
import { ObservedFetch } from "../../src/observation/ObservedFetch.ts"
import type { ModelDeployment, ModelDeploymentStatus } from "../../src/resources/ModelDeployment.ts"
import { observationOf } from "../observations.ts"

const state: DownloadState = {
  bytes: 3_221_225_472,
  totalBytes: 13_958_643_712,
  bytesPerSecond: 112_000_000,
  secondsLeft: 96,
  stalledSeconds: null,
  waiting: false
}

const job: Job = { metadata: { name: "dep-1-fetch", creationTimestamp: "1970-01-01T00:00:00Z" } }
const podOf = (status: Pod["status"], nodeName?: string): Pod => ({
  metadata: { name: "dep-1-fetch-x", creationTimestamp: "1970-01-01T00:00:00Z", labels: { "seatrial.dev/role": "fetch" } },
  spec: {
    containers: [],
    volumes: [{ name: "weights", persistentVolumeClaim: { claimName: "seatrial-weights" } }, { name: "scratch" }],
    ...(nodeName === undefined ? {} : { nodeName })
  },
  ...(status === undefined ? {} : { status })
})
const unscheduled = (message: string) => podOf({ conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }] })
const waiting = (reason: string, message?: string) => {
  const state = { waiting: { reason, ...(message === undefined ? {} : { message }) } }
  return podOf({ containerStatuses: [{ name: "fetch", ready: false, restartCount: 0, state }] }, "node-1")
}

describe("a download that cannot start", () => {
  const cases: ReadonlyArray<readonly [what: string, pods: ReadonlyArray<Pod>, atOnce: boolean, says: string]> = [
    [
      "for a missing claim",
      [unscheduled('0/1 nodes are available: persistentvolumeclaim "seatrial-weights" not found.')],
      true,
      'The pod dep-1-fetch-x is not scheduled: 0/1 nodes are available: persistentvolumeclaim "seatrial-weights" not found.'
    ],
    [
      "for a claim that is not bound",
      [unscheduled("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/1 nodes are available")],
      true,
      "The pod dep-1-fetch-x is not scheduled: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/1 nodes are available. The pod's volume claim is seatrial-weights."
    ],
    [
      "for nodes that are full",
      [unscheduled("0/3 nodes are available: 3 Insufficient cpu.")],
      true,
      "The pod dep-1-fetch-x is not scheduled: 0/3 nodes are available: 3 Insufficient cpu."
    ],
    [
      "for its image",
      [waiting("ImagePullBackOff", 'Back-off pulling image "nowhere/x:1"')],
      true,
      'The pod dep-1-fetch-x waits (ImagePullBackOff: Back-off pulling image "nowhere/x:1").'
    ],
    [
      "for a volume that does not mount",
      [waiting("ContainerCreating")],
      false,
      "The node node-1 has not started the container of the pod dep-1-fetch-x yet. A possible cause is that the volume claim seatrial-weights cannot be mounted (kubectl describe pod dep-1-fetch-x)."
    ],
    ["for an unresponsive scheduler", [podOf(undefined)], false, "The pod dep-1-fetch-x has no node, and the scheduler reports no reason."],
    [
      "for a quota",
      [],
      false,
      "The cluster creates no pod for the Job dep-1-fetch. A quota or an admission policy may refuse the pod (kubectl describe job dep-1-fetch)."
    ]
  ]
  it.each(cases)("%s says so, in the message and once in an event", (_, pods, atOnce, says) => {
    const fetch = observeFetch(job, pods)
    const { run } = observationOf("materializing")
    const resource: ModelDeployment = { metadata: { name: "dep-1", namespace: "seatrial" }, spec: { source: { repo: run.source.repo } } }
    const events = (now: number) => [
      materializing(observationOf("materializing", { fetch }), now).message,
      obstacleEvents(run, resource, fetch, now).map((event) => event.note)
    ]
    const message = `The download cannot start. ${says}`
    if (!atOnce) assert.deepStrictEqual(events(59_999), ["Seatrial downloads and verifies 1.0 MiB.", []])
    assert.deepStrictEqual(events(atOnce ? 0 : 60_000), [message, [message]])
    const shown = { ...resource, status: { deploymentId: run.id, message } }
    assert.deepStrictEqual(obstacleEvents(run, shown, fetch, 60_000), [])
    assert.deepInclude(obstacleEvents(run, resource, fetch, 60_000)[0], { type: "Warning", reason: "DownloadBlocked" })
  })

  it("ends its run if the cluster creates no pod for ten minutes, but not if a pod waits for a node", () => {
    const messageAt = (pods: ReadonlyArray<Pod>, now: number) => materializing(observationOf("materializing", { fetch: observeFetch(job, pods) }), now).message
    assert.match(messageAt([], 599_999), /^The download cannot start\. The cluster creates no pod/)
    assert.match(messageAt([], 600_000), /^download_failed: The cluster created no pod for the download within 10 minutes\. .*Ask the cluster administrator/)
    assert.match(messageAt([unscheduled("0/3 nodes are available.")], 3_600_000), /^The download cannot start\. The pod/)
  })

  it("is reported no more once its container runs", () => {
    const running = podOf({ phase: "Running", containerStatuses: [{ name: "fetch", ready: true, restartCount: 0, state: { running: {} } }] }, "node-1")
    const fetch = observeFetch(job, [running])
    assert.strictEqual(materializing(observationOf("materializing", { fetch }), 3_600_000).message, "Seatrial downloads and verifies 1.0 MiB.")
  })
})

describe("a download that cannot reach its hub", () => {
  const runsFrom = "1970-01-01T00:00:10Z"
  const running = podOf(
    { phase: "Running", containerStatuses: [{ name: "fetch", ready: true, restartCount: 0, state: { running: { startedAt: runsFrom } } }] },
    "node-1"
  )
  const ended = podOf({
    phase: "Failed",
    containerStatuses: [{ name: "fetch", ready: false, restartCount: 0, state: { terminated: { exitCode: 1, message: "hub_unavailable: The hub is away." } } }]
  })
  const resource: ModelDeployment = { metadata: { name: "dep-1", namespace: "seatrial" }, spec: { source: { repo: "seatrial/tiny-chat" } } }
  const events = (fetch: ObservedFetch, now: number) => [
    materializing(observationOf("materializing", { fetch }), now).message,
    obstacleEvents(observationOf("materializing").run, resource, fetch, now).map((event) => event.note)
  ]

  it("says within a minute that it made no progress, in the message and in an event", () => {
    const fetch = observeFetch(job, [running])
    assert.deepStrictEqual(events(fetch, 69_999), ["Seatrial downloads and verifies 1.0 MiB.", []])
    const message =
      "The download has reported nothing since its start. The hub may not respond at its address (HF_ENDPOINT). Seatrial retries for some minutes."
    assert.deepStrictEqual(events(fetch, 70_000), [message, [message]])
  })

  it("says why the previous attempt ended, in the words of the attempt", () => {
    const lastLine = "access_required: The hub does not accept the hub token that the organization acme shares: it was revoked, or has expired."
    const refused = podOf({
      phase: "Failed",
      containerStatuses: [{ name: "fetch", ready: false, restartCount: 0, state: { terminated: { exitCode: 1, message: lastLine } } }]
    })
    const fetch = observeFetch(job, [refused])
    const { run: applied } = observationOf("materializing")
    for (const message of [
      materializing(observationOf("materializing", { fetch }), 20_000).message,
      obstacleEvents(applied, resource, fetch, 20_000)[0]?.note
    ]) {
      assert.strictEqual(message, `Seatrial retries the download. The previous attempt failed with ${lastLine}`)
    }
  })

  it("says why the previous attempt ended, even before the next one begins", () => {
    const message = "Seatrial retries the download. The previous attempt failed with hub_unavailable: The hub is away."
    for (const pods of [[ended, running], [ended]]) assert.deepStrictEqual(events(observeFetch(job, pods), 20_000), [message, [message]])
    const going = observeFetch(job, [ended, running], "fetched 1 of 9 bytes, 1 bytes/s, 8 s left")
    assert.match(String(events(going, 70_000)[0]), /^Seatrial downloads and verifies the weights: /)
  })
})

describe("a download", () => {
  it.each([
    ["reports bytes, speed and time left", state, "Seatrial downloads and verifies the weights: 3.0 GiB of 13.0 GiB (23%), 112 MB/s, about 2 min left."],
    [
      "reports a stall",
      { ...state, bytesPerSecond: 0, secondsLeft: null, stalledSeconds: 64 },
      "The download stalled: 3.0 GiB of 13.0 GiB (23%), nothing arrived for 64 s. Seatrial retries over new connections."
    ],
    ["reports that it waits for another download", { ...state, waiting: true }, "The deployment waits for another download of the same files."]
  ])("%s", (_, progress, message) => {
    assert.strictEqual(materializing(observationOf("materializing", { fetch: ObservedFetch.Active({ obstacle: null, progress }) }), 0).message, message)
  })

  it("has one event for each quarter, and one if it stalls", () => {
    const { run } = observationOf("materializing")
    const events = (before: ModelDeploymentStatus["download"], bytes: number, stalled: boolean) => {
      const resource: ModelDeployment = {
        metadata: { name: "dep-1", namespace: "seatrial" },
        spec: { source: { repo: run.source.repo } },
        status: { deploymentId: run.id, ...(before === undefined ? {} : { download: before }) }
      }
      const download = { bytes, totalBytes: 100, bytesPerSecond: 1, ...(stalled ? { stalled } : {}) }
      return downloadEvents(run, resource, download, 0).map(({ note, reason }) => `${reason}: ${note}`)
    }
    const at = (bytes: number, stalled = false) => ({ bytes, totalBytes: 100, bytesPerSecond: 1, ...(stalled ? { stalled } : {}) })
    assert.deepStrictEqual(events(undefined, 10, false), [])
    assert.deepStrictEqual(events(at(10), 26, false), ["Downloading: 26 of 100 bytes, 1 bytes/s."])
    assert.deepStrictEqual(events(at(26), 30, false), [])
    assert.deepStrictEqual(events(at(30), 30, true), ["DownloadStalled: 30 of 100 bytes; nothing arrived for a minute."])
    assert.deepStrictEqual(events(at(30, true), 30, true), [])
  })
})
