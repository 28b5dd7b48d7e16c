import { DeploymentId, type Phase } from "@seatrial/domain"
import { AppliedResources, type Binding, ModelNameTaken, NamedModelRefused, type Run } from "@seatrial/store"
import { Clock, Effect, Option, Schema } from "effect"
import { orgId, run } from "../observations.ts"

interface Records {
  readonly rows: Map<string, Run>
  readonly move: (row: Run, to: Phase, at: number, reason: string, failure: Run["failure"]) => Run
  readonly notify: (id: Run["id"]) => void
  readonly gate: (write: string) => Effect.Effect<void>
}

const idOf = (count: number) => Schema.decodeSync(DeploymentId)(`dep_01k3v7m8q2w4x6y8z0a2b4c${String(count).padStart(3, "0")}`)

/** The store of applied objects over rows in memory: the organization `acme`, with some names taken. */
export const makeMemoryApplied = ({ gate, move, notify, rows }: Records) => {
  const bindings = new Map<string, Pick<Binding, "uid" | "generation" | "specHash" | "deploymentId" | "namesModel" | "replicas" | "scaling">>()
  const keys = new Map<string, DeploymentId>()
  const taken = new Set<string>()
  let createdRuns = 0
  let away = false

  const change = (id: DeploymentId, next: (row: Run) => Run) => {
    const row = rows.get(id)
    if (row === undefined) return
    rows.set(id, next(row))
    notify(id)
  }
  const end = (id: DeploymentId, reason: string) =>
    Effect.map(Clock.currentTimeMillis, (now) => change(id, (row) => (row.endedAt === null ? move(row, "cancelled", now, reason, null) : row)))
  const unbind = (row: Run): Run => ({ ...row, applied: row.applied === null ? null : { ...row.applied, current: null } })
  const rescaled = (row: Run, number: { readonly replicas?: number }): Run => {
    const current = row.applied?.current ?? null
    if (row.applied === null || current === null) return { ...row, ...number }
    const { generation, namesModel, uid } = current
    return { ...row, ...number, applied: { ...row.applied, current: { uid, generation, namesModel, ...number } } }
  }
  const reached = Effect.suspend(() => (away ? Effect.die(new Error("Postgres is away")) : Effect.void))

  const service = AppliedResources.of({
    owner: (slug) => Effect.as(reached, slug === "acme" ? Option.some({ orgId, active: true, firstPurchase: true, usedUp: null }) : Option.none()),
    find: ({ name }) =>
      Effect.map(reached, () => {
        const binding = bindings.get(name)
        const row = binding === undefined ? undefined : rows.get(binding.deploymentId)
        if (binding === undefined || row === undefined) return Option.none<Binding>()
        const { modelDeleted, modelId, orgSlug, phase, source } = row
        return Option.some({ ...binding, orgId, orgSlug, modelId, repo: source.repo, modelDeleted, phase })
      }),
    adopt: Effect.fnUntraced(function* ({ modelId, resource, serve, serving, source, specHash }) {
      yield* reached
      const { generation, name, namespace, uid } = resource
      const key = `${uid}:${generation}`
      const earlier = keys.get(key)
      if (earlier !== undefined && bindings.has(name)) return earlier
      if (taken.has(name)) return yield* new ModelNameTaken({ slug: name })
      if (modelId !== null && modelId !== run.modelId) return yield* new NamedModelRefused({ why: "NotFound", conflict: "" })
      const before = bindings.get(name)
      if (before !== undefined) {
        yield* end(before.deploymentId, "Its ModelDeployment was changed.")
        change(before.deploymentId, unbind)
      }
      const id = idOf(++createdRuns)
      rows.set(id, {
        ...run,
        id,
        engineRun: id,
        model: modelId === null ? `acme/${name}` : run.model,
        // Omitted settings are those of the named model.
        source: modelId === null || source.ref !== undefined ? source : { ...source, ref: "main" },
        servingRequest: modelId === null || Object.keys(serving).length > 0 ? serving : { max_context: 512 },
        keptChoices: null,
        serve,
        applied: { namespace, name, current: { uid, generation, namesModel: modelId !== null } }
      })
      bindings.set(name, {
        uid,
        generation,
        specHash,
        deploymentId: id,
        namesModel: modelId !== null,
        replicas: before?.replicas ?? null,
        scaling: before?.scaling ?? null
      })
      keys.set(key, id)
      notify(id)
      yield* gate(`adopt ${name}`)
      return id
    }),
    rebind: ({ generation, name, uid }, specHash) =>
      Effect.gen(function* () {
        const binding = bindings.get(name)
        if (binding === undefined || binding.specHash !== specHash) return
        bindings.set(name, { ...binding, uid, generation })
        change(binding.deploymentId, (row) => ({
          ...row,
          applied: row.applied === null ? null : { ...row.applied, current: { ...row.applied.current, uid, generation, namesModel: binding.namesModel } }
        }))
        yield* gate(`rebind ${name}`)
      }),
    scale: ({ name }, scaling) =>
      Effect.gen(function* () {
        const binding = bindings.get(name)
        const replicas = scaling !== null && "replicas" in scaling ? scaling.replicas : null
        if (binding === undefined || binding.replicas === replicas) return
        bindings.set(name, { ...binding, replicas })
        const number = replicas === null ? {} : { replicas }
        // The number is the model's: all its runs have it.
        for (const row of [...rows.values()].filter(({ applied }) => applied?.name === name)) change(row.id, (each) => rescaled(each, number))
        yield* gate(`scale ${name}`)
      }),
    retire: ({ name }) =>
      Effect.gen(function* () {
        yield* reached
        const binding = bindings.get(name)
        if (binding === undefined) return false
        yield* end(binding.deploymentId, "The model was deleted.")
        change(binding.deploymentId, (row) => ({ ...unbind(row), modelDeleted: !binding.namesModel }))
        bindings.delete(name)
        yield* gate(`retire ${name}`)
        return true
      })
  })
  return {
    service,
    bindings,
    taken,
    /** The number of created runs. */
    made: () => createdRuns,
    setAway: (next: boolean) => {
      away = next
    }
  }
}
