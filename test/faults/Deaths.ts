import { AppliedResources, GpuHolds, HostClasses, Runs } from "@seatrial/store"
import { Deferred, Effect, Layer, Stream } from "effect"

/** One write of an operator, of the cluster's objects or of Postgres. `about`: text that holds the ids of what it is about. */
export interface Write {
  readonly what: string
  readonly about: string
}

/** When the operator, or another program, dies: the first one at the write number `at` (0: none dies). If `every` is not 0, each later one dies `every` writes later, before and after a write in turn. */
export interface DeathPlan {
  readonly at: number
  readonly afterWrite: boolean
  readonly every?: number
  /** Whether a write counts, by its subject and its kind. */
  readonly concerns?: (about: string, what: string) => boolean
  /** Kills another program. The operator waits for that at the write, and survives. */
  readonly killOther?: Effect.Effect<void>
}

/**
 * Kills an operator at the nth counted write, just before or just after the write takes effect. Later writes have no
 * effect, also those of its finalizers, as if the process was killed.
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

  /** Whether a program dies before or after the write; null if all survive. */
  const at = ({ about, what }: Write): "before" | "after" | null => {
    if (dead) return "before"
    if (plan.concerns?.(about, what) === false) return null
    count++
    if (count !== next) return null
    dead = plan.killOther === undefined
    killed.push(`${afterWrite ? "after" : "before"} ${what}`)
    return afterWrite ? "after" : "before"
  }
  const die = () => Deferred.doneUnsafe(died, Effect.void)
  const withDeath = <A, E>(end: "before" | "after", write: Effect.Effect<A, E>, death: Effect.Effect<void>) =>
    end === "before" ? Effect.andThen(death, write) : Effect.ensuring(write, death)

  // From the decision on nothing may interrupt the write: an operator that counts as dead and continues would block everything.
  const mortal = <A, E>(what: string, about: string, write: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const wasDead = dead
        const end = at({ what, about })
        if (end === null) return restore(write)
        if (!dead) return withDeath(end, write, plan.killOther ?? Effect.void)
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
        // The entries of the outbox are taken before the operator handles them.
        changes: Stream.mapEffect(runs.changes, (run) => mortal("Runs.changes", run.id, Effect.succeed(run))),
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
        moveBack: (input) => mortal("Runs.moveBack", input.id, runs.moveBack(input)),
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
    /** Wraps the stores: the operator dies at its writes to Postgres. */
    layer: Layer.mergeAll(layerRuns, layerHolds, layerApplied, layerClasses),
    /** Performs a write for the proxy of the API server: null if the operator is dead and gets no answer. */
    make: <A, E>(write: Write, making: Effect.Effect<A, E>): Effect.Effect<A | null, E> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          if (dead) return Effect.succeed(null)
          const end = at(write)
          if (end === null) return restore(making)
          if (!dead) return withDeath(end, making, plan.killOther ?? Effect.void)
          return Effect.as(Effect.ensuring(end === "after" ? making : Effect.void, Effect.sync(die)), null)
        })
      ),
    /** Ends when the operator is dead. */
    died: Effect.suspend(() => Deferred.await(died)),
    /** Allows another operator to start. */
    revive: () => {
      died = Deferred.makeUnsafe()
      const { every = 0 } = plan
      if (dead) {
        next = every === 0 ? 0 : count + every
        afterWrite = !afterWrite
      }
      dead = false
    },
    /** Sets the plan for the following writes. */
    plan: (planned: DeathPlan) => {
      plan = planned
      count = 0
      killed.length = 0
      afterWrite = planned.afterWrite
      next = planned.at
    },
    /** The writes at which operators have died since the plan was set, and the number of writes. */
    report: () => ({ killed: [...killed], writes: count })
  }
}
