import { assert, describe, it } from "@effect/vitest"
import { type Job, KubeClient, type Pod } from "@seatrial/kube"
import { Effect, Layer, Schema } from "effect"
import { keepLog } from "../../src/apply/keepLog.ts"
import { rootCause } from "../../src/apply/rootCause.ts"
import { observeFetch } from "../../src/gather/observeFetch.ts"
import { observePod } from "../../src/gather/observePod.ts"
import { failedStarts } from "../../src/gpu/failedStarts.ts"
import { WatchedPod } from "../../src/resources/watched.ts"
import { observedStart } from "../../src/work/observedStart.ts"
import { startOf } from "../../src/work/recordStart.ts"
import { pod as observedPod, revision, run } from "../observations.ts"

type ContainerStatus = NonNullable<NonNullable<Pod["status"]>["containerStatuses"]>[number]

const at = (second: number) => new Date(second * 1_000).toISOString()
const containerOf = (name: string, change: Partial<ContainerStatus> = {}): ContainerStatus => ({ name, ready: false, restartCount: 0, ...change })
const running = (second: number) => ({ state: { running: { startedAt: at(second) } } })
const mesh = containerOf("istio-proxy", { ready: true, restartCount: 7, started: true, imageID: `x@sha256:${"9".repeat(64)}`, ...running(1) })
const engineSpec = {
  name: "engine",
  image: "x:1",
  args: ["--model=/models/x"],
  env: [{ name: "HF_HUB_OFFLINE", value: "1" }],
  volumeMounts: [{ name: "weights", mountPath: "/models", readOnly: true }],
  ports: [
    { name: "metrics", containerPort: 9090 },
    { name: "http", containerPort: 8000 }
  ]
}
const meshSpec = { name: "istio-proxy", image: "istio:1", ports: [{ name: "http-envoy-prom", containerPort: 15_090 }] }

/** A pod into which a webhook put a container before the engine's. */
const podWith = (engine: ContainerStatus, status: Pod["status"] = {}, role = "engine", sidecar = mesh): Pod => ({
  metadata: { name: "the-engine", uid: "u", creationTimestamp: at(0), labels: { "seatrial.dev/role": role } },
  spec: { nodeName: "n", containers: [meshSpec, role === "engine" ? engineSpec : { name: role }] },
  status: { phase: "Running", podIP: "10.0.0.1", ...status, containerStatuses: [sidecar, engine] }
})
const loading = containerOf("engine", { started: false, imageID: `x@sha256:${"1".repeat(64)}`, ...running(10) })

