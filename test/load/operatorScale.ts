import { defineResource, Event, objectSchema, Pod, PodDisruptionBudget } from "@seatrial/kube"
import { ModelDeployment } from "@seatrial/operator"
import { Config, Console, Effect, Exit, Schema, Scope } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { figureOf, show, table } from "./figures.ts"
import { openOperatorLab, until } from "./operator/OperatorLab.ts"
import { measureStart, metricsOf, quietWrites } from "./operator/startCost.ts"
import { apiWrites, everybodysMicros, type KwokCluster, since, sum, words } from "./operator/writes.ts"
import { BenchError, memoryMegabytes, processorMicros } from "./Program.ts"

const text = (value: number, decimals = 0) => value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })

const ConfigMap = defineResource({
  group: "",
  version: "v1",
  plural: "configmaps",
  kind: "ConfigMap",
  namespaced: true,
  schema: objectSchema({ data: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)) })
})

/** Creates per second that the control plane accepts from one client over 32 connections, for objects of three kilobytes. */
const bareCreates = Effect.fnUntraced(function* ({ kube }: KwokCluster, number: number) {
  const begun = performance.now()
  const data = { text: "x".repeat(3_000) }
  const create = (index: number) => kube.create(ConfigMap, { metadata: { name: `floor-${index}`, namespace: "default" }, data })
  yield* Effect.forEach(Array.from({ length: number }).keys(), create, { concurrency: 32, discard: true })
  return number / ((performance.now() - begun) / 1_000)
})

/** Number of engines that become unready and ready again, and of sequential deployments, at each size. */
const flipped = 20
const added = 10

const floorSpace = "default"
const metadataOf = (name: string) => ({ name, namespace: floorSpace })

/**
 * Deployments per second with only the necessary writes: a custom resource and its status, a pod and its disruption budget, and one event. The
 * scheduler, the controllers and kwok work as usual. Nothing is read, decided, tried or stored in Postgres.
 */
const bareDeployments = Effect.fnUntraced(function* (cluster: KwokCluster, number: number) {
  const { command, kube } = cluster
  const env = Array.from({ length: 12 }, (_, index) => ({ name: `SETTING_${index}`, value: "/tmp/.cache/of-this-engine" }))
  const container = { name: "engine", image: "reference:1", env, resources: { limits: { "nvidia.com/gpu": "1" } } }
  const make = Effect.fnUntraced(function* (index: number) {
    const name = `floor-${index}`
    const resource = {
      apiVersion: "seatrial.dev/v1alpha1",
      kind: "ModelDeployment",
      metadata: metadataOf(name),
      spec: { source: { repo: "seatrial/tiny-chat" } }
    }
    yield* kube.create(ModelDeployment, resource)
    yield* kube.create(Pod, { metadata: { ...metadataOf(name), labels: { floor: name } }, spec: { containers: [container] } })
    const spec = { minAvailable: 1, selector: { matchLabels: { floor: name } } }
    const budget = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: metadataOf(name), spec }
    yield* kube.create(PodDisruptionBudget, budget)
    const note = {
      action: "Serve",
      note: "Serves.",
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "seatrial.dev/load",
      reportingInstance: "load"
    }
    yield* kube.create(Event, { metadata: metadataOf(name), regarding: metadataOf(name), type: "Normal", reason: "Activated", ...note })
    const shown = { ...resource, status: { phase: "activated", message: "x".repeat(2_000) } }
    yield* kube.applyStatus(ModelDeployment, shown)
  })
  const before = sum((yield* apiWrites(cluster)).values())
  const begun = performance.now()
  yield* Effect.forEach(Array.from({ length: number }).keys(), make, { concurrency: 32, discard: true })
  const running = command("kubectl", ["get", "pods", `--namespace=${floorSpace}`, "--field-selector=status.phase=Running", "--output=name"])
  yield* until("the floor's pods run", running, (text) => text.split("\n").length > number, 500)
  const perSecond = number / ((performance.now() - begun) / 1_000)
  const writes = (sum((yield* apiWrites(cluster)).values()) - before) / number
  for (const kind of ["api/v1 configmaps", "api/v1 pods", "apis/policy/v1 poddisruptionbudgets", "apis/seatrial.dev/v1alpha1 modeldeployments"]) {
    const [group, plural] = kind.split(" ")
    yield* command("kubectl", ["delete", "--raw", `/${group}/namespaces/${floorSpace}/${plural}`])
  }
  yield* until("the floor's pods are gone", running, (text) => text.trim() === "", 500)
  return { perSecond, writes }
})

