import { type DeploymentId, Phase, workingPhases } from "@seatrial/domain"
import { ModelAdmin, Runs } from "@seatrial/store"
import { capabilities, estimate, facts, settings } from "@seatrial/store/testing"
import { Effect, Schema } from "effect"
import type { Stage } from "../Stage.ts"
import { type Single, whose } from "./Command.ts"
import { type Action, isOver, type OrgName, orgOf, phaseOf } from "./ContractModel.ts"
import { type Actual, exchange, type Play } from "./Play.ts"
import { meaningOf, spell, type Wanted } from "./spelling.ts"

/** An executable step: the action for the contract model, a description for the log, and the effect. */
export interface Step {
  readonly action: Action
  readonly description: string
  readonly run: Effect.Effect<Actual, never, ModelAdmin | Runs | Stage>
}

const names = [null, "alpha", "beta", "tiny-chat"]
const repos = ["seatrial/tiny-chat", "Another/Tiny-Chat"]
const refs = [null, "main", "v1"]
const servings: ReadonlyArray<Wanted["serving"]> = [
  {},
  { max_context: 1024 },
  { hold_seconds: 60, engine_flags: { max_num_seqs: 4, gpu_memory_utilization: 0.5 }, yarn: { original_context: 512, factor: 2 } }
]
/** Serving settings that no first create uses. */
const changedServing: Wanted["serving"] = { max_context: 2048 }

/** Well-formed IDs that the server never assigned. */
const neverRun = "dep_01890000000000000000000000"
const neverModel = "mdl_01890000000000000000000000"

const nth = <A>(all: Iterable<A>, index: number): A | undefined => {
  const list = [...all]
  return list[index % Math.max(1, list.length)]
}
const isPhase = Schema.is(Phase)

const changedBy = (run: Effect.Effect<boolean, never, ModelAdmin | Runs>): Step["run"] => Effect.map(run, (changed): Actual => ({ _tag: "Changed", changed }))

const create = (
  play: Play,
  { server, spelling, who: share }: { readonly server: number; readonly spelling: number; readonly who: number },
  key: string,
  wanted: Wanted
): Step => {
  const { target } = wanted
  const who = whose(share)
  const body = spell(wanted, spelling)
  if (!play.creates.some((earlier) => earlier.key === key)) play.creates.push({ key, wanted })
  return {
    action: {
      _tag: "Create",
      who,
      key,
      input: {
        meaning: meaningOf(wanted),
        serve: wanted.serve,
        target: target._tag === "Redeploy" ? { model: target.model } : { slug: slugOf(target), repo: target.repo }
      }
    },
    description: `${who}@${server} creates ${key}: ${meaningOf(wanted)}, spelled ${spelling}`,
    run: exchange(server, { method: "POST", path: "/v1/deployments", key: play.keys[who].secret, headers: { "idempotency-key": key }, body })
  }
}

const slugOf = ({ name, repo }: { readonly name: string | null; readonly repo: string }): string => name ?? repo.slice(repo.indexOf("/") + 1).toLowerCase()

/** The run of an operator's step, in its phase of the first possible state. */
const runFor = (play: Play, of: number) => {
  const entry = nth(play.names.runs, of)
  const run = entry === undefined ? undefined : play.states[0]?.runs[entry[0]]
  if (entry === undefined || run === undefined) return null
  const from = phaseOf(run)
  return isPhase(from) ? { name: entry[0], id: entry[1], run, from, orgId: play.tenants[run.org].orgId } : null
}

const enter = (play: Play, of: number, next: (from: Phase) => Phase | undefined): Step | null => {
  const operatorRun = runFor(play, of)
  if (operatorRun === null) return null
  const { from, id, name, orgId, run } = operatorRun
  const to = next(from)
  if (to === undefined || isOver(run)) return null
  const failure = to === "failed" ? { failure: { code: "engine_failed", text: "It ended." } } : {}
  return {
    action: { _tag: "Enter", run: name, from, to, failure: to === "failed" ? "engine_failed: It ended." : null },
    description: `the operator takes ${name} from ${from} to ${to}`,
    run: changedBy(Effect.flatMap(Runs, (runs) => runs.enter({ id, orgId, from, to, reason: "Test", ...failure })))
  }
}