describe("a pod with a container that a webhook put first", () => {
  it("is observed by the container and the port of the engine", () => {
    assert.deepInclude(observePod(podWith(loading), undefined), {
      url: "http://10.0.0.1:8000",
      image: "x:1",
      imageDigest: `sha256:${"1".repeat(64)}`,
      restarts: 0,
      started: true,
      startedAt: 10_000,
      unreadySidecar: null
    })
  })

  it("keeps the fields of its containers that the watch decodes", () => {
    const decoded = Schema.decodeUnknownSync(WatchedPod.schema)(podWith(loading))
    assert.strictEqual(observePod(decoded, undefined).url, "http://10.0.0.1:8000")
  })

  it("does not count the restarts of the other container as ends of the engine", () => {
    const crashed = containerOf("istio-proxy", { restartCount: 9, lastState: { terminated: { exitCode: 1, startedAt: at(5), finishedAt: at(6) } } })
    const pod = podWith(loading, { conditions: [{ type: "Ready", status: "False", lastTransitionTime: at(1) }] }, "engine", crashed)
    assert.deepInclude(observePod(pod, undefined), { restarts: 0, lastExit: null })
    assert.isNull(failedStarts(pod))
  })

  it("has the end of its engine as root cause, not a state of the other container", () => {
    const ended = containerOf("engine", { state: { terminated: { exitCode: 137, reason: "OOMKilled" } } })
    assert.strictEqual(rootCause([podWith(ended)], false)?.reason, "OOMKilled")
    const done = { ...mesh, ready: false, state: { terminated: { exitCode: 0 } } }
    assert.isUndefined(rootCause([podWith(loading, {}, "engine", done)], false))
  })

  it("is not ready because of the other container, and says so", () => {
    const ready = containerOf("engine", { ready: true, started: true, ...running(10) })
    const pod = podWith(ready, {}, "engine", containerOf("istio-proxy", { ...running(1) }))
    assert.strictEqual(observePod(pod, undefined).unreadySidecar, "istio-proxy")
    assert.strictEqual(rootCause([pod], false)?.reason, "SidecarNotReady")
    const unpulled = containerOf("istio-proxy", { state: { waiting: { reason: "ImagePullBackOff", message: "no such image" } } })
    const cause = rootCause([podWith(ready, {}, "engine", unpulled)], false)
    assert.deepInclude(cause, { reason: "ImagePullBackOff", object: "Pod/the-engine" })
    assert.match(cause?.message ?? "", /^The container istio-proxy, which the cluster added to the pod: .*no such image/)
    assert.isNull(observePod(podWith(ready), undefined).unreadySidecar)
  })

  it("starts after foreign init containers: one that fails is the cause, and blocks the engine", () => {
    const inits = (state: object) => ({
      initContainerStatuses: [containerOf("check-weights", { state: { terminated: { exitCode: 0 } } }), { ...containerOf("istio-init"), ...state }]
    })
    const waiting = containerOf("engine", { state: { waiting: { reason: "PodInitializing" } } })
    const crash = { state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated: { exitCode: 255, reason: "Error" } } }
    assert.match(
      rootCause([podWith(waiting, inits(crash))], false)?.message ?? "",
      /^The container istio-init, which the cluster added to the pod: .*exit code 255/
    )
    const blocked = podWith(waiting, inits({ state: { waiting: { reason: "ErrImagePull" } } }))
    assert.strictEqual(observePod(blocked, undefined).blocked, "ErrImagePull")
  })

  it("may have a native sidecar, which never ends: the parts of the start do not depend on it", () => {
    const native: Pod = {
      ...podWith(containerOf("engine", { ready: true, ...running(40) }), {
        conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: at(2) }],
        initContainerStatuses: [
          containerOf("copy-weights", { state: { terminated: { exitCode: 0, startedAt: at(2), finishedAt: at(32) } } }),
          containerOf("istio-proxy", { ready: false, ...running(33) })
        ]
      })
    }
    const pod: Pod = {
      ...native,
      spec: { nodeName: "n", containers: [engineSpec], initContainers: [{ name: "copy-weights" }, { name: "istio-proxy", restartPolicy: "Always" }] }
    }
    assert.deepInclude(startOf(pod, 45_000, null).parts, { weights_to_node: 30, image_pull: 8, process_to_loaded: 5 })
    assert.strictEqual(observePod(pod, undefined).unreadySidecar, "istio-proxy")
  })

  it("is compared with what its engine was started with", () => {
    const start = observedStart(podWith(loading), observedPod, revision)
    assert.deepInclude(start, { readOnly: true, offline: true })
  })

  it.effect("has the log of its engine copied", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const kube = Layer.mock(KubeClient)({ podLog: (_, __, { container }) => Effect.sync(() => `${asked.push(container)}`) })
      yield* Effect.provide(
        keepLog({ pods: [podWith(loading), podWith(containerOf("fetch"), {}, "fetch")], run: { ...run, revision } }, "boot_timeout", "n"),
        kube
      )
      assert.deepStrictEqual(asked, ["engine", "fetch"])
    })
  )
})

describe("a download with a container that a webhook put first", () => {
  const job: Job = { metadata: { name: "dep-1-fetch", creationTimestamp: at(0) } }
  const fetching = (state: object) => [podWith(containerOf("fetch", { state }), {}, "fetch")]

  it("runs since its own container runs", () => {
    assert.deepInclude(observeFetch(job, fetching({ running: { startedAt: at(20) } })), { _tag: "Active", runsSince: 20_000, obstacle: null })
  })

  it("ends with its own container, although the other one keeps the pod running", () => {
    assert.strictEqual(observeFetch(job, fetching({ terminated: { exitCode: 0 } }))._tag, "Succeeded")
    const failed = observeFetch(job, fetching({ terminated: { exitCode: 1, message: "hub_unavailable: The hub is away." } }))
    assert.deepInclude(failed, { _tag: "Failed", failure: { code: "hub_unavailable", text: "The hub is away." } })
  })

  it("names the foreign container that it waits for", () => {
    const init = containerOf("istio-init", { state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 10s" } } })
    const pods = [
      podWith(containerOf("fetch", { state: { waiting: { reason: "PodInitializing" } } }), { phase: "Pending", initContainerStatuses: [init] }, "fetch")
    ]
    const observed = observeFetch(job, pods)
    assert.match(observed._tag === "Active" ? (observed.obstacle?.message ?? "") : "", /istio-init.*CrashLoopBackOff: back-off 10s/)
  })
})
