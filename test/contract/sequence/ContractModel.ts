import type { Who } from "./Command.ts"

// A model of creates, replays, conflicts and cancels in the contract, as pure functions. The name of a run is its organization and idempotency key.
// The name of a model is the run that created it. The server assigns the IDs.

export type OrgName = "home" | "away"

export interface Input {
  /** The input in a canonical spelling. */
  readonly meaning: string
  readonly serve: boolean
  /** The name of a new model, or the model to redeploy. Null for a nonexistent model ID. */
  readonly target: { readonly slug: string; readonly repo: string } | { readonly model: string | null }
}

export type Action =
  | { readonly _tag: "Create"; readonly who: Who; readonly key: string; readonly input: Input }
  | { readonly _tag: "Cancel"; readonly who: Who; readonly run: string | null }
  | { readonly _tag: "Enter"; readonly run: string; readonly from: string; readonly to: string; readonly failure: string | null }
  | { readonly _tag: "Screen"; readonly run: string }
  | { readonly _tag: "Activate"; readonly run: string }
  | { readonly _tag: "DeleteModel"; readonly model: string }

export interface ModelOfRuns {
  readonly org: OrgName
  readonly slug: string
  readonly repo: string
  readonly deleted: boolean
  /** The run of the serving revision. */
  readonly active: string | null
}

export interface ModelledRun {
  readonly org: OrgName
  readonly model: string
  readonly input: Input
  readonly phases: ReadonlyArray<string>
  readonly failure: string | null
  readonly revision: "none" | "draft" | "active" | "superseded"
  readonly checked: boolean
}

export interface State {
  readonly suspended: boolean
  readonly purchased: boolean
  readonly revoked: ReadonlyArray<Who>
  readonly models: Readonly<Record<string, ModelOfRuns>>
  readonly runs: Readonly<Record<string, ModelledRun>>
}

export const initial = (purchased: boolean): State => ({ suspended: false, purchased, revoked: [], models: {}, runs: {} })

export type Expected =
  | { readonly _tag: "Refused"; readonly status: number; readonly code: string; readonly param: string | null }
  | {
      readonly _tag: "Operation"
      readonly status: 200 | 201
      readonly run: string
      readonly model: string
      /** Name of the phase in the `/v1` family. */
      readonly phase: string
      readonly revision: boolean
    }
  | { readonly _tag: "Cancelled"; readonly run: string }
  /** Whether the step of the operator or the administrator changed something. */
  | { readonly _tag: "Changed"; readonly changed: boolean }

const v1Names: Readonly<Record<string, string>> = {
  materializing: "ingesting",
  waiting: "probing",
  queued: "probing",
  provisioning: "staging",
  booting: "staging",
  measuring: "checking",
  benchmarking: "checking"
}
/** The name of a phase in the `/v1` family. */
export const v1Name = (phase: string): string => v1Names[phase] ?? phase

/** A history in the `/v1` family: consecutive phases with the same name are merged. */
export const v1History = (phases: ReadonlyArray<string>): ReadonlyArray<{ readonly name: string; readonly first: number }> =>
  phases.map((phase, first) => ({ name: v1Name(phase), first })).filter(({ name }, index, all) => all[index - 1]?.name !== name)

export const phaseOf = (run: ModelledRun): string => run.phases.at(-1) ?? ""
export const isOver = (run: ModelledRun): boolean => ["activated", "failed", "cancelled"].includes(phaseOf(run))
export const orgOf = (who: Who): OrgName => (who === "stranger" ? "away" : "home")
export const runName = (org: OrgName, key: string): string => `${org}/${key}`

const refused = (status: number, code: string, param: string | null = null): Expected => ({ _tag: "Refused", status, code, param })

/** The refusal that depends only on the key, or null. */
const keyRefusal = (state: State, who: Who): Expected | null => {
  if (who !== "stranger" && (state.suspended || state.revoked.includes(who))) return refused(401, "invalid_api_key")
  return who === "reader" ? refused(403, "missing_scope", "deployments:write") : null
}

const operation = (name: string, run: ModelledRun, status: 200 | 201): Expected => ({
  _tag: "Operation",
  status,
  run: name,
  model: run.model,
  phase: v1Name(phaseOf(run)),
  revision: run.revision !== "none"
})

const withRun = (state: State, name: string, run: ModelledRun): State => ({ ...state, runs: { ...state.runs, [name]: run } })
const withModel = (state: State, name: string, model: ModelOfRuns): State => ({ ...state, models: { ...state.models, [name]: model } })

