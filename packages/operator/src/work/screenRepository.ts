import { choicesOf, decideServing, type HostClass, type RepositoryFacts, type ServingOption } from "@seatrial/domain"
import { engineFor, engines, versionOn } from "@seatrial/engines"
import { Hub } from "@seatrial/hub"
import { type Run, Runs, type ServingPlan } from "@seatrial/store"
import { Effect } from "effect"
import { imageOn } from "../objects/engineObjects.ts"
import { audienceOf } from "../observation/audienceOf.ts"
import { persist } from "./persist.ts"
import { WorkRefused, WorkUnavailable } from "./WorkResult.ts"

/**
 * The plan of the run's revision on that host class. It records who chose each setting and where the memory goes, for a
 * comparison with what the engine reports.
 */
const planOf = Effect.fnUntraced(function* (run: Run, facts: RepositoryFacts, option: ServingOption, hostClasses: ReadonlyArray<HostClass>) {
  const { capabilities, engine: contract, estimate: decided, serving: settings } = option
  const engine = engineFor(contract.runtime)
  if (engine === undefined) return yield* Effect.die(new Error(`no adapter for the runtime ${contract.runtime}`))
  const hostClass = hostClasses.find(({ name }) => name === settings.host_class)
  if (hostClass === undefined) return yield* Effect.die(new Error(`no host class ${settings.host_class}`))
  const plan: ServingPlan = {
    settings,
    engineVersion: versionOn(engine, { simulated: hostClass.simulated }),
    engineImage: imageOn(hostClass, settings.runtime),
    estimate: { ...decided.fit, chosen_by: choicesOf(run.servingRequest, settings, facts, engine.wire, run.keptChoices ?? {}), components: decided.components },
    capabilities
  }
  return plan
})

/** Pins and reads the repository, decides how it is served, and records that. Refuses what a preview refuses. */
export const screenRepository = Effect.fn("screenRepository")(function* (run: Run, hostClasses: ReadonlyArray<HostClass>) {
  const runs = yield* Runs
  const hub = yield* Hub
  const token = yield* runs.hubToken(run.orgId, run.startedBy)
  const facts = yield* hub.inspect({ repo: run.source.repo, ref: run.source.ref }, token).pipe(
    Effect.catchTags({
      HubRefusal: (refusal) => {
        const { message, remedy } = refusal.textFor(audienceOf(run))
        return Effect.fail(new WorkRefused({ failure: { code: refusal.code, text: `${message} ${remedy}` } }))
      },
      HubUnavailable: ({ message }) => Effect.fail(new WorkUnavailable({ message }))
    })
  )
  const calibrations = yield* runs.measuredStarts(run.orgId, facts.config.architecture)
  const question = { facts, ref: run.source.ref ?? null, request: run.servingRequest, hostClasses, engines, calibrations }
  // A limit may be raised while the run waits for it. It affects the choice of the host class, but does not refuse the
  // model.
  const within = decideServing({ ...question, gpuLimit: run.gpuLimit })
  const decided = within.estimate === null ? decideServing(question) : within
  if (decided.estimate === null) {
    const { reason, remedy } = decided.preview
    return yield* new WorkRefused({ failure: { code: reason.code, text: `${reason.message} ${remedy.message}` } })
  }
  const placements = yield* Effect.forEach(decided.options, (option) => planOf(run, facts, option, hostClasses))
  const [first] = placements
  if (first === undefined) return yield* Effect.die(new Error("a model that fits has no host class"))
  yield* persist(runs.recordScreening({ id: run.id, orgId: run.orgId, facts, ...first, placements }))
})
