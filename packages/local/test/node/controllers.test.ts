import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Event, Job, KubeClient } from "@seatrial/kube"
import { Effect, Layer, Option, Stream } from "effect"
import { attemptName } from "../../src/node/decideJob.ts"
import { JobController } from "../../src/node/JobController.ts"
import { NodeAgent } from "../../src/node/NodeAgent.ts"
import { BoundPod } from "../../src/node/PodObject.ts"
import { Scheduler } from "../../src/node/Scheduler.ts"
import { create, idle, node, phase, until, untilGone, untilOne } from "./pods.ts"
import { layerCluster } from "./realCluster.ts"

const layerNodes = Layer.unwrap(
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-node-test-"))),
      (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
    )
    return NodeAgent.layer({
      directory,
      network: "127.99",
      images: { "ghcr.io/seatrial/test": { path: [] } },
      nodes: [{ name: "gpu-0", gpus: 1, product: "NVIDIA-L4", memoryMiB: 23_034 }]
    })
  })
)
const layerWorld = Layer.mergeAll(Scheduler.layer, JobController.layer, layerNodes).pipe(Layer.provideMerge(layerCluster))

const onCluster = <A, E>(promise: string, body: Effect.Effect<A, E, KubeClient>) => it.live(promise, () => Effect.provide(body, Layer.fresh(layerWorld)))

const oneGpu = { resources: { limits: { "nvidia.com/gpu": "1" } } }
const untilJob = (wanted: (job: Job) => boolean) =>
  Effect.gen(function* () {
    const kube = yield* KubeClient
    const found = yield* kube.watch(Job, { namespace: "default" }).pipe(
      Stream.flatMap((event) =>
        event._tag === "Synced" ? Stream.fromIterable(event.items) : event._tag === "Changed" ? Stream.succeed(event.object) : Stream.empty
      ),
      Stream.filter(wanted),
      Stream.runHead
    )
    return Option.getOrThrow(found)
  })
/** The name of the first pod of the job from `startJob`. */
const firstPod = Effect.map(
  untilJob(() => true),
  ({ metadata }) => attemptName({ name: metadata.name, uid: metadata.uid ?? "" }, 0)
)
const has = (type: string) => (job: Job) => job.status?.conditions?.some((each) => each.type === type && each.status === "True") === true
const startJob = (script: string, spec: object) =>
  Effect.flatMap(KubeClient, (kube) =>
    kube.create(Job, {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "load", namespace: "default" },
      spec: { ...spec, template: { metadata: { labels: { app: "load" } }, spec: { restartPolicy: "Never", containers: [node(script)] } } }
    })
  )

