import { assert, describe, it } from "@effect/vitest"
import { referenceProgram } from "@seatrial/trial"
import { Option } from "effect"
import { observeReferenceJob } from "../../src/gather/observeReference.ts"
import { type ReferencePlan, referenceJob, referencePlan } from "../../src/objects/referenceJob.ts"
import { ObservedReference } from "../../src/observation/ObservedReference.ts"
import { type ReferenceJobOf, toPodClass } from "../../src/resources/PodClass.ts"
import type { WatchedJob, WatchedPod } from "../../src/resources/watched.ts"
import { adapted, baseCommit } from "../adapted.ts"
import { commit, hostClass, podClass, revision } from "../observations.ts"

const job: ReferenceJobOf = {
  image: null,
  python: "python3",
  cpu: 4,
  memoryBytes: 2 ** 34,
  waitSeconds: 600,
  nodeSelector: { pool: "cpu" },
  tolerations: [{ key: "cpu" }]
}
const real = { ...podClass, hostClass: { ...hostClass, simulated: false }, referenceJob: job }
const gpu = { needsGpu: true }
const planOf = (podClassOf = real, engine = gpu, of = revision): ReferencePlan => {
  const plan = referencePlan(of, podClassOf, engine)
  if (plan === null) throw new Error("no plan")
  return plan
}
const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: ["pull"] }
const request = { sequences: [[1, 2, 3]], drawn: 0, prompts: [[1]], new_tokens: 32 }
const jobOf = (of = revision) =>
  JSON.parse(JSON.stringify(referenceJob({ plan: planOf(real, gpu, of), revision: of, settings, weightsClaim: "weights" }, request)))

