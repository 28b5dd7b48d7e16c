import { assert, describe, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import type { Job, Node, Pod } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect, Schema } from "effect"
import { makeGpuLedger } from "../../src/gather/capacity/GpuLedger.ts"
import { makePool, noView, type Pool, type PoolQuestion } from "../../src/gather/capacity/Pool.ts"
import { observeFetch } from "../../src/gather/observeFetch.ts"
import { observePod } from "../../src/gather/observePod.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { deploymentId, otherDeployment, podClass, revision, run } from "../observations.ts"

const at = "2026-11-21T10:00:00Z"
const millis = Date.parse(at)
const metadataOfPod = { name: "engine", creationTimestamp: at, uid: "u" }
const spec = { nodeName: "n", containers: [{ name: "engine", ports: [{ name: "http", containerPort: 8000 }] }] }
const unready = { type: "Ready", status: "False", lastTransitionTime: at }
const scheduled = { type: "PodScheduled", status: "True", lastTransitionTime: at }
const node: Node = { metadata: { name: "n" }, status: { allocatable: { "nvidia.com/gpu": "2" }, conditions: [{ type: "Ready", status: "True" }] } }
const silent: Node = { metadata: { name: "n" }, status: { conditions: [{ type: "Ready", status: "Unknown", lastTransitionTime: "2026-11-21T11:00:00Z" }] } }
const status = (container: object, extra: object = {}) => ({
  conditions: [scheduled],
  containerStatuses: [{ name: "engine", ready: false, restartCount: 0, ...container }],
  ...extra
})

