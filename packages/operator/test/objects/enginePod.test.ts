import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Option } from "effect"
import { disruptionBudget } from "../../src/objects/disruptionBudget.ts"
import { digestOf } from "../../src/objects/engineObjects.ts"
import { enginePod } from "../../src/objects/enginePod.ts"
import { type PodClass, toPodClass } from "../../src/resources/PodClass.ts"
import { commit, orgId, podClass, revision, run } from "../observations.ts"
import { everyPodField } from "../resources/ruleCases.ts"

const engine = engineFor("reference")
if (engine === undefined) throw new Error("there is no reference engine")

/** The pod's specification as the API server sees it. */
const specOf = (change: Partial<PodClass> = {}, pullSecrets: ReadonlyArray<string> = []) =>
  JSON.parse(
    JSON.stringify(
      enginePod({
        run,
        revision,
        podClass: { ...podClass, ...change },
        engine,
        settings: { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets },
        weightsClaim: "weights"
      })
    )
  )
const container = (change: Partial<PodClass> = {}) => specOf(change).spec.containers[0]
const compiled = `${orgId}/reference-1/simulated/${commit}`
const own = "dep-01k3v7m8q2w4x6y8z0a2b4c6d8-engine-0"

describe("an engine's pod", () => {
  it("follows its host class", () => {
    const { metadata, spec } = specOf({ runtimeClassName: "nvidia", sharedMemoryBytes: 2 ** 34, queueName: "gpus", nodeSelector: { card: "h100" } })
    assert.strictEqual(metadata.labels["kueue.x-k8s.io/queue-name"], "gpus")
    assert.deepInclude(spec, { runtimeClassName: "nvidia", nodeSelector: { card: "h100" } })
    assert.deepInclude(spec.volumes, { name: "shm", emptyDir: { medium: "Memory", sizeLimit: "17179869184" } })
    assert.notProperty(specOf().metadata.labels, "kueue.x-k8s.io/queue-name")
    assert.notProperty(specOf().spec, "runtimeClassName")
  })

  it("prefers zones and nodes without another engine of its revision", () => {
    const affinityOf = (ordinal: number) => {
      const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
      const pod = enginePod({ run, revision, podClass, engine, settings, weightsClaim: "weights", ordinal })
      return JSON.parse(JSON.stringify(pod)).spec.affinity
    }
    const labelSelector = { matchLabels: { "seatrial.dev/deployment": run.id, "seatrial.dev/role": "engine" } }
    const apart = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"].map((topologyKey) => ({
      weight: 100,
      podAffinityTerm: { topologyKey, labelSelector }
    }))
    for (const ordinal of [0, 1]) assert.deepStrictEqual(affinityOf(ordinal), { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: apart } })
  })

  it("has every field that its host class sets for pods, and the labels, annotations and variables that Seatrial needs", () => {
    const ofClass = Option.getOrThrow(toPodClass({ metadata: { name: "local" }, spec: everyPodField }))
    const { metadata, spec } = specOf(ofClass)
    const [{ env, resources }] = spec.containers
    assert.deepInclude(metadata.labels, { team: "search", "example.com/cost-center": "7", "seatrial.dev/role": "engine" })
    assert.deepInclude(metadata.annotations, { "example.com/note": "any text, even {}", "seatrial.dev/price-per-gpu-hour": "1" })
    assert.deepInclude(spec, {
      priorityClassName: "high",
      schedulerName: "other",
      resourceClaims: [{ name: "nic", resourceClaimTemplateName: "nics" }]
    })
    const { nodeAffinity, podAntiAffinity } = everyPodField.affinity ?? {}
    assert.deepStrictEqual(spec.affinity.nodeAffinity, nodeAffinity)
    assert.deepInclude(spec.affinity.podAntiAffinity, podAntiAffinity ?? {})
    assert.deepInclude(env, { name: "NCCL_IB_HCA", value: "mlx5" })
    assert.deepInclude(resources.requests, { "rdma/hca": "1", "hugepages-2Mi": "64Mi", "ephemeral-storage": String(2 ** 30 + 2 ** 20) })
    assert.deepInclude(resources.limits, { "rdma/hca": "1", "hugepages-2Mi": "64Mi" })
    assert.notProperty(resources.limits, "ephemeral-storage")
    assert.deepStrictEqual(resources.claims, [{ name: "nic" }])
    for (const field of ["priorityClassName", "resourceClaims", "schedulerName"]) assert.notProperty(specOf().spec, field)
  })

  it("is outdated if a field of its host class changes, and not because it avoids nodes", () => {
    const pod = (change: Partial<PodClass>, avoid: ReadonlyArray<string> = []) =>
      enginePod({
        run,
        revision,
        podClass: { ...podClass, ...change },
        engine,
        settings: { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] },
        weightsClaim: "weights",
        avoid
      })
    const madeFrom = (of: ReturnType<typeof pod>) => of.metadata.annotations?.["seatrial.dev/made-from"]
    const changes: ReadonlyArray<Partial<PodClass>> = [
      {},
      { labels: { team: "search" } },
      { annotations: { team: "search" } },
      { affinity: everyPodField.affinity ?? {} },
      { priorityClassName: "high" }
    ]
    assert.strictEqual(new Set(changes.map((change) => madeFrom(pod(change)))).size, changes.length)
    for (const change of changes) assert.strictEqual(madeFrom(pod(change, ["slow"])), madeFrom(pod(change)))
    const preferred = JSON.parse(JSON.stringify(pod({ affinity: everyPodField.affinity ?? {} }, ["slow"]))).spec.affinity.nodeAffinity
    assert.deepStrictEqual(
      preferred.preferredDuringSchedulingIgnoredDuringExecution.map(({ weight }: { weight: number }) => weight),
      [5, 100]
    )
    assert.isDefined(preferred.requiredDuringSchedulingIgnoredDuringExecution)
  })

  it("is not outdated if an earlier version created it: the preference of a first engine for other nodes does not count", () => {
    const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
    for (const ordinal of [0, 1]) {
      const { metadata, spec } = JSON.parse(JSON.stringify(enginePod({ run, revision, podClass, engine, settings, weightsClaim: "weights", ordinal })))
      const { affinity: _, ...withoutAffinity } = spec
      assert.strictEqual(metadata.annotations["seatrial.dev/made-from"], digestOf(ordinal === 0 ? withoutAffinity : spec))
    }
  })

  it("runs the image with which its revision was verified, and before that the image of its host class", () => {
    const of = (engineImage: string | null, traceparent: string | null = null) =>
      enginePod({
        run: { ...run, traceparent },
        revision: { ...revision, engineImage },
        podClass,
        engine,
        settings: { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] },
        weightsClaim: "weights"
      })
    const imageOf = (pod: object) => JSON.parse(JSON.stringify(pod)).spec.containers[0].image
    assert.deepStrictEqual([imageOf(of("tried:1")), imageOf(of(null))], ["tried:1", "reference:1"])
    const madeFrom = (pod: ReturnType<typeof of>) => pod.metadata.annotations?.["seatrial.dev/made-from"]
    assert.strictEqual(madeFrom(of(null)), madeFrom(of("reference:1", `00-${"1".repeat(32)}-${"2".repeat(16)}-01`)))
    assert.notStrictEqual(madeFrom(of(null)), madeFrom(of("tried:1")))
  })

  it("keeps that image even if the tag moves", () => {
    const digest = `sha256:${"a".repeat(64)}`
    const imageOf = (engineImage: string | null, engineDigest: string | null) => {
      const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
      const pod: object = enginePod({ run, revision: { ...revision, engineImage, engineDigest }, podClass, engine, settings, weightsClaim: "weights" })
      return JSON.parse(JSON.stringify(pod)).spec.containers[0].image
    }
    assert.deepStrictEqual(
      [imageOf("host:5000/vllm/vllm:v1", digest), imageOf(`vllm/vllm@${digest}`, digest), imageOf("vllm/vllm:v1", null), imageOf(null, digest)],
      [`host:5000/vllm/vllm@${digest}`, `vllm/vllm@${digest}`, "vllm/vllm:v1", "reference:1"]
    )
  })

  it("requests the CPU and memory of its class", () => {
    assert.deepStrictEqual(container({ cpu: "8", memoryBytes: 2 ** 36 }).resources, {
      requests: { cpu: "8", memory: "68719476736", "nvidia.com/gpu": "1" },
      limits: { memory: "68719476736", "nvidia.com/gpu": "1" }
    })
  })

  it("pulls its image with the configured Secrets", () => {
    assert.notProperty(specOf().spec, "imagePullSecrets")
    assert.deepStrictEqual(specOf({}, ["registry"]).spec.imagePullSecrets, [{ name: "registry" }])
  })

  it("writes to disks of its node, or to its own folders on a claim; compiled kernels are separate for each organization, image, GPU type and commit", () => {
    assert.deepInclude(specOf().spec.volumes, { name: "scratch", emptyDir: {} })
    assert.notInclude(JSON.stringify(specOf()), '"/cache')
    const claims = {
      scratch: { claimName: "fast", sizeBytes: null, requestBytes: null },
      compileCache: { claimName: "kernels", sizeBytes: null, requestBytes: null }
    }
    assert.deepInclude(container(claims).volumeMounts, { name: "scratch", mountPath: "/tmp", subPath: own })
    assert.deepInclude(container(claims).volumeMounts, { name: "cache", mountPath: "/cache", subPath: compiled })
    assert.deepInclude(specOf(claims).spec.volumes, { name: "cache", persistentVolumeClaim: { claimName: "kernels" } })
    assert.deepInclude(container(claims).env, { name: "TRITON_CACHE_DIR", value: "/cache/triton" })
    const disks = {
      scratch: { claimName: null, sizeBytes: 1_000, requestBytes: null },
      compileCache: { claimName: null, sizeBytes: 2_000, requestBytes: null }
    }
    assert.includeDeepMembers(specOf(disks).spec.volumes, [
      { name: "scratch", emptyDir: { sizeLimit: "1000" } },
      { name: "cache", emptyDir: { sizeLimit: "2000" } }
    ])
  })

  it("is restricted except for the exceptions of its host class", () => {
    const { spec } = specOf({ podSecurity: { runAsRoot: true, writableRoot: true, addCapabilities: ["IPC_LOCK"] } })
    assert.deepStrictEqual(spec.securityContext, { runAsUser: 0, runAsGroup: 0, fsGroup: 0, seccompProfile: { type: "RuntimeDefault" } })
    assert.deepStrictEqual(spec.containers[0].securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: false,
      capabilities: { drop: ["ALL"], add: ["IPC_LOCK"] }
    })
  })

  it("is not restarted for being busy, only if it accepts no connection for minutes", () => {
    const { livenessProbe, startupProbe } = container()
    assert.deepStrictEqual(Object.keys(livenessProbe).sort(), ["failureThreshold", "periodSeconds", "tcpSocket", "timeoutSeconds"])
    assert.isAtLeast(livenessProbe.failureThreshold * livenessProbe.periodSeconds, 300)
    // The deadline of the operator ends a start earlier.
    assert.isAbove(startupProbe.failureThreshold * startupProbe.periodSeconds, podClass.bootDeadlineSeconds)
  })

  it("finishes its requests if someone else deletes it", () => {
    assert.deepStrictEqual(container({ drainSeconds: 90 }).lifecycle, { preStop: { sleep: { seconds: 90 } } })
    assert.isAbove(specOf({ drainSeconds: 90 }).spec.terminationGracePeriodSeconds, 90)
    assert.notProperty(container({ drainSeconds: 0 }), "lifecycle")
  })

  it("may not be evicted while it is ready, and its budget covers no other pod", () => {
    const { metadata, spec } = JSON.parse(JSON.stringify(disruptionBudget(run, "seatrial", 1)))
    assert.strictEqual(`${metadata.name}-engine-0`, own)
    // The budget of a pod without a controller must use a count.
    assert.deepInclude(spec, { minAvailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow" })
    const { labels } = specOf().metadata
    for (const [label, value] of Object.entries(spec.selector.matchLabels)) assert.strictEqual(labels[label], value)
    assert.deepStrictEqual(Object.keys(spec.selector.matchLabels), ["seatrial.dev/deployment", "seatrial.dev/role"])
  })
})
