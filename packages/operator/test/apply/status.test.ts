import { assert, describe, it } from "@effect/vitest"
import { manifestSha256 } from "@seatrial/hub"
import type { Node, Pod } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { progressOf } from "../../src/apply/progressOf.ts"
import { rootCause } from "../../src/apply/rootCause.ts"
import type { EngineCounts } from "../../src/apply/scaleStatus.ts"
import { statusOf } from "../../src/apply/statusOf.ts"
import { faultEvents, transitionEvents } from "../../src/apply/transitionEvents.ts"
import { gpuFaultOfNode } from "../../src/gather/gpuFault.ts"
import { ObservedFetch } from "../../src/observation/ObservedFetch.ts"
import type { ModelDeployment } from "../../src/resources/ModelDeployment.ts"
import { observed, otherDeployment, pod, podClass, revision, run } from "../observations.ts"

const engine = (status: Pod["status"], role = "engine"): Pod => ({
  metadata: { name: `the-${role}`, labels: { "seatrial.dev/role": role } },
  spec: { nodeName: "node-1", containers: [] },
  ...(status === undefined ? {} : { status })
})
const container = { name: "engine", ready: false, restartCount: 0 }

describe("the root cause", () => {
  const cases: ReadonlyArray<readonly [what: string, pod: Pod, reason: string | undefined, says: RegExp]> = [
    [
      "nothing, of a pod that starts",
      engine({ phase: "Pending", containerStatuses: [{ ...container, state: { waiting: { reason: "ContainerCreating" } } }] }),
      undefined,
      /^$/
    ],
    [
      "nothing, of an engine that loads",
      engine({ phase: "Running", containerStatuses: [{ ...container, started: false, state: { running: {} } }] }),
      undefined,
      /^$/
    ],
    [
      "the scheduler's words",
      engine({
        conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes are available: 3 Insufficient nvidia.com/gpu." }]
      }),
      "Unschedulable",
      /3 Insufficient nvidia.com\/gpu/
    ],
    [
      "an image that cannot be pulled",
      engine({
        containerStatuses: [{ ...container, state: { waiting: { reason: "ImagePullBackOff", message: 'Back-off pulling image "nowhere/engine:1"' } } }]
      }),
      "ImagePullBackOff",
      /nowhere\/engine:1/
    ],
    [
      "a container killed for memory, while it waits to start again",
      engine({
        containerStatuses: [
          { ...container, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } }
        ]
      }),
      "OOMKilled",
      /137/
    ],
    [
      "a container that ended",
      engine({ containerStatuses: [{ ...container, state: { terminated: { exitCode: 1, reason: "Error", message: "secret words" } } }] }),
      "ContainerEnded",
      /exit code 1\.$/
    ],
    [
      "a card that failed, by the driver's line alone",
      engine({
        containerStatuses: [
          { ...container, state: { terminated: { exitCode: 1, message: "words\nNVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\nmore" } } }
        ]
      }),
      "GpuFault",
      /^NVRM: Xid .* bus\.$/
    ],
    [
      "a probe that fails",
      engine({ phase: "Running", containerStatuses: [{ ...container, started: true, state: { running: {} } }] }),
      "NotReady",
      /readiness probe/
    ],
    ["an eviction", engine({ phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." }), "Evicted", /low on resource/],
    [
      "a drained node",
      engine({ conditions: [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI", message: "Eviction API: evicting" }] }),
      "EvictionByEvictionAPI",
      /evicting/
    ]
  ]
  for (const [what, seen, reason, says] of cases) {
    it(`is ${what}`, () => {
      const cause = rootCause([seen], false)
      assert.strictEqual(cause?.reason, reason)
      assert.match(cause?.message ?? "", says)
      assert.notInclude(cause?.message ?? "", "secret words")
      if (reason !== undefined) assert.strictEqual(cause?.object, "Pod/the-engine")
    })
  }

  it("is the node if it does not respond, and the engine before the download", () => {
    assert.deepInclude(rootCause([engine({ phase: "Running" })], true), { reason: "NodeNotReady", object: "Node/node-1" })
    const broken = (role: string) => engine({ phase: "Failed", reason: `Of${role}` }, role)
    assert.strictEqual(rootCause([broken("fetch"), broken("engine")], false)?.reason, "Ofengine")
    assert.strictEqual(rootCause([broken("fetch"), engine({ phase: "Running" })], false)?.reason, "Offetch")
  })
})

describe("a failed GPU", () => {
  const node = (...conditions: ReadonlyArray<{ type: string; status: string; reason?: string; message?: string }>): Node => ({
    metadata: { name: "node-1" },
    status: { conditions: [{ type: "Ready", status: "True", message: "the GPU node is ready" }, ...conditions] }
  })
  const xid = node({ type: "XIDError", status: "True", reason: "XIDError", message: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus." })
  const says: ReadonlyArray<readonly [who: string, node: Node, message: RegExp]> = [
    ["a rule of node-problem-detector", xid, /^XIDError: NVRM: Xid .* 79, GPU has fallen off the bus\.$/],
    [
      "NVSentinel",
      node({ type: "SysLogsXIDError", status: "True", reason: "SysLogsXIDErrorIsNotHealthy", message: "ErrorCode:79 PCI:0000:3b:00" }),
      /IsNotHealthy: ErrorCode:79/
    ],
    [
      "a cloud's agent, of whose condition False is the bad news",
      node({ type: "AcceleratedHardwareReady", status: "False", reason: "NvidiaXID79Error" }),
      /^AcceleratedHardwareReady, NvidiaXID79Error\.$/
    ],
    ["a condition of a card that is gone", node({ type: "GPUMissing", status: "True", message: "7 of 8" }), /^GPUMissing: 7 of 8$/]
  ]
  for (const [who, seen, message] of says) {
    it(`is reported by ${who}`, () => {
      const cause = gpuFaultOfNode(seen)
      assert.deepInclude(cause, { reason: "GpuFault", object: "Node/node-1" })
      assert.match(cause?.message ?? "", message)
    })
  }

  const silent: ReadonlyArray<readonly [what: string, node: Node | undefined]> = [
    ["a node that is unknown", undefined],
    ["a node that is well", node()],
    ["conditions that are well", node({ type: "XIDError", status: "False" }, { type: "AcceleratedHardwareReady", status: "True" })],
    ["a condition with an unknown status", node({ type: "XIDError", status: "Unknown" }, { type: "GpuHealthy", status: "Unknown" })],
    ["other troubles", node({ type: "KernelDeadlock", status: "True", message: "task hung" }, { type: "NetworkUnavailable", status: "True" })]
  ]
  for (const [what, seen] of silent) it(`is not reported by ${what}`, () => assert.isNull(gpuFaultOfNode(seen)))

  const ended = engine({ containerStatuses: [{ ...container, state: { terminated: { exitCode: 139, reason: "Error" } } }] })
  it("explains why an engine ended, did not respond or was evicted, or why its node stopped responding", () => {
    const unanswered = engine({ phase: "Running", containerStatuses: [{ ...container, started: true, state: { running: {} } }] })
    const evicted = engine({ conditions: [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" }] })
    for (const pod of [ended, unanswered, evicted]) {
      assert.deepInclude(rootCause([pod], false, xid), { reason: "GpuFault", object: "Node/node-1" })
      assert.notStrictEqual(rootCause([pod], false, node())?.reason, "GpuFault")
    }
    assert.deepInclude(rootCause([engine({ phase: "Running" })], true, xid), { reason: "GpuFault", object: "Node/node-1" })
  })

  it("does not explain failures with another cause: memory, an image, a healthy engine, a download, an engine on another node", () => {
    const killed = engine({ containerStatuses: [{ ...container, lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } }] })
    const unpulled = engine({ containerStatuses: [{ ...container, state: { waiting: { reason: "ImagePullBackOff" } } }] })
    assert.strictEqual(rootCause([killed], false, xid)?.reason, "OOMKilled")
    assert.strictEqual(rootCause([unpulled], false, xid)?.reason, "ImagePullBackOff")
    const well = { ...container, ready: true, started: true, state: { running: {} } }
    assert.isUndefined(rootCause([engine({ phase: "Running", containerStatuses: [well] })], false, xid))
    assert.strictEqual(rootCause([engine({ phase: "Failed", reason: "Evicted" }, "fetch")], false, xid)?.reason, "Evicted")
    assert.strictEqual(rootCause([ended], false, { ...xid, metadata: { name: "node-2" } })?.reason, "ContainerEnded")
  })

  it("is reported by the device plugin for the pod's own device", () => {
    const devices = (health: string, message?: string) => [
      {
        name: "nvidia.com/gpu",
        resources: [
          { resourceID: "GPU-1", health: "Healthy" },
          { resourceID: "GPU-2", health, ...(message === undefined ? {} : { message }) }
        ]
      }
    ]
    const withHealth = (health: string, message?: string) =>
      engine({ phase: "Running", containerStatuses: [{ ...container, ready: true, started: true, allocatedResourcesStatus: devices(health, message) }] })
    assert.isUndefined(rootCause([withHealth("Healthy")], false))
    assert.isUndefined(rootCause([withHealth("Unknown")], false))
    assert.deepStrictEqual(rootCause([withHealth("Unhealthy", "Xid 79")], false, xid), {
      reason: "GpuFault",
      message: "The device plugin reports nvidia.com/gpu GPU-2 as unhealthy: Xid 79",
      object: "Pod/the-engine"
    })
  })
})

describe("the progress of a run", () => {
  const of = (change: Partial<typeof run>, rest: Partial<typeof observed> = {}) => progressOf({ ...observed, ...rest, run: { ...run, ...change } }, "words")
  it("says what it waits for, with its place in the queue", () => {
    const cases = [
      [of({ phase: "waiting", olderRun: otherDeployment }), { waits_for: "older_run", place: null }],
      [of({ phase: "waiting" }), { waits_for: "organization_limit", place: null }],
      [of({ phase: "queued" }, { ahead: 2, podClass }), { waits_for: "capacity", place: 3 }],
      [of({ phase: "queued" }, { podClass: null }), { waits_for: "host_class", place: null }],
      [of({ phase: "booting" }), null]
    ] as const
    for (const [progress, queue] of cases) assert.deepInclude(progress, { message: "words", queue, download: null })
  })
  it("counts the bytes of its download, but only while it downloads", () => {
    const progress = { bytes: 10, totalBytes: 40, bytesPerSecond: 5, secondsLeft: 6, stalledSeconds: null, waiting: false }
    const fetch = ObservedFetch.Active({ obstacle: null, progress })
    assert.deepStrictEqual(of({ phase: "materializing" }, { fetch }).download, {
      bytes: 10,
      total_bytes: 40,
      bytes_per_second: 5,
      seconds_left: 6,
      stalled: false
    })
    assert.isNull(of({ phase: "booting" }, { fetch }).download)
    assert.isNull(of({ phase: "materializing" }, { fetch: ObservedFetch.Active({ obstacle: null, progress: { ...progress, waiting: true } }) }).download)
  })
  it("holds only what Postgres returns unchanged, so that it is written once", () => {
    const { message } = progressOf(observed, `a\0b${"\ud83d".repeat(2)}${"x".repeat(5_000)}`)
    assert.strictEqual(message.slice(0, 4), "ab\ufffd\ufffd")
    assert.isAtMost(message.length, 2_000)
  })
})

describe("the status", () => {
  const input = { pod, message: "Serves.", cause: undefined, queue: null, download: null, generation: 1, before: undefined, now: 1_000 }
  const serving = { ...run, revision: { ...revision, status: "active" as const }, phase: "activated" as const, activeRevisionId: revision.id }
  const applied = (generation: number) => ({ namespace: "seatrial", name: "tiny", current: { uid: "u", generation, namesModel: false } })
  const conditionsOf = (status: ReturnType<typeof statusOf>) =>
    (status.conditions ?? []).map(({ observedGeneration, status: holds, type }) => `${type} ${holds} ${observedGeneration}`)

  it("has all conditions for one generation, and keeps their times while they do not change", () => {
    const first = statusOf({ ...input, run: serving })
    assert.deepStrictEqual(conditionsOf(first), [
      "Accepted True 1",
      "Ready True 1",
      "Available True 1",
      "ScalingLimited False 1",
      "Progressing True 1",
      "Stalled False 1",
      "Activated True 1",
      "Failed False 1"
    ])
    assert.deepStrictEqual(statusOf({ ...input, run: serving, before: first, now: 9_000 }), first)
    const later = statusOf({ ...input, run: serving, before: first, now: 9_000, pod: { ...pod, ready: false } })
    assert.deepStrictEqual(
      (later.conditions ?? []).map(({ lastTransitionTime }) => Date.parse(lastTransitionTime)),
      [1_000, 9_000, 9_000, 1_000, 1_000, 1_000, 1_000, 1_000]
    )
  })

  it("contains the hash of the list of files, which changes with any file", () => {
    const statusWith = (facts: typeof revision.facts) => statusOf({ ...input, run: { ...serving, revision: { ...revision, facts } } }).weightsManifest
    assert.strictEqual(statusWith(revision.facts), manifestSha256(revision.facts.files))
    assert.notStrictEqual(
      statusWith({ ...revision.facts, files: revision.facts.files.map((file) => ({ ...file, sha256: "0".repeat(64) })) }),
      statusWith(revision.facts)
    )
  })

  it("contains the settings of the engine and who chose them, if recorded", () => {
    assert.notProperty(statusOf({ ...input, run: serving }), "settings")
    const recorded = {
      ...serving.revision,
      settings: { ...revision.settings, engine_flags: { max_num_seqs: 64 } },
      estimate: {
        ...revision.estimate,
        chosen_by: { max_context: "request", "engine_flags.max_num_seqs": "default", sampling_defaults: "repository" } as const
      }
    }
    assert.deepStrictEqual(statusOf({ ...input, run: { ...serving, revision: recorded } }).settings, [
      { name: "max_context", value: "1024", chosenBy: "request" },
      { name: "engine_flags.max_num_seqs", value: "64", chosenBy: "default" },
      { name: "sampling_defaults", value: '"generation_config.json"', chosenBy: "repository" }
    ])
  })

  it("has conditions with messages, and reasons in Kubernetes' case", () => {
    const of = (status: ReturnType<typeof statusOf>, type: string) => status.conditions?.find((one) => one.type === type)
    const away = statusOf({ ...input, run: serving, pod: { ...pod, ready: false }, message: "The engine is not ready." })
    assert.deepInclude(of(away, "Ready"), { status: "False", reason: "EngineNotReady", message: "The engine is not ready." })
    assert.deepInclude(of(away, "Activated"), { status: "True", message: "The run succeeded: its revision was verified and took over the model's traffic." })
    assert.deepInclude(of(away, "Failed"), { status: "False", reason: "Activated", message: "The run has not failed." })
    const failure = { code: "image_unavailable", text: "No image." }
    const failed = statusOf({ ...input, run: { ...run, phase: "failed", failure }, message: "image_unavailable: No image." })
    assert.deepInclude(of(failed, "Failed"), { status: "True", reason: "ImageUnavailable", message: "image_unavailable: No image." })
    assert.strictEqual(failed.failure?.code, "image_unavailable")
    for (const { reason } of [...(failed.conditions ?? []), ...(away.conditions ?? [])]) assert.match(reason, /^[A-Z][A-Za-z]*$/)
  })

  it("shows a failure of another version with its code and its text as stored", () => {
    const failure = { code: "code_of_tomorrow", text: "It is too late." }
    const status = statusOf({ ...input, run: { ...run, phase: "failed", failure }, message: "code_of_tomorrow: It is too late." })
    assert.deepStrictEqual(status.failure, { code: "code_of_tomorrow", message: "It is too late." })
    assert.deepInclude(
      status.conditions?.find(({ type }) => type === "Failed"),
      { status: "True", reason: "CodeOfTomorrow" }
    )
  })

  it("does not report the state of an earlier generation for a changed object", () => {
    const status = statusOf({ ...input, run: { ...serving, applied: applied(1) }, generation: 2 })
    assert.deepStrictEqual(conditionsOf(status), [
      "Ready True 1",
      "Available True 1",
      "ScalingLimited False 1",
      "Progressing True 1",
      "Stalled False 1",
      "Activated True 1",
      "Failed False 1"
    ])
    assert.strictEqual(status.observedGeneration, 1)
  })

  it("names the endpoint while an earlier specification serves, without being ready itself", () => {
    const status = statusOf({
      ...input,
      run: { ...run, phase: "booting", applied: applied(2), activeRevisionId: revision.id },
      generation: 2,
      message: "Boots."
    })
    assert.strictEqual(status.endpoint, "acme/tiny-chat")
    assert.include(conditionsOf(status), "Ready False 2")
    const own = statusOf({ ...input, run: { ...run, phase: "booting", activeRevisionId: revision.id } })
    assert.isUndefined(own.endpoint)
  })

  const earlier = { run: otherDeployment, commit: "c".repeat(40), hostClass: "local", gpus: 1, replicas: 1 }
  const failure = { code: "image_unavailable", text: "No image." }
  const refusedSpec = {
    conditions: [
      { type: "Accepted", status: "False" as const, reason: "Invalid", message: "No.", lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 2 }
    ]
  }
  const refusal = { object: "Pod/p", kind: "pod", reason: "Forbidden", message: "No.", since: 0 }
  const verdicts: ReadonlyArray<
    readonly [what: string, run: Partial<Run>, replicas: number | null, available: string, progressing: string, stalled: string, more?: object]
  > = [
    ["a first run that is under way", { phase: "booting" }, null, "False Booting", "True Booting", "False Booting"],
    ["a first run that failed", { phase: "failed", failure }, null, "False Failed", "False ImageUnavailable", "True ImageUnavailable"],
    ["a run that was canceled", { phase: "cancelled" }, null, "False Cancelled", "False Cancelled", "True Cancelled"],
    ["another run that is under way", { phase: "booting", predecessor: earlier }, 1, "True Serving", "True Booting", "False Booting"],
    ["another run that failed", { phase: "failed", failure, predecessor: earlier }, 1, "True Serving", "False ImageUnavailable", "True ImageUnavailable"],
    [
      "another run while the serving engine is down",
      { phase: "booting", predecessor: { ...earlier, replicas: 0 } },
      0,
      "False EngineNotReady",
      "True Booting",
      "False Booting"
    ],
    ["a trial that succeeded", { phase: "activated", serve: false, predecessor: earlier }, 1, "True Serving", "True Complete", "False Complete"],
    ["a move whose new engine restarts", { ...serving, earlier: 3 }, 4, "True Serving", "True Complete", "False Complete", { pod: { ...pod, ready: false } }],
    ["a model whose new engine restarts", serving, 1, "False EngineNotReady", "True Complete", "False Complete", { pod: { ...pod, ready: false } }],
    [
      "another run during a move",
      { phase: "booting", predecessor: { ...earlier, replicas: 0, earlier: 2 } },
      2,
      "True Serving",
      "True Booting",
      "False Booting"
    ],
    ["a model that gets no further pod", serving, 1, "True Serving", "True Complete", "False Complete", { pod, refusal }],
    ["a disabled model", { ...serving, modelDisabled: true }, null, "False Disabled", "True Complete", "False Complete"],
    ["a changed specification that was refused", serving, 1, "True Serving", "False Invalid", "True Invalid", { generation: 2, before: refusedSpec }]
  ]
  for (const [what, change, replicas, available, progressing, stalled, more] of verdicts) {
    it(`tells whether the model answers, and whether the newest run proceeds, for ${what}`, () => {
      const endpoints = [{ url: "http://127.0.3.1:8000", pod: pod.name, reachable: true }]
      const status = statusOf({ ...input, run: { ...run, ...change, endpoints, applied: applied(1) }, ...more })
      const of = (type: string) => status.conditions?.find((one) => one.type === type)
      assert.deepStrictEqual(
        ["Available", "Progressing", "Stalled"].map((type) => `${of(type)?.status} ${of(type)?.reason}`),
        [available, progressing, stalled]
      )
      assert.strictEqual(status.serving?.replicas ?? null, replicas)
      assert.strictEqual(status.latest?.deploymentId, run.id)
    })
  }

  it("has the numbers and the selector of the engines that serve, as the scale subresource reads them", () => {
    const own = `seatrial.dev/deployment=${run.id},seatrial.dev/role=engine`
    const other = `seatrial.dev/deployment=${otherDeployment},seatrial.dev/role=engine`
    const endpoints = [0, 1].map((ordinal) => ({ url: `http://127.0.3.${ordinal}:8000`, pod: `${ordinal}`, reachable: ordinal === 0 }))
    const counts = { own: 2, earlier: 3, lacks: null }
    const scales: ReadonlyArray<readonly [what: string, run: Run, desired: number | undefined, replicas: number, ready: number, selector: string]> = [
      ["serves", { ...serving, replicas: 4, endpoints, applied: applied(1) }, 4, 2, 1, own],
      ["moves", { ...serving, replicas: 4, endpoints, earlier: 2, applied: applied(1) }, 4, 4, 3, own],
      ["is tried during a move", { ...run, phase: "booting", replicas: 4, predecessor: { ...earlier, earlier: 2 }, applied: applied(1) }, 4, 5, 3, other],
      ["serves, of the API", { ...serving, replicas: 4, endpoints }, 4, 2, 1, own],
      ["is tried while another serves", { ...run, phase: "booting", replicas: 4, predecessor: earlier, applied: applied(1) }, 4, 3, 1, other],
      ["is the first one", { ...run, phase: "booting", replicas: 4, applied: applied(1) }, 4, 2, 0, own],
      ["is tried, of the API", { ...run, phase: "booting", replicas: 4, predecessor: earlier }, undefined, 2, 0, own],
      ["is disabled", { ...serving, modelDisabled: true, applied: applied(1) }, 1, 2, 0, own]
    ]
    for (const [what, shown, desiredReplicas, replicas, readyReplicas, selector] of scales) {
      const status = statusOf({ ...input, run: shown, engines: counts })
      assert.deepStrictEqual(
        [status.desiredReplicas, status.replicas, status.readyReplicas, status.selector],
        [desiredReplicas, replicas, readyReplicas, selector],
        what
      )
    }
  })

  const limited: ReadonlyArray<readonly [what: string, lacks: EngineCounts["lacks"], run: Partial<Run>, condition: string | null, more?: object]> = [
    ["all engines are granted", null, { ...serving, replicas: 2 }, "False Granted"],
    ["one engine is enough", undefined, serving, "False Granted"],
    ["no GPUs are free", "gpus", { ...serving, replicas: 4 }, "True NoGpus"],
    ["it moves to this revision", "surge", { ...serving, replicas: 4, earlier: 2 }, "True Rollout"],
    ["queued runs go first", "queue", { ...serving, replicas: 4 }, "True QueuedRuns"],
    ["the organization has reached its limit", "organization", { ...serving, replicas: 4 }, "True OrganizationLimit"],
    ["further engines start later", "first", { ...serving, replicas: 4 }, "True FirstEngine"],
    ["funds are used up", null, { ...serving, replicas: 4 }, "True Funds", { unfunded: "BalanceUsedUp" }],
    ["there are no requests", null, { ...serving, replicas: 4 }, "False Idle", { idle: true }],
    ["the model is disabled", null, { ...serving, modelDisabled: true }, "False NotServing"],
    ["an earlier revision serves with fewer engines", "queue", { phase: "booting", replicas: 4, predecessor: earlier }, "True QueuedRuns"],
    ["an operator that has just started does not know it", undefined, { phase: "booting", replicas: 4, predecessor: earlier }, null]
  ]
  for (const [what, lacks, change, condition, more] of limited) {
    it(`names what limits the number of engines, if ${what}`, () => {
      const status = statusOf({ ...input, run: { ...run, ...change, applied: applied(1) }, engines: { own: 2, earlier: 3, lacks }, ...more })
      const scaling = status.conditions?.find(({ type }) => type === "ScalingLimited")
      assert.strictEqual(scaling === undefined ? null : `${scaling.status} ${scaling.reason}`, condition)
    })
  }

  it("keeps what limits the number of engines until a new operator knows it, and drops it if the run does not serve any more", () => {
    const shown: Run = { ...run, phase: "booting", replicas: 4, predecessor: earlier, applied: applied(1) }
    const before = statusOf({ ...input, run: shown, engines: { own: 1, earlier: 3, lacks: "gpus" } })
    const after = statusOf({ ...input, run: shown, engines: { own: 1, earlier: 3, lacks: undefined }, before, now: 9_000 })
    assert.deepStrictEqual(after.conditions, before.conditions)
    const ended = statusOf({ ...input, run: { ...shown, applied: null }, engines: { own: 1, earlier: 3, lacks: null }, before })
    assert.notInclude(ended.conditions?.map(({ type }) => type) ?? [], "ScalingLimited")
  })

  it("is not progressing, and not stalled, if the model has stopped halfway to its revision", () => {
    const status = statusOf({ ...input, run: { ...run, ...serving, applied: applied(1) }, stopped: "It waits for a GPU. Free one." })
    const [progressing, stalled] = ["Progressing", "Stalled"].map((name) => status.conditions?.find(({ type }) => type === name))
    assert.deepInclude(progressing, { status: "False", reason: "MoveStopped", message: "It waits for a GPU. Free one." })
    assert.strictEqual(stalled?.status, "False")
  })

  it("of the object of one run does not tell about other runs of the model", () => {
    const status = statusOf({ ...input, run: { ...run, phase: "booting", predecessor: earlier } })
    assert.isUndefined(status.serving)
    assert.include(conditionsOf(status), "Available False 1")
  })

  it("shows what the run waits for, and its cause", () => {
    const cause = { reason: "Unschedulable", message: "0/1 nodes", object: "Pod/x" }
    const queue = { waits_for: "capacity" as const, place: 1 }
    assert.deepInclude(statusOf({ ...input, run: { ...run, phase: "queued" }, cause, queue, message: "first" }), {
      cause,
      queue: { waitsFor: "Capacity", place: 1, message: "first" },
      deploymentId: run.id,
      model: "acme/tiny-chat"
    })
  })
})

describe("events", () => {
  const resource = (status: ModelDeployment["status"]): ModelDeployment => ({
    metadata: { name: "tiny", namespace: "seatrial", uid: "u" },
    spec: { source: { repo: "a/b" } },
    ...(status === undefined ? {} : { status })
  })
  const failed = {
    ...run,
    phase: "failed" as const,
    failure: { code: "image_unavailable", text: "No image." },
    history: [...run.history, { phase: "failed" as const, at: 5, reason: "image_unavailable" }]
  }

  it("record each transition once, without those of an earlier run, and with the cause of a failure", () => {
    const events = (status: ModelDeployment["status"]) =>
      transitionEvents(failed, resource(status), { reason: "ErrImagePull", message: "not found", object: "Pod/p" })
    assert.strictEqual(events(undefined).length, 2)
    const phases = [{ phase: "screening" as const, at: "2026-01-01T00:00:00Z" }]
    assert.strictEqual(events({ deploymentId: otherDeployment, phases }).length, 2)
    const [event, ...others] = events({ deploymentId: run.id, phases })
    assert.isEmpty(others)
    assert.deepInclude(event, { type: "Warning", reason: "Failed", action: "Deploy", note: "image_unavailable: No image. (Pod/p, ErrImagePull: not found)" })
  })

  it("are one for all steps that came together if many runs wait, and another if more follow; a failure has its own", () => {
    const history = [
      ...run.history,
      { phase: "queued" as const, at: 3, reason: "No GPU." },
      { phase: "provisioning" as const, at: 4, reason: "A GPU is free." }
    ]
    const events = (steps: typeof history, status?: ModelDeployment["status"]) =>
      transitionEvents({ ...run, history: steps }, resource(status), undefined, true)
    const [event, ...others] = events(history)
    assert.isEmpty(others)
    assert.deepInclude(event, { type: "Normal", reason: "Provisioning", note: "Screening: Screening Queued: No GPU. Provisioning: A GPU is free." })
    const [later] = events([...history, { phase: "booting" as const, at: 5, reason: "It runs." }])
    // The note of an event cannot be changed.
    assert.notStrictEqual(later?.metadata.name, event?.metadata.name)
    const phases = [{ phase: "screening" as const, at: "2026-01-01T00:00:00Z" }]
    assert.deepStrictEqual(
      transitionEvents(failed, resource({ deploymentId: run.id, phases: [] }), undefined, true).map(({ reason, type }) => [type, reason]),
      [
        ["Normal", "Screening"],
        ["Warning", "Failed"]
      ]
    )
    assert.strictEqual(events(history.slice(0, 2), { deploymentId: run.id, phases }).length, 1)
  })

  it("record a failed GPU once, even while the model serves", () => {
    const cause = { reason: "GpuFault", message: "XIDError: 79", object: "Node/node-1" }
    const [events] = faultEvents(run, resource({ deploymentId: run.id }), cause, 0)
    assert.deepInclude(events, { type: "Warning", reason: "GpuFault", note: "Node/node-1: XIDError: 79" })
    assert.deepStrictEqual(faultEvents(run, resource(undefined), cause, 9)[0]?.metadata, events?.metadata)
    const nextEvent = faultEvents(run, resource(undefined), { ...cause, message: "XIDError: 94" }, 9)[0]?.metadata
    assert.notStrictEqual(nextEvent?.name, events?.metadata.name)
    assert.deepStrictEqual(faultEvents(run, resource({ deploymentId: run.id, cause }), cause, 0), [])
    assert.deepStrictEqual(faultEvents(run, resource(undefined), { ...cause, reason: "NotReady" }, 0), [])
    assert.deepStrictEqual(faultEvents(run, resource(undefined), undefined, 0), [])
  })

  it("say why a run lost its place if it returns to the queue, and not when it first enters it", () => {
    const cause = { reason: "GpuFault", message: "XIDError: 79", object: "Node/node-1" }
    const step = (phase: "queued" | "provisioning") => ({ phase, at: 0, reason: "Why." })
    const events = transitionEvents({ ...run, history: [step("queued"), step("provisioning"), step("queued")] }, resource(undefined), cause)
    assert.deepStrictEqual(
      events.map(({ note }) => note),
      ["Why.", "Why.", "Why. (Node/node-1, GpuFault: XIDError: 79)"]
    )
  })
})