describe("a pod", () => {
  const cases: ReadonlyArray<readonly [promise: string, pod: Pod, node: Node | undefined, expected: object]> = [
    [
      "without a status has not started",
      { metadata: metadataOfPod, spec: { containers: [] } },
      undefined,
      { scheduled: false, started: false, ready: false, url: null }
    ],
    [
      "got its node when the scheduler says so",
      { metadata: metadataOfPod, spec, status: { conditions: [{ ...scheduled, lastTransitionTime: "2026-11-21T10:40:00Z" }] } },
      node,
      { scheduledAt: millis + 40 * 60_000, gpuFault: false }
    ],
    [
      "on a node with a failed GPU reports it",
      { metadata: metadataOfPod, spec, status: status({}) },
      { metadata: { name: "n" }, status: { conditions: [{ type: "XIDError", status: "True" }] } },
      { gpuFault: true }
    ],
    [
      "reports the driver's message about its GPU",
      { metadata: metadataOfPod, spec, status: status({ lastState: { terminated: { exitCode: 1, message: "NVRM: Xid (PCI:0000:3b:00): 79, pid=1" } } }) },
      node,
      { gpuFault: true }
    ],
    [
      "but not a fault that an engine may cause by itself",
      {
        metadata: metadataOfPod,
        spec,
        status: status({ lastState: { terminated: { exitCode: 1, message: "CUDA error: an illegal memory access was encountered" } } })
      },
      node,
      { gpuFault: false }
    ],
    [
      "that no node takes says why and since when",
      {
        metadata: metadataOfPod,
        spec: { containers: [] },
        status: { conditions: [{ type: "PodScheduled", status: "False", message: "0/3 nodes", lastTransitionTime: at }] }
      },
      undefined,
      { unschedulable: { since: millis, message: "0/3 nodes" } }
    ],
    [
      "that Kueue holds back is not unschedulable",
      {
        metadata: metadataOfPod,
        spec: { containers: [], schedulingGates: [{ name: "kueue.x-k8s.io/admission" }] },
        status: { conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated", lastTransitionTime: at }] }
      },
      undefined,
      { gated: true, unschedulable: null }
    ],
    [
      "that Kueue has admitted and the scheduler has not processed yet is neither",
      {
        metadata: metadataOfPod,
        spec: { containers: [] },
        status: { conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated", lastTransitionTime: at }] }
      },
      undefined,
      { gated: false, unschedulable: null }
    ],
    [
      "that runs has started",
      { metadata: metadataOfPod, spec, status: status({ state: { running: {} } }) },
      node,
      { started: true, ready: false, blocked: null }
    ],
    [
      "that is ready has an address",
      {
        metadata: metadataOfPod,
        spec,
        status: { ...status({ state: { running: {} } }), podIP: "10.0.0.1", conditions: [scheduled, { type: "Ready", status: "True" }] }
      },
      node,
      { ready: true, url: "http://10.0.0.1:8000" }
    ],
    [
      "at an IPv6 address has a valid address",
      { metadata: metadataOfPod, spec, status: status({}, { podIP: "fd00::1" }) },
      node,
      { url: "http://[fd00::1]:8000" }
    ],
    [
      "whose image cannot be pulled names the reason",
      { metadata: metadataOfPod, spec, status: status({ state: { waiting: { reason: "ImagePullBackOff" } } }) },
      node,
      { blocked: "ImagePullBackOff", started: false }
    ],
    [
      "that only waits for its container is not blocked",
      { metadata: metadataOfPod, spec, status: status({ state: { waiting: { reason: "ContainerCreating" } } }) },
      node,
      { blocked: null }
    ],
    [
      "that ended reports its last exit, also while it waits for a restart",
      {
        metadata: metadataOfPod,
        spec,
        status: status({
          restartCount: 2,
          state: { waiting: { reason: "CrashLoopBackOff" } },
          lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } }
        })
      },
      node,
      { restarts: 2, lastExit: { code: 137, reason: "OOMKilled" }, started: true, blocked: null }
    ],
    [
      "that runs again counts from that start",
      {
        metadata: metadataOfPod,
        spec,
        status: status({
          restartCount: 1,
          state: { running: { startedAt: "2026-11-21T11:00:00Z" } },
          lastState: { terminated: { exitCode: 1, finishedAt: at } }
        })
      },
      node,
      { startedAt: Date.parse("2026-11-21T11:00:00Z") }
    ],
    [
      "that waits to start again counts from its end",
      {
        metadata: metadataOfPod,
        spec,
        status: status({ restartCount: 1, state: { waiting: {} }, lastState: { terminated: { exitCode: 1, finishedAt: at } } })
      },
      node,
      { startedAt: millis }
    ],
    [
      "says since when it is not ready",
      { metadata: metadataOfPod, spec, status: { conditions: [scheduled, { type: "Ready", status: "False", lastTransitionTime: at }] } },
      node,
      { ready: false, readyChangedAt: millis, startedAt: null }
    ],
    ["that was evicted is lost", { metadata: metadataOfPod, spec, status: { phase: "Failed", reason: "Evicted" } }, node, { lost: "Evicted" }],
    [
      "on a silent node counts from the silence",
      { metadata: metadataOfPod, spec, status: status({}) },
      silent,
      { nodeDownSince: Date.parse("2026-11-21T11:00:00Z") }
    ],
    [
      "on a silent node, of which Kubernetes alone says that it is not ready, is as its kubelet said last",
      { metadata: metadataOfPod, spec, status: { ...status({}), conditions: [scheduled, unready, { type: "ContainersReady", status: "True" }] } },
      silent,
      { ready: true, nodeDownSince: Date.parse("2026-11-21T11:00:00Z") }
    ],
    [
      "whose containers are not ready is not",
      { metadata: metadataOfPod, spec, status: { ...status({}), conditions: [scheduled, unready, { type: "ContainersReady", status: "False" }] } },
      node,
      { ready: false }
    ],
    [
      "with an unmet readiness gate is not ready",
      {
        metadata: metadataOfPod,
        spec,
        status: { ...status({}), conditions: [scheduled, { ...unready, reason: "ReadinessGatesNotReady" }, { type: "ContainersReady", status: "True" }] }
      },
      node,
      { ready: false }
    ],
    ["on a node that is not known counts from its binding", { metadata: metadataOfPod, spec, status: status({}) }, undefined, { nodeDownSince: millis }],
    ["on a node that is well is not silent", { metadata: metadataOfPod, spec, status: status({}) }, node, { nodeDownSince: null }],
    ["that is being deleted says so", { metadata: { ...metadataOfPod, deletionTimestamp: at }, spec, status: status({}) }, node, { deleting: true }]
  ]
  for (const [promise, pod, on, expected] of cases) it(promise, () => assert.deepInclude(observePod(pod, on), expected))
})