describe("the Job of a reference", () => {
  it("sees the folder of its commit only, read-only, verifies it first, and has no network identity, privilege or GPU", () => {
    const { spec } = jobOf().spec.template
    const [check] = spec.initContainers
    const [compute] = spec.containers
    const folder = { name: "weights", mountPath: `/models/seatrial/tiny-chat/${commit}`, subPath: `seatrial/tiny-chat/${commit}`, readOnly: true }
    assert.deepStrictEqual(spec.volumes[0], { name: "weights", persistentVolumeClaim: { claimName: "weights", readOnly: true } })
    assert.deepStrictEqual(check.command, ["seatrial", "check-weights"])
    assert.includeMembers(check.args, ["--repo=seatrial/tiny-chat", `--commit=${commit}`])
    assert.deepStrictEqual(check.volumeMounts, [folder])
    assert.deepStrictEqual(compute.volumeMounts, [folder, { name: "scratch", mountPath: "/tmp" }])
    assert.deepStrictEqual(compute.command, ["python3", "-c", referenceProgram])
    assert.deepStrictEqual(compute.args, [folder.mountPath, `--memory-bytes=${2 ** 33}`, `--request=${JSON.stringify(request)}`])
    assert.deepStrictEqual(compute.resources, { requests: { cpu: "4", memory: String(2 ** 34) }, limits: { memory: String(2 ** 34) } })
    for (const { securityContext } of [check, compute])
      assert.deepStrictEqual(securityContext, { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } })
    assert.deepInclude(spec, { restartPolicy: "Never", automountServiceAccountToken: false, nodeSelector: { pool: "cpu" }, tolerations: [{ key: "cpu" }] })
    assert.isTrue(spec.securityContext.runAsNonRoot)
    assert.notInclude(JSON.stringify(spec), "nvidia.com/gpu")
    assert.deepInclude(compute.env, { name: "NVIDIA_VISIBLE_DEVICES", value: "void" })
  })

  it("computes the base of an adapter, and mounts nothing of the adapter", () => {
    const { spec } = jobOf(adapted).spec.template
    const text = JSON.stringify(spec)
    assert.include(text, baseCommit)
    assert.notInclude(text, adapted.facts.commit)
  })

  it("belongs to no organization and to no run, so that all runs share it", () => {
    const { metadata } = jobOf()
    assert.match(metadata.name, /^reference-[0-9a-f]{40}$/u)
    assert.isUndefined(metadata.ownerReferences)
    assert.notInclude(JSON.stringify(metadata), "acme")
    assert.strictEqual(metadata.labels["seatrial.dev/role"], "reference")
    const other = { ...revision, settings: { ...revision.settings, max_context: 4_096 } }
    assert.strictEqual(planOf(real, gpu, other).name, planOf().name)
  })

  it("is another one for another image, interpreter, number of processors, amount of memory or commit, and the same for other places", () => {
    const names = [
      planOf(),
      planOf({ ...real, referenceJob: { ...job, image: "python:1" } }),
      planOf({ ...real, referenceJob: { ...job, python: "/opt/python" } }),
      planOf({ ...real, referenceJob: { ...job, memoryBytes: 2 ** 35 } }),
      // It may end in time with more of them.
      planOf({ ...real, referenceJob: { ...job, cpu: 8 } }),
      planOf(real, gpu, adapted)
    ].map(({ name }) => name)
    assert.strictEqual(new Set(names).size, names.length)
    assert.strictEqual(planOf({ ...real, referenceJob: { ...job, waitSeconds: 1, nodeSelector: {} } }).name, planOf().name)
  })

  it("fits into the longest argument of a process, and has nothing that Kubernetes would replace", () => {
    assert.isBelow(Buffer.byteLength(referenceProgram), 100_000)
    assert.notInclude(referenceProgram, "$")
  })

  it("exists for each class with an engine for GPUs, unless the class disables it", () => {
    const { gpu_count: gpuCount, gpu_pool: gpuPool, name, runtimes } = hostClass
    const spec = { runtimes, gpuPool, gpuCount, gpuMemoryBytes: 2 ** 30, pricePerGpuHour: "1" }
    const planWith = (fields: object) => referencePlan(revision, Option.getOrThrow(toPodClass({ metadata: { name }, spec: { ...spec, ...fields } })), gpu)
    assert.strictEqual(planWith({})?.image, "reference:1")
    assert.deepInclude(planWith({ referenceJob: { memoryBytes: 2 ** 30 } })?.job, { cpu: 4, memoryBytes: 2 ** 30, waitSeconds: 600 })
    assert.isNull(planWith({ referenceJob: { enabled: false, image: "python:1" } }))
    assert.isNull(planWith({ simulated: true }))
  })

  it("exists only if the class computes references, with the image of an engine for GPUs or with its own", () => {
    const { referenceJob: _, ...without } = real
    assert.isNull(referencePlan(revision, without, gpu))
    assert.isNull(referencePlan(revision, real, { needsGpu: false }))
    assert.isNull(referencePlan(revision, { ...real, hostClass }, gpu))
    assert.strictEqual(planOf().image, "reference:1")
    assert.strictEqual(planOf({ ...real, hostClass, referenceJob: { ...job, image: "python:1" } }, { needsGpu: false }).image, "python:1")
  })
})

const jobWith = (type: string | null, deleted = false): WatchedJob => ({
  metadata: { name: "reference-1", ...(deleted ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) },
  status: { conditions: type === null ? [] : [{ type, status: "True" }] }
})
const podWith = (
  phase: string,
  exitCode: number | null,
  reason = "Error",
  status: WatchedPod["status"] = {},
  nodeName: string | null = "node-1"
): WatchedPod => ({
  metadata: { name: "reference-1-x" },
  spec: { containers: [], ...(nodeName === null ? {} : { nodeName }) },
  status: {
    phase,
    ...status,
    containerStatuses: exitCode === null ? [] : [{ name: "reference", ready: false, restartCount: 0, state: { terminated: { exitCode, reason } } }]
  }
})
const disrupted = { conditions: [{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler" }] }
/** The pod's deadline ended a container that ran that long. */
const stopped = (minutes: number): WatchedPod => {
  const finishedAt = new Date(minutes * 60_000).toISOString()
  const terminated = { exitCode: 137, reason: "Error", startedAt: new Date(0).toISOString(), finishedAt }
  const containerStatuses = [{ name: "reference", ready: false, restartCount: 0, state: { terminated } }]
  return { metadata: { name: "reference-1-x" }, status: { phase: "Failed", reason: "DeadlineExceeded", containerStatuses } }
}
const deleted = (pod: WatchedPod): WatchedPod => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } })

