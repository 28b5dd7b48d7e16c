import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { endedByOthers } from "../../../packages/operator/src/objects/referenceJob.ts"
import { at, each, eventually, type Reply } from "./KubeServer.ts"
import { type Behaviours, openStage } from "./Stage.ts"

const job = (name: string, spec: object = {}, podSpec: object = {}) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name },
  spec: {
    ...spec,
    template: {
      metadata: { labels: { app: "x" } },
      // No node takes them: what a kubelet says, the test says.
      spec: { restartPolicy: "Never", schedulerName: "nobody", containers: [{ name: "main", image: "fetch:1" }], ...podSpec }
    }
  }
})

const open = Effect.gen(function* () {
  const stage = yield* openStage
  const jobs = stage.group("batch/v1", "jobs")
  const podsOf = (name: string) => stage.get(`${stage.pods}?labelSelector=${encodeURIComponent(`job-name=${name}`)}`)
  const pods = (name: string, holds: (names: ReadonlyArray<string>) => boolean) =>
    Effect.map(
      eventually(podsOf(name), ({ body }) => holds(each(at(body, "items"), "metadata.name").map(String))),
      ({ body }) => each(at(body, "items"), "metadata.name").map(String)
    )
  const exit = (pod: string, code: number) => {
    const terminated = {
      exitCode: code,
      reason: code === 0 ? "Completed" : "Error",
      startedAt: "2026-01-01T00:00:00Z",
      finishedAt: new Date().toISOString().replace(/\.\d+/, "")
    }
    const containerStatuses = [{ name: "main", image: "fetch:1", imageID: "x", ready: false, restartCount: 0, state: { terminated } }]
    return stage.patch("merge", `${stage.pods}/${pod}/status`, { status: { phase: code === 0 ? "Succeeded" : "Failed", containerStatuses } })
  }
  const condition = (reply: Reply, type: string) => {
    const conditions = at(reply.body, "status.conditions")
    return at(conditions, String(each(conditions, "type").indexOf(type)))
  }
  const until = (name: string, type: string) => eventually(stage.get(`${jobs}/${name}`), (reply) => at(condition(reply, type), "status") === "True")
  return { ...stage, jobs, podsOf, podNames: pods, exit, until, condition }
})