const creates = 1_000

export const operatorScale: Benchmark = {
  name: "operator",
  title: "The operator with thousands of deployments",
  measure: Effect.fnUntraced(function* ({ own }) {
    const lab = yield* own
    const most = yield* Config.Int("BENCH_DEPLOYMENTS").pipe(Config.withDefault(5_000))
    // Each size must be larger than the previous one including its additions.
    if (most < 100) return yield* new BenchError({ message: "BENCH_DEPLOYMENTS is 100 at least." })
    const quietSeconds = yield* Config.Int("BENCH_QUIET_SECONDS").pipe(Config.withDefault(60))
    const { sql } = lab
    const { cluster, create, ended, reachEndpoints, startOperator } = yield* openOperatorLab(lab, most + 200)
    const floor = yield* bareCreates(cluster, creates)
    const least = yield* bareDeployments(cluster, Math.min(most, 500))
    yield* Console.log(`the writes alone: ${text(least.perSecond, 1)} a second, ${text(least.writes, 1)} each`)

    let life = yield* Scope.make()
    yield* Effect.addFinalizer(() => Effect.suspend(() => Scope.close(life, Exit.void)))
    const operator = yield* Scope.provide(startOperator(), life)
    const metrics = Effect.suspend(() => metricsOf(operator))
    const micros = Effect.map(
      Effect.suspend(() => processorMicros(operator.pid)),
      (used) => used ?? Number.NaN
    )
    const passes = Effect.map(metrics, (all) =>
      sum(all.filter(({ labels, name }) => name === "seatrial_kube_pass_seconds_count" && labels.includes('"runs"')).map(({ value }) => value))
    )
    yield* until("the operator has reported its host class", sql`SELECT name FROM host_classes`, (rows) => rows.length > 0, 100)

    yield* Effect.forkScoped(reachEndpoints)

    /** The average cost of an operation for the operator. */
    const costing = Effect.fnUntraced(function* <A, E>(times: number, something: Effect.Effect<A, E>) {
      const before = { micros: yield* micros, passes: yield* passes, writes: yield* apiWrites(cluster), at: performance.now() }
      const result = yield* something
      const seconds = (performance.now() - before.at) / 1_000
      const writes = since(yield* apiWrites(cluster), before.writes)
      return {
        result,
        seconds,
        millis: ((yield* micros) - before.micros) / times / 1_000,
        passes: ((yield* passes) - before.passes) / times,
        writes: sum(writes.values()) / times
      }
    })

    let createdCount = 0
    const bring = Effect.fnUntraced(function* (to: number) {
      const numbers = Array.from({ length: to - createdCount }, (_, index) => createdCount + index)
      yield* Effect.forEach(numbers, create, { concurrency: 8, discard: true })
      createdCount = to
      const activated = until(`${to} are activated`, ended, (phases) => phases.get("activated") === to, numbers.length > 1 ? 500 : 10)
      yield* Effect.raceFirst(activated, operator.died)
    })

    const setReady = (name: string, status: "True" | "False") => {
      const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, "")
      // As a kubelet would do after its probe.
      const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status, lastTransitionTime }))
      const object = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: cluster.namespace }, status: { conditions } }
      return cluster.kube.applyStatus(Pod, object)
    }
    /** Milliseconds until a change of readiness is published, for engines that become unready and ready again, sequentially. */
    const flips = Effect.gen(function* () {
      const times: Array<number> = []
      for (const { id, pod } of yield* sql<{ readonly id: string; readonly pod: string }>`
        SELECT deployment_id AS id, pod FROM endpoints ORDER BY md5(deployment_id) LIMIT ${flipped}`) {
        for (const [status, endpoints] of [["False", 0] as const, ["True", 1] as const]) {
          const begun = performance.now()
          yield* setReady(pod, status)
          yield* until(`${pod} is ${status}`, sql`SELECT 1 FROM endpoints WHERE deployment_id = ${id}`, (rows) => rows.length === endpoints, 2)
          times.push(performance.now() - begun)
        }
      }
      // Work that follows the last change.
      yield* Effect.sleep("2 seconds")
      return figureOf(times)
    })

    const lines: Array<ReadonlyArray<string>> = []
    let shares: ReadonlyMap<string, number> = new Map()
    let rate = { number: 1, each: Number.NaN, perSecond: Number.NaN, writesPerSecond: Number.NaN }
    for (const level of [Math.ceil(most / 50), Math.ceil(most / 5), most]) {
      const number = level - createdCount
      const before = yield* everybodysMicros
      const { millis, passes: looks, seconds, writes } = yield* costing(number, bring(level))
      shares = since(yield* everybodysMicros, before)
      rate = { number, each: millis, perSecond: number / seconds, writesPerSecond: (writes * number) / seconds }
      yield* Console.log(
        `${text(level)} are activated: ${text(rate.perSecond, 1)} a second, ${text(millis, 1)} ms of the operator's processor and ${text(looks, 1)} passes each, ${text(writes, 1)} writes`
      )
      yield* Effect.sleep("10 seconds")
      const flip = yield* costing(2 * Math.min(flipped, createdCount), flips)
      const one = yield* costing(
        added,
        Effect.forEach(Array.from({ length: added }), () => Effect.suspend(() => bring(createdCount + 1)), { discard: true })
      )
      const figures = [flip.millis, flip.passes, flip.writes, one.millis, one.passes, one.writes].map((value) => text(value, 1))
      lines.push([text(level), show(flip.result, 0), ...figures])
    }
    const peak = (yield* memoryMegabytes(operator.pid, "VmHWM")) ?? Number.NaN

    const { rows, writes: written } = yield* Effect.raceFirst(quietWrites(lab, cluster, quietSeconds), operator.died)

    yield* Scope.close(life, Exit.void)
    life = yield* Scope.make()
    const started = yield* Scope.provide(measureStart(cluster, startOperator(), createdCount), life)

    const targets = [
      ["from the start of the process until all watches are synced, s", "5", text(started.syncedSeconds, 1)],
      ["until every deployment has been looked at, s", "", text(started.passSeconds, 1)],
      ["activated a second", "50", text(rate.perSecond, 1)],
      ["resident after a start, MB", "400", text(started.resident)],
      ["resident at most until then, MB", "400", text(peak)],
      [`writes to Kubernetes in ${quietSeconds} quiet seconds, of whomever`, "leases only", words(written)],
      [`rows written in ${quietSeconds} quiet seconds`, "none", words(rows)]
    ]
    return `${text(createdCount)} deployments with an engine each, on a real control plane (etcd, API server, scheduler, controller manager) whose nodes and pods are kwok's: a
download is done and an engine is ready as soon as it is bound. The hub is the sample hub. One stand-in answers for all engines over a socket. It computes nothing and could not pass a
trial, so each of the trial's three parts asks it once and records what a tiny model has. A statement marks each new endpoint as reached, in place of gateways.
The rest of the operator is as it ships, with its own ServiceAccount. Everything shares this machine's cores. The leader's heartbeats do not count as changes: the lease in
Kubernetes, and the time at which it last looked at what is held (\`gpu_looks\`), from which a successor counts GPU time.

${table(["", "target", "measured"], targets)}

One client that does nothing else creates ${text(floor)} objects of 3 kB a second on the same control plane, over 32 connections. While ${text(most)} deployments were activated it took ${text(rate.writesPerSecond)}
writes a second by all programs (${text(rate.writesPerSecond / floor, 2)} of that), ${text(rate.writesPerSecond / rate.perSecond, 1)} a deployment; the operator used ${text(rate.each, 1)} ms of processor time a deployment.

A client that makes only the inevitable writes of a deployment (its object and once that one's status, its pod, its disruption budget and one event; scheduler, controllers and
kwok make theirs) and neither reads nor tests anything brings ${text(least.perSecond, 1)} a second to a running pod there, with ${text(least.writes, 1)} writes each: the operator's ${text(rate.perSecond, 1)} are
${text(rate.perSecond / least.perSecond, 2)} of that. Processor time of each program, milliseconds a deployment: ${[...shares]
      .sort(([, one], [, other]) => other - one)
      .map(([name, micros]) => `${name} ${text(micros / 1_000 / rate.number, 1)}`)
      .join(", ")}.

What one change costs the operator, with so many deployments there: an engine that becomes unready or ready again (of ${flipped}, one after the other), and one more deployment from its create to
activated (of ${added}). A pass reads its run in one statement; writes are those of all programs to Kubernetes.

${table(["deployments", "change: ms until published", "processor ms", "passes", "writes", "one more: processor ms", "passes", "writes"], lines)}`
  })
}
