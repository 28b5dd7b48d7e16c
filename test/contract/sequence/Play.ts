import { DeploymentId, DeploymentOperation, ModelId, scopes } from "@seatrial/domain"
import { ApiKeys, type Caller } from "@seatrial/store"
import { Data, Effect, Option, Redacted, Schema } from "effect"
import { type GivenKey, makeTenant, Stage, type Tenant } from "../Stage.ts"
import { type Answer, type Ask, bodyOf, failureOf } from "../Wire.ts"
import type { Who } from "./Command.ts"
import { type Expected, initial, type OrgName, type State } from "./ContractModel.ts"
import type { Wanted } from "./spelling.ts"

/** The server violated the contract. The message contains the complete sequence. */
export class Contradiction extends Data.TaggedError("Contradiction")<{ readonly message: string }> {}

/** The result of a step: a response, or whether the step of the operator or the administrator changed something. */
export type Actual = Answer | { readonly _tag: "Changed"; readonly changed: boolean }

/** The IDs that the server assigned to the names of the contract model. */
export interface Names {
  readonly runs: ReadonlyMap<string, DeploymentId>
  readonly models: ReadonlyMap<string, ModelId>
}

/** A running sequence: the possible states of the server after the responses so far, and the context of the next steps. */
export interface Play {
  readonly tenants: Readonly<Record<OrgName, Tenant>>
  readonly callers: Readonly<Record<OrgName, Caller>>
  readonly keys: Readonly<Record<Who, GivenKey>>
  readonly creates: Array<{ readonly key: string; readonly wanted: Wanted }>
  readonly log: Array<string>
  /** Number of results of each kind, to check that the test covers all kinds. */
  readonly met: Map<string, number>
  names: Names
  /** Several states are possible if the responses of concurrent steps do not determine their order. */
  states: ReadonlyArray<State>
}

export const openPlay = Effect.fnUntraced(function* (purchased: boolean, met: Map<string, number>) {
  const apiKeys = yield* ApiKeys
  const home = yield* makeTenant(purchased, "home")
  const away = yield* makeTenant(true, "away")
  const keys = {
    owner: yield* home.withKey(),
    writer: yield* home.withKey(scopes.filter((scope) => scope !== "models:write")),
    reader: yield* home.withKey(scopes.filter((scope) => scope !== "deployments:write")),
    stranger: yield* away.withKey()
  }
  const callerOf = ({ secret }: GivenKey) => Effect.map(apiKeys.authenticate(Redacted.make(secret)), Option.getOrThrow)
  const play: Play = {
    tenants: { home, away },
    callers: { home: yield* callerOf(keys.owner), away: yield* callerOf(keys.stranger) },
    keys,
    creates: [],
    log: [],
    met,
    names: { runs: new Map(), models: new Map() },
    states: [initial(purchased)]
  }
  return play
})

/** One request to one of the servers. */
export const exchange = Effect.fnUntraced(function* (server: number, ask: Ask) {
  const { servers } = yield* Stage
  return yield* (servers[server] ?? servers[0]).answer(ask)
})

const learn = <Id>(known: ReadonlyMap<string, Id>, name: string, id: Id): ReadonlyMap<string, Id> | null => {
  const knownId = known.get(name)
  if (knownId !== undefined) return knownId === id ? known : null
  for (const other of known.values()) if (other === id) return null
  return new Map(known).set(name, id)
}

const Cancelled = Schema.Struct({ id: Schema.String, cancelled: Schema.Literal(true) })

/** Adds the IDs in the result of a step to the names. Null if the result is not the expected one. */
export const agree = (names: Names, expected: Expected, actual: Actual): Names | null => {
  if (actual._tag === "Changed" || expected._tag === "Changed") {
    return actual._tag === expected._tag && actual.changed === expected.changed ? names : null
  }
  if (expected._tag === "Refused") {
    const failure = failureOf(actual)
    if (actual.status !== expected.status || Option.isNone(failure)) return null
    return failure.value.code === expected.code && (failure.value.param ?? null) === expected.param ? names : null
  }
  if (expected._tag === "Cancelled") {
    return actual.status === 200 && bodyOf(Cancelled, actual).id === names.runs.get(expected.run) ? names : null
  }
  if (actual.status !== expected.status) return null
  const body = bodyOf(DeploymentOperation, actual)
  const url = `/v1/deployments/${body.id}`
  const replayed = actual.headers["idempotent-replayed"] === "true"
  if (body.status !== expected.phase || (body.revision_id !== null) !== expected.revision) return null
  if (body.status_url !== url || actual.headers.location !== url || replayed !== (expected.status === 200)) return null
  const runs = learn(names.runs, expected.run, Schema.decodeSync(DeploymentId)(body.id))
  const models = learn(names.models, expected.model, Schema.decodeSync(ModelId)(body.model_id))
  return runs === null || models === null ? null : { runs, models }
}

/** A short label for the result of a step. */
export const labelOf = (actual: Actual): string => {
  if (actual._tag === "Changed") return actual.changed ? "changed" : "unchanged"
  return `${actual.status} ${Option.match(failureOf(actual), { onNone: () => "", onSome: ({ code }) => code })}`.trim()
}
