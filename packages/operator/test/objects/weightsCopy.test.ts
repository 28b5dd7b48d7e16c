import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Pod } from "@seatrial/kube"
import { Schema } from "effect"
import { rootCause } from "../../src/apply/rootCause.ts"
import { copiesInUse } from "../../src/gather/copiesInUse.ts"
import { observeCopy } from "../../src/gather/observeCopy.ts"
import { observePod } from "../../src/gather/observePod.ts"
import { enginePod } from "../../src/objects/enginePod.ts"
import { annotateCopiesInUse } from "../../src/objects/weightsCopy.ts"
import type { WeightsCache } from "../../src/resources/PodClass.ts"
import { adapted, baseCommit } from "../adapted.ts"
import { commit, podClass, revision, run } from "../observations.ts"

const engine = engineFor("reference")
if (engine === undefined) throw new Error("there is no reference engine")

const onClaim: WeightsCache = { claimName: "node-weights", storageClassName: null, sizeBytes: null, verify: "recorded" }
const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }

const wanted = (weightsCache: WeightsCache | null, runAsRoot = false) =>
  enginePod({
    run,
    revision,
    podClass: { ...podClass, weightsCache, podSecurity: { ...podClass.podSecurity, runAsRoot } },
    engine,
    settings,
    weightsClaim: "weights"
  })
/** The folder of one commit. */
const mountOf = (repo: string, commit: string) => ({ name: "weights", mountPath: `/models/${repo}/${commit}`, subPath: `${repo}/${commit}`, readOnly: true })
const json = (object: object) => JSON.parse(JSON.stringify(object))
const decodePod = Schema.decodeUnknownSync(Pod.schema)

/** The pod with a status from its node. */
const podWith = (status: object) => decodePod({ ...json(wanted(onClaim)), status })
const waiting = { name: "engine", ready: false, restartCount: 0, state: { waiting: { reason: "PodInitializing" } } }
const copyStatus = (state: object, restartCount = 0, lastState: object = {}) =>
  podWith({ initContainerStatuses: [{ name: "copy-weights", ready: false, restartCount, state, lastState }], containerStatuses: [waiting] })
const ended = (exitCode: number, message: string, reason = "Error") => ({ terminated: { exitCode, reason, message, finishedAt: "2026-01-01T00:00:00Z" } })
const full = "fetched 0 of 10 bytes, 0 bytes/s\n  weights_store_full: The node's copy of the weights needs 10 bytes.\n"

