import type { DeploymentId, OrgId } from "@seatrial/domain"
import type { MergedModel } from "@seatrial/trial"
import { Effect, type Semaphore } from "effect"
import type { StatusWrite } from "./apply/patchStatus.ts"
import { makeBenchmarkGauges } from "./benchmarkGauges.ts"
import { isAtMaximum, needsScaling } from "./decide/autoscale.ts"
import type { BootVerdict } from "./gather/BootVerdicts.ts"
import type { GpuLedger } from "./gather/capacity/GpuLedger.ts"
import { makePool } from "./gather/capacity/Pool.ts"
import { makeFollowers } from "./gather/Followers.ts"
import type { MissingNode } from "./gather/GatherMemory.ts"
import type { HeldReport } from "./gather/HeldReports.ts"
import { makeModelLoads } from "./gather/ModelLoads.ts"
import type { KnownMove } from "./gather/observeMove.ts"
import { PodExpectations } from "./gather/PodExpectations.ts"
import { ReleasedRuns } from "./gather/ReleasedRuns.ts"
import { makeReferenceUsers, type ReferenceUsersOptions } from "./gather/references/ReferenceUsers.ts"
import type { Refusal } from "./observation/Refusal.ts"
import { makePhaseCounts } from "./phaseCounts.ts"
import { EngineMap, RunMap, type RunStore } from "./RunStore.ts"
import { makeDecisionRecorder, type RecorderOptions } from "./record/DecisionRecorder.ts"
import { makeScalingGauges } from "./scalingGauges.ts"
import type { SentinelKeeper } from "./sentinel/SentinelKeeper.ts"
import { makeWatchdog, type WatchdogOptions } from "./Watchdog.ts"
import { makeBackground } from "./work/Background.ts"

interface RunMemoryOptions extends WatchdogOptions {
  readonly ledger: GpuLedger
  readonly recording: RecorderOptions
  readonly sentinels: SentinelKeeper
  readonly references: Omit<ReferenceUsersOptions, "enqueue">
}

const makeStores = Effect.fnUntraced(function* ({ enqueue, isScheduled, ledger, recording, references, sentinels }: RunMemoryOptions) {
  return {
    /** The runs that wait for GPUs, and those that were granted some. */
    pool: makePool(ledger),
    followers: makeFollowers(),
    references: makeReferenceUsers({ ...references, enqueue }),
    /** The background work of each run, and how it ended last. */
    background: yield* makeBackground(enqueue),
    /** The probes of serving engines. */
    sentinels,
    /** When each next pass is due. */
    watchdog: yield* makeWatchdog({ enqueue, isScheduled }),
    /** The last record of what was observed and decided. */
    decisions: yield* makeDecisionRecorder(recording),
    phases: yield* makePhaseCounts,
    benchmarks: yield* makeBenchmarkGauges,
    loads: makeModelLoads({ isAtMaximum, needsScaling }),
    scaling: yield* makeScalingGauges,
    // See `GatherMemory`.
    blockedSince: new RunMap<number>(),
    refusals: new RunMap<Refusal>(),
    missingNodes: new EngineMap<MissingNode>(),
    withdrawnSince: new RunMap<number>(),
    moves: new RunMap<KnownMove>(),
    readySince: new EngineMap<number>(),
    idleEngines: new EngineMap<number>(),
    futureTimes: new RunMap<ReadonlyMap<string, number>>(),
    bootVerdicts: new EngineMap<BootVerdict>(),
    textTurns: new RunMap<Semaphore.Semaphore>(),
    mergedAnswers: new RunMap<MergedModel>(),
    heldReports: new RunMap<HeldReport>(),
    podExpectations: new PodExpectations(),
    budgetExpectations: new RunMap<number>(),
    released: new ReleasedRuns(),
    /** The organization of each run. The passes of organizations take turns. */
    organizations: new RunMap<OrgId>(),
    /** The last status that was written to each custom resource. */
    statusWrites: new RunMap<StatusWrite>()
  }
})

/** Adds `forget` to stores. Each of them must be able to forget a run, so that no store can be left out. */
export const forgetting = <Stores extends { readonly [Name in keyof Stores]: RunStore }>(stores: Stores) => ({
  ...stores,
  /** Forgets a run in every store. */
  forget: (id: DeploymentId): Effect.Effect<void> => Effect.forEach(Object.values<RunStore>(stores), (store) => store.forget(id), { discard: true })
})

/**
 * Everything that the operator remembers of runs between passes. It is kept in memory only: a new leader starts without
 * it. A pass that finds its run gone or releases it forgets the run, and nothing else does.
 */
export const makeRunMemory = (options: RunMemoryOptions) => Effect.map(makeStores(options), forgetting)
export type RunMemory = Effect.Success<ReturnType<typeof makeRunMemory>>