describe("a download", () => {
  const job = (conditions: ReadonlyArray<{ readonly type: string; readonly status: string; readonly reason?: string }>): Job => ({
    metadata: { name: "j" },
    status: { conditions }
  })
  const endedWith = (message: string, finishedAt = at): Pod => ({
    metadata: metadataOfPod,
    spec,
    status: status({ state: { terminated: { exitCode: 3, message, finishedAt } } })
  })
  const failed = job([{ type: "Failed", status: "True" }])
  const code = (seen: ReturnType<typeof observeFetch>) => {
    if (seen._tag === "Failed") return `${seen.failure.code}: ${seen.failure.text}`
    return seen._tag === "Active" && seen.progress !== null ? `Active ${seen.progress.bytes}/${seen.progress.totalBytes}` : seen._tag
  }

  const cases: ReadonlyArray<readonly [promise: string, seen: ReturnType<typeof observeFetch>, expected: string]> = [
    ["that was not started is absent", observeFetch(undefined, []), "Absent"],
    ["that works is active", observeFetch(job([]), []), "Active"],
    [
      "that works says how far it is by its last line",
      observeFetch(job([]), [], "fetched 1 of 9 bytes, 1 bytes/s, 8 s left\nfetched 4 of 9 bytes, 2 bytes/s, 3 s left\nfetched 9 of"),
      "Active 4/9"
    ],
    ["that is complete succeeded", observeFetch(job([{ type: "Complete", status: "True" }]), []), "Succeeded"],
    ["that is being deleted is leaving", observeFetch({ metadata: { name: "j", deletionTimestamp: at } }, []), "Leaving"],
    [
      "that found other bytes says so",
      observeFetch(failed, [endedWith("fetched 3\n\nERROR\n  weights_mismatch: 2 of 14 files differ.\n")]),
      "weights_mismatch: 2 of 14 files differ."
    ],
    [
      "with late progress in its log still reports its result",
      observeFetch(failed, [endedWith("fetched 1\nweights_mismatch: 2 of 14 files differ.\nfetched 3\n")]),
      "weights_mismatch: 2 of 14 files differ."
    ],
    [
      "names its latest cause",
      observeFetch(failed, [endedWith("hub_unavailable: away"), endedWith("access_required: token", "2026-11-21T10:05:00Z")]),
      "access_required: token"
    ],
    [
      "shows nothing if its state is unknown",
      observeFetch(failed, [endedWith("Error: ENOENT: /weights/secret")]),
      "download_failed: The download ended without reporting a cause. Its last output is in the log of Seatrial's operator."
    ],
    [
      "that took too long says so",
      observeFetch(job([{ type: "Failed", status: "True", reason: "DeadlineExceeded" }]), []),
      "download_failed: The download did not end within its time limit. Deploy again: files that arrived are kept. If the download is slow, ask the cluster administrator to raise OPERATOR_FETCH_SECONDS."
    ]
  ]
  for (const [promise, seen, expected] of cases) it(promise, () => assert.strictEqual(code(seen), expected))
})

