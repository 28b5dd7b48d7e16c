import { createHash } from "node:crypto"
import { type Benchmark, type BenchmarkKey, benchmarkFault, benchmarkRow, canonicalJson, settingsWithoutEffect, slowness } from "@seatrial/domain"
import type { Node } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { runBenchmark, workload } from "@seatrial/trial"
import { Effect, Semaphore, Struct } from "effect"
import { type EngineUnderTrial, subjectOf, unavailable } from "./EngineUnderTrial.ts"
import { persist } from "./persist.ts"

/** The version of the GPU driver from the labels of NVIDIA's feature discovery, or null. */
const driverOf = (node: Node | undefined): string | null => {
  const labels = node?.metadata.labels ?? {}
  const of = (prefix: string, names: ReadonlyArray<string>) => {
    const parts = names.flatMap((name) => labels[`${prefix}.${name}`] ?? [])
    return parts.length === names.length ? parts.join(".") : null
  }
  return (
    labels["nvidia.com/cuda.driver-version.full"] ??
    of("nvidia.com/cuda.driver-version", ["major", "minor", "revision"]) ??
    of("nvidia.com/cuda.driver", ["major", "minor", "rev"])
  )
}

/**
 * Whether pods share the node's GPUs by time slicing or MPS, according to the labels of NVIDIA's feature discovery. A
 * MIG slice is not shared.
 */
export const sharesGpus = (node: Node | undefined): boolean => {
  const labels = node?.metadata.labels ?? {}
  const strategy = labels["nvidia.com/gpu.sharing-strategy"] ?? "none"
  return (strategy !== "none" && strategy !== "") || Number(labels["nvidia.com/gpu.replicas"] ?? 1) > 1
}

/** Everything that affects the figures of a benchmark. */
export const benchmarkKey = ({ node, podClass, revision }: Pick<EngineUnderTrial, "node" | "podClass" | "revision">): BenchmarkKey => {
  const { gpu_count, gpu_pool } = podClass.hostClass
  const { base } = revision.facts.adapter ?? {}
  return {
    commit: base === undefined ? revision.facts.commit : base.commit,
    ...(base === undefined ? {} : { adapter_commit: revision.facts.commit }),
    engine_version: revision.engineVersion,
    engine_digest: revision.engineDigest,
    flags_sha256: createHash("sha256")
      .update(canonicalJson(Struct.omit(revision.settings, settingsWithoutEffect)))
      .digest("hex"),
    gpu_pool,
    gpu_count,
    // Engines split a model over all GPUs of its host class.
    tensor_parallel: gpu_count,
    driver: driverOf(node)
  }
}

/** Concurrent benchmarks on one node, and on one GPU type. Neighbors share the resources outside of the GPUs. */
const mostOnNode = 1
const mostOnPool = 2

/**
 * Limits the concurrent benchmarks on a node and on a GPU type. Only the leading operator runs benchmarks, so a
 * semaphore in memory is enough.
 */
export const makeBenchmarkTurns = () => {
  const turns = new Map<string, Semaphore.Semaphore>()
  const turn = (name: string, most: number) => {
    const known = turns.get(name) ?? Semaphore.makeUnsafe(most)
    turns.set(name, known)
    return known.withPermits(1)
  }
  return ({ node, podClass }: Pick<EngineUnderTrial, "node" | "podClass">) =>
    <A, E, R>(benchmark: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
      const onPool = turn(`pool ${podClass.hostClass.gpu_pool}`, mostOnPool)
      // The node's turn first: a benchmark that waits for its node must not occupy a place of its GPU type.
      return node === undefined ? onPool(benchmark) : turn(`node ${node.metadata.name}`, mostOnNode)(onPool(benchmark))
    }
}
export type BenchmarkTurns = ReturnType<typeof makeBenchmarkTurns>

/**
 * The fault of a benchmark that may be transient, such as one broken connection out of sixty. A wrong token count is
 * not transient.
 */
const passingFault = (benchmark: Benchmark): string | null =>
  benchmark.steps.some(({ figures }) => (figures?.wrong_counts ?? 0) > 0) ? null : benchmarkFault(benchmark)

/**
 * The result of two benchmarks. The second decides, unless a fault of the operator cut it short: then the finding of
 * the first stays.
 */
export const decided = (first: Benchmark, fault: string, second: Benchmark): Benchmark =>
  second.missing === undefined || second.missing === "client_limited" ? { ...second, first_failed: fault } : first

/** Loads the engine within the budget of the host class and records the figures. */
export const benchmarkEngine = (inTurn: BenchmarkTurns) =>
  Effect.fn("benchmarkEngine")(function* (trial: EngineUnderTrial) {
    const runs = yield* Runs
    const { node, podClass, revision, run, url } = trial
    const subject = yield* subjectOf(trial, "10 seconds")
    // An unreachable engine must not be measured as a slow one.
    yield* Effect.mapError(subject.client.get("/v1/models"), unavailable)
    const plan = workload(podClass.benchmarkSeconds, revision.settings.max_context, revision.measured?.kv_cache_tokens ?? null, revision.settings)
    const key = benchmarkKey(trial)
    const { name: hostClass, simulated } = podClass.hostClass
    const once = inTurn(trial)(runBenchmark({ subject, url, key, hostClass, simulated, shared: sharesGpus(node) }, plan))
    const first = yield* once
    const fault = passingFault(first)
    if (fault !== null) yield* Effect.logWarning(`the benchmark of ${run.id} is repeated: ${fault}`)
    const benchmark = fault === null ? first : decided(first, fault, yield* once)
    const slow = slowness(benchmark, yield* persist(runs.earlierBenchmarks(run.orgId, key)))
    if (slow !== undefined)
      yield* Effect.logWarning(`${run.id} is slow: ${slow.ratio} of the median of ${slow.earlier} earlier benchmarks of the same model and settings`)
    yield* persist(runs.recordBenchmark(run.id, run.orgId, slow === undefined ? benchmark : { ...benchmark, slow }, benchmarkRow(benchmark)))
  })
