import { choicesOf, decideServing, type HostClass } from "@seatrial/domain"
import { engineFor, engines, versionOn } from "@seatrial/engines"
import { Hub } from "@seatrial/hub"
import { type Run, Runs } from "@seatrial/store"
import { Effect } from "effect"
import { imageOn } from "../apply/engineObjects.ts"
import { forItsReader } from "../decide/forItsReader.ts"
import { persist } from "./persist.ts"
import { WorkRefused, WorkUnavailable } from "./WorkResult.ts"

/** Pins and reads the repository, decides how it is served, and records it. Refused as a preview would refuse it. */
export const screenRepository = Effect.fn("screenRepository")(function* (run: Run, hostClasses: ReadonlyArray<HostClass>) {
  const runs = yield* Runs
  const hub = yield* Hub
  const token = yield* runs.hubToken(run.orgId, run.startedBy)
  const facts = yield* hub.inspect({ repo: run.source.repo, ref: run.source.ref }, token).pipe(
    Effect.catchTags({
      HubRefusal: ({ code, message, remedy }) => Effect.fail(new WorkRefused({ failure: { code, text: forItsReader(run, `${message} ${remedy}`) } })),
      HubUnavailable: ({ message }) => Effect.fail(new WorkUnavailable({ message }))
    })
  )
  const calibrations = yield* runs.measuredStarts(run.orgId, facts.config.architecture)
  const asked = { facts, ref: run.source.ref ?? null, request: run.servingRequest, hostClasses, engines, calibrations }
  // A limit may be raised while the run waits for it, so it is a reason to choose another host class and none to refuse.
  const within = decideServing({ ...asked, gpuLimit: run.gpuLimit })
  const { estimate: decided, preview } = within.preview.kind === "derived" ? within : decideServing(asked)
  if (preview.kind === "refused") {
    return yield* new WorkRefused({ failure: { code: preview.reason.code, text: `${preview.reason.message} ${preview.remedy.message}` } })
  }
  const engine = engineFor(preview.serving.runtime)
  if (engine === undefined) return yield* Effect.die(new Error(`no engine for the runtime ${preview.serving.runtime}`))
  const { capabilities, fit, serving: settings } = preview
  // Who chose what, and where the bytes go, is kept with the revision, for those who compare it with what the engine reports.
  const chosen_by = choicesOf(run.servingRequest, settings, facts, engine.wire, run.keptChoices ?? {})
  const estimate = decided === null ? { ...fit, chosen_by } : { ...fit, chosen_by, components: decided.components }
  const hostClass = hostClasses.find(({ name }) => name === settings.host_class)
  const engineVersion = versionOn(engine, { simulated: hostClass?.simulated ?? false })
  if (hostClass === undefined) return yield* Effect.die(new Error(`no host class ${settings.host_class}`))
  const engineImage = imageOn(hostClass, settings.runtime)
  yield* persist(runs.recordScreening({ id: run.id, orgId: run.orgId, facts, settings, engineVersion, engineImage, estimate, capabilities }))
})
