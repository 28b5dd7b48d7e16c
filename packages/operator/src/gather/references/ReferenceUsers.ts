import type { DeploymentId } from "@seatrial/domain"
import { Effect } from "effect"
import { ObservedReference } from "../../observation/ObservedReference.ts"
import type { RunStore } from "../../RunStore.ts"
import { makeRunIndex } from "../RunIndex.ts"
import { nextReferences, type ReferenceLimits, type WaitingReference } from "./nextReferences.ts"
import type { ReferenceLedger } from "./ReferenceLedger.ts"

/** Failed passes over a run of an earlier leader after which no Job waits for the run. */
const mostFailures = 3

/** The Job that a run uses. */
export interface ReferenceUse {
  readonly name: string
  readonly organization: string
}

export interface ReferenceUsersOptions {
  readonly ledger: ReferenceLedger
  readonly limits: ReferenceLimits
  /** Requests a pass over a run that may create its Job. */
  readonly enqueue: (id: DeploymentId) => Effect.Effect<void>
  /** Requests a check of a Job that may have no user. */
  readonly enqueueJob: (name: string) => Effect.Effect<void>
}

/**
 * The runs that use the Job of a reference, and those that wait for their turn to create one. It fills with the first
 * pass over each run.
 */
export const makeReferenceUsers = ({ enqueue, enqueueJob, ledger, limits }: ReferenceUsersOptions) => {
  const index = makeRunIndex()
  const uses = new Map<DeploymentId, ReferenceUse>()
  /** Runs without a Job: those that wait for their turn, and those that create it. */
  const waits = new Set<DeploymentId>()
  const creates = new Set<DeploymentId>()
  /** The Jobs that gave their places to others. */
  const resting = new Set<string>()
  /** Runs of an earlier leader whose first pass is still to come, with the number of passes that failed; null until they are read. */
  let expected: Map<DeploymentId, number> | null = null

  const namedOf = (ids: Iterable<DeploymentId>): ReadonlyArray<WaitingReference> =>
    [...ids].flatMap((id) => {
      const use = uses.get(id)
      return use === undefined ? [] : [{ id, ...use }]
    })
  const usersOf = (name: string): ReadonlySet<string> => new Set(namedOf(index.of(name)).map(({ organization }) => organization))
  /** The Jobs that have not ended or are about to be created. */
  const activeNames = () => new Set([...ledger.active(), ...namedOf(creates).map(({ name }) => name)])
  /** `asks`: a run that waits too. */
  const next = (...asks: ReadonlyArray<DeploymentId>): ReadonlyArray<DeploymentId> => {
    const names = activeNames()
    // Most changes come while no further Job may exist. Their cost must not depend on how many runs wait.
    if (names.size >= limits.inAll) return []
    const jobs = new Map([...names].map((name) => [name, usersOf(name)]))
    return nextReferences({ jobs, waiting: namedOf(new Set([...waits, ...asks])), resting }, limits)
  }
  const enqueueNext = Effect.suspend(() => Effect.forEach(next(), enqueue, { discard: true }))
  const offerPlaces = Effect.suspend(() => Effect.forEach(ledger.active(), enqueueJob, { discard: true }))
  const enqueueJobs = Effect.suspend(() => Effect.forEach(ledger.names(), enqueueJob, { discard: true }))
  /** The Jobs without a user are known once no run is expected any more. */
  const expectNoMore = (id: DeploymentId) => Effect.suspend(() => (expected?.delete(id) === true && expected.size === 0 ? enqueueJobs : Effect.void))

  const note = (id: DeploymentId, use: ReferenceUse | null): Effect.Effect<void> =>
    Effect.gen(function* () {
      const before = uses.get(id)?.name
      index.set(id, use?.name ?? null)
      if (use === null) uses.delete(id)
      else uses.set(id, use)
      const hadTurn = use === null && [waits.delete(id), creates.delete(id)].includes(true)
      if (before !== undefined && before !== use?.name) yield* enqueueJob(before)
      if (hadTurn || (before !== undefined && before !== use?.name)) yield* enqueueNext
      yield* expectNoMore(id)
    })

  return {
    /** The run uses that Job; null: it uses none. */
    note,
    /** The users of a Job. */
    of: index.of,
    /** A Job that does not exist is the run's to create only if it is the run's turn. */
    turned: (id: DeploymentId, reference: ObservedReference): ObservedReference =>
      reference._tag === "Absent" && !creates.has(id) && !next(id).includes(id) ? ObservedReference.Waiting() : reference,
    /**
     * Remembers what was decided from `turned`, in the same synchronous step, so that two runs never take the same turn.
     * Returns true if the run gave up its turn, or its place among those that wait. A run that cannot use its turn now
     * leaves it to another.
     */
    decided: (id: DeploymentId, { _tag }: ObservedReference, isCreating: boolean): boolean => {
      const hadTurn = [waits.delete(id), creates.delete(id)].includes(true)
      if (_tag === "Waiting") waits.add(id)
      else if (_tag === "Absent" && isCreating) creates.add(id)
      return hadTurn && !waits.has(id) && !creates.has(id)
    },
    /** Whether a run that waits would get the place of that Job. */
    isWanted: (name: string): boolean => {
      const jobs = new Map([...activeNames()].map((each) => [each, usersOf(each)]))
      const load = { waiting: namedOf(waits).filter((each) => !resting.has(each.name)), resting }
      const now = nextReferences({ ...load, jobs }, limits).length
      return nextReferences({ ...load, jobs: new Map([...jobs].filter(([each]) => each !== name)) }, limits).length > now
    },
    /** The Job gives its place to another. Its runs go after others until `rested`. */
    rest: (name: string): void => void resting.add(name),
    rested: (name: string): Effect.Effect<void> => Effect.suspend(() => (resting.delete(name) ? Effect.andThen(enqueueNext, offerPlaces) : Effect.void)),
    /** Requests a check of the Jobs that may give their places to a run that has begun to wait. */
    offerPlaces,
    /** Runs that may create their Jobs now. */
    next: (): ReadonlyArray<DeploymentId> => next(),
    /** The number of runs that wait for their turn. */
    waiting: (): number => waits.size,
    /** The runs that an earlier leader knew. Until each of them had a pass, no Job counts as unused. */
    expect: (ids: ReadonlyArray<DeploymentId>): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (expected !== null) return Effect.void
        expected = new Map(ids.map((id) => [id, 0]))
        return expected.size === 0 ? enqueueJobs : Effect.void
      }),
    /**
     * A pass over the run failed, although Postgres answered. A run that cannot be read must not stop the deletion of
     * all unused Jobs. If it can be read later, it may create its Job again.
     */
    failed: (id: DeploymentId): Effect.Effect<void> =>
      Effect.suspend(() => {
        const failures = (expected?.get(id) ?? 0) + 1
        if (failures >= mostFailures) return expectNoMore(id)
        if (expected?.has(id) === true) expected.set(id, failures)
        return Effect.void
      }),
    /** Whether no run uses the Job. */
    isUnused: (name: string): boolean => expected?.size === 0 && index.of(name).length === 0,
    remembers: (id: DeploymentId): boolean => uses.has(id) || waits.has(id) || creates.has(id),
    forget: (id: DeploymentId): Effect.Effect<void> => note(id, null)
  } satisfies RunStore & Record<string, unknown>
}
export type ReferenceUsers = ReturnType<typeof makeReferenceUsers>