describe("the state of the Job of a reference", () => {
  const { Active, Ended, Leaving, Settled, Unplaced } = ObservedReference
  const ended = (code: string) => Ended({ pod: null, code })
  const unknown = Settled({ code: "not_started" })
  const cases: ReadonlyArray<readonly [what: string, job: WatchedJob, pods: ReadonlyArray<WatchedPod>, expected: ObservedReference]> = [
    ["it waits for its pod", jobWith(null), [], Unplaced()],
    ["its pod waits for a node", jobWith(null), [podWith("Pending", null, "Error", {}, null)], Unplaced()],
    ["its pod waits for a node after an eviction", jobWith(null), [podWith("Failed", 137), podWith("Pending", null, "Error", {}, null)], Unplaced()],
    ["it runs", jobWith(null), [podWith("Running", null)], Active()],
    ["it is tried again after its files were not complete", jobWith(null), [podWith("Failed", null), podWith("Running", null)], Active()],
    ["it is tried again after something killed it", jobWith(null), [podWith("Failed", 137), podWith("Running", null)], Active()],
    ["it is being deleted", jobWith("Complete", true), [podWith("Succeeded", 0)], Leaving()],
    ["it is done", jobWith("Complete"), [podWith("Failed", null), podWith("Succeeded", 0)], Ended({ pod: "reference-1-x", code: null })],
    ["it is done, and no watch has shown its pod yet", jobWith("Complete"), [], Active()],
    ["its memory did not suffice", jobWith("Failed"), [podWith("Failed", 137, "OOMKilled")], ended("out_of_memory")],
    ["its memory did not suffice, and Kubernetes would try again", jobWith(null), [podWith("Failed", 137, "OOMKilled")], ended("out_of_memory")],
    ["it took too long", jobWith(null), [stopped(119)], ended("timed_out")],
    ["the program failed", jobWith("Failed"), [podWith("Failed", 1)], ended("computation_failed")],
    ["the program crashed", jobWith("Failed"), [podWith("Failed", 139)], ended("computation_failed")],
    [
      "the program failed after an eviction",
      jobWith("Failed"),
      [podWith("Failed", 137, "Error", disrupted), podWith("Failed", 1)],
      ended("computation_failed")
    ],
    // These say nothing about the commit.
    ["its files were not complete", jobWith("Failed"), [podWith("Failed", null)], unknown],
    ["no node had room for it", jobWith("Failed"), [], unknown],
    ["it was evicted", jobWith("Failed"), [podWith("Failed", 137, "Error", disrupted)], unknown],
    ["it was preempted and ended with a code of its own", jobWith("Failed"), [podWith("Failed", 1, "Error", disrupted)], unknown],
    ["the memory of its node did not suffice, and the node evicted it", jobWith("Failed"), [podWith("Failed", 137, "OOMKilled", disrupted)], unknown],
    ["someone deleted its pod", jobWith("Failed"), [deleted(podWith("Failed", 1))], unknown],
    ["something killed it", jobWith("Failed"), [podWith("Failed", 137)], unknown],
    ["something stopped it", jobWith("Failed"), [podWith("Failed", 143)], unknown],
    ["its node restarted", jobWith("Failed"), [podWith("Failed", 255, "Unknown")], unknown],
    ["its node lost its state", jobWith("Failed"), [podWith("Failed", 1, "ContainerStatusUnknown")], unknown],
    ["its node could not start the program", jobWith("Failed"), [podWith("Failed", 128, "StartError")], unknown],
    ["its time went to images and files", jobWith("Failed"), [stopped(30)], unknown]
  ]
  for (const [what, job, pods, expected] of cases) it(what, () => assert.deepStrictEqual(observeReferenceJob(job, pods), expected))
})

describe("the failure policy of a reference's Job", () => {
  const { backoffLimit, podFailurePolicy } = jobOf().spec
  it("ignores disruptions, ends at an exit of the program, and tries again what something else ended", () => {
    const [ignored, fatal] = podFailurePolicy.rules
    assert.deepStrictEqual(ignored, { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] })
    assert.deepStrictEqual(fatal.onExitCodes, { containerName: "reference", operator: "NotIn", values: [0, 137, 143, 255] })
    assert.strictEqual(fatal.action, "FailJob")
    assert.strictEqual(backoffLimit, 2)
  })
})
