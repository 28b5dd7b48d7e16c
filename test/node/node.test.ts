import { assert, layer } from "@effect/vitest"
import { RequestRecord } from "@seatrial/domain"
import { Pod } from "@seatrial/kube"
import { Effect, Exit, Fiber } from "effect"
import { simulatedHostClass } from "../cluster/simulatedHostClass.ts"
import { bodyOf } from "../e2e/Caller.ts"
import { ask, streamOf, wholeOf } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { serving, source } from "../e2e/Served.ts"
import { namespace } from "./clusterObjects.ts"
import { exceedMemory, prioritiesOf, signalContainer } from "./containerFaults.ts"
import { putSpoolOnClaim, spoolFiles, spoolWords } from "./gatewaySpool.ts"
import { keepTrying } from "./keepTrying.ts"
import { longStreamTokens, openLongStream } from "./longStream.ts"
import { loseNode } from "./loseNode.ts"
import { drainWords, moveSingles, placeOfEngine } from "./movePods.ts"
import { chart } from "./NodeCluster.ts"
import { policyHooks } from "./policyHooks.ts"
import { probeEverything } from "./policyProbes.ts"
import { restartCounts, restartPart } from "./restartPrograms.ts"
import { ServedRelease, type ServedReleaseShape } from "./ServedRelease.ts"
import { podsOf, stopPods } from "./stopPods.ts"

/** What each program needs, as the chart's page says. Postgres, the hub and hosts of images may be at any address, here that of a pod outside of the release. */
const allowed = {
  server: ["DNS", "hub", "outside 443", "outside 5432", "postgres"],
  gateway: ["DNS", "engine", "outside 443", "outside 5432", "postgres"],
  operator: ["API server", "DNS", "engine", "hub", "outside 443", "outside 5432", "postgres"],
  postgres: [],
  engine: [],
  test: ["DNS", "gateway", "server"],
  migrate: ["DNS", "outside 5432", "postgres"],
  "weights-check": [],
  "clean-weights": ["DNS", "outside 5432", "postgres"],
  download: ["DNS", "hub", "outside 443"],
  reference: []
}

const addressOfGateway = ({ status }: Pod) => `http://${status?.podIP ?? ""}:8081`

/** Waits until a gateway answers. Until then it may refuse connections. */
const answersAt = ({ at, model }: ServedReleaseShape, address: string) =>
  eventually(`the model answers at ${address}`, Effect.exit(ask(at(address), model)), (exit) => Exit.isSuccess(exit) && exit.value.status === 200)

/** Waits until every gateway answers, and their Service. */
const answersAgain = Effect.fnUntraced(function* (release: ServedReleaseShape) {
  const gateways = yield* podsOf(release, "app.kubernetes.io/component=gateway")
  const staying = gateways.filter(({ status }) => status?.podIP !== undefined)
  for (const address of [...staying.map(addressOfGateway), yield* release.addressOf("seatrial-gateway")]) yield* answersAt(release, address)
})

/** The record of a request, when it has ended. A release that was installed again has other addresses. */
const endedRecord = Effect.fnUntraced(function* ({ addressOf, at }: ServedReleaseShape, id: string) {
  const read = at(yield* addressOf("seatrial-server")).call("GET", `/v1/org/requests/${id}`)
  const record = Effect.map(read, (answer) => (answer.status === 200 ? bodyOf(RequestRecord, answer) : null))
  return yield* eventually(`the record ${id} has ended`, record, (found) => found !== null && found.state !== "running")
})

