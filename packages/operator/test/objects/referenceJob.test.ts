import { assert, describe, it } from "@effect/vitest"
import { referenceProgram } from "@seatrial/trial"
import { observeReferenceJob } from "../../src/gather/observeReference.ts"
import { type ReferencePlan, referenceJob, referencePlan } from "../../src/objects/referenceJob.ts"
import { ObservedReference } from "../../src/observation/ObservedReference.ts"
import type { ReferenceJobOf } from "../../src/resources/PodClass.ts"
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
const request = { sequences: [[1, 2, 3]], prompts: [[1]], new_tokens: 32 }
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

  it("exists only if the class asks for references, with the image of an engine for GPUs or with its own", () => {
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
const podWith = (phase: string, exitCode: number | null, reason = "Error", why?: string): WatchedPod => ({
  metadata: { name: "reference-1-x" },
  status: {
    phase,
    ...(why === undefined ? {} : { reason: why }),
    containerStatuses: exitCode === null ? [] : [{ name: "reference", ready: false, restartCount: 0, state: { terminated: { exitCode, reason } } }]
  }
})

describe("the state of the Job of a reference", () => {
  const { Active, Ended, Leaving, Settled } = ObservedReference
  const cases: ReadonlyArray<readonly [what: string, job: WatchedJob, pods: ReadonlyArray<WatchedPod>, expected: ObservedReference]> = [
    ["it waits for its pod", jobWith(null), [], Active()],
    ["it runs", jobWith(null), [podWith("Running", null)], Active()],
    ["it is tried again", jobWith(null), [podWith("Failed", 137), podWith("Running", null)], Active()],
    ["it is being deleted", jobWith("Complete", true), [podWith("Succeeded", 0)], Leaving()],
    ["it is done", jobWith("Complete"), [podWith("Failed", null), podWith("Succeeded", 0)], Ended({ pod: "reference-1-x", code: null })],
    ["it is done, and no watch has shown its pod yet", jobWith("Complete"), [], Active()],
    ["its memory did not suffice", jobWith("Failed"), [podWith("Failed", 137, "OOMKilled")], Ended({ pod: null, code: "out_of_memory" })],
    ["it took too long", jobWith("Failed"), [podWith("Failed", 137, "Error", "DeadlineExceeded")], Ended({ pod: null, code: "timed_out" })],
    ["the program failed", jobWith("Failed"), [podWith("Failed", 1)], Ended({ pod: null, code: "computation_failed" })],
    ["its files were not complete, which says nothing about the commit", jobWith("Failed"), [podWith("Failed", null)], Settled({ code: "not_started" })],
    ["no node had room for it, which says nothing about the commit", jobWith("Failed"), [], Settled({ code: "not_started" })]
  ]
  for (const [what, job, pods, expected] of cases) it(what, () => assert.deepStrictEqual(observeReferenceJob(job, pods), expected))
})