describe("the pool", () => {
  const engine = (name: string, change: object = {}): Pod => ({
    metadata: { name, labels: { "seatrial.dev/host-class": "local" } },
    spec: { nodeName: "n", containers: [{ name: "engine", resources: { limits: { "nvidia.com/gpu": "1" } } }], ...change }
  })
  const cordoned: Node = { ...node, spec: { unschedulable: true } }
  const tainted: Node = { ...node, spec: { taints: [{ key: "gpu", effect: "NoSchedule" }] } }
  const tolerant = { ...podClass, tolerations: [{ key: "gpu", operator: "Exists" as const }] }
  const wide = { ...podClass, hostClass: { ...podClass.hostClass, gpu_count: 2 } }
  const ledgerOf = (nodes: ReadonlyArray<Node>, pods: ReadonlyArray<Pod>) => {
    const ledger = makeGpuLedger()
    for (const node of nodes) ledger.setNode(node.metadata.name, node)
    for (const pod of pods) ledger.setPod(pod.metadata.name, pod)
    return ledger
  }
  const freeSlots = (queriedClass: typeof podClass, nodes: ReadonlyArray<Node>, pods: ReadonlyArray<Pod>, except: string) =>
    ledgerOf(nodes, pods).freeSlots(queriedClass, except)
  const cases: ReadonlyArray<readonly [promise: string, slots: number, expected: number]> = [
    ["counts the GPUs of nodes", freeSlots(podClass, [node], [], ""), 2],
    ["less the GPUs of pods", freeSlots(podClass, [node], [engine("a")], ""), 1],
    ["but not the GPUs of ended pods", freeSlots(podClass, [node], [{ ...engine("a"), status: { phase: "Succeeded" } }], ""), 2],
    ["nor the run's own pod", freeSlots(podClass, [node], [engine("a")], "a"), 2],
    ["a pod without a node holds a place already", freeSlots(podClass, [node], [{ metadata: engine("a").metadata, spec: { containers: [] } }], ""), 1],
    ["a cordoned node offers none", freeSlots(podClass, [cordoned], [], ""), 0],
    ["a silent node offers none", freeSlots(podClass, [silent], [], ""), 0],
    ["a tainted node offers none", freeSlots(podClass, [tainted], [], ""), 0],
    ["unless the class tolerates the taint", freeSlots(tolerant, [tainted], [], ""), 2],
    [
      "with an empty value if the taint has none",
      freeSlots({ ...podClass, tolerations: [{ key: "gpu", operator: "Equal", value: "" }] }, [tainted], [], ""),
      2
    ],
    ["a node of another kind offers none", freeSlots({ ...podClass, nodeSelector: { card: "h100" } }, [node], [], ""), 0],
    ["an engine's GPUs lie on one node", freeSlots(wide, [node, { ...node, metadata: { name: "m" } }], [engine("a")], ""), 1]
  ]
  for (const [promise, slots, expected] of cases) it(promise, () => assert.strictEqual(slots, expected))

  const mine: Run = { ...run, revision, phase: "queued", createdAt: 2 }
  const older: Run = { ...mine, id: otherDeployment, engineRun: otherDeployment, createdAt: 1 }
  /** The result if exactly these pods exist. */
  const ask = (pool: Pool, pods: ReadonlyArray<Pod>, question: PoolQuestion) => {
    pool.ledger.setNode(node.metadata.name, node)
    for (const pod of pods) pool.ledger.setPod(pod.metadata.name, pod)
    const answer = pool.view(question)
    for (const pod of pods) pool.ledger.setPod(pod.metadata.name, undefined)
    return answer
  }
  const view = (pool: Pool, run: Run, pods: ReadonlyArray<Pod>, reservations: PoolQuestion["reservations"] = []) =>
    ask(pool, pods, { run, podClass, classes: [podClass], reservations })

  it("lets the older run go first", () => {
    const pool = makePool()
    pool.note(older, "queued")
    pool.note(mine, "queued")
    assert.deepStrictEqual(view(pool, mine, []), { ...noView, nodeGpus: 2, freeGpus: 2, freeSlots: 2, ahead: 1, organizationGpus: 1 })
    assert.deepStrictEqual(view(pool, older, []), { ...noView, nodeGpus: 2, freeGpus: 2, freeSlots: 2, ahead: 0, organizationGpus: 1 })
  })

  it("counts a granted run before its pod is visible, and not twice afterward", () => {
    const pool = makePool()
    pool.note(older, "provisioning")
    assert.strictEqual(view(pool, mine, []).freeSlots, 1)
    assert.strictEqual(view(pool, mine, [engine(enginePodName(otherDeployment))]).freeSlots, 1)
    pool.note(older, "failed")
    assert.strictEqual(view(pool, mine, []).freeSlots, 2)
  })

  it("keeps the GPUs of a serving model that has lost its pod", () => {
    const pool = makePool()
    const revision = older.revision === null ? null : { ...older.revision, status: "active" as const }
    pool.note({ ...older, revision }, "activated")
    assert.strictEqual(view(pool, mine, []).freeSlots, 1)
    assert.strictEqual(view(pool, mine, [engine(enginePodName(otherDeployment))]).freeSlots, 1)
    pool.note({ ...older, revision: revision === null ? null : { ...revision, status: "superseded" } }, "activated")
    assert.strictEqual(view(pool, mine, []).freeSlots, 2)
  })

  const labelled = (name: string, organization: string): Pod => {
    const pod = engine(name)
    return { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, "seatrial.dev/organization": organization } } }
  }
  const reserved = (organization: string, gpus: number, hostClass = "local") => ({ organization, hostClass, gpus, updatedAt: 0 })

  it("keeps an organization's reservation from others until the organization uses it", () => {
    const pool = makePool()
    const beta = [reserved("beta", 1)]
    assert.strictEqual(view(pool, mine, [], beta).freeSlots, 1)
    assert.strictEqual(view(pool, mine, [labelled("b", "beta")], beta).freeSlots, 1)
    assert.strictEqual(view(pool, { ...mine, orgSlug: "beta" }, [], beta).freeSlots, 1)
    assert.strictEqual(view(pool, { ...mine, orgSlug: "beta" }, [labelled("a", "acme")], beta).freeSlots, 1)
    // Granted from its reservation, and its pod is not visible: the reservation is used and the GPU is taken.
    pool.note({ ...older, orgSlug: "beta" }, "provisioning")
    assert.strictEqual(view(pool, mine, [], beta).freeSlots, 1)
  })

  it("also keeps reservations on another host class of the same nodes", () => {
    const pool = makePool()
    const wider = { ...podClass, hostClass: { ...podClass.hostClass, name: "wide", gpu_count: 2 } }
    const free = (classes: PoolQuestion["classes"], gpus: number) =>
      ask(pool, [], { run: mine, podClass, classes, reservations: [reserved("beta", gpus, "wide")] }).freeSlots
    assert.strictEqual(free([podClass, wider], 2), 0)
    assert.strictEqual(free([podClass, wider], 1), 2, "no engine of that class could use it")
    assert.strictEqual(free([podClass, { ...wider, nodeSelector: { card: "h100" } }], 2), 2)
  })

  it("counts runs that compete for the same nodes on another host class, except those that the scheduler reported unschedulable there", () => {
    const pool = makePool()
    const wider = { ...podClass, hostClass: { ...podClass.hostClass, name: "wide", gpu_count: 2 } }
    const free = (classes: PoolQuestion["classes"], pods: ReadonlyArray<Pod> = []) =>
      ask(pool, pods, { run: mine, podClass, classes, reservations: [] }).freeSlots
    const labels = { "seatrial.dev/host-class": "wide" }
    const spec = { containers: [{ name: "engine", resources: { limits: { "nvidia.com/gpu": "2" } } }] }
    const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }]
    assert.strictEqual(free([podClass, wider], [{ metadata: { name: "w", labels }, spec }]), 0)
    assert.strictEqual(free([podClass, wider], [{ metadata: { name: "w", labels }, spec, status: { conditions } }]), 2)
    const settings = { ...revision.settings, host_class: "wide" }
    pool.note({ ...older, revision: { ...revision, settings, estimate: { ...revision.estimate, gpu_count: 2 } } }, "provisioning")
    assert.strictEqual(free([podClass, wider]), 0, "let through, and its pod is not seen yet")
    assert.strictEqual(free([podClass, { ...wider, nodeSelector: { card: "h100" } }]), 2)
  })

  it("names another host class with room for a queued run on which its model fits", () => {
    const pool = makePool()
    const full = { ...podClass, nodeSelector: { card: "h100" } }
    const spare = { ...podClass, hostClass: { ...podClass.hostClass, name: "spare" } }
    const small = { ...spare, hostClass: { ...spare.hostClass, name: "small", gpu_memory_bytes: 2 ** 20 } }
    const roomOn = (classes: PoolQuestion["classes"], phase: "queued" | "waiting" = "queued") =>
      ask(pool, [], { run: { ...mine, phase, servingRequest: { host_class: "local" } }, podClass: full, classes, reservations: [] }).roomOn?.name ?? null
    assert.strictEqual(roomOn([full, small, spare]), "spare")
    assert.strictEqual(roomOn([full, spare], "waiting"), null)
    assert.strictEqual(roomOn([full, small]), null, "the model has no room there")
    assert.strictEqual(roomOn([full, { ...spare, nodeSelector: { card: "h100" } }]), null, "it is full too")
    assert.strictEqual(roomOn([full, { ...spare, queueName: "kueue" }]), null, "Kueue decides there")
  })

  it("reports requested engines and the GPUs of the class, and does not count pods that Kueue holds back", () => {
    const pool = makePool()
    const pending = (name: string, gates: ReadonlyArray<string> = []): Pod => ({
      ...engine(name, { nodeName: undefined, schedulingGates: gates.map((gate) => ({ name: gate })) }),
      metadata: { name, labels: { "seatrial.dev/host-class": "local", "seatrial.dev/organization": "acme" } },
      status: { conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }] }
    })
    assert.deepInclude(view(pool, mine, [pending("a")]), { freeSlots: 1, requestedEngines: 1, classGpus: 1 })
    assert.deepInclude(view(pool, mine, [pending("a", ["kueue.x-k8s.io/admission"])]), { freeSlots: 2, requestedEngines: 0, classGpus: 0 })
    assert.deepInclude(view(pool, mine, [], [reserved("beta", 2)]), { freeSlots: 0, setAside: true })
  })

  it("gives the GPUs of the serving revision to its replacement, and counts them once; an idle model claims none", () => {
    const pool = makePool()
    const serves = (replacedBy: Run["replacedBy"]): Run => ({ ...older, replacedBy, revision: { ...revision, status: "active" } })
    const third = Schema.decodeSync(DeploymentId)("dep_01k3v7m8q2w4x6y8z0a2b4c6da")
    pool.note(serves(deploymentId), "activated")
    assert.strictEqual(view(pool, mine, []).freeSlots, 2, "its own predecessor's")
    const other: Run = { ...mine, id: third, engineRun: third }
    pool.note(mine, "provisioning")
    assert.strictEqual(view(pool, other, []).freeSlots, 1)
    // The run that was to replace it has ended, so its predecessor gets the GPUs back before any waiting run.
    pool.note(mine, "failed")
    assert.strictEqual(view(pool, other, []).freeSlots, 1)
    pool.note(serves(null), "activated")
    assert.strictEqual(view(pool, other, []).freeSlots, 1)
    pool.note(serves(null), "activated", true)
    assert.strictEqual(view(pool, other, []).freeSlots, 2)
  })

  it("counts an organization's GPUs on all host classes, and its runs that go first", () => {
    const pool = makePool()
    const gpus = (pods: ReadonlyArray<Pod>) => view(pool, { ...mine, phase: "waiting" }, pods).organizationGpus
    assert.strictEqual(gpus([]), 0)
    assert.strictEqual(gpus([labelled("a", "acme"), labelled("b", "beta")]), 1)
    pool.note(older, "waiting")
    assert.strictEqual(gpus([]), 1)
    pool.note({ ...older, olderRun: deploymentId }, "waiting")
    assert.strictEqual(gpus([]), 0, "who waits for an older run of its model asks for nothing yet")
    pool.note({ ...older, createdAt: 3 }, "waiting")
    assert.strictEqual(gpus([]), 0)
    pool.note({ ...older, createdAt: 3 }, "queued")
    assert.strictEqual(gpus([]), 1)
    pool.note({ ...older, createdAt: 3 }, "provisioning")
    assert.strictEqual(gpus([]), 1)
    assert.strictEqual(gpus([{ ...labelled("x", "acme"), metadata: { ...labelled("x", "acme").metadata, name: enginePodName(otherDeployment) } }]), 1)
  })

  it("counts an engine that two runs share once, and none of a disabled model", () => {
    const pool = makePool()
    const active = { ...older, revision: older.revision === null ? null : { ...older.revision, status: "active" as const } }
    pool.note(active, "activated")
    const user = Schema.decodeSync(DeploymentId)("dep_01k3v7m8q2w4x6y8z0a2b4c6da")
    pool.note({ ...active, id: user, phase: "activating" }, "activating")
    assert.strictEqual(view(pool, mine, []).freeSlots, 1)
    pool.note({ ...active, id: user }, "activated")
    pool.note({ ...active, modelDisabled: true }, "activated")
    assert.strictEqual(view(pool, mine, []).freeSlots, 2)
  })

  it("wakes the first runs of each organization when GPUs become free, however many wait, and the next ones after these have gone on", () => {
    const pool = makePool()
    const ids = Array.from({ length: 300 }, (_, index) => Schema.decodeSync(DeploymentId)(`dep_01k3v7m8q2w4x6y8z0a2b4d${String(index).padStart(3, "0")}`))
    const at = (id: DeploymentId, index: number): Run => ({ ...mine, id, engineRun: id, createdAt: 1_000 - index, orgSlug: index % 2 === 0 ? "acme" : "beta" })
    for (const [index, id] of ids.entries()) pool.note(at(id, index), "queued")
    const oldest = [...ids].reverse()
    assert.sameMembers([...pool.queued()], oldest.slice(0, 32))
    // Each run has its turn, in the order of creation.
    const gone: Array<DeploymentId> = []
    while (pool.queued().length > 0) {
      for (const id of pool.queued().slice(0, 3)) {
        gone.push(id)
        Effect.runSync(pool.forget(id))
      }
    }
    assert.sameMembers(gone, ids)
  })

  it("knows which runs wait for which", () => {
    const pool = makePool()
    pool.note({ ...mine, olderRun: otherDeployment }, "waiting")
    assert.deepStrictEqual(pool.behind(otherDeployment), [deploymentId])
    Effect.runSync(pool.forget(deploymentId))
    assert.deepStrictEqual(pool.behind(otherDeployment), [])
  })
})