layer(ServedRelease.layer, { timeout: 25 * 60_000, excludeTestServices: true })("the chart on two real nodes", (it) => {
  it.effect("the commands of the quick start, word for word, lead from an empty cluster to an answered request and its receipt", () =>
    Effect.gen(function* () {
      const { inference, model, printed } = yield* ServedRelease
      assert.match(printed.get(3) ?? "", /Phase:\s+Succeeded/)
      assert.match(printed.get(7) ?? "", /Activated/)
      assert.match(printed.get(8) ?? "", /"content":"[^"]+/)
      assert.include(printed.get(8), model)
      assert.isNotEmpty(wholeOf(yield* ask(inference, model)).text)
    })
  )

  it.effect("no container has restarted, and the programs are on both nodes", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const counts = yield* restartCounts(release)
      assert.isNotEmpty(counts)
      assert.deepStrictEqual(
        counts.filter((count) => !count.endsWith(" 0")),
        []
      )
      const pods = yield* podsOf(release, "app.kubernetes.io/component in (server, gateway)")
      assert.deepStrictEqual([...new Set(pods.map(({ spec }) => spec?.nodeName))].sort(), ["node-0", "node-1"])
    })
  )

  it.effect("the kernel gives an engine processor time and memory, although its host class sets neither", () =>
    Effect.gen(function* () {
      const { engine } = yield* placeOfEngine(yield* ServedRelease)
      const { cpuWeights, killedFirst } = prioritiesOf(engine, "engine")
      assert.isNotEmpty(cpuWeights)
      // Without a request it would have the least weight, 2 or 1, and be killed first.
      for (const weight of cpuWeights) assert.isAtLeast(weight, 10)
      for (const score of killedFirst) assert.isBelow(score, 1_000)
    })
  )

  it.effect("network policies leave each program the connections that it needs, in and out, and no others", () =>
    Effect.gen(function* () {
      const cluster = yield* ServedRelease
      yield* policyHooks(cluster)
      const { outside = [], ...reached } = yield* probeEverything(cluster)
      assert.deepStrictEqual(reached, allowed)
      assert.sameMembers(
        outside.filter((name) => !name.startsWith("outside")),
        ["DNS", "API server", "gateway", "gateway metrics", "hub", "kubelet", "operator metrics", "server", "server metrics"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("every program ends with exit code 0 when its pod is stopped, and the model answers again afterwards", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const selectors = ["server", "gateway", "operator"].map((program) => `app.kubernetes.io/component=${program}`)
      const codes = yield* Effect.forEach([...selectors, "seatrial.dev/role=engine"], (selector) => stopPods(release, selector), { concurrency: "unbounded" })
      assert.deepStrictEqual(codes.flat(), ["server=0", "server=0", "gateway=0", "gateway=0", "operator=0", "operator=0", "engine=0"])
      for (const program of ["server", "gateway", "operator"]) yield* release.kubectl(["rollout", "status", `deployment/seatrial-${program}`, "--timeout=300s"])
      yield* answersAgain(release)
    })
  )

  it.effect("no answer is lost and no container restarts when the kubelets, and then the containerds, of all nodes are killed", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const before = yield* restartCounts(release)
      const stop = yield* keepAsking(release.inference, release.model)
      const restart = (part: "containerd" | "kubelet") =>
        Effect.forEach(release.nodes, (node) => restartPart(release, node, node[part]), { concurrency: "unbounded" })
      yield* restart("kubelet")
      yield* restart("containerd")
      assert.isAbove((yield* stop).length, 10)
      assert.deepStrictEqual(yield* restartCounts(release), before)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "if Postgres is stopped and starts again, it ends with exit code 0, no program restarts, a request is answered whole or refused with 503, and then all are answered",
    () =>
      Effect.gen(function* () {
        const release = yield* ServedRelease
        const before = yield* restartCounts(release)
        const stop = yield* keepTrying(release.inference, release.model)
        const stream = yield* openLongStream(release, yield* release.addressOf("seatrial-gateway"))
        assert.deepStrictEqual(yield* stopPods(release, "app.kubernetes.io/component=postgres"), ["postgres=0"])
        assert.strictEqual(streamOf(yield* stream.rest).usage?.completion_tokens, longStreamTokens)
        yield* release.kubectl(["rollout", "status", "statefulset/seatrial-postgres", "--timeout=180s"])
        yield* answersAgain(release)
        const outcomes = yield* stop
        assert.includeMembers(["answered", "503"], [...outcomes.keys()])
        assert.deepStrictEqual(yield* restartCounts(release), before)
        assert.strictEqual((yield* endedRecord(release, stream.id))?.output_tokens, longStreamTokens)
      }).pipe(Effect.scoped)
  )

  it.effect("a new engine that exceeds its memory fails its run as out_of_memory, and the engine that serves loses no answer", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const { api, apply, image, inference, kubectl, model, modelId } = release
      yield* apply(simulatedHostClass("sim-starved", { image, memoryBytes: 40 * 2 ** 20 }))
      const starved = { host_class: "sim-starved", max_context: 640 }
      const preview = api.call("POST", "/v1/deployment-previews", { source, serving: starved })
      yield* eventually("the server knows the host class", preview, ({ text }) => text.includes('"derived"'))
      const stop = yield* keepAsking(inference, model)
      const { id } = yield* api.deploy({ model_id: modelId, serving: starved })
      const { failure_detail, status } = yield* api.finished(id)
      assert.strictEqual(status, "failed")
      assert.include(failure_detail ?? "", "out_of_memory")
      const shown = kubectl([
        "get",
        "modeldeployment",
        id.replaceAll("_", "-"),
        '--output=jsonpath={.status.cause.reason} {.status.conditions[?(@.type=="Failed")].reason}'
      ])
      yield* eventually("the object names the cause", shown, (text) => text === "OOMKilled OutOfMemory")
      assert.isAbove((yield* stop).length, 10)
    }).pipe(Effect.scoped)
  )

  it.effect("an engine that serves and exceeds its memory restarts, its object names the cause meanwhile, and it answers again", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const { engine } = yield* placeOfEngine(release)
      const cause = release.kubectl(["get", "modeldeployments", "--output=jsonpath={.items[*].status.cause.reason} {.items[*].status.message}"])
      const causeShown = yield* Effect.forkScoped(
        eventually("the object names the cause", cause, (text) => text.includes("OOMKilled") && text.includes("not ready"))
      )
      const ended = yield* exceedMemory(release, engine, "engine", ask(release.inference, release.model, { max_tokens: 200 }))
      assert.deepStrictEqual(ended, { reason: "OOMKilled", restarts: 1 })
      yield* Fiber.join(causeShown)
      yield* answersAgain(release)
      assert.strictEqual((yield* placeOfEngine(release)).engine.metadata.uid, engine.metadata.uid)
    }).pipe(Effect.scoped)
  )

  it.effect("if a gateway exceeds its memory, its stream is recorded as gateway_lost, it restarts, and the other gateway serves on", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const [doomed, other] = yield* podsOf(release, "app.kubernetes.io/component=gateway")
      if (doomed === undefined || other === undefined) return yield* Effect.die(new Error("There are not two gateways."))
      const stop = yield* keepAsking(release.at(addressOfGateway(other)), release.model)
      const doomedAddress = addressOfGateway(doomed)
      const stream = yield* openLongStream(release, doomedAddress)
      const use = Effect.all(
        Array.from({ length: 20 }, () => ask(release.at(doomedAddress), release.model)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(yield* exceedMemory(release, doomed, "gateway", use), { reason: "OOMKilled", restarts: 1 })
      const record = yield* endedRecord(release, stream.id)
      assert.deepStrictEqual([record?.status_code, record?.error?.code], [500, "gateway_lost"])
      assert.isAbove((yield* stop).length, 10)
      yield* answersAt(release, doomedAddress)
    }).pipe(Effect.scoped)
  )

  it.effect("if the node that serves is lost, the object says so, the model answers from the other node, and the node comes back without a second engine", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const { engine, node, other } = yield* placeOfEngine(release)
      yield* moveSingles(release, node)
      const gateways = yield* podsOf(release, "app.kubernetes.io/component=gateway")
      const survivor = gateways.find(({ spec }) => spec?.nodeName === other.name)
      if (survivor === undefined) return yield* Effect.die(new Error("The other node has no gateway."))
      const stop = yield* keepTrying(release.at(addressOfGateway(survivor)), release.model)
      const comeBack = yield* loseNode(release, node, other)
      const cause = release.kubectl(["get", "modeldeployments", "--output=jsonpath={.items[*].status.cause}"])
      yield* eventually("the object names the node", cause, (text) => text.includes(`"NodeNotReady"`) && text.includes(node.name))
      const engines = podsOf(release, "seatrial.dev/role=engine")
      yield* eventually("an engine has started on the other node", engines, (pods) => pods.some(({ spec }) => spec?.nodeName === other.name))
      yield* answersAt(release, addressOfGateway(survivor))
      // Requests to the lost engine get no answer, and later ones are refused at once.
      assert.includeMembers(["answered", "502", "503", "cut", "silent"], [...(yield* stop).keys()])
      yield* comeBack
      yield* eventually(
        "all programs are ready",
        Effect.exit(release.kubectl(["wait", "--for=condition=Available", "deployment", "--all", "--timeout=120s"])),
        Exit.isSuccess
      )
      const after = yield* placeOfEngine(release)
      assert.strictEqual(after.node.name, other.name)
      assert.notStrictEqual(after.engine.metadata.uid, engine.metadata.uid)
      yield* answersAgain(release)
    }).pipe(Effect.scoped)
  )

  it.effect("a drain waits for the engine that serves, continues when the model is deployed again elsewhere, and no answer is lost", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const { api, inference, kubectl, model, modelId } = release
      const { engine, node, other } = yield* placeOfEngine(release)
      yield* moveSingles(release, node)
      yield* answersAgain(release)
      yield* Effect.addFinalizer(() => Effect.ignore(kubectl(["uncordon", node.name])))
      const stop = yield* keepAsking(inference, model)
      const drain = yield* Effect.forkScoped(kubectl([...drainWords(node.name), "--timeout=300s"]))
      const left = Effect.map(release.kube.list(Pod, { namespace, fieldSelector: `spec.nodeName=${node.name},status.phase=Running` }), (pods) =>
        pods.map(({ metadata }) => metadata.uid)
      )
      yield* eventually("only the engine is left on the node", left, (uids) => uids.join() === engine.metadata.uid)
      const { id } = yield* api.deploy({ model_id: modelId, serving: { ...serving, max_context: 513 } })
      assert.strictEqual((yield* api.finished(id)).status, "activated")
      yield* Fiber.join(drain)
      assert.strictEqual((yield* placeOfEngine(release)).node.name, other.name)
      assert.isAbove((yield* stop).length, 10)
    }).pipe(Effect.scoped)
  )

  it.effect("no answer is lost in an upgrade and a rollback, and a release that is installed again continues with its models", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const { helm, inference, kube, model, valuesFile } = release
      const engines = Effect.map(kube.list(Pod, { namespace, labelSelector: "seatrial.dev/role=engine" }), (pods) => pods.map(({ metadata }) => metadata.uid))
      const before = yield* engines
      const stop = yield* keepAsking(inference, model)
      const values = ["--values", valuesFile, "--wait", "--timeout", "6m"]
      yield* helm("upgrade", "seatrial", chart, ...values, "--set", "podAnnotations.version=next")
      yield* helm("rollback", "seatrial", "--wait", "--timeout", "6m")
      assert.isAbove((yield* stop).length, 10)
      yield* helm("uninstall", "seatrial", "--wait", "--timeout", "3m")
      assert.deepStrictEqual(yield* engines, before)
      // For the next test the spool is on a claim now.
      yield* helm("install", "seatrial", chart, ...values, ...(yield* spoolWords(release)))
      yield* answersAgain(release)
      assert.deepStrictEqual(yield* engines, before)
    }).pipe(Effect.scoped)
  )

  it.effect("with its spool on a claim, a gateway that is killed while Postgres does not answer loses no record: its successor writes them", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      yield* putSpoolOnClaim(release)
      assert.deepStrictEqual(spoolFiles(), [{ name: "records.spool", owner: "2000:2000", size: 0 }])
      const [gateway] = yield* podsOf(release, "app.kubernetes.io/component=gateway")
      const [postgres] = yield* podsOf(release, "app.kubernetes.io/component=postgres")
      if (gateway === undefined || postgres === undefined) return yield* Effect.die(new Error("There is no gateway or no Postgres."))
      yield* answersAt(release, addressOfGateway(gateway))
      const stream = yield* openLongStream(release, addressOfGateway(gateway))
      yield* Effect.acquireRelease(
        Effect.sync(() => signalContainer(postgres, "postgres", "SIGSTOP")),
        () => Effect.sync(() => signalContainer(postgres, "postgres", "SIGCONT"))
      )
      assert.strictEqual(streamOf(yield* stream.rest).usage?.completion_tokens, longStreamTokens)
      assert.isAbove(spoolFiles()[0]?.size ?? 0, 0)
      yield* release.kubectl(["delete", "pod", gateway.metadata.name, "--wait=false"])
      signalContainer(gateway, "gateway", "SIGKILL")
      yield* eventually("another gateway has started", podsOf(release, "app.kubernetes.io/component=gateway"), (pods) =>
        pods.some(({ metadata, status }) => metadata.uid !== gateway.metadata.uid && status?.containerStatuses?.[0]?.state?.running !== undefined)
      )
      assert.isAbove(spoolFiles()[0]?.size ?? 0, 0)
      signalContainer(postgres, "postgres", "SIGCONT")
      const record = yield* endedRecord(release, stream.id)
      assert.deepStrictEqual([record?.status_code, record?.output_tokens, record?.error], [200, longStreamTokens, null])
      yield* answersAgain(release)
    }).pipe(Effect.scoped)
  )
})