const order: ReadonlyArray<Phase> = workingPhases
const last = order.indexOf("benchmarking")

const advance = (by: number) => (from: Phase) => {
  const start = order.indexOf(from)
  return start < 0 || start >= last ? undefined : order[Math.min(last, start + 1 + by)]
}

let screeningCount = 0

/** The result of a screening. Its settings are unique, so that no earlier revision is reused. */
const screening = () => ({
  facts,
  settings: { ...settings, hold_seconds: 40_000 + (++screeningCount % 40_000) },
  engineVersion: "reference-1",
  engineImage: "reference:1",
  estimate,
  capabilities
})

/** The step of a command. Null if the run or model that it needs does not exist yet. */
export const stepOf = (play: Play, command: Exclude<Single, { readonly _tag: "Prepare" }>): Step | null => {
  switch (command._tag) {
    case "Create":
    case "Redeploy": {
      const common = { ref: refs[command.ref] ?? null, serving: servings[command.serving] ?? {}, serve: command.serve }
      const key = `k${command.key}`
      if (command._tag === "Create") {
        return create(play, command, key, { target: { _tag: "New", repo: repos[command.repo] ?? "", name: names[command.name] ?? null }, ...common })
      }
      // Every eleventh redeploy uses a nonexistent model.
      const [model, id] = (command.of % 11 === 0 ? undefined : nth(play.names.models, command.of)) ?? [null, neverModel]
      return create(play, command, key, { target: { _tag: "Redeploy", model, id }, ...common })
    }
    case "Again": {
      const earlier = nth(play.creates, command.of)
      if (earlier === undefined) return null
      return create(play, command, earlier.key, command.changed ? { ...earlier.wanted, serving: changedServing } : earlier.wanted)
    }
    case "Cancel": {
      const [run, id]: readonly [string | null, DeploymentId | string] = nth(play.names.runs, command.of) ?? [null, neverRun]
      const who = whose(command.who)
      return {
        action: { _tag: "Cancel", who, run },
        description: `${who}@${command.server} cancels ${run ?? "a nonexistent run"}`,
        run: exchange(command.server, {
          method: "POST",
          path: `/v1/deployments/${id}/cancel`,
          key: play.keys[who].secret,
          ...(command.bare ? {} : { body: "{}" })
        })
      }
    }
    case "Fail":
      return enter(play, command.of, () => "failed")
    case "Advance":
      return enter(play, command.of, advance(command.by))
    case "Screen": {
      const operatorRun = runFor(play, command.of)
      if (operatorRun === null) return null
      const { id, name, orgId } = operatorRun
      return {
        action: { _tag: "Screen", run: name },
        description: `the operator screens ${name}`,
        run: changedBy(Effect.flatMap(Runs, (runs) => runs.recordScreening({ id, orgId, ...screening() })))
      }
    }
    case "Activate": {
      const operatorRun = runFor(play, command.of)
      if (operatorRun === null || operatorRun.from !== "activating") return null
      const { from, id, name, orgId } = operatorRun
      return {
        action: { _tag: "Activate", run: name },
        description: `the operator activates ${name}`,
        run: changedBy(Effect.flatMap(Runs, (runs) => runs.activate({ id, orgId, from })))
      }
    }
    case "DeleteModel": {
      const entry = nth(play.names.models, command.of)
      if (entry === undefined) return null
      const [model, id] = entry
      const org: OrgName = play.states[0]?.models[model]?.org ?? orgOf("owner")
      return {
        action: { _tag: "DeleteModel", model },
        description: `an administrator deletes the model ${model}`,
        run: changedBy(
          Effect.flatMap(ModelAdmin, (models) =>
            models.remove(play.tenants[org].orgId, id).pipe(
              Effect.as(true),
              Effect.catchTag("ModelNotFound", () => Effect.succeed(false))
            )
          )
        )
      }
    }
  }
}
