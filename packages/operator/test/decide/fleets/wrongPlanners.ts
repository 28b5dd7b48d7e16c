import type { Endpoint } from "@seatrial/store"
import { isUncompared } from "../../../src/decide/bootCheck.ts"
import { Action, type Decision } from "../../../src/decide/Decision.ts"
import { decide } from "../../../src/decide/decide.ts"
import { enginesOf } from "../../../src/observation/engines.ts"
import { isServed } from "../../../src/observation/isServed.ts"
import type { Observation } from "../../../src/observation/Observation.ts"
import type { Planner } from "./FleetWorld.ts"
import { invariants } from "./faultsOf.ts"

export interface WrongPlanner {
  readonly what: string
  readonly breaks: string
  readonly planner: Planner
}

/** The decision with other endpoints, if it is about a serving model. */
const publishing = (observation: Observation, decision: Decision, endpoints: ReadonlyArray<Endpoint>): Decision =>
  isServed(observation) ? { ...decision, actions: [Action.Publish({ endpoints }), ...decision.actions.filter(({ _tag }) => _tag !== "Publish")] } : decision

const readyPods = (observation: Observation): ReadonlyArray<Endpoint> =>
  enginesOf(observation).flatMap(({ alone: { pod } }) => (pod?.ready === true && pod.url !== null ? { pod: pod.name, url: pod.url } : []))

/** The decision with the removals of these pods at once. */
const removing = (decision: Decision, pods: ReadonlyArray<{ readonly ordinal: number; readonly uid: string }>): Decision => ({
  ...decision,
  actions: [...pods.map(({ ordinal, uid }) => Action.RemovePod({ uid, force: false, ordinal })), ...decision.actions]
})

