import { Ids } from "@seatrial/domain"
import { Effect, Layer, Option } from "effect"
import { Deployments, OperatorTerms, Runs, type SentinelRow, Sentinels } from "../src/index.ts"
import { layerRole, layerStore } from "./stage.ts"
import { makeCaller, newModel, screened } from "./support/index.ts"

export const layerSentinels = Layer.mergeAll(Sentinels.layerSql, OperatorTerms.layerSql).pipe(
  Layer.provide([layerRole("operator"), Ids.layer]),
  Layer.provideMerge(layerStore)
)

const probedAt = Date.now()

/** A deployment with a revision, and the state of its engine. */
export const makeEngine = Effect.fnUntraced(function* (slug: string, change: Partial<SentinelRow> = {}) {
  const { caller } = yield* makeCaller(slug)
  const { orgId } = caller
  const { id } = yield* (yield* Deployments).create(newModel(caller, slug, slug))
  const runs = yield* Runs
  yield* runs.recordScreening({ ...screened, id, orgId, engineVersion: "vllm-1" })
  const { modelId, revision } = Option.getOrThrow(yield* runs.observe(id))
  if (revision === null) return yield* Effect.die("no revision")
  const row: SentinelRow = {
    orgId,
    deploymentId: id,
    pod: `${slug}-0`,
    podUid: `uid-${slug}`,
    restarts: 0,
    total: 1.5,
    recent: 0.5,
    probes: 7,
    goodAt: probedAt - 60_000,
    goodProbes: 4,
    probedAt,
    alarmedAt: null,
    ...change
  }
  return { caller, orgId, id, row, suspicion: { modelId, revisionId: revision.id, node: "node-1", row: { ...row, alarmedAt: row.probedAt } } }
})
