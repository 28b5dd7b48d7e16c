import { AppliedResources, GpuHolds, HostClasses, Runs } from "@seatrial/store"
import { Deferred, Effect, Layer, Stream } from "effect"

/** One write of an operator, of the cluster's objects or of Postgres. `about`: text that holds the ids of what it is about. */
export interface Write {
  readonly what: string
  readonly about: string
}

/** When operators die: the first at that write of interest (0: none does); where `every` is not 0, each that follows so many later, before and after writes in turn. */
export interface DeathPlan {
  readonly at: number
  readonly afterWrite: boolean
  readonly every?: number
  /** Whether a write counts, by what it is about and what it is. */
  readonly concerns?: (about: string, what: string) => boolean
}

/**
 * How an operator dies: at the nth write from now on that is about something of interest, just before it takes effect or just after. Nothing that it does later takes
 * effect, whatever its finalizers try: as if it was killed.
 */
export const makeDeaths = () => {
  let plan: DeathPlan = { at: 0, afterWrite: true }
  let next = 0
  let count = 0
  let afterWrite = true
  let dead = false
  let died = Deferred.makeUnsafe<void>()
  const killed: Array<string> = []
  const runOfPod = new Map<string, string>()

  /** What becomes of the write: `null` where nothing dies of it. */
  const at = ({ about, what }: Write): "before" | "after" | null => {
    if (dead) return "before"
    if (plan.concerns?.(about, what) === false) return null
    count++
    if (count !== next) return null
    dead = true
    killed.push(`${afterWrite ? "after" : "before"} ${what}`)
    return afterWrite ? "after" : "before"
  }
  const die = () => Deferred.doneUnsafe(died, Effect.void)

  // Once it is decided that somebody dies of a write nothing comes in between, also not that the write is given up: who is counted as dead and goes on would hold everything up.
  const mortal = <A, E>(what: string, about: string, write: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const wasDead = dead
        const end = at({ what, about })
        if (end === null) return restore(write)
        if (wasDead) return restore(Effect.never)
        const last = end === "after" ? Effect.asVoid(Effect.exit(write)) : Effect.void
        return Effect.andThen(Effect.andThen(last, Effect.sync(die)), restore(Effect.never))
      })
    )

  const layerRuns = Layer.effect(
    Runs,
    Effect.map(Runs, (runs) =>
      Runs.of({
        ...runs,
        // What was waiting for an operator is taken from the outbox before anybody looks at it.
        changes: Stream.mapEffect(runs.changes, (id) => mortal("Runs.changes", id, Effect.succeed(id))),
        enter: (input) => mortal(`Runs.enter ${input.to}`, input.id, runs.enter(input)),
        recordScreening: (input) => mortal("Runs.recordScreening", input.id, runs.recordScreening(input)),
        noteWeights: (id, orgId, stored) => mortal("Runs.noteWeights", id, runs.noteWeights(id, orgId, stored)),
        forgetWeights: (id, orgId, store) => mortal("Runs.forgetWeights", id, runs.forgetWeights(id, orgId, store)),
        recordEngineImage: (id, orgId, engine) => mortal("Runs.recordEngineImage", id, runs.recordEngineImage(id, orgId, engine)),
        recordChecks: (id, orgId, found, kept) => mortal("Runs.recordChecks", id, runs.recordChecks(id, orgId, found, kept)),
        noteNodeFault: (id, orgId, fault) => mortal("Runs.noteNodeFault", id, runs.noteNodeFault(id, orgId, fault)),
        recordStart: (id, orgId, start) => mortal("Runs.recordStart", id, runs.recordStart(id, orgId, start)),
        recordMeasured: (id, orgId, found, row) => mortal("Runs.recordMeasured", id, runs.recordMeasured(id, orgId, found, row)),
        recordBenchmark: (id, orgId, found, row) => mortal("Runs.recordBenchmark", id, runs.recordBenchmark(id, orgId, found, row)),
        publishEndpoints: (id, orgId, endpoints) =>
          mortal(`Runs.publishEndpoints ${endpoints.length === 0 ? "none" : "one"}`, id, runs.publishEndpoints(id, orgId, endpoints)),
        recordProgress: (id, orgId, progress) => mortal("Runs.recordProgress", id, runs.recordProgress(id, orgId, progress)),
        activate: (input) => mortal("Runs.activate", input.id, runs.activate(input)),
        release: (id, orgId) => mortal("Runs.release", id, runs.release(id, orgId))
      })
    )
  )
  const layerHolds = Layer.effect(
    GpuHolds,
    Effect.map(GpuHolds, (holds) => {
      const ofPod = (uid: string) => runOfPod.get(uid) ?? uid
      return GpuHolds.of({
        ...holds,
        place: (placement) => {
          runOfPod.set(placement.podUid, placement.deploymentId)
          return mortal("GpuHolds.place", placement.deploymentId, holds.place(placement))
        },
        silent: (uid, since) => mortal("GpuHolds.silent", ofPod(uid), holds.silent(uid, since)),
        failing: (uid, failed) => mortal("GpuHolds.failing", ofPod(uid), holds.failing(uid, failed)),
        release: (uid, since) => mortal("GpuHolds.release", ofPod(uid), holds.release(uid, since)),
        recordObservation: mortal("GpuHolds.recordObservation", "", holds.recordObservation)
      })
    })
  )
  const layerApplied = Layer.effect(
    AppliedResources,
    Effect.map(AppliedResources, (applied) =>
      AppliedResources.of({
        ...applied,
        adopt: (input) => mortal("AppliedResources.adopt", input.resource.name, applied.adopt(input)),
        rebind: (version, hash) => mortal("AppliedResources.rebind", version.name, applied.rebind(version, hash)),
        retire: (place) => mortal("AppliedResources.retire", place.name, applied.retire(place))
      })
    )
  )
  const layerClasses = Layer.effect(
    HostClasses,
    Effect.map(HostClasses, (classes) =>
      HostClasses.of({ ...classes, replaceAll: (all) => mortal("HostClasses.replaceAll", all.map(({ name }) => name).join(), classes.replaceAll(all)) })
    )
  )

  return {
    /** In front of the stores: the operator dies of its writes to Postgres. */
    layer: Layer.mergeAll(layerRuns, layerHolds, layerApplied, layerClasses),
    /** Makes a write for what stands before the API server: null where the operator is dead by then, and hears of nothing. */
    make: <A, E>(write: Write, making: Effect.Effect<A, E>): Effect.Effect<A | null, E> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          if (dead) return Effect.succeed(null)
          const end = at(write)
          if (end === null) return restore(making)
          return Effect.as(Effect.ensuring(end === "after" ? making : Effect.void, Effect.sync(die)), null)
        })
      ),
    /** Ends when the operator is dead. */
    died: Effect.suspend(() => Deferred.await(died)),
    /** Another operator may start. */
    revive: () => {
      died = Deferred.makeUnsafe()
      const { every = 0 } = plan
      if (dead) {
        next = every === 0 ? 0 : count + every
        afterWrite = !afterWrite
      }
      dead = false
    },
    /** From now on. */
    plan: (planned: DeathPlan) => {
      plan = planned
      count = 0
      killed.length = 0
      afterWrite = planned.afterWrite
      next = planned.at
    },
    /** The writes at which one died since then, and how many there were. */
    report: () => ({ killed: [...killed], writes: count })
  }
}