const create = (state: State, { input, key, who }: Extract<Action, { _tag: "Create" }>): readonly [State, Expected] => {
  const refusal = keyRefusal(state, who)
  if (refusal !== null) return [state, refusal]
  if (input.serve && who === "writer") return [state, refused(403, "missing_scope", "models:write")]
  const org = orgOf(who)
  const name = runName(org, key)
  const bound = state.runs[name]
  if (bound !== undefined) {
    if (bound.input.meaning !== input.meaning) return [state, refused(409, "idempotency_key_reused", "Idempotency-Key")]
    if (state.models[bound.model]?.deleted === true) return [state, refused(404, "model_deleted")]
    return [state, operation(name, bound, 200)]
  }
  if (org === "home" && !state.purchased) return [state, refused(402, "first_purchase_required")]
  const fresh = { org, input, phases: ["screening"], failure: null, revision: "none", checked: false } as const
  if ("model" in input.target) {
    const of = input.target.model
    const model = of === null ? undefined : state.models[of]
    if (of === null || model === undefined || model.org !== org || model.deleted) return [state, refused(404, "not_found", "model_id")]
    const run = { ...fresh, model: of }
    return [withRun(state, name, run), operation(name, run, 201)]
  }
  const { repo, slug } = input.target
  if (Object.values(state.models).some((model) => model.org === org && model.slug === slug && !model.deleted)) {
    return [state, refused(409, "model_name_taken", "model_name")]
  }
  const run = { ...fresh, model: name }
  return [withRun(withModel(state, name, { org, slug, repo, deleted: false, active: null }), name, run), operation(name, run, 201)]
}

const cancel = (state: State, { run: name, who }: Extract<Action, { _tag: "Cancel" }>): readonly [State, Expected] => {
  const refusal = keyRefusal(state, who)
  if (refusal !== null) return [state, refusal]
  const run = name === null ? undefined : state.runs[name]
  if (name === null || run === undefined || run.org !== orgOf(who)) return [state, refused(404, "not_found")]
  if (isOver(run)) return [state, refused(409, "deployment_finished")]
  return [withRun(state, name, { ...run, phases: [...run.phases, "cancelled"] }), { _tag: "Cancelled", run: name }]
}

const unchanged: Expected = { _tag: "Changed", changed: false }
const changed: Expected = { _tag: "Changed", changed: true }

const activate = (state: State, name: string): readonly [State, Expected] => {
  const run = state.runs[name]
  const model = run === undefined ? undefined : state.models[run.model]
  if (run === undefined || model === undefined || phaseOf(run) !== "activating" || model.deleted) return [state, unchanged]
  const phases = [...run.phases, "activated"]
  if (!run.input.serve) return [withRun(state, name, { ...run, phases }), changed]
  const before = model.active === null ? undefined : state.runs[model.active]
  const superseded: State = before === undefined || model.active === null ? state : withRun(state, model.active, { ...before, revision: "superseded" })
  return [withModel(withRun(superseded, name, { ...run, phases, revision: "active" }), run.model, { ...model, active: name }), changed]
}

/** The next state and the expected response of an action. */
export const step = (state: State, action: Action): readonly [State, Expected] => {
  switch (action._tag) {
    case "Create":
      return create(state, action)
    case "Cancel":
      return cancel(state, action)
    case "Activate":
      return activate(state, action.run)
    case "Screen": {
      const run = state.runs[action.run]
      if (run === undefined || phaseOf(run) !== "screening") return [state, unchanged]
      return [withRun(state, action.run, { ...run, revision: "draft" }), changed]
    }
    case "Enter": {
      const run = state.runs[action.run]
      if (run === undefined || isOver(run) || phaseOf(run) !== action.from) return [state, unchanged]
      return [withRun(state, action.run, { ...run, phases: [...run.phases, action.to], failure: action.failure }), changed]
    }
    case "DeleteModel": {
      const model = state.models[action.model]
      if (model === undefined || model.deleted) return [state, unchanged]
      const runs = Object.entries(state.runs).map(([name, run]) => {
        const ended = run.model === action.model && !isOver(run)
        return [name, ended ? { ...run, phases: [...run.phases, "cancelled"] } : run] as const
      })
      return [{ ...withModel(state, action.model, { ...model, deleted: true }), runs: Object.fromEntries(runs) }, changed]
    }
  }
}