/** Jobs, the kubelet being played by the test. */
export const jobs: Behaviours = {
  "a job gets its defaults, its labels and one pod that it owns": Effect.gen(function* () {
    const { get, jobs, podNames, pods, post } = yield* open
    const created = yield* post(jobs, job("one"))
    const uid = String(at(created.body, "metadata.uid"))
    assert.deepStrictEqual(
      [at(created.body, "spec.backoffLimit"), at(created.body, "spec.completions"), at(created.body, "spec.parallelism"), at(created.body, "spec.suspend")],
      [6, 1, 1, false]
    )
    assert.deepStrictEqual(at(created.body, "spec.selector.matchLabels"), { "batch.kubernetes.io/controller-uid": uid })
    const [name = ""] = yield* podNames("one", (names) => names.length === 1)
    assert.match(name, /^one-[a-z0-9-]+$/)
    const pod = yield* get(`${pods}/${name}`)
    assert.deepStrictEqual(
      [at(pod.body, "metadata.ownerReferences.0.uid"), at(pod.body, "metadata.ownerReferences.0.controller"), at(pod.body, "metadata.labels.app")],
      [uid, true, "x"]
    )
    assert.strictEqual(at(pod.body, "metadata.labels.batch\\.kubernetes\\.io/job-name"), "one")
    yield* eventually(get(`${jobs}/one`), ({ body }) => at(body, "status.active") === 1)
  }),

  "a pod that succeeds completes it": Effect.gen(function* () {
    const { condition, exit, jobs, podNames, post, until } = yield* open
    yield* post(jobs, job("good"))
    const [name = ""] = yield* podNames("good", (names) => names.length === 1)
    yield* exit(name, 0)
    const ended = yield* until("good", "Complete")
    assert.deepStrictEqual([at(ended.body, "status.succeeded"), at(ended.body, "status.active") ?? 0], [1, 0])
    assert.isString(at(ended.body, "status.completionTime"))
    assert.isString(at(condition(ended, "Complete"), "lastTransitionTime"))
  }),

  "a failed pod is replaced until the limit is exceeded": Effect.gen(function* () {
    const { condition, exit, get, jobs, podNames, post, until } = yield* open
    yield* post(jobs, job("bad", { backoffLimit: 1 }))
    const [first = ""] = yield* podNames("bad", (names) => names.length === 1)
    yield* exit(first, 1)
    const both = yield* podNames("bad", (names) => names.length === 2)
    yield* eventually(get(`${jobs}/bad`), ({ body }) => at(body, "status.failed") === 1)
    yield* exit(both.find((name) => name !== first) ?? "", 1)
    const ended = yield* until("bad", "Failed")
    assert.deepStrictEqual(
      [at(condition(ended, "Failed"), "reason"), at(condition(ended, "Failed"), "message"), at(ended.body, "status.failed")],
      ["BackoffLimitExceeded", "Job has reached the specified backoff limit", 2]
    )
  }),

  "an exit code of a failure rule fails the Job at once": Effect.gen(function* () {
    const { condition, exit, jobs, podNames, post, until } = yield* open
    const podFailurePolicy = { rules: [{ action: "FailJob", onExitCodes: { containerName: "main", operator: "In", values: [42] } }] }
    yield* post(jobs, job("ruled", { backoffLimit: 6, podFailurePolicy }))
    const [name = ""] = yield* podNames("ruled", (names) => names.length === 1)
    yield* exit(name, 42)
    const ended = yield* until("ruled", "Failed")
    assert.strictEqual(at(condition(ended, "Failed"), "reason"), "PodFailurePolicy")
    assert.match(String(at(condition(ended, "Failed"), "message")), /^Container main for pod \S+ failed with exit code 42 matching FailJob rule at index 0$/)
  }),

  "an exit code that a rule leaves out is tried again, and any other one fails the Job": Effect.gen(function* () {
    const { condition, exit, jobs, podNames, post, until } = yield* open
    // The rules of the Job that computes a reference.
    const rules = [
      { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
      { action: "FailJob", onExitCodes: { containerName: "main", operator: "NotIn", values: [0, ...endedByOthers] } }
    ]
    const created = yield* post(jobs, job("computed", { backoffLimit: 2, podFailurePolicy: { rules } }))
    assert.strictEqual(created.status, 201, JSON.stringify(created.body))
    const [killed = ""] = yield* podNames("computed", (names) => names.length === 1)
    yield* exit(killed, 137)
    const next = (yield* podNames("computed", (names) => names.length === 2)).find((name) => name !== killed) ?? ""
    yield* exit(next, 1)
    assert.strictEqual(at(condition(yield* until("computed", "Failed"), "Failed"), "reason"), "PodFailurePolicy")
  }),

  "a disruption that a rule ignores is not counted": Effect.gen(function* () {
    const { get, jobs, patch, podNames, pods, post } = yield* open
    const podFailurePolicy = { rules: [{ action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }] }
    yield* post(jobs, job("ignored", { backoffLimit: 0, podFailurePolicy }))
    const [name = ""] = yield* podNames("ignored", (names) => names.length === 1)
    const conditions = [{ type: "DisruptionTarget", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }]
    yield* patch("merge", `${pods}/${name}/status`, { status: { phase: "Failed", conditions } })
    yield* podNames("ignored", (names) => names.some((other) => other !== name))
    const stored = yield* get(`${jobs}/ignored`)
    assert.deepStrictEqual([at(stored.body, "status.failed") ?? 0, each(at(stored.body, "status.conditions"), "type")], [0, []])
  }),

  "the deadline fails the Job and deletes its pods": Effect.gen(function* () {
    const { condition, jobs, podNames, post, until } = yield* open
    yield* post(jobs, job("late", { activeDeadlineSeconds: 1 }))
    const ended = yield* until("late", "Failed")
    assert.deepStrictEqual(
      [at(condition(ended, "Failed"), "reason"), at(condition(ended, "Failed"), "message")],
      ["DeadlineExceeded", "Job was active longer than specified deadline"]
    )
    yield* podNames("late", (names) => names.length === 0)
  }),

  "the template is immutable, and the restart policy Always is refused": Effect.gen(function* () {
    const { jobs, patch, post } = yield* open
    yield* post(jobs, job("fixed"))
    const changed = yield* patch("merge", `${jobs}/fixed`, { spec: { template: { spec: { containers: [{ name: "main", image: "other" }] } } } })
    assert.deepStrictEqual([changed.status, at(changed.body, "details.causes.0.field")], [422, "spec.template"])
    const always = yield* post(jobs, job("always", {}, { restartPolicy: "Always" }))
    assert.deepStrictEqual([always.status, at(always.body, "details.causes.0.field")], [422, "spec.template.spec.restartPolicy"])
  }),

  "a background deletion deletes its pods; a deletion without a policy keeps them": Effect.gen(function* () {
    const { get, jobs, podNames, podsOf, post, remove } = yield* open
    yield* post(jobs, job("swept"))
    yield* podNames("swept", (names) => names.length === 1)
    yield* remove(`${jobs}/swept`, { propagationPolicy: "Background" })
    yield* podNames("swept", (names) => names.length === 0)
    yield* post(jobs, job("left"))
    yield* podNames("left", (names) => names.length === 1)
    yield* remove(`${jobs}/left`)
    yield* eventually(get(`${jobs}/left`), ({ status }) => status === 404)
    const left = yield* podsOf("left")
    assert.deepStrictEqual(each(at(left.body, "items"), "metadata.ownerReferences"), [undefined])
  }),

  "a new claim is pending and shows the requested size": Effect.gen(function* () {
    const { core, get, post } = yield* open
    const claim = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "weights" },
      spec: { accessModes: ["ReadWriteMany"], storageClassName: "none", resources: { requests: { storage: "1Gi" } } }
    }
    const created = yield* post(core("persistentvolumeclaims"), claim)
    assert.deepStrictEqual([created.status, at(created.body, "status.phase"), at(created.body, "spec.volumeMode")], [201, "Pending", "Filesystem"])
    const stored = yield* get(`${core("persistentvolumeclaims")}/weights`)
    assert.strictEqual(at(stored.body, "spec.resources.requests.storage"), "1Gi")
  })
}