describe("a node-local copy of weights", () => {
  it("is made by the pod's init container, from the store, which the engine cannot see, and is read-only to the engine", () => {
    const { metadata, spec } = json(wanted(onClaim))
    const [copy] = spec.initContainers
    assert.deepStrictEqual(copy.command, ["seatrial", "copy-weights"])
    assert.includeMembers(copy.args, ["--repo=seatrial/tiny-chat", `--commit=${commit}`, "--from=/weights", "--to=/models", "--verify=recorded"])
    assert.deepStrictEqual(copy.volumeMounts, [
      { name: "store", mountPath: "/weights", readOnly: true },
      { name: "weights", mountPath: "/models" }
    ])
    assert.includeDeepMembers(spec.volumes, [
      { name: "store", persistentVolumeClaim: { claimName: "weights", readOnly: true } },
      { name: "weights", persistentVolumeClaim: { claimName: "node-weights" } }
    ])
    const mounts = spec.containers[0].volumeMounts
    assert.deepInclude(mounts, mountOf("seatrial/tiny-chat", commit))
    assert.notInclude(JSON.stringify(mounts), "store")
    // The GPUs belong to the engine's container.
    assert.notProperty(copy.resources.limits, podClass.gpuResource)
    assert.notStrictEqual(metadata.annotations["seatrial.dev/made-from"], wanted(null).metadata.annotations?.["seatrial.dev/made-from"])
  })

  it("is replaced by a check of the store before the engine starts, if the node keeps no copy", () => {
    const { spec } = json(wanted(null))
    const [check] = spec.initContainers
    assert.deepStrictEqual([spec.initContainers.length, check.name, check.command], [1, "check-weights", ["seatrial", "check-weights"]])
    assert.includeMembers(check.args, ["--repo=seatrial/tiny-chat", `--commit=${commit}`, `--directory=/models/seatrial/tiny-chat/${commit}`])
    assert.deepStrictEqual(check.volumeMounts, [mountOf("seatrial/tiny-chat", commit)])
    assert.notProperty(check.resources.limits, podClass.gpuResource)
    const lastLine = "weights_mismatch: model.safetensors in the weights store has changed since the download."
    const failed = decodePod({
      ...json(wanted(null)),
      status: {
        initContainerStatuses: [{ name: "check-weights", ready: false, restartCount: 0, state: ended(3, lastLine), lastState: {} }],
        containerStatuses: [waiting]
      }
    })
    assert.deepInclude(observeCopy(failed), { checks: true, final: true, done: false })
    assert.deepInclude(rootCause([failed], false), {
      reason: "WeightsNotVerified",
      message: "model.safetensors in the weights store has changed since the download."
    })
    assert.isFalse(observePod(failed, undefined).started)
  })

  it("is visible to the engine and to the check only as the commits that it serves, read-only, whatever else the volume holds", () => {
    const specOf = (of: typeof revision, cache: WeightsCache | null) =>
      json(enginePod({ run, revision: of, podClass: { ...podClass, weightsCache: cache }, engine, settings, weightsClaim: "weights" })).spec
    const mountsOf = ({ volumeMounts }: { volumeMounts: ReadonlyArray<{ name: string }> }) =>
      volumeMounts.filter(({ name }) => name === "weights" || name === "store")
    const revisions = [
      { of: revision, mounts: [mountOf("seatrial/tiny-chat", commit)] },
      { of: adapted, mounts: [mountOf("seatrial/tiny-chat", baseCommit), mountOf("acme/tuned", adapted.facts.commit)] }
    ]
    for (const { mounts, of } of revisions) {
      for (const cache of [null, onClaim, { ...onClaim, claimName: null }]) assert.deepStrictEqual(mountsOf(specOf(of, cache).containers[0]), mounts)
      assert.deepStrictEqual(mountsOf(specOf(of, null).initContainers[0]), mounts)
    }
  })

  it("whose folder the store has lost is missing weights, unless the node lacks something else that was added to the check", () => {
    const message = 'failed to create subPath directory for volumeMount "weights" of container "check-weights"'
    const status = {
      initContainerStatuses: [
        { name: "check-weights", ready: false, restartCount: 0, state: { waiting: { reason: "CreateContainerConfigError", message } }, lastState: {} }
      ],
      containerStatuses: [waiting]
    }
    const pod = json(wanted(null))
    const lost = observeCopy(decodePod({ ...pod, status }))
    assert.deepInclude(lost, { checks: true, absent: true, running: false, done: false })
    assert.strictEqual(lost?.failure?.code, "weights_missing")
    const [check] = pod.spec.initContainers
    const variables = { env: [...check.env, { name: "TOKEN", valueFrom: { secretKeyRef: { name: "none", key: "token" } } }] }
    for (const added of [variables, { envFrom: [{ secretRef: { name: "none" } }] }]) {
      const other = decodePod({ ...pod, spec: { ...pod.spec, initContainers: [{ ...check, ...added }] }, status })
      assert.deepInclude(observeCopy(other), { running: false, done: false, failure: null })
      assert.strictEqual(observePod(other, undefined).blocked, "CreateContainerConfigError")
    }
    // The copy mounts the whole store, so this reason has another cause.
    assert.isNull(observeCopy(copyStatus({ waiting: { reason: "CreateContainerConfigError" } }))?.failure)
  })

  it("complies with the restricted Pod Security Standard, uses the same user for every engine, and no host path", () => {
    for (const runAsRoot of [false, true]) {
      const { spec } = json(wanted(onClaim, runAsRoot))
      assert.deepStrictEqual(spec.initContainers[0].securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
        runAsNonRoot: true,
        runAsUser: 2000,
        runAsGroup: 2000
      })
      assert.notInclude(JSON.stringify(spec.volumes), "hostPath")
    }
  })

  it("is on the pod's own volume if the host class names no claim", () => {
    const cache = { ...onClaim, claimName: null, sizeBytes: 1_000 }
    assert.deepInclude(json(wanted(cache)).spec.volumes, { name: "weights", emptyDir: { sizeLimit: "1000" } })
    assert.deepInclude(json(wanted({ ...cache, storageClassName: "fast" })).spec.volumes, {
      name: "weights",
      ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], storageClassName: "fast", resources: { requests: { storage: "1000" } } } } }
    })
  })

  it("stays while a pod that uses the same claim exists: each copy gets the list of the other pods' copies", () => {
    const pods = [podWith({}), decodePod(json(wanted(null))), decodePod(json(wanted({ ...onClaim, claimName: "elsewhere" })))]
    assert.strictEqual(copiesInUse(pods, "node-weights", 7), `7 ${commit.slice(0, 12)}`)
    const before = wanted(onClaim)
    const events = annotateCopiesInUse(before, "7 abc")
    assert.strictEqual(events.metadata.annotations?.["seatrial.dev/weights-in-use"], "7 abc")
    assert.strictEqual(events.metadata.annotations?.["seatrial.dev/made-from"], before.metadata.annotations?.["seatrial.dev/made-from"])
    assert.deepInclude(json(events).spec.initContainers[0].env, {
      name: "SEATRIAL_WEIGHTS_IN_USE",
      valueFrom: { fieldRef: { fieldPath: "metadata.annotations['seatrial.dev/weights-in-use']" } }
    })
  })

  it("is observed while it runs, when it is complete, and why it failed", () => {
    assert.deepInclude(observeCopy(decodePod(json(wanted(null)))), { checks: true, running: false, done: false, failure: null })
    const running = observeCopy(copyStatus({ running: { startedAt: "2026-01-01T00:00:00Z" } }), "fetched 5 of 10 bytes, 1 bytes/s, 5 s left\n")
    assert.deepInclude(running, { running: true, done: false, failures: 0, failure: null })
    assert.strictEqual(running?.progress?.bytes, 5)
    assert.deepInclude(observeCopy(copyStatus(ended(0, "", "Completed"))), { done: true, failure: null, endedAt: Date.parse("2026-01-01T00:00:00Z") })
    const looped = copyStatus({ waiting: { reason: "CrashLoopBackOff" } }, 1, ended(1, full))
    assert.deepInclude(observeCopy(looped), {
      failures: 2,
      final: false,
      failure: { code: "weights_store_full", text: "The node's copy of the weights needs 10 bytes." }
    })
    assert.deepInclude(observeCopy(copyStatus(ended(3, "weights_mismatch: Differs."))), {
      final: true,
      failure: { code: "weights_mismatch", text: "Differs." }
    })
    assert.strictEqual(observeCopy(copyStatus(ended(137, "", "OOMKilled")))?.failure?.code, "out_of_memory")
  })

  it("fails with the message of its container as the cause in the status; a missing image is reported as for any container", () => {
    const causeOf = (pod: Pod) => rootCause([pod], false)
    const loop = copyStatus({ waiting: { reason: "CrashLoopBackOff" } }, 1, ended(1, full))
    assert.deepInclude(causeOf(loop), { reason: "WeightsNotCopied", message: "The node's copy of the weights needs 10 bytes." })
    assert.deepInclude(causeOf(copyStatus({ waiting: { reason: "ErrImagePull", message: "no such image" } })), {
      reason: "ErrImagePull",
      message: "no such image"
    })
    assert.isUndefined(causeOf(copyStatus({ running: { startedAt: "2026-01-01T00:00:00Z" } })))
    assert.strictEqual(observePod(copyStatus({ waiting: { reason: "ErrImagePull" } }), undefined).blocked, "ErrImagePull")
    assert.isFalse(observePod(loop, undefined).started)
  })
})
