import { type DeploymentId, type Phase, type ServingSettings, scopes } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { ApiKeys, type Caller } from "../../src/ApiKeys.ts"
import { type CreateInput, Deployments } from "../../src/Deployments.ts"
import { Organizations } from "../../src/Organizations.ts"
import { Runs } from "../../src/Runs.ts"
import { checks, engineDigest, engineImage, screened, settings } from "./trialRecords.ts"

/** An organization with a member and a key with all scopes, as a caller. */
export const makeCaller = Effect.fnUntraced(function* (slug: string) {
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const organization = yield* organizations.create({ slug, name: slug })
  const user = yield* organizations.addUser({ orgId: organization.id, email: `owner@${slug}.example`, name: "Owner", role: "owner" })
  yield* organizations.recordPurchase({ orgId: organization.id, micros: 5_000_000n })
  const { secret } = yield* keys.create({ orgId: organization.id, userId: user.id, name: "all", scopes })
  const caller: Caller = Option.getOrThrow(yield* keys.authenticate(secret))
  return { caller, secret, user, organization }
})

export const newModel = (caller: Caller, idempotencyKey: string, slug = "tiny", over: Partial<CreateInput> = {}): CreateInput => ({
  caller,
  idempotencyKey,
  inputHash: "a".repeat(64),
  target: { _tag: "NewModel", source: { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" }, slug },
  serving: {},
  serve: true,
  ...over
})

const path = ["materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating"] as const satisfies ReadonlyArray<Phase>

let settingsCount = 0
/** Unique settings, so that no earlier revision is reused. */
const ownSettings = (): ServingSettings => ({ ...settings, engine_flags: { max_num_seqs: ++settingsCount } })

/** Moves a run from `screening` through its phases to `target`, and records the checks. */
export const walk = Effect.fnUntraced(function* (
  caller: Caller,
  id: DeploymentId,
  target: (typeof path)[number],
  report = checks,
  settings: ServingSettings = ownSettings()
) {
  const runs = yield* Runs
  const { orgId } = caller
  yield* runs.recordScreening({ ...screened, id, orgId, settings })
  let from: Phase = "screening"
  for (const to of path) {
    yield* runs.enter({ id, orgId, from, to, reason: "Test" })
    if (to === "checking") {
      yield* runs.recordEngineImage(id, orgId, { image: engineImage, digest: engineDigest })
      yield* runs.recordChecks(id, orgId, report)
    }
    from = to
    if (to === target) break
  }
})

/** Deploys a model until it serves; returns the operation of its run. */
export const makeServing = Effect.fnUntraced(function* (caller: Caller, key: string, slug = "tiny") {
  const deployments = yield* Deployments
  const runs = yield* Runs
  const operation = yield* deployments.create(newModel(caller, key, slug))
  yield* walk(caller, operation.id, "activating")
  yield* runs.activate({ id: operation.id, orgId: caller.orgId, from: "activating" })
  const run = Option.getOrThrow(yield* runs.observe(operation.id))
  if (run.revision === null) return yield* Effect.die("no revision")
  return { operation, revisionId: run.revision.id, modelId: run.modelId, model: run.model }
})