/** Planners with one fault each. */
export const wrongPlanners: ReadonlyArray<WrongPlanner> = [
  {
    what: "withdraws all engines if one is not ready",
    breaks: invariants.serving,
    planner: (observation, now) => {
      const isDisturbed = enginesOf(observation).some(({ alone: { pod } }) => pod?.ready !== true)
      const decision = decide(observation, now)
      return isDisturbed ? publishing(observation, decision, []) : decision
    }
  },
  {
    what: "scales down before the remaining engines serve",
    breaks: invariants.serving,
    planner: (observation, now) => {
      const decision = decide(observation, now)
      const desired = observation.run.replicas ?? 1
      const wanted = enginesOf(observation).flatMap(({ alone: { pod }, ordinal }) => (ordinal < desired && pod !== null ? pod.name : []))
      const endpoints = decision.actions.findLast((action) => action._tag === "Publish")?.endpoints ?? observation.run.endpoints
      const left = endpoints.filter(({ pod }) => wanted.includes(pod))
      return left.length < endpoints.length ? publishing(observation, decision, left) : decision
    }
  },
  {
    what: "puts a serving run that lost an engine back into the queue",
    breaks: invariants.revision,
    planner: (observation, now) => {
      const decision = decide(observation, now)
      const isLost = enginesOf(observation).some(({ alone: { pod } }) => pod !== null && pod.lost !== null)
      return isLost ? { ...decision, actions: [Action.Enter({ to: "queued", reason: "Lost.", failure: null, replaces: false })] } : decision
    }
  },
  {
    what: "publishes the address that an engine had before",
    breaks: invariants.revision,
    planner: (observation, now) => {
      const decision = decide(observation, now)
      const isEngineGone = observation.run.endpoints.some(({ url }) => enginesOf(observation).every(({ alone: { pod } }) => pod?.url !== url))
      return isEngineGone ? publishing(observation, decision, observation.run.endpoints) : decision
    }
  },
  {
    what: "publishes each ready engine",
    breaks: invariants.comparison,
    planner: (observation, now) => publishing(observation, decide(observation, now), readyPods(observation))
  },
  {
    what: "gives traffic to an engine that could not be compared, although another one serves",
    breaks: invariants.comparison,
    planner: (observation, now) => {
      const uncompared = enginesOf(observation).flatMap(({ alone }) => (isUncompared(alone) && alone.pod?.ready === true ? alone.pod.name : []))
      const known = observation.run.endpoints.map(({ pod }) => pod)
      const endpoints = readyPods(observation).filter(({ pod }) => uncompared.includes(pod) || known.includes(pod))
      return uncompared.length > 0 ? publishing(observation, decide(observation, now), endpoints) : decide(observation, now)
    }
  },
  {
    what: "gives traffic to all engines that could not be compared, if none serves",
    breaks: invariants.comparison,
    planner: (observation, now) => {
      const decision = decide(observation, now)
      const isFirst = observation.run.endpoints.length === 0 && (observation.run.earlier ?? 0) === 0
      const ready = enginesOf(observation).filter(({ alone }) => alone.pod?.ready === true && alone.pod.lost === null && !alone.pod.deleting)
      const publishes = decision.actions.some((action) => action._tag === "Publish" && action.endpoints.length > 0)
      return isFirst && publishes && ready.length > 1 && ready.every(({ alone }) => isUncompared(alone))
        ? publishing(observation, decision, readyPods(observation))
        : decision
    }
  },
  {
    what: "takes the GPUs that queued runs need",
    breaks: invariants.queue,
    planner: (observation, now) => decide({ ...observation, growth: { ...observation.growth, room: 1 } }, now)
  },
  {
    what: "keeps engines although runs are queued",
    breaks: invariants.queue,
    planner: (observation, now) => decide({ ...observation, growth: { ...observation.growth, yields: 0 } }, now)
  },
  {
    what: "gives queued runs the engines that the model keeps",
    breaks: invariants.serving,
    planner: (observation, now) =>
      decide({ ...observation, growth: { ...observation.growth, yields: observation.growth.yields > 0 || observation.growth.limit === "queue" ? 9 : 0 } }, now)
  },
  {
    what: "deletes surplus engines at once",
    breaks: invariants.requests,
    planner: (observation, now) => {
      const surplus = observation.engines.flatMap(({ ordinal, pod }) =>
        pod !== null && ordinal >= (observation.run.replicas ?? 1) ? { ordinal, uid: pod.uid } : []
      )
      return removing(decide(observation, now), surplus)
    }
  },
  {
    what: "deletes withdrawn engines although their requests run",
    breaks: invariants.requests,
    planner: (observation, now) =>
      decide({ ...observation, run: { ...observation.run, inFlight: 0 }, engines: observation.engines.map((engine) => ({ ...engine, requests: 0 })) }, now)
  },
  {
    what: "starts only one engine above the first",
    breaks: invariants.wanted,
    planner: (observation, now) =>
      decide({ ...observation, growth: { ...observation.growth, room: observation.engines.some(({ pod }) => pod !== null) ? 0 : 1 } }, now)
  }
]

/** Planners with one fault each, in a move to a new revision. */
export const wrongMoves: ReadonlyArray<WrongPlanner> = [
  {
    what: "lets the earlier revision leave at once",
    breaks: invariants.serving,
    planner: ({ run: { newer: _, ...run }, ...observation }, now) => decide({ ...observation, run }, now)
  },
  {
    what: "lets the earlier revision leave at once if the model is scaled to one engine",
    breaks: invariants.serving,
    planner: ({ run: { newer, ...run }, ...observation }, now) =>
      decide({ ...observation, run: newer === undefined || run.replicas === 1 ? run : { ...run, newer } }, now)
  },
  {
    what: "counts engines of the newer revision that do not serve",
    breaks: invariants.serving,
    planner: (observation, now) => {
      const { newer, replicas = 1 } = observation.run
      return decide(newer == null ? observation : { ...observation, run: { ...observation.run, newer: Array.from({ length: replicas }, String) } }, now)
    }
  },
  {
    what: "keeps the earlier revision although runs are queued",
    breaks: invariants.queue,
    planner: (observation, now) => decide({ ...observation, growth: { ...observation.growth, yields: 0 } }, now)
  },
  {
    what: "never lets the earlier revision leave",
    breaks: invariants.wanted,
    planner: (observation, now) => decide(observation.run.newer == null ? observation : { ...observation, run: { ...observation.run, newer: [] } }, now)
  }
]
