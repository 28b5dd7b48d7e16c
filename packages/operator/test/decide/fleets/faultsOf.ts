import type { Action, Decision } from "../../../src/decide/Decision.ts"
import { drainLimit } from "../../../src/limits.ts"
import type { Observation } from "../../../src/observation/Observation.ts"
import { enginePodName } from "../../../src/resources/objectNames.ts"
import type { Engine, FleetWorld } from "./FleetWorld.ts"

/** The invariants of a fleet, each by its number. */
export const invariants = {
  serving: "1. An act takes good engines below the wanted number",
  revision: "2. A finished run changes, or an engine belongs to two revisions",
  comparison: "3. An engine gets traffic before its start was compared, although another one serves or a comparison was not tried",
  queue: "4. An engine above those that the model keeps takes a GPU that a queued run could use",
  requests: "5. A pod is deleted while it has traffic or requests",
  wanted: "6. The wanted number is not reached"
} as const

/** Watches one pass. `serves`: whether the model is to serve. Faults go into `world.faults`. */
export const faultsOf = (world: FleetWorld, seen: Observation, serves: boolean) => {
  const hold = (holds: boolean, what: string) => {
    if (!holds) world.faults.add(what)
  }
  const wanted = world.sibling === null ? world.replicas : Math.max(1, world.replicas - (world.settings.maxUnavailable ?? 0))
  // Each engine that the model does not keep may be a good one, and leave.
  const afterYield = Math.max(1, world.good - Math.max(0, world.present - world.kept))
  const desired = !serves ? 0 : seen.growth.yields > 0 ? Math.min(afterYield, wanted) : wanted
  const least = Math.min(desired, world.good)
  const published = new Set(world.endpoints.map(({ url }) => url))
  const engineOf = (ordinal: number | undefined): Engine => world.engine(ordinal ?? 0)

  const removes = (engine: Engine, uid: string | null) => {
    const { pod, requests, withdrawnAt } = engine
    if (pod === null || pod.lost !== null || !pod.ready || pod.nodeDownSince !== null || (uid !== null && uid !== pod.uid)) return
    hold(!world.endpoints.some((endpoint) => endpoint.pod === pod.name), invariants.requests)
    const since = withdrawnAt ?? world.now
    // An engine that restarted may have requests of gateways with old routes. If its answers differ, theirs are wrong too.
    hold(world.now >= since + drainLimit || requests === 0 || world.outcomeOf(engine) === "differs", invariants.requests)
  }

  const publishes = (action: Extract<Action, { readonly _tag: "Publish" }>) => {
    const added: Array<Engine> = []
    for (const { pod: name, url } of action.endpoints) {
      const engine = world.engines.find(({ ordinal }) => enginePodName(seen.run.engineRun, ordinal) === name)
      hold(engine?.pod != null && engine.pod.url === url, invariants.revision)
      if (engine === undefined || published.has(url)) continue
      const isCompared = world.outcomeOf(engine) === "same"
      const serves = world.engines.some((other) => other !== engine && world.isGood(other)) || added.length > 0
      hold((isCompared || (world.isUncompared(engine) && !serves)) && engine.pod?.ready === true, invariants.comparison)
      added.push(engine)
    }
    // Nor does an uncompared one come before a compared one.
    hold(added.length < 2 || added.every((engine) => world.outcomeOf(engine) === "same"), invariants.comparison)
  }

  return {
    decided: ({ actions }: Decision) => {
      const created = actions.filter((action) => action._tag === "EnsurePod" && (action.ordinal ?? 0) > 0).length
      hold(created === 0 || created <= world.gpus.unclaimed - world.gpus.othersIn("queued"), invariants.queue)
      hold(!actions.some(({ _tag }) => _tag === "Enter" || _tag === "Activate"), invariants.revision)
    },
    before: (action: Action) => {
      if (action._tag === "Publish") publishes(action)
      if (action._tag === "RemovePod") removes(engineOf(action.ordinal), action.uid)
    },
    after: (_: Action) => hold(world.good >= least, invariants.serving)
  }
}