describe("on a local cluster", () => {
  onCluster(
    "a pod waits with its reason until a GPU is free, and then runs",
    Effect.gen(function* () {
      const kube = yield* KubeClient
      yield* create("first", { terminationGracePeriodSeconds: 0, containers: [node(idle, oneGpu)] }, null)
      yield* until("first", phase("Running"))
      yield* create("second", { containers: [node(idle, oneGpu)] }, null)
      const waiting = yield* until(
        "second",
        (pod) => pod.status?.conditions?.some(({ type, status }) => type === "PodScheduled" && status === "False") === true
      )
      assert.deepInclude(
        waiting.status?.conditions?.find(({ type }) => type === "PodScheduled"),
        {
          reason: "Unschedulable",
          message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
        }
      )
      const reported = yield* kube.watch(Event, { namespace: "default" }).pipe(
        Stream.flatMap((event) =>
          event._tag === "Synced" ? Stream.fromIterable(event.items) : event._tag === "Changed" ? Stream.succeed(event.object) : Stream.empty
        ),
        Stream.filter(({ reason }) => reason === "FailedScheduling"),
        Stream.runHead
      )
      assert.strictEqual(Option.getOrThrow(reported).regarding.name, "second")
      yield* kube.remove(BoundPod, "first", "default")
      const running = yield* until("second", phase("Running"))
      assert.strictEqual(running.spec.nodeName, "gpu-0")
      assert.deepInclude(
        running.status?.conditions?.find(({ type }) => type === "PodScheduled"),
        { status: "True" }
      )
    })
  )

  onCluster(
    "a Job runs to its completion, with the labels and the owner that Kubernetes gives its pods",
    Effect.gen(function* () {
      yield* startJob("console.log('done')", {})
      const job = yield* untilJob(has("Complete"))
      assert.deepInclude(job.status, { succeeded: 1 })
      assert.isString(job.status?.completionTime)
      const pod = yield* until(yield* firstPod, phase("Succeeded"))
      assert.deepInclude(pod.metadata.labels, { app: "load", "job-name": "load", "batch.kubernetes.io/job-name": "load", "controller-uid": job.metadata.uid })
      assert.deepInclude(pod.metadata.ownerReferences?.[0], { kind: "Job", uid: job.metadata.uid ?? "", controller: true })
      const kube = yield* KubeClient
      assert.strictEqual(yield* kube.podLog(pod.metadata.name, "default", { container: "main", tailLines: 10 }), "done\n")
    })
  )

  onCluster(
    "a Job that keeps failing is tried again and then given up by its limit",
    Effect.gen(function* () {
      yield* startJob("process.exit(4)", { backoffLimit: 1 })
      const job = yield* untilJob(has("Failed"))
      assert.deepInclude(job.status, { failed: 2 })
      assert.deepInclude(
        job.status?.conditions?.find(({ type }) => type === "Failed"),
        { reason: "BackoffLimitExceeded" }
      )
    })
  )

  onCluster(
    "a Job whose policy calls an exit code final is not tried again",
    Effect.gen(function* () {
      const rules = [{ action: "FailJob", onExitCodes: { containerName: "main", operator: "In", values: [3] } }]
      yield* startJob("process.exit(3)", { backoffLimit: 6, podFailurePolicy: { rules } })
      const job = yield* untilJob(has("Failed"))
      assert.deepInclude(job.status, { failed: 1 })
      const { name } = (yield* until(yield* firstPod, phase("Failed"))).metadata
      assert.deepInclude(
        job.status?.conditions?.find(({ type }) => type === "Failed"),
        { reason: "PodFailurePolicy", message: `Container main for pod default/${name} failed with exit code 3 matching FailJob rule at index 0` }
      )
    })
  )

  onCluster(
    "a Job past its deadline has its pod ended",
    Effect.gen(function* () {
      yield* startJob(idle, { activeDeadlineSeconds: 1 })
      const name = yield* firstPod
      const job = yield* untilJob(has("Failed"))
      assert.deepInclude(
        job.status?.conditions?.find(({ type }) => type === "Failed"),
        { reason: "DeadlineExceeded" }
      )
      yield* untilGone(name)
    })
  )

  onCluster(
    "a finished Job goes after its time to live, with its pod",
    Effect.gen(function* () {
      yield* startJob("", { ttlSecondsAfterFinished: 0 })
      const kube = yield* KubeClient
      const name = yield* firstPod
      yield* kube.watch(Job, { namespace: "default" }).pipe(
        Stream.filter((event) => event._tag === "Removed" || (event._tag === "Synced" && event.items.length === 0)),
        Stream.runHead
      )
      yield* untilGone(name)
    })
  )

  onCluster(
    "a Job whose pod is deleted under it makes another",
    Effect.gen(function* () {
      yield* startJob(idle, {})
      const kube = yield* KubeClient
      const first = yield* until(yield* firstPod, phase("Running"))
      yield* kube.remove(BoundPod, first.metadata.name, "default")
      // The second attempt has the same name if the first pod is already gone, otherwise the next name.
      const second = yield* untilOne(
        { labelSelector: "batch.kubernetes.io/job-name=load" },
        (pod) => pod.metadata.uid !== first.metadata.uid && pod.status?.phase === "Running"
      )
      assert.strictEqual(second.metadata.ownerReferences?.[0]?.name, "load")
    })
  )
})
